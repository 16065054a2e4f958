//! Decides as the built-in decider does, until the generation ends in 39: then it traps.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{Plan, Snapshot};
use hostile_guests::describe;

fn reconcile(snapshot: &Snapshot) -> Plan {
    assert!(snapshot.generation % 40 != 39);
    decider::reconcile(snapshot)
}

decider_guest::export_decider!(describe, reconcile);
