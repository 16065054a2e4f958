//! The host.
pub mod backends;
pub mod cli;
pub mod demo;
pub mod fleet;
pub mod sandbox;
pub mod view;
