//! Panics for node 7; decides all others as the built-in decider does.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{Plan, Snapshot};
use hostile_guests::describe;

fn reconcile(snapshot: &Snapshot) -> Plan {
    assert!(!snapshot.nodes.node.contains(&7));
    decider::reconcile(snapshot)
}

decider_guest::export_decider!(describe, reconcile);
