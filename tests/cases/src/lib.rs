//! What tests, benches and fuzzers make their cases with; it needs no sandbox, so that a fuzzer of the engine is compiled in a minute.

pub mod fuzz;
pub mod processor;
pub mod snapshots;
pub mod wasm;
