//! Why a component is not loaded.

use std::path::PathBuf;

use super::failure::GuestFailure;
use super::limits::LimitError;

/// Why a component is refused. It has not decided anything.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is larger than a component may be.
    #[error("it has {bytes} bytes; {limit} is the limit")]
    TooLarge {
        /// Its size, or the least it can be.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// It is code that was compiled before; nobody can tell what it does.
    #[error("it is precompiled machine code ({kind}), which cannot be checked; give the component it was made from")]
    Precompiled {
        /// `module` or `component`.
        kind: &'static str,
    },
    /// It is not WebAssembly.
    #[error("it is not WebAssembly: it starts with {start}")]
    NotWasm {
        /// Its first bytes.
        start: String,
    },
    /// It is a core module.
    #[error("this is a core module, not a component; `wasm-tools component new` makes a component of it")]
    CoreModule,
    /// It does not validate, or does not compile.
    #[error("it is not a valid component: {reason}")]
    Invalid {
        /// wasmtime's words.
        reason: String,
    },
    /// Compiling it would cost too much.
    #[error("it would be too expensive to compile: the {what} is {found}; {limit} is the limit")]
    TooComplex {
        /// What.
        what: &'static str,
        /// How much, or as far as it was counted.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// It imports something that can be called.
    #[error("it imports {}; a decider imports nothing that can be called", imports.join(", "))]
    Imports {
        /// Each as `interface function`.
        imports: Vec<String>,
    },
    /// It does not export the contract's interface.
    #[error("it does not export {expected}; it exports {}", list(exports))]
    OtherWorld {
        /// The interface that a decider exports.
        expected: String,
        /// What it exports.
        exports: Vec<String>,
    },
    /// It speaks another version of the contract.
    #[error("its {place}'s contract version is {found}; this host speaks {ours}")]
    Contract {
        /// Where it says so.
        place: &'static str,
        /// Its version.
        found: String,
        /// The host's.
        ours: String,
    },
    /// It names two versions of the contract.
    #[error("its exported interface's contract version is {interface}, and its description says {description}")]
    TwoContracts {
        /// The interface's.
        interface: String,
        /// The description's.
        description: String,
    },
    /// The interface lacks a function.
    #[error("{interface} lacks the function {function}")]
    MissingFunction {
        /// The interface.
        interface: String,
        /// The function.
        function: &'static str,
    },
    /// A function has another type.
    #[error("{function} is not as the contract says: {reason}")]
    Signature {
        /// The function.
        function: &'static str,
        /// The difference.
        reason: String,
    },
    /// A part of it is larger than the limits allow from the start.
    #[error("it needs more than the limits allow: {reason}")]
    Oversized {
        /// wasmtime's words, with the limit.
        reason: String,
    },
    /// Its parts together need more than it may have.
    #[error("it needs {needed} {resource}; {limit} is the limit")]
    Resources {
        /// What.
        resource: &'static str,
        /// How much.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// What it says of itself makes no sense.
    #[error("its description: {field} {value:?} {reason}")]
    Description {
        /// The field.
        field: String,
        /// The value, cut for people.
        value: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// It failed to say what it is.
    #[error("describe: {0}")]
    Describe(GuestFailure),
    /// It failed on a snapshot without nodes.
    #[error("a trial with an empty snapshot: {0}")]
    Trial(GuestFailure),
    /// A limit is out of its range.
    #[error("the limit {0}")]
    Limits(#[from] LimitError),
    /// The sandbox could not be set up with these limits.
    #[error("the sandbox cannot be set up: {reason}")]
    Setup {
        /// Why.
        reason: String,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "nothing".into() } else { names.join(", ") }
}

impl LoadError {
    /// A short, stable name.
    pub fn class(&self) -> &'static str {
        match self {
            LoadError::Read { .. } => "read",
            LoadError::TooLarge { .. } => "too-large",
            LoadError::Empty => "empty",
            LoadError::Precompiled { .. } => "precompiled",
            LoadError::NotWasm { .. } => "not-wasm",
            LoadError::CoreModule => "core-module",
            LoadError::Invalid { .. } => "invalid",
            LoadError::TooComplex { .. } => "too-complex",
            LoadError::Imports { .. } => "imports",
            LoadError::OtherWorld { .. } => "other-world",
            LoadError::Contract { .. } | LoadError::TwoContracts { .. } => "contract",
            LoadError::MissingFunction { .. } => "missing-function",
            LoadError::Signature { .. } => "signature",
            LoadError::Oversized { .. } | LoadError::Resources { .. } => "resources",
            LoadError::Description { .. } => "description",
            LoadError::Describe(_) => "describe",
            LoadError::Trial(_) => "trial",
            LoadError::Limits(_) => "limits",
            LoadError::Setup { .. } => "setup",
        }
    }
}
