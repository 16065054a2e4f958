//! Has a name that would repaint the terminal.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::Description;
use hostile_guests::{describe as plain, ladder};

fn describe() -> Description {
    Description { name: "\u{1b}[2Jladder".into(), ..plain() }
}

decider_guest::export_decider!(describe, ladder);
