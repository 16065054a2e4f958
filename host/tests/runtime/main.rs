//! The runtime with the real driver and the native ladder, in paused time over the scripted fake.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod bench;
mod commands;
mod contracts;
mod disk;
mod durable;
mod embedded;
mod ending;
mod faults;
mod fleet;
mod seeds;
mod swaps;
