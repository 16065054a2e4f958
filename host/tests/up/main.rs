//! `homeostat up` as people use it: the real binary, real processes, a real file that is edited.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod broken;
mod daemon;
mod edits;
mod examples;
mod failures;
mod fixture;
mod interrupted;
mod journal;
mod keep;
mod output;
mod refused;
mod terminal;
mod unruly;
mod writing;
