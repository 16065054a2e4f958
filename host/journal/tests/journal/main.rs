//! The journal by itself: what is detected, where it can be cut, what a replay finds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod damage;
mod fixture;
mod replays;
