//! Compiles every decider beside this folder (a package in a folder of the same name) and makes components of them.

use std::error::Error;
use std::fmt::Write;

use guest_build::{Guests, compile, componentize, write_out};

const DECIDERS: &str = "..";

fn main() {
    if let Err(error) = build() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs\ncargo:rerun-if-changed={DECIDERS}");
    let names = deciders()?;
    let packages: Vec<&str> = names.iter().map(String::as_str).collect();
    let (guests, way) = compile(&Guests { packages: &packages, examples: &[] })?;
    let mut list = String::from("/// The components by name.\npub const COMPONENTS: &[(&str, &[u8])] = &[\n");
    for guest in guests {
        let path = write_out(&format!("{}.wasm", guest.name), &componentize(&guest.name, &guest.module)?)?;
        writeln!(list, "    ({:?}, include_bytes!({path:?})),", guest.name)?;
    }
    list.push_str("];\n");
    write_out("list.rs", list.as_bytes())?;
    println!("cargo:rustc-env=DECIDERS_BUILT_BY={way}");
    Ok(())
}

/// The folders that hold a package, this one apart.
fn deciders() -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(DECIDERS)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().join("Cargo.toml").is_file() && name != "artifact" {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
