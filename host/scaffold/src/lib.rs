//! What somebody needs who writes a decider elsewhere than in this repository: a project to begin with, and a component made of
//! what their compiler writes.
//!
//! A project stands alone. It carries the contract, what its language needs of Homeostat's sources (vendored, for Rust), a
//! build script of one command, and the policy tests that the built-in ladder passes.

mod component;
mod exports;
mod project;

pub use component::{CONTRACT_WIT, ComponentError, componentize};
pub use project::{Language, ProjectError, create};
