//! Decides a node that the snapshot does not have.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{Plan, Snapshot, Verb};
use hostile_guests::{decision, describe};

fn reconcile(snapshot: &Snapshot) -> Plan {
    let mut plan = decider::reconcile(snapshot);
    plan.decisions.push(decision(4_000_000, 0, Verb::Insert));
    plan
}

decider_guest::export_decider!(describe, reconcile);
