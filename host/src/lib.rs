//! The host: backends, executor, sandbox and the loop around the sans-IO driver. As a library it is embedded through
//! [`Host::builder`]; `docs/embedding.md` walks through it.
//!
//! What is documented here is the public surface: `docs/public-api.txt` lists it, and a check keeps changes to it compatible
//! with the version. The modules that this page does not show serve the program and may change at any time.

pub mod backends;
#[doc(hidden)]
pub mod cli;
pub mod clock;
#[doc(hidden)]
pub mod control;
pub mod decide;
#[doc(hidden)]
pub mod demo;
#[doc(hidden)]
pub mod executor;
pub mod fleet;
pub mod journal;
pub mod registry;
pub mod runtime;
pub mod sandbox;
pub mod swap;
#[doc(hidden)]
pub mod view;

pub use async_trait::async_trait;
pub use engine;
pub use executor::OutputWatcher;
pub use runtime::{
    Candidate, CommandReport, Deciders, Declaration, Farewell, Host, HostBuilder, HostError, HostEvent, HostHandle,
    Intervals, Order, Refused, Shutdown, SwapTaken, Taken, Why, Wish,
};
pub use store;
