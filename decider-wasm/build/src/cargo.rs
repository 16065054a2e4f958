//! The nested cargo: its own target folder (or the two would wait for each other's lock), an environment without what
//! the outer one leaks, and a limit on its time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::way::{TARGET, Way};
use crate::{BuildError, Guest, Guests, TIME_LIMIT};

/// A guest's stack. Small, because a fresh instance touches it for every call, and because a stack below the data
/// makes a runaway recursion leave the memory at its lower end.
pub const STACK_BYTES: u32 = 32 * 1024;

/// What the nested cargo may see of the environment; all else (`RUSTFLAGS`, `RUSTC_WRAPPER`, `CARGO_TARGET_DIR`,
/// what cargo sets for build scripts) belongs to the outer build.
const KEPT: &[&str] = &["PATH", "HOME", "USER", "LANG", "TMPDIR", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];
const KEPT_PREFIXES: &[&str] =
    &["CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_SOURCE_", "SSL_", "LC_"];
const KEPT_SUFFIXES: &[&str] = &["_proxy", "_PROXY"];

pub(crate) fn build(guests: &Guests<'_>, way: &Way) -> Result<Vec<Guest>, BuildError> {
    let target_dir = target_dir()?;
    let mut command = command(guests, way, &target_dir)?;
    let log = target_dir.join(format!("{}.log", guests.packages.first().unwrap_or(&"none")));
    std::fs::create_dir_all(&target_dir).map_err(BuildError::io(&target_dir))?;
    run(&mut command, &guests.packages.join(", "), &log, TIME_LIMIT)?;

    let built = target_dir.join(TARGET).join("guest");
    let names = if guests.examples.is_empty() { guests.packages } else { guests.examples };
    names
        .iter()
        .map(|name| {
            let folder = if guests.examples.is_empty() { built.clone() } else { built.join("examples") };
            let stem = folder.join(name.replace('-', "_"));
            let (wasm, deps) = (stem.with_extension("wasm"), stem.with_extension("d"));
            let module = std::fs::read(&wasm).map_err(BuildError::io(&wasm))?;
            let deps = std::fs::read_to_string(&deps).map_err(BuildError::io(&deps))?;
            Ok(Guest { name: (*name).into(), module, sources: sources(&deps) })
        })
        .collect()
}

/// The files whose change asks for another build: the guests' sources and their packages' manifests, the workspace's
/// manifest and lock file.
pub(crate) fn depends_on(guests: &[Guest]) -> Result<BTreeSet<PathBuf>, BuildError> {
    let root = workspace()?;
    let mut paths = BTreeSet::from([root.join("Cargo.toml"), root.join("Cargo.lock")]);
    for source in guests.iter().flat_map(|guest| &guest.sources) {
        paths.insert(source.clone());
        paths.extend(source.ancestors().map(|folder| folder.join("Cargo.toml")).find(|file| file.is_file()));
    }
    Ok(paths)
}

/// The right side of a dep-info line, `target: file file …`, where a space in a name is `\ `.
fn sources(dep_info: &str) -> Vec<PathBuf> {
    let Some((_, files)) = dep_info.lines().next().and_then(|line| line.split_once(": ")) else { return Vec::new() };
    files.replace("\\ ", "\0").split_whitespace().map(|file| PathBuf::from(file.replace('\0', " "))).collect()
}

/// Beside the outer build's `build` folder, so that all build scripts of one target folder share it.
fn target_dir() -> Result<PathBuf, BuildError> {
    let out = std::env::var_os("OUT_DIR").ok_or(BuildError::NotABuildScript("OUT_DIR"))?;
    let out = PathBuf::from(out);
    let profile = out.ancestors().nth(3).unwrap_or(&out);
    Ok(profile.join("guests"))
}

fn workspace() -> Result<PathBuf, BuildError> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").ok_or(BuildError::NotABuildScript("CARGO_MANIFEST_DIR"))?;
    let package = PathBuf::from(package);
    let root = package.ancestors().find(|folder| folder.join("Cargo.lock").is_file());
    Ok(root.map(Path::to_path_buf).unwrap_or(package))
}

fn command(guests: &Guests<'_>, way: &Way, target_dir: &Path) -> Result<Command, BuildError> {
    let cargo = std::env::var_os("CARGO").ok_or(BuildError::NotABuildScript("CARGO"))?;
    let mut command = Command::new(cargo);
    command.current_dir(workspace()?).env_clear();
    for (name, value) in std::env::vars_os() {
        let Some(text) = name.to_str() else { continue };
        let kept = KEPT.contains(&text)
            || KEPT_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
            || KEPT_SUFFIXES.iter().any(|suffix| text.ends_with(suffix));
        if kept {
            command.env(name, value);
        }
    }
    command
        .args(["build", "--locked", "--profile", "guest", "--target", TARGET])
        .arg("--target-dir")
        .arg(target_dir)
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", format!("-C link-arg=-zstack-size={STACK_BYTES}"));
    for package in guests.packages {
        command.args(["--package", package]);
    }
    if guests.examples.is_empty() {
        command.arg("--lib");
    }
    for example in guests.examples {
        command.args(["--example", example]);
    }
    match way {
        Way::WithTarget { rustc, .. } => {
            command.env("RUSTC", rustc);
        }
        Way::FromSource { rustc, linker, .. } => {
            command
                .env("RUSTC", rustc)
                // Building the standard library is not stable yet; the compiler and its source are of one release.
                .env("RUSTC_BOOTSTRAP", "1")
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
                .args(["-Z", "build-std=core,alloc"]);
        }
    }
    Ok(command)
}

/// Runs the command with its output in a file, so that no pipe can fill up; stops it at the limit.
fn run(command: &mut Command, packages: &str, log: &Path, limit: Duration) -> Result<(), BuildError> {
    let file = std::fs::File::create(log).map_err(BuildError::io(log))?;
    let errors = file.try_clone().map_err(BuildError::io(log))?;
    let program = PathBuf::from(command.get_program());
    let mut child =
        command.stdin(Stdio::null()).stdout(file).stderr(errors).spawn().map_err(BuildError::io(&program))?;
    let started = Instant::now();
    let output = || {
        let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let skipped = text.lines().count().saturating_sub(80);
        text.lines().skip(skipped).collect::<Vec<_>>().join("\n")
    };
    loop {
        match child.try_wait().map_err(BuildError::io(&program))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                return Err(BuildError::Cargo {
                    packages: packages.into(),
                    status: status.to_string(),
                    output: output(),
                });
            }
            None if started.elapsed() > limit => {
                // Already gone is as good as stopped.
                let _ = child.kill();
                let _ = child.wait();
                return Err(BuildError::TooLong { packages: packages.into(), limit, output: output() });
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_from_dep_info() {
        let text = "/t/a.wasm: /src/lib.rs /with\\ space/x.rs /wit/w.wit\n\n/src/lib.rs:\n";
        let expected: Vec<PathBuf> = ["/src/lib.rs", "/with space/x.rs", "/wit/w.wit"].map(PathBuf::from).into();
        assert_eq!(sources(text), expected);
        assert_eq!(sources(""), Vec::<PathBuf>::new());
    }
}
