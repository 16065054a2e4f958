//! Takes memory until there is none.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

extern crate alloc;

use decider::{Plan, Snapshot};
use hostile_guests::describe;

fn reconcile(snapshot: &Snapshot) -> Plan {
    while !snapshot.nodes.is_empty() {
        core::hint::black_box(alloc::vec::Vec::<u8>::with_capacity(1 << 20));
    }
    Plan::default()
}

decider_guest::export_decider!(describe, reconcile);
