//! A decider with a mistake. **It breaks S7**: an ambiguous create is adopted before anything destructive.
//!
//! Its author thought: "A create that timed out most likely made nothing, and this node is to be deleted anyway. Why ask the
//! provider for a machine that nobody wants? Go on with the clean-up." So R6 is left out. When the create did happen, its
//! resource runs on: nobody knows its id, so nobody can destroy it.
#![cfg_attr(target_arch = "wasm32", no_std)]

use decider::{Decided, Description, NodeRow, Plan, Snapshot, Verb, Verdict, live};

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
    match decider::decide(row, snapshot) {
        // The mistake: R6 would dispatch the same operation again, to learn what there is to clean up.
        Decided { rule: 6, .. } => clean_up(row),
        ladder => ladder,
    }
}

/// R7, R8 and R9, by what is known to be live.
fn clean_up(row: &NodeRow) -> Decided {
    if row.live & live::SESSION != 0 {
        Decided { rule: 7, then: Verdict::Act(Verb::CancelBootstrap) }
    } else if row.live & live::LEASE != 0 {
        Decided { rule: 8, then: Verdict::Act(Verb::DestroyLease) }
    } else {
        Decided { rule: 9, then: Verdict::Act(Verb::MarkDestroyed) }
    }
}

#[cfg(target_arch = "wasm32")]
decider_guest::export_decider!(describe, reconcile);
