//! The daemon's interface (SPEC 10): what it says and what it takes, over HTTP. It knows no runtime and no sandbox: whoever
//! keeps a fleet implements [`Control`].

pub mod control;
pub mod wire;

pub use control::{Control, Refusal};
