//! Makes a component of every hostile guest: the Rust ones (`../examples`), those that are only a world with nothing
//! behind it (`worlds`), and those that no compiler would write (`modules`).

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use guest_build::{Guests, compile, componentize, write_out};
use wit_component::{StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve, WorldId};

/// Deciders as they were under earlier contracts: a package each.
const EARLIER: &[&str] = &["contract-1-0"];
/// What those guests are built for that are no Rust: the first version, which is accepted for ever.
const CONTRACT: &str = "../../../wit/1.0/decider.wit";
/// What a module consists of when it does not say otherwise.
const PARTS: &str = "modules/parts";

type Any<T> = Result<T, Box<dyn Error>>;

fn main() -> Any<()> {
    let mut list = String::new();
    rust_guests(&mut list)?;
    earlier(&mut list)?;
    worlds(&mut list)?;
    modules(&mut list)?;
    let all: Vec<&str> = list.lines().filter_map(|line| line.strip_prefix("pub const ")?.split(':').next()).collect();
    let pairs: Vec<String> = all.iter().map(|name| format!("(\"{name}\", {name})")).collect();
    writeln!(list, "/// Every one, by its name.\npub const ALL: &[(&str, &[u8])] = &[{}];", pairs.join(", "))?;
    write_out("list.rs", list.as_bytes())?;
    Ok(())
}

/// The files in a folder with an extension, by name; cargo is told about the folder.
fn files(folder: &str, extension: &str) -> Any<Vec<(String, PathBuf)>> {
    println!("cargo:rerun-if-changed={folder}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            let stem = path.file_stem().ok_or("a file without a name")?.to_string_lossy().into_owned();
            found.push((stem, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Adds a constant for the bytes.
fn add(list: &mut String, name: &str, about: &str, file: &str, bytes: &[u8]) -> Any<()> {
    let path = write_out(file, bytes)?;
    writeln!(list, "/// {about}\npub const {}: &[u8] = include_bytes!({path:?});", name.to_uppercase())?;
    Ok(())
}

fn rust_guests(list: &mut String) -> Any<()> {
    let names: Vec<String> = files("../examples", "rs")?.into_iter().map(|(name, _)| name).collect();
    let examples: Vec<&str> = names.iter().map(String::as_str).collect();
    let (guests, _) = compile(&Guests { packages: &["hostile-guests"], examples: &examples })?;
    for guest in guests {
        let component = componentize(&guest.name, &guest.module)?;
        add(list, &guest.name, "See `examples`.", &format!("{}.wasm", guest.name), &component)?;
        if guest.name == "spin" {
            add(list, "core_module", "A core module.", "core_module.wasm", &guest.module)?;
        }
    }
    Ok(())
}

fn earlier(list: &mut String) -> Any<()> {
    let (guests, _) = compile(&Guests { packages: EARLIER, examples: &[] })?;
    for guest in guests {
        let component = componentize(&guest.name, &guest.module)?;
        let name = guest.name.replace('-', "_");
        add(list, &name, "The decider as it was under that contract.", &format!("{name}.wasm"), &component)?;
    }
    Ok(())
}

/// The contract, and a file beside it.
fn resolve(text: Option<&Path>, world: &str) -> Any<(Resolve, WorldId)> {
    let mut resolve = Resolve::default();
    println!("cargo:rerun-if-changed={CONTRACT}");
    let contract = resolve.push_str("decider.wit", &std::fs::read_to_string(CONTRACT)?)?;
    let package = match text {
        Some(path) => resolve.push_str(path, &std::fs::read_to_string(path)?)?,
        None => contract,
    };
    let world = resolve.select_world(&[package], Some(world))?;
    Ok((resolve, world))
}

fn worlds(list: &mut String) -> Any<()> {
    for (name, path) in files("worlds", "wit")? {
        let (resolve, world) = resolve(Some(&path), "guest")?;
        let mut module = dummy_module(&resolve, world, ManglingAndAbi::Legacy(LiftLowerAbi::Sync));
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
        let component = componentize(&name, &module)?;
        add(list, &name, "See `worlds`.", &format!("{name}.wasm"), &component)?;
    }
    Ok(())
}

fn modules(list: &mut String) -> Any<()> {
    let parts = files(PARTS, "wat")?;
    for (name, path) in files("modules", "wat")? {
        let own = std::fs::read_to_string(&path)?;
        let mut text = format!("(module\n{own}\n");
        for (part, path) in &parts {
            // A module that says `;; own: memory` brings that part itself.
            if !own.contains(&format!(";; own: {part}")) {
                text += &std::fs::read_to_string(path)?;
            }
        }
        text += ")";
        let mut module = wat::parse_str(&text).map_err(|error| format!("{name}: {error}"))?;
        let (resolve, world) = resolve(None, "decider")?;
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
        let component = componentize(&name, &module)?;
        add(list, &name, "See `modules`.", &format!("{name}.wasm"), &component)?;
    }
    Ok(())
}
