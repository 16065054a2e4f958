//! Never says what it is.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::Description;
use hostile_guests::{ladder, spin};

fn describe() -> Description {
    spin()
}

decider_guest::export_decider!(describe, ladder);
