//! What the hostile guests share. Elsewhere than on wasm it is empty.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{DecisionRow, Description, Plan, Snapshot, Verb};

/// The built-in decider's description under another name.
pub fn describe() -> Description {
    Description { name: "hostile".into(), ..decider::describe() }
}

/// The built-in decider's plan.
pub fn ladder(snapshot: &Snapshot) -> Plan {
    decider::reconcile(snapshot)
}

/// An action, citing the first rule.
pub fn decision(node: u32, attempt: u64, verb: Verb) -> DecisionRow {
    DecisionRow { node, attempt, rule: 0, verb: verb.code(), hold: 0, until: 0 }
}

/// Runs for ever, in a way that no compiler takes away.
pub fn spin() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = core::hint::black_box(turns.wrapping_add(1));
    }
}
