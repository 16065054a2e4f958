//! Holds for a reason that the contract does not list.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{Plan, Snapshot};
use hostile_guests::describe;

fn reconcile(snapshot: &Snapshot) -> Plan {
    let mut plan = decider::reconcile(snapshot);
    plan.decisions.verb.fill(0);
    plan.decisions.hold.fill(255);
    plan
}

decider_guest::export_decider!(describe, reconcile);
