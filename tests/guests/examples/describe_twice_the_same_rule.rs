//! Declares one rule twice.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::Description;
use hostile_guests::{describe as plain, ladder};

fn describe() -> Description {
    let mut description = plain();
    let first = description.rules[0].clone();
    description.rules.push(first);
    description
}

decider_guest::export_decider!(describe, ladder);
