//! The invariants over a whole run: each step costs what it changes, not what there is.

use crate::invariants::{Changed, Violation, check_changed};
use crate::io::{Input, Output};
use crate::state::{ClusterState, ManagedNode, Slot};

/// Judges a running driver step by step. It keeps its own copy of the state, of which a step replaces only what changed,
/// so that a step costs what it changes and not what there is.
#[derive(Clone, Debug)]
pub struct Watch {
    before: ClusterState,
    touched: Vec<usize>,
}

impl Watch {
    /// Begins with the state as it is.
    pub fn new(state: &ClusterState) -> Self {
        Watch { before: state.clone(), touched: Vec::new() }
    }

    /// All invariants that the step from the last judged state to this one shows to be broken, as [`crate::invariants::check_step`].
    pub fn step(&mut self, input: &Input, outputs: &[Output], after: &ClusterState) -> Vec<Violation> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.clear();
        let changed = |at: &usize| self.before.slots.get(*at).is_none_or(|before| differs(before, &after.slots[*at]));
        touched.extend((0..after.slots.len()).filter(changed));
        let step = Changed { before: &self.before, input, outputs, after, touched: &touched };
        let found = check_changed(&step);
        self.follow(input, outputs, after, &touched);
        self.touched = touched;
        found
    }

    fn follow(&mut self, input: &Input, outputs: &[Output], after: &ClusterState, touched: &[usize]) {
        let before = &mut self.before;
        for at in touched {
            let slot = &after.slots[*at];
            match before.slots.get_mut(*at) {
                Some(old) => old.clone_from(slot),
                None => before.slots.push(slot.clone()),
            }
            if let Some(node) = &slot.node
                && let Some(known) = after.attempts.get(&node.attempt)
            {
                before.attempts.insert(node.attempt, *known);
            }
        }
        for output in outputs {
            if let Output::Submit(operation) = output
                && let Some(known) = after.attempts.get(&operation.id.attempt)
            {
                before.attempts.insert(operation.id.attempt, *known);
            }
        }
        if matches!(input, Input::Adopt { .. }) {
            before.attempts.clone_from(&after.attempts);
        }
        if before.names.len() != after.names.len() {
            before.names.clone_from(&after.names);
        }
        if before.orphans != after.orphans {
            before.orphans.clone_from(&after.orphans);
        }
        if before.reaps != after.reaps {
            before.reaps.clone_from(&after.reaps);
        }
        if before.pauses != after.pauses {
            before.pauses.clone_from(&after.pauses);
        }
        if matches!(input, Input::Command(_)) {
            before.retired.clone_from(&after.retired);
        }
        if matches!(input, Input::Desired(_) | Input::Command(_)) {
            before.desired.clone_from(&after.desired);
        }
        before.observed_generation = after.observed_generation;
        before.next_attempt = after.next_attempt;
        before.reserved_below = after.reserved_below;
        before.inherited_below = after.inherited_below;
    }
}

/// Whether anything that a checker looks at differs. The revision rises with every change that the driver knows of; the
/// rest finds those it should not have made.
fn differs(before: &Slot, after: &Slot) -> bool {
    let facts = |node: &ManagedNode| (node.attempt, node.stage, node.intent, node.template);
    let held = |a: &ManagedNode, b: &ManagedNode| {
        facts(a) == facts(b)
            && a.lease == b.lease
            && a.endpoint == b.endpoint
            && a.session == b.session
            && a.pending.as_ref().map(|pending| pending.operation.id)
                == b.pending.as_ref().map(|pending| pending.operation.id)
            && a.retry.ambiguous.as_ref().map(|doubt| doubt.id) == b.retry.ambiguous.as_ref().map(|doubt| doubt.id)
    };
    let same = match (&before.node, &after.node) {
        (None, None) => true,
        (Some(a), Some(b)) => held(a, b),
        _ => false,
    };
    before.revision != after.revision || before.desired != after.desired || !same
}
