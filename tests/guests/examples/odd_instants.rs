//! Holds every node at odd instants; decides as the built-in decider does at even ones.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{HoldKind, Plan, Snapshot};
use hostile_guests::describe;

fn reconcile(snapshot: &Snapshot) -> Plan {
    let mut plan = decider::reconcile(snapshot);
    if snapshot.now_ms % 2 == 1 {
        plan.decisions.verb.fill(0);
        plan.decisions.hold.fill(HoldKind::Steady.code());
        plan.decisions.until.fill(0);
    }
    plan
}

decider_guest::export_decider!(describe, reconcile);
