//! The stores, from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod damage;
mod disk;
mod fixture;
mod identity;
mod kill;
mod model;
mod reader;
