//! Declares 256 rules.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

extern crate alloc;

use alloc::format;
use decider::{Description, Rule};
use hostile_guests::{describe as plain, ladder};

fn describe() -> Description {
    let rules = (0..256).map(|at| Rule { id: format!("X{at}"), sentence: "One of many.".into() });
    Description { rules: rules.collect(), ..plain() }
}

decider_guest::export_decider!(describe, ladder);
