//! The host.
pub mod backends;
pub mod cli;
pub mod fleet;
