//! The hostile guests' components, compiled by this crate's build script.

include!(concat!(env!("OUT_DIR"), "/list.rs"));

/// Small ones for a fuzzer to start from.
pub const TO_FUZZ: &[&[u8]] =
    &[COUNTS_ELSEWHERE, NAN_GAMES, LIST_OUTSIDE, POST_RETURN_TRAPS, IMPORTS_TYPES, GROWS_TABLE];
