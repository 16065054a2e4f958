//! Destroys the lease of every node, whatever its state.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{Plan, Snapshot, Verb};
use hostile_guests::{decision, describe};

fn reconcile(snapshot: &Snapshot) -> Plan {
    let mut plan = Plan::default();
    for row in snapshot.nodes.rows() {
        plan.decisions.push(decision(row.node, row.attempt, Verb::DestroyLease));
    }
    plan
}

decider_guest::export_decider!(describe, reconcile);
