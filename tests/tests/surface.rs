//! What other programs can use is a list that is committed (`docs/public-api.txt`), so that a change to it is seen, and so
//! that what takes something away needs a version that says so (semantic versioning: while it is 0.x, the minor).
//! `make check` runs this after the documentation, from which the list is made; `make public-api` writes the list.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use tests::source::root;

/// The library, and the two that it hands on.
const CRATES: [&str; 3] = ["homeostat", "engine", "store"];
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn list() -> PathBuf {
    root().join("docs/public-api.txt")
}

fn documentation() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    root().join(target).join("doc")
}

/// One line for everything that can be named. What is derived, automatic or blanket follows from the rest.
fn surface() -> String {
    let mut text = String::new();
    for name in CRATES {
        let path = documentation().join(format!("{name}.json"));
        let built = public_api::Builder::from_rustdoc_json(&path)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .omit_auto_derived_impls(true)
            .build()
            .unwrap_or_else(|error| panic!("{}: {error}; `make check` writes it", path.display()));
        writeln!(text, "\n# {name}\n").unwrap();
        for item in built.items() {
            writeln!(text, "{item}").unwrap();
        }
    }
    text
}

/// The part of a version that changes when something is taken away.
fn compatible(version: &str) -> &str {
    let parts: Vec<&str> = version.splitn(3, '.').collect();
    let kept = if parts[0] == "0" { 2 } else { 1 };
    &version[..parts[..kept].join(".").len()]
}

fn gone<'a>(before: &'a str, after: &str) -> Vec<&'a str> {
    let after: BTreeSet<&str> = after.lines().collect();
    before.lines().filter(|line| !after.contains(line)).collect()
}

/// The first line says which version the list is of.
fn header() -> String {
    format!("homeostat {VERSION}: its public surface, written by `make public-api`\n")
}

#[test]
#[ignore = "needs the documentation as JSON, which make check writes"]
fn the_public_surface_is_the_committed_one_and_keeps_what_its_version_promises() {
    let now = header() + &surface();
    let before = std::fs::read_to_string(list()).unwrap_or_default();
    let of = before.split([' ', ':']).nth(1).unwrap_or(VERSION).to_owned();
    let gone = gone(before.split_once('\n').map_or("", |(_, rest)| rest), &now);
    assert!(
        gone.is_empty() || compatible(&of) != compatible(VERSION),
        "this was public in {of} and is not any more, but the version, {VERSION}, says that it is compatible:\n{}",
        gone.join("\n")
    );
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(list(), now).unwrap();
    } else {
        let old: BTreeSet<&str> = before.lines().collect();
        let new: Vec<&str> = now.lines().filter(|line| !old.contains(line)).collect();
        assert!(new.is_empty(), "the public surface has grown; `make public-api` writes it down:\n{}", new.join("\n"));
    }
}

#[test]
fn what_is_compatible_is_told_by_the_version() {
    assert_eq!((compatible("0.1.0"), compatible("0.1.7"), compatible("0.2.0")), ("0.1", "0.1", "0.2"));
    assert_eq!((compatible("1.4.2"), compatible("2.0.0")), ("1", "2"));
    assert_eq!(gone("a\nb\n", "b\nc\n"), ["a"]);
}
