//! What is watched of the loop, for people and metrics. Nothing here reaches a decision.

use std::sync::Arc;
use std::time::Duration;

use engine::command::Command;
use engine::driver::Driver;
use engine::io::{Input, Output};
use inspect::{Candidate, DecisionLog};

use super::operate::Refused;

/// Who watches.
#[derive(Default)]
pub(super) struct Instruments {
    decisions: Option<Decisions>,
}

struct Decisions {
    log: Arc<DecisionLog>,
    /// The snapshot that a plan is awaited for.
    asked: Option<(u64, Arc<decider::Snapshot>)>,
    candidates: Vec<Candidate>,
}

impl Instruments {
    pub fn keep_decisions(&mut self, log: Arc<DecisionLog>) {
        self.decisions = Some(Decisions { log, asked: None, candidates: Vec::new() });
    }

    /// An input is about to be folded.
    pub fn given(&mut self, driver: &Driver, input: &Input) {
        if let (Some(decisions), Input::Decided { call, result: Ok(plan) }) = (&mut self.decisions, input)
            && let Some((_, snapshot)) = decisions.asked.take_if(|(asked, _)| asked == call)
        {
            decisions.candidates = DecisionLog::candidates(driver, &snapshot, plan);
        }
    }

    /// It was folded.
    pub fn folded(&mut self, driver: &Driver) {
        if let Some(decisions) = &mut self.decisions
            && !decisions.candidates.is_empty()
        {
            decisions.log.applied(driver, std::mem::take(&mut decisions.candidates));
        }
    }

    /// The driver put something out.
    pub fn output(&mut self, output: &Output) {
        if let (Some(decisions), Output::Decide { call, snapshot }) = (&mut self.decisions, output) {
            decisions.asked = Some((*call, snapshot.clone()));
        }
    }

    /// What was taken is on the disk.
    pub fn committed(&mut self, took: Duration) {
        let _ = took;
    }

    /// An operator asked for something.
    pub fn commanded(&mut self, command: &Command, refused: Option<&Refused>) {
        let _ = (command, refused);
    }
}
