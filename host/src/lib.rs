//! The host: everything around the engine that touches the world.

pub mod backends;
pub mod cli;
pub mod clock;
pub mod decide;
pub mod demo;
pub mod executor;
pub mod fleet;
pub mod journal;
pub mod runtime;
pub mod sandbox;

pub use runtime::{Farewell, Host, HostBuilder, HostError, HostEvent, HostHandle, Intervals, Shutdown};
