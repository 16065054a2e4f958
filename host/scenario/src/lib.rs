//! The scenario language (`docs/policy-tests.md`): what happens to a fleet, or how it looks at one instant, and what a decider has
//! to decide about it. A [`Script`] is a file; each of its [`Case`]s is played against a [`Subject`] with [`play`].
//!
//! Sans-IO like the engine below it: it is given texts and a decider, and gives back what came of them.

pub mod build;
mod case;
mod command;
mod cover;
mod diff;
mod expect;
mod judge;
mod log;
mod node;
mod order;
mod player;
mod render;
mod report;
pub mod session;
mod snapshot;
pub mod typical;
mod words;

pub use case::{Case, Malformed, Script};
pub use cover::{Coverage, Covered};
pub use diff::DiffLine;
pub use expect::like;
pub use player::{Bounds, Miss, Played, Run, play, run};
pub use report::{Report, Status, Tested};
pub use session::{Ask, Subject};
pub use words::ms;
