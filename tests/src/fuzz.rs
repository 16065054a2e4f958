//! What is fuzzed, by bytes: the engine's part, and what needs the sandbox.

pub mod components;
pub mod snapshots;

pub use cases::fuzz::*;
