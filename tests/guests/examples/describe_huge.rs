//! Has a name of a million letters.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

extern crate alloc;

use decider::Description;
use hostile_guests::{describe as plain, ladder};

fn describe() -> Description {
    Description { name: "x".repeat(1_000_000), ..plain() }
}

decider_guest::export_decider!(describe, ladder);
