//! The process provider with real processes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod adoption;
mod checks;
mod ending;
mod fixture;
mod killed;
mod leases;
mod sessions;
