//! A component from a core module: what the compilers of most languages leave to be done.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, WorldId, WorldItem};

use crate::exports::{self, sections, text};

/// The contract of this version of Homeostat, `wit/decider.wit`.
pub const CONTRACT_WIT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/decider.wit"));
/// The world that a decider is.
const WORLD: &str = "decider";

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// The bytes are no core module.
    #[error("not a core WebAssembly module: {0}")]
    NotAModule(&'static str),
    /// The contract is no WIT, or has no world `decider`.
    #[error("{name}: {reason}")]
    Contract {
        /// The file.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The module imports something, or does not export what the world wants.
    #[error("the module does not make a decider: {0}")]
    NotADecider(String),
}

/// Makes a component of a core module that exports the functions of the world `decider` in the canonical ABI, its `memory`, and
/// `cabi_realloc`. A function goes by its full name, such as `homeostat:decider/policy@1.1.0#reconcile`, or, for languages in
/// which an export cannot be called so, by its own: `reconcile`.
///
/// What the module says of its world by itself (a section that some generators of bindings embed) counts; a module that says
/// nothing gets the world of `wit`. No adapter is linked: a module that imports anything is refused.
pub fn componentize(module: &[u8], name: &str, wit: &str) -> Result<Vec<u8>, ComponentError> {
    if !module.starts_with(b"\0asm") {
        return Err(ComponentError::NotAModule("it does not begin as wasm does"));
    }
    if !module.starts_with(exports::PREAMBLE) {
        return Err(ComponentError::NotAModule("it is a component already, or of another version of wasm"));
    }
    let refused = |error: &dyn std::fmt::Debug| ComponentError::NotADecider(sentence(error));
    let mut module = module.to_vec();
    if !has_world(&module) {
        let contract = |reason: String| ComponentError::Contract { name: name.into(), reason };
        let mut resolve = Resolve::default();
        let package = resolve.push_str(name, wit).map_err(|error| contract(sentence(&error)))?;
        let world = resolve.select_world(&[package], Some(WORLD)).map_err(|error| contract(sentence(&error)))?;
        module = exports::rename(&module, &full_names(&resolve, world))
            .ok_or(ComponentError::NotAModule("its sections do not add up"))?;
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
            .map_err(|error| refused(&error))?;
    }
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|encoder| encoder.encode())
        .map_err(|error| refused(&error))
}

/// The names of the functions that a world's interfaces export, short and full.
fn full_names(resolve: &Resolve, world: WorldId) -> Vec<(String, String)> {
    let exports = resolve.worlds[world].exports.iter();
    let interfaces = exports.filter_map(|(key, item)| match item {
        WorldItem::Interface { id, .. } => Some((resolve.name_world_key(key), *id)),
        _ => None,
    });
    let functions = interfaces.flat_map(|(interface, id)| {
        let names = resolve.interfaces[id].functions.keys();
        names.map(move |function| (function.clone(), format!("{interface}#{function}")))
    });
    functions.collect()
}

/// An error and its causes, on one line.
fn sentence(error: &dyn std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "Caused by:");
    lines.take_while(|line| !line.starts_with("Stack backtrace")).collect::<Vec<_>>().join("; ")
}

/// Whether the module carries a section that tells its world. A module that is cut short is left to the encoder to refuse.
fn has_world(module: &[u8]) -> bool {
    sections(module)
        .flatten()
        .any(|(id, body)| id == 0 && text(body).is_some_and(|(name, _)| name.starts_with(b"component-type")))
}
