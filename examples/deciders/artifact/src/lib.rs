//! The components of the example deciders, compiled by this crate's build script.

include!(concat!(env!("OUT_DIR"), "/list.rs"));

/// The compiler that made them.
pub const BUILT_BY: &str = env!("DECIDERS_BUILT_BY");

/// The component of that name.
pub fn component(name: &str) -> Option<&'static [u8]> {
    COMPONENTS.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}
