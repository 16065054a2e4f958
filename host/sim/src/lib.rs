//! Deterministic simulation (SPEC 13): the production engine and decider against a simulated world on a virtual clock.
//! Everything is drawn from one numbered stream of choices, so one seed is one run, byte for byte, on every machine, and
//! what fails is shrunk to the few choices that matter.
//!
//! Reads no clock, no file and no environment. The fault menu is in `faults.rs`, what really exists in `world.rs`.

mod audit;
mod bounds;
mod calls;
mod campaign;
mod choices;
mod crashes;
pub mod deciders;
mod decisions;
mod event;
mod faults;
mod folding;
mod incidents;
mod operators;
mod orders;
mod people;
mod record;
mod report;
mod run;
mod settle;
mod setup;
mod shrink;
mod tally;
mod trace;
mod world;

pub use bounds::Bound;
pub use campaign::{Campaign, Failing, Progress};
pub use choices::Choices;
pub use decisions::{OTHER, renumber};
pub use faults::{FAULTS, FaultKind, Place, Rates, RatesError};
pub use record::{RecordError, Which, record};
pub use report::{NOT_COVERED, table};
pub use setup::{Decide, Outcome, Setup, SetupError, replay, run_seed};
pub use shrink::{Shrunk, shrink};
pub use tally::Tally;
