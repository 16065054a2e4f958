//! A decider of your own. It decides as the built-in ladder does, until `choose` says otherwise.
#![cfg_attr(target_arch = "wasm32", no_std)]

use decider::{Decided, Description, NodeRow, Plan, Snapshot};

/// What the host shows of this decider, and the rules that it may cite: the ladder's. Add yours.
pub fn describe() -> Description {
    Description { name: "ladder-rust".into(), version: env!("CARGO_PKG_VERSION").into(), ..decider::describe() }
}

/// The plan: `choose` for every node.
pub fn reconcile(snapshot: &Snapshot) -> Plan {
    decider::reconcile_with(snapshot, |row| choose(snapshot, row))
}

/// The decision for one node. It may depend on the row, the instant, the settings and the groups' totals, but not on which other
/// rows there are.
fn choose(snapshot: &Snapshot, row: &NodeRow) -> Decided {
    decider::decide(row, snapshot)
}

#[cfg(target_arch = "wasm32")]
decider_guest::export_decider!(describe, reconcile);
