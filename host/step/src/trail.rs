//! A walk that may get lost: from a record that the engine of this program cannot follow to the next start.

use std::sync::Arc;

use decider::Rule;
use engine::driver::Driver;
use engine::id::Millis;
use engine::io::Output;
use engine::state::ClusterState;
use journal::{Entry, Line, Mismatch, RecordedInput, Step, Walk};

use crate::words::Words;

/// What is known after some record. A copy is a place to come back to.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    /// `None` before the first start, and once the engine could not follow.
    walk: Option<Walk>,
    rules: Arc<Vec<Rule>>,
    started_ms: Millis,
}

impl Trail {
    /// Follows one record; `None` where the engine has been lost before.
    ///
    /// # Errors
    ///
    /// It is lost here.
    pub fn follow(&mut self, line: &Line) -> Result<Option<Step>, Mismatch> {
        match &line.entry {
            Entry::Start(start) => {
                // A new driver, a new chance.
                self.walk = Some(Walk::new());
                self.rules = Arc::new(start.decider.rules.clone());
                self.started_ms = line.at_ms;
            }
            Entry::Input { of: RecordedInput::DeciderChanged(identity), .. } => {
                self.rules = Arc::new(identity.rules.clone());
            }
            _ => {}
        }
        let Some(walk) = &mut self.walk else { return Ok(None) };
        let followed = walk.follow(line);
        if followed.is_err() {
            self.walk = None;
        }
        followed.map(Some)
    }

    /// The driver as it stands after the last record.
    pub fn driver(&self) -> Option<&Driver> {
        self.walk.as_ref()?.driver()
    }

    /// Its state.
    pub fn state(&self) -> Option<&ClusterState> {
        self.driver().map(Driver::state)
    }

    /// What it put out at the last record.
    pub fn outputs(&self) -> &[Output] {
        self.walk.as_ref().map_or(&[], Walk::outputs)
    }

    /// The rules of the decider in force.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The instant of the last start.
    pub fn started_ms(&self) -> Millis {
        self.started_ms
    }

    /// Records in words.
    pub fn words(&self) -> Words<'_> {
        Words { state: self.state(), rules: &self.rules }
    }
}
