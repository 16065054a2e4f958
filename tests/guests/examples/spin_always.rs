//! Never answers, not even in the trial.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{Plan, Snapshot};
use hostile_guests::{describe, spin};

fn reconcile(_: &Snapshot) -> Plan {
    spin()
}

decider_guest::export_decider!(describe, reconcile);
