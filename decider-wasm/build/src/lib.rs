//! Compiles guest crates of this workspace for `wasm32-unknown-unknown` and turns them into components. For build
//! scripts: it prints `cargo:` lines, and only detects what is installed; installing is left to `make`.
//!
//! The target has no operating system, so a guest has nothing to import. How it is compiled, in this order:
//!
//! 1. with the active toolchain, when it has the target's standard library (`rustup target add wasm32-unknown-unknown`);
//! 2. with a distribution's compiler and the matching source of the standard library (Debian: `rustc-web`,
//!    `rust-web-src`), building `core` and `alloc` on the way;
//! 3. not at all: an error that names both.
//!
//! `HOMEOSTAT_GUEST_TOOLCHAIN` = `auto` | `rustup` | `debian` forces one.

mod cargo;
mod way;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use cargo::STACK_BYTES;
pub use way::{TARGET, TOOLCHAIN_VARIABLE, Way};

/// How long one nested cargo may take.
pub const TIME_LIMIT: Duration = Duration::from_secs(15 * 60);

/// What to compile: the cdylibs of some packages, or some examples of a package (each a cdylib).
#[derive(Clone, Debug)]
pub struct Guests<'a> {
    /// The packages in this workspace.
    pub packages: &'a [&'a str],
    /// Their examples; empty means their libraries.
    pub examples: &'a [&'a str],
}

/// One compiled guest.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The example, or the package.
    pub name: String,
    /// The core module.
    pub module: Vec<u8>,
    /// The files it was made from.
    pub sources: Vec<PathBuf>,
}

/// Why there is no guest.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Nothing on this machine compiles for the target.
    #[error(
        "no way to compile for wasm32-unknown-unknown ({TOOLCHAIN_VARIABLE}={wanted}):\n{tried}\n\
         one of these makes it work, or `make setup` which tries both:\n  \
         rustup target add wasm32-unknown-unknown\n  \
         apt-get install rustc-web rust-web-src    (Debian 12 and newer)"
    )]
    NoToolchain {
        /// What was asked for.
        wanted: String,
        /// What was looked at and why it does not do.
        tried: String,
    },
    /// The variable has a value that means nothing.
    #[error("{TOOLCHAIN_VARIABLE}={0:?}: use auto, rustup or debian")]
    UnknownChoice(String),
    /// A variable that cargo sets for build scripts is missing.
    #[error("{0} is not set: this is to be called from a build script")]
    NotABuildScript(&'static str),
    /// The nested cargo failed.
    #[error("compiling {packages} failed ({status}):\n{output}")]
    Cargo {
        /// What was compiled.
        packages: String,
        /// The exit status.
        status: String,
        /// What cargo said.
        output: String,
    },
    /// The nested cargo took too long and was stopped.
    #[error("compiling {packages} took longer than {} s and was stopped:\n{output}", limit.as_secs())]
    TooLong {
        /// What was compiled.
        packages: String,
        /// The limit.
        limit: Duration,
        /// What cargo said until then.
        output: String,
    },
    /// A program or a file could not be used.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The module does not make a component: it imports something, or its exports are not the world's.
    #[error("{name}: the module does not make a component: {reason}")]
    NotAComponent {
        /// Which guest.
        name: String,
        /// wit-component's words.
        reason: String,
    },
}

impl BuildError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> BuildError + '_ {
        move |error| BuildError::Io { path: path.into(), error }
    }
}

/// Compiles guests, tells cargo what they depend on, and says on one line which way was taken.
pub fn compile(guests: &Guests<'_>) -> Result<(Vec<Guest>, Way), BuildError> {
    println!("cargo:rerun-if-env-changed={TOOLCHAIN_VARIABLE}");
    let way = way::detect()?;
    let built = cargo::build(guests, &way)?;
    for path in cargo::depends_on(&built)? {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    println!("cargo:warning={}: compiled for {TARGET} by {way}", guests.packages.join(", "));
    Ok((built, way))
}

/// Makes a component of a core module that carries its world (as `wit_bindgen::generate!` embeds it). No adapter is
/// linked, so a module that imports anything its world does not have is refused.
pub fn componentize(name: &str, module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let not =
        |error: &dyn std::fmt::Display| BuildError::NotAComponent { name: name.into(), reason: error.to_string() };
    wit_component::ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|encoder| encoder.encode())
        .map_err(|error| not(&format!("{error:#}")))
}

/// Writes `bytes` to `file` in the build script's output folder.
pub fn write_out(file: &str, bytes: &[u8]) -> Result<PathBuf, BuildError> {
    let folder = std::env::var_os("OUT_DIR").ok_or(BuildError::NotABuildScript("OUT_DIR"))?;
    let path = Path::new(&folder).join(file);
    std::fs::write(&path, bytes).map_err(BuildError::io(&path))?;
    Ok(path)
}
