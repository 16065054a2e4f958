//! The host.
pub mod backends;
pub mod sandbox;
