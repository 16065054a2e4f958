//! Cites a rule that it did not declare.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{Plan, Snapshot};
use hostile_guests::describe;

fn reconcile(snapshot: &Snapshot) -> Plan {
    let mut plan = decider::reconcile(snapshot);
    plan.decisions.rule.fill(255);
    plan
}

decider_guest::export_decider!(describe, reconcile);
