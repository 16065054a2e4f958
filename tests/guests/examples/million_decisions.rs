//! Answers with a million decisions, whatever the snapshot.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

extern crate alloc;

use alloc::vec;
use decider::{Decisions, Plan, Snapshot, Verb};
use hostile_guests::describe;

const MANY: usize = 1_000_000;

fn reconcile(_: &Snapshot) -> Plan {
    let decisions = Decisions {
        node: (0..MANY as u32).collect(),
        attempt: vec![0; MANY],
        rule: vec![0; MANY],
        verb: vec![Verb::Insert.code(); MANY],
        hold: vec![0; MANY],
        until: vec![0; MANY],
    };
    Plan { wake_at_ms: 0, decisions }
}

decider_guest::export_decider!(describe, reconcile);
