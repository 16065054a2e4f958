//! Decides nothing.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{Plan, Snapshot};
use hostile_guests::describe;

fn reconcile(_: &Snapshot) -> Plan {
    Plan::default()
}

decider_guest::export_decider!(describe, reconcile);
