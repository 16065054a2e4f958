//! Decides about an attempt that does not hold the slot.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{Plan, Snapshot};
use hostile_guests::describe;

fn reconcile(snapshot: &Snapshot) -> Plan {
    let mut plan = decider::reconcile(snapshot);
    for attempt in &mut plan.decisions.attempt {
        *attempt = attempt.wrapping_add(1);
    }
    plan
}

decider_guest::export_decider!(describe, reconcile);
