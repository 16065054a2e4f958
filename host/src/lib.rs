//! The host.
pub mod backends;
pub mod clock;
pub mod decide;
pub mod executor;
pub mod journal;
pub mod runtime;

pub use runtime::{Farewell, Host, HostBuilder, HostError, HostEvent, HostHandle, Intervals, Shutdown};
