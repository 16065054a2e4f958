//! The daemon's interface (SPEC 10): what it says and what it takes, over HTTP. It knows no runtime and no sandbox: whoever
//! keeps a fleet implements [`Control`], and [`Server`] serves it.

mod access;
mod asked;
pub mod control;
pub mod dashboard;
mod deciders;
mod limits;
pub mod metrics;
mod openapi;
mod problem;
mod routes;
mod server;
mod shared;
mod watch;
pub mod wire;

pub use access::Tokens;
pub use bytes::Bytes;
pub use control::{Control, Refusal};
pub use limits::{Limits, Rate};
pub use openapi::document;
pub use problem::PROBLEM_JSON;
pub use server::{Config, Listen, ServeError, Server, TlsFiles};
