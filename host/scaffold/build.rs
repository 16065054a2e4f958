//! Lists the files of the templates, so that the program carries them: the examples in other languages as they are, and for Rust
//! the sources of the `decider` and `decider-guest` crates beside a template of its own.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Where a file is, and where a project has it.
type Files = Vec<(PathBuf, String)>;

fn main() {
    if let Err(error) = build() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);

    let mut common: Files = Vec::new();
    common.push((root.join("wit/decider.wit"), "wit/decider.wit".into()));
    for file in ["rules.txt", "failures.txt", "rollouts.txt"] {
        common.push((root.join("examples/policy-tests").join(file), format!("tests/{file}")));
    }
    common.push((root.join("LICENSE"), "LICENSE".into()));

    let mut list = String::from("const TEMPLATES: &[(&str, &str, &str)] = &[\n");
    for language in ["rust", "javascript", "typescript", "c", "assemblyscript"] {
        let mut files = common.clone();
        if language == "rust" {
            walk(&root.join("host/scaffold/templates/rust"), "", &mut files)?;
            walk(&root.join("decider-wasm/core/src"), "vendor/decider/src", &mut files)?;
            walk(&root.join("decider-wasm/guest/src"), "vendor/decider-guest/src", &mut files)?;
            files.retain(|(_, path)| !path.starts_with("vendor/") || !path.contains("/tests"));
        } else {
            walk(&root.join("examples/languages").join(language), "", &mut files)?;
        }
        if language == "typescript" {
            let shared = ["homeostat.js", "homeostat.d.ts", "build.mjs"];
            files.extend(shared.map(|name| (root.join("examples/languages/javascript").join(name), name.to_owned())));
        }
        files.sort_by(|one, other| one.1.cmp(&other.1));
        for (file, path) in files {
            let file = if path == "vendor/decider/src/lib.rs" { without_tests(&file, &out)? } else { file };
            writeln!(list, "    ({language:?}, {path:?}, include_str!({file:?})),")?;
        }
    }
    list.push_str("];\n");
    std::fs::write(out.join("templates.rs"), list)?;
    Ok(())
}

/// The files below a folder, what is built or downloaded apart. Links are left alone: what they lead to is listed by itself.
fn walk(folder: &Path, below: &str, files: &mut Files) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={}", folder.display());
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| format!("{name:?} is no text"))?;
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && !matches!(name.as_str(), "node_modules" | "target" | "build") {
            walk(&entry.path(), &path, files)?;
        } else if kind.is_file() && !name.ends_with(".wasm") && name != "package-lock.json" {
            files.push((entry.path(), path));
        }
    }
    Ok(())
}

/// The crate without its tests, which need files of this repository.
fn without_tests(file: &Path, out: &Path) -> Result<PathBuf, Box<dyn Error>> {
    println!("cargo:rerun-if-changed={}", file.display());
    let text = std::fs::read_to_string(file)?;
    let shorter = text.replace("#[cfg(test)]\nmod tests;\n", "");
    if shorter == text {
        return Err(format!("{}: the tests are declared in another way than expected", file.display()).into());
    }
    let copy = out.join("decider-lib.rs");
    std::fs::write(&copy, shorter)?;
    Ok(copy)
}
