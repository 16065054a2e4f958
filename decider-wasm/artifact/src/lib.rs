//! The built-in decider as a component, compiled by this crate's build script.

/// The component.
pub const COMPONENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/decider.wasm"));

/// The compiler that made it.
pub const BUILT_BY: &str = env!("DECIDER_BUILT_BY");
