//! The real daemon, real processes, and every way to lose it: killed at each boundary of its store and at any instant, damaged
//! and outdated state, a full disk, a thousand nodes. After each, what runs on the machine is compared with what the journal
//! says (S1–S10, L1–L4).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod damage;
mod disk;
#[allow(dead_code)]
#[path = "../up/fixture.rs"]
mod fixture;
mod lab;
mod load;
mod older;
mod points;
mod thousand;
