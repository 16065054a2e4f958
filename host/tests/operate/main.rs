//! The operator's verbs against a real daemon with real processes: what one does, and what it survives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, dead_code)]

mod access;
mod carried;
mod certificates;
mod commands;
mod deciders;
#[path = "../up/fixture.rs"]
mod fixture;
mod guards;
mod killed;
mod lab;
mod logs;
mod moves;
#[path = "../cli/packages.rs"]
mod packages;
mod tour;
