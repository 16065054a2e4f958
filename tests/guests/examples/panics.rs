//! Panics as soon as there is a node.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{Plan, Snapshot};
use hostile_guests::describe;

fn reconcile(snapshot: &Snapshot) -> Plan {
    assert!(snapshot.nodes.is_empty());
    Plan::default()
}

decider_guest::export_decider!(describe, reconcile);
