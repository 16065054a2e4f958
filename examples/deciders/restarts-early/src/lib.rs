//! A decider with a mistake. **It breaks S8**: a replacement starts only after its predecessor is cleaned up.
//!
//! Its author thought: "A failed node is down until its next attempt is up. Waiting for the clean-up first makes that longer;
//! start the next attempt at once, and clean up on the side." So R4 restarts what has failed. Then two attempts hold one
//! slot, and what the first one left is nobody's.
#![cfg_attr(target_arch = "wasm32", no_std)]

use decider::{Decided, Description, NodeRow, Plan, Snapshot, Stage, Verb, Verdict};

/// What the host shows of this decider. It cites the ladder's rules.
pub fn describe() -> Description {
    let (name, version) = (env!("CARGO_PKG_NAME").into(), env!("CARGO_PKG_VERSION").into());
    Description { name, version, ..decider::describe() }
}

/// The plan: `choose` for every node.
pub fn reconcile(snapshot: &Snapshot) -> Plan {
    decider::reconcile_with(snapshot, |row| choose(row, snapshot))
}

fn choose(row: &NodeRow, snapshot: &Snapshot) -> Decided {
    let ladder = decider::decide(row, snapshot);
    let wanted = row.desired_template != decider::NO_INDEX;
    if wanted && row.stage == Stage::Failed.code() && ladder.then == Verdict::Act(Verb::BeginDelete) {
        // The mistake: R4 would begin to delete it, and R2 restart the slot once nothing is left of it.
        return Decided { rule: 2, then: Verdict::Act(Verb::Restart) };
    }
    ladder
}

#[cfg(target_arch = "wasm32")]
decider_guest::export_decider!(describe, reconcile);
