//! Exhaustive search (SPEC 13): every interleaving of a small scope, with the production driver and the decider that ships.
//!
//! A state is a driver, the provider's world, the calls on their way, and what may still go wrong. Drivers are told apart by
//! their normal form ([`engine::canon`]); what an input makes of a form is computed once. Safety is judged in every step;
//! that everything can settle, and then stays quiet, on the graph of moves that are neither faults nor edits.

mod check;
mod configuration;
mod effects;
mod engine_step;
mod hash;
mod machine;
mod memo;
mod moves;
mod names;
mod path;
pub mod report;
pub mod scope;
mod search;
mod settle;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twins;
mod world;

pub use check::{Broken, Check, CheckError, Outcome, Verdict};
pub use machine::Decide;
pub use memo::Memo;
pub use path::WalkError;
pub use scope::{Kind, Scope, Weaken};
pub use search::{Limit, Progress};
