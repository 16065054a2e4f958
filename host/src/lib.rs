//! The host: backends, executor, sandbox and the loop around the sans-IO driver. As a library it is embedded through
//! [`Host::builder`].

pub mod backends;
pub mod cli;
pub mod clock;
pub mod control;
pub mod decide;
pub mod demo;
pub mod executor;
pub mod fleet;
pub mod journal;
pub mod registry;
pub mod runtime;
pub mod sandbox;
pub mod swap;
pub mod view;

pub use async_trait::async_trait;
pub use engine;
pub use runtime::{
    Candidate, CommandReport, Deciders, Declaration, Farewell, Host, HostBuilder, HostError, HostEvent, HostHandle,
    Intervals, Order, Refused, Shutdown, SwapTaken, Taken, Why, Wish,
};
