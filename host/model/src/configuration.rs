//! A state of the whole, and when it has settled.

use std::sync::Arc;

use crate::hash::Mix;
use crate::machine::{Form, Known};
use crate::scope::UNIT_MS;
use crate::world::{Waits, World};

/// A state of the whole: the driver, and the world.
#[derive(Clone, Debug)]
pub struct Configuration {
    pub form: Arc<Form>,
    pub world: World,
}

impl Configuration {
    pub fn hash(&self) -> u64 {
        let mut mix = Mix::new();
        mix.word(self.form.hash as u64);
        mix.word((self.form.hash >> 64) as u64);
        self.world.hash(&mut mix);
        (mix.finish() >> 64) as u64
    }

    /// Converged, nothing on its way, and what exists is what is held or reported.
    pub fn is_settled(&self) -> bool {
        if !self.form.converged || !self.world.calls.as_slice().is_empty() {
            return false;
        }
        let held = |attempt: u8, number: u8| {
            let known = self.form.known.get(usize::from(attempt));
            // A second resource under a key in use is reported; once its attempt is retired it is reaped.
            known.is_some_and(|known| {
                known.holds && (known.lease == number + 1 || known.orphans >> (number & 15) & 1 == 1)
            })
        };
        self.world.resources.as_slice().iter().all(|resource| held(resource.attempt, resource.number))
            && self
                .form
                .known
                .iter()
                .enumerate()
                .all(|(at, known)| known.lease == 0 || self.world.leased(at as u8, known.lease - 1).is_some())
    }

    /// How far time goes in one move; `None` when nothing depends on it.
    pub(crate) fn step_ms(&self) -> Option<u64> {
        let world = &self.world;
        let ages = world.calls.as_slice().iter().any(|call| call.left_ms > 0)
            || world.resources.as_slice().iter().any(|held| held.young_ms > 0);
        match self.form.wake_ms {
            Some(wake) => Some(wake),
            None => ages.then_some(UNIT_MS),
        }
    }

    /// How much is late when time passes: calls that the driver waits for, and joins that would have come.
    pub(crate) fn late(&self, ms: u64) -> u8 {
        let due = |at: Option<u64>| at.is_some_and(|at| at <= ms);
        let mut late = 0;
        for call in self.world.calls.as_slice().iter().filter(|call| call.waits == Waits::Driver) {
            let known = self.form.known.get(usize::from(call.attempt));
            late += u8::from(known.is_some_and(|known| due(known.deadline_ms)));
        }
        for held in self.world.resources.as_slice().iter().filter(|held| held.heard && held.session > 0) {
            let known = self.form.known.get(usize::from(held.attempt));
            let listens =
                |known: &Known| due(known.boot_ms) && known.lease == held.number + 1 && known.session == held.session;
            late += u8::from(known.is_some_and(listens));
        }
        late
    }
}
