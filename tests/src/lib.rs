//! What the tests share: builders, the scenario language, the session that drives the engine under its checkers.

pub mod build;
pub mod scenario;
pub mod session;
