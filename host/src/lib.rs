//! The host.
pub mod backends;
