//! The hostile guests' components, compiled by this crate's build script.

include!(concat!(env!("OUT_DIR"), "/list.rs"));
