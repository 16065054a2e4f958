//! Calls itself without an end, with a frame on its own stack.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::{Plan, Snapshot};
use hostile_guests::describe;

fn reconcile(snapshot: &Snapshot) -> Plan {
    let depth = if snapshot.nodes.is_empty() { 1 } else { u64::MAX };
    Plan { wake_at_ms: deeper(depth), ..Plan::default() }
}

#[inline(never)]
fn deeper(depth: u64) -> u64 {
    let frame = core::hint::black_box([depth; 16]);
    if depth == 1 { frame[0] } else { deeper(depth - 1).wrapping_add(core::hint::black_box(frame)[7]) }
}

decider_guest::export_decider!(describe, reconcile);
