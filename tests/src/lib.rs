//! What the tests and the benches share: generated snapshots, random histories, journals of both, the repository's own files; and
//! the scenario language, which has a crate of its own.

pub mod fuzz;
pub mod histories;
pub mod random;
mod recording;
pub mod source;
pub mod world;

pub use cases::{processor, snapshots, wasm};
pub use recording::Recording;
pub use scenario::{build, session};
