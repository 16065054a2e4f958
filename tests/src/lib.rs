//! What the tests and the benches share: builders, generated snapshots, the scenario language, the session that drives the
//! engine under its checkers, the repository's own files.

pub mod build;
pub mod histories;
pub mod random;
pub mod scenario;
pub mod session;
pub mod snapshots;
pub mod source;
mod words;
pub mod world;
