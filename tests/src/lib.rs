//! What the tests and the benches share: builders, generated snapshots, the scenario language, the session that drives the
//! engine under its checkers.

pub mod build;
pub mod scenario;
pub mod session;
pub mod snapshots;
