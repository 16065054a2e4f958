//! Which compiler can make a guest on this machine.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::BuildError;

/// The target of every guest.
pub const TARGET: &str = "wasm32-unknown-unknown";
/// The environment variable that forces a way: `auto`, `rustup` or `debian`.
pub const TOOLCHAIN_VARIABLE: &str = "HOMEOSTAT_GUEST_TOOLCHAIN";
/// Where a distribution puts its compiler.
const DISTRIBUTION_RUSTC: &str = "/usr/bin/rustc";

/// How a guest is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a toolchain that has the target's standard library.
    WithTarget {
        /// The compiler.
        rustc: PathBuf,
        /// What it calls itself.
        version: String,
    },
    /// By a compiler that has only the source of the standard library; `core` and `alloc` are built too.
    FromSource {
        /// The compiler.
        rustc: PathBuf,
        /// What it calls itself.
        version: String,
        /// The linker.
        linker: PathBuf,
    },
}

impl fmt::Display for Way {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::WithTarget { version, .. } => write!(out, "{version}, which has the target"),
            Way::FromSource { rustc, version, .. } => {
                write!(out, "{version} ({}), core and alloc from its source", rustc.display())
            }
        }
    }
}

/// Looks for a way, in the order of the crate's documentation.
pub(crate) fn detect() -> Result<Way, BuildError> {
    let wanted = std::env::var(TOOLCHAIN_VARIABLE).unwrap_or_else(|_| "auto".into());
    let wanted = if wanted.is_empty() { "auto".into() } else { wanted };
    let (rustup, debian) = match wanted.as_str() {
        "auto" => (true, true),
        "rustup" => (true, false),
        "debian" => (false, true),
        _ => return Err(BuildError::UnknownChoice(wanted)),
    };
    let active = PathBuf::from(std::env::var_os("RUSTC").ok_or(BuildError::NotABuildScript("RUSTC"))?);
    let mut tried = Vec::new();
    if rustup {
        match with_target(&active) {
            Ok(way) => return Ok(way),
            Err(reason) => tried.push(format!("  the active toolchain: {reason}")),
        }
    }
    if debian {
        match from_source(Path::new(DISTRIBUTION_RUSTC), &active) {
            Ok(way) => return Ok(way),
            Err(reason) => tried.push(format!("  the distribution's compiler: {reason}")),
        }
    }
    Err(BuildError::NoToolchain { wanted, tried: tried.join("\n") })
}

fn with_target(rustc: &Path) -> Result<Way, String> {
    let version = ask(rustc, &["--version"])?;
    let folder = PathBuf::from(ask(rustc, &["--print", "target-libdir", "--target", TARGET])?);
    let has_core = std::fs::read_dir(&folder)
        .is_ok_and(|files| files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libcore-")));
    if !has_core {
        return Err(format!("{version} lacks the target's standard library ({} is not there)", folder.display()));
    }
    Ok(Way::WithTarget { rustc: rustc.into(), version })
}

fn from_source(rustc: &Path, active: &Path) -> Result<Way, String> {
    if !rustc.exists() {
        return Err(format!("{} is not installed", rustc.display()));
    }
    let version = ask(rustc, &["--version"])?;
    let sysroot = PathBuf::from(ask(rustc, &["--print", "sysroot"])?);
    let source = sysroot.join("lib/rustlib/src/rust/library/alloc/Cargo.toml");
    if !source.exists() {
        return Err(format!("{version}: {} is not there", source.display()));
    }
    let linker = linker(&[active, rustc]).ok_or_else(|| format!("{version}: no rust-lld, wasm-ld or lld found"))?;
    Ok(Way::FromSource { rustc: rustc.into(), version, linker })
}

/// The `rust-lld` of one of the toolchains, or a `wasm-ld` in the search path.
fn linker(toolchains: &[&Path]) -> Option<PathBuf> {
    let own = toolchains.iter().filter_map(|rustc| {
        let sysroot = PathBuf::from(ask(rustc, &["--print", "sysroot"]).ok()?);
        let host = ask(rustc, &["-vV"]).ok()?;
        let host = host.lines().find_map(|line| line.strip_prefix("host: "))?.to_string();
        Some(sysroot.join("lib/rustlib").join(host).join("bin/rust-lld"))
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let common = std::env::split_paths(&path).flat_map(|folder| [folder.join("rust-lld"), folder.join("wasm-ld")]);
    own.chain(common.collect::<Vec<_>>()).find(|file| file.is_file())
}

fn ask(rustc: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(rustc)
        .args(arguments)
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .map_err(|error| format!("{}: {error}", rustc.display()))?;
    if !output.status.success() {
        return Err(format!("{} {}: {}", rustc.display(), arguments.join(" "), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}
