//! Never answers.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{Plan, Snapshot};
use hostile_guests::{describe, spin};

fn reconcile(snapshot: &Snapshot) -> Plan {
    if snapshot.nodes.is_empty() { Plan::default() } else { spin() }
}

decider_guest::export_decider!(describe, reconcile);
