//! Decides the first node twice.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{Plan, Snapshot};
use hostile_guests::describe;

fn reconcile(snapshot: &Snapshot) -> Plan {
    let mut plan = decider::reconcile(snapshot);
    if let Some(first) = plan.decisions.row(0) {
        plan.decisions.push(first);
    }
    plan
}

decider_guest::export_decider!(describe, reconcile);
