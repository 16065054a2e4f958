//! The pure decider: one snapshot in, one plan out (SPEC 1, 4).
#![cfg_attr(not(feature = "serde"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod codes;
mod types;

pub use codes::*;
pub use types::*;
