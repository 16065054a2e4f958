//! What the tests and the benches share: generated snapshots, random histories, journals of both, the repository's own files; and
//! the scenario language, which has a crate of its own.

pub mod fuzz;
pub mod histories;
pub mod processor;
pub mod random;
mod recording;
pub mod snapshots;
pub mod source;
pub mod wasm;
pub mod world;

pub use recording::Recording;
pub use scenario::{build, session};
