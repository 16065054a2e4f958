//! Says 1.0 where its interface says 1.1.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

use decider::Description;
use hostile_guests::{describe as plain, ladder};

fn describe() -> Description {
    Description { contract: "1.0.0".into(), ..plain() }
}

decider_guest::export_decider!(describe, ladder);
