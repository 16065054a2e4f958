//! What of the past is let go, so that a driver that runs for years does not grow: the oldest attempts that nothing speaks of
//! any more. What appears under their label later is an orphan, which is left to a person (SPEC 10).

use std::collections::BTreeSet;

use crate::driver::Driver;
use crate::id::{AttemptId, NodeId};
use crate::state::Authorised;

/// Attempts that are remembered beyond those that the slots hold. Twice as many are let come together.
pub(crate) const REMEMBERED: usize = 100_000;

impl Driver {
    /// What is known of an attempt. One that was forgotten goes on where no operation of a forgotten one ever was (S3).
    pub(crate) fn attempt_mut(&mut self, attempt: AttemptId, first: u64) -> &mut Authorised {
        let next_sequence = first.max(self.state.forgotten_sequence);
        self.state.attempts.entry(attempt).or_insert(Authorised { node: NodeId(u32::MAX), next_sequence })
    }

    /// Forgets the oldest attempts when there are many more than slots.
    pub(crate) fn forget_old_attempts(&mut self) {
        let kept = self.state.slots.len().saturating_add(REMEMBERED);
        if self.state.attempts.len() < kept.saturating_add(REMEMBERED) {
            return;
        }
        let mut spoken_of: BTreeSet<AttemptId> = self.state.reaps.keys().copied().collect();
        spoken_of.extend(self.state.slots.iter().filter_map(|slot| Some(slot.node.as_ref()?.attempt)));
        spoken_of.extend(self.state.orphans.values().map(|orphan| orphan.key.attempt));
        let mut left = self.state.attempts.len() - kept;
        let mut sequence = self.state.forgotten_sequence;
        self.state.attempts.retain(|attempt, known| {
            if left == 0 || spoken_of.contains(attempt) {
                return true;
            }
            left -= 1;
            sequence = sequence.max(known.next_sequence);
            false
        });
        self.state.forgotten_sequence = sequence;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

    use super::*;
    use crate::driver::DriverConfig;
    use crate::id::ExternalKey;
    use crate::io::{DeciderIdentity, Input, Listing, Promise, Resource};
    use crate::policy::Policy;

    fn driver() -> Driver {
        let providers = [("fake".to_owned(), Promise::Keyed)].into_iter().collect();
        let decider = DeciderIdentity::native();
        let policy = Policy::default();
        Driver::new(DriverConfig { run: "web".into(), policy, providers, decider, next_attempt: 1, epoch: 0 }).unwrap()
    }

    #[test]
    fn the_oldest_attempts_are_forgotten_and_nothing_of_them_is_used_again() {
        let mut driver = driver();
        let node = driver.node_id("web-0", "web", 0);
        let first = driver.authorise(node);
        assert_eq!(driver.next_operation(first).sequence, 1);
        for _ in 0..3 * REMEMBERED {
            let attempt = driver.authorise(node);
            assert!(driver.next_operation(attempt).sequence == 1);
            assert!(driver.state().attempts.len() <= 2 * REMEMBERED + 1);
        }
        assert!(!driver.state().attempts.contains_key(&first));
        // Its number is not given out again, nor is one of its operations'.
        assert!(driver.next_operation(first).sequence > 1);
    }

    #[test]
    fn what_appears_under_the_label_of_a_forgotten_attempt_is_left_to_a_person() {
        let mut driver = driver();
        let node = driver.node_id("web-0", "web", 0);
        let first = driver.authorise(node);
        for _ in 0..2 * REMEMBERED {
            driver.authorise(node);
        }
        while driver.poll_output().is_some() {}
        let key = ExternalKey { run: "web".into(), slot: "web-0".into(), attempt: first };
        let resource = Resource { lease: "old".into(), key: Some(key), template: None };
        let listing = Listing { resources: vec![resource], complete: true };
        driver.handle(Input::Listed { provider: "fake".into(), listing }, 1_000).unwrap();
        assert_eq!(driver.state().orphans.len(), 1);
        assert!(driver.state().reaps.is_empty());
    }

    #[test]
    fn an_attempt_that_is_held_is_not_forgotten() {
        let mut driver = driver();
        let node = driver.node_id("web-0", "web", 0);
        let held = driver.authorise(node);
        let template = driver.intern(&std::sync::Arc::new(crate::sweep::unknown_template("fake")));
        driver.slot_mut(node).unwrap().node = Some(crate::state::ManagedNode::fresh(held, template, 0));
        for _ in 0..3 * REMEMBERED {
            driver.authorise(node);
        }
        assert_eq!(driver.state().holder(held), Some(node));
    }
}
