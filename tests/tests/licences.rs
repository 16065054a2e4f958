//! Every package that is compiled in has a licence on the list and comes from the one registry. It needs no network:
//! cargo's own metadata is judged. (`deny.toml` is the same list for cargo-deny, where that is installed.)
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use tests::source::root;

const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];
const OWN: &str = "Apache-2.0";
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Whether an SPDX expression can be satisfied with licences of the list. `/` is the old way to write `OR`.
fn permits(expression: &str) -> Result<bool, String> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let verdict = any(&tokens, &mut at)?;
    if at == tokens.len() { Ok(verdict) } else { Err(format!("{:?} was not expected", tokens[at])) }
}

fn any(tokens: &[&str], at: &mut usize) -> Result<bool, String> {
    let mut verdict = all(tokens, at)?;
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        verdict |= all(tokens, at)?;
    }
    Ok(verdict)
}

fn all(tokens: &[&str], at: &mut usize) -> Result<bool, String> {
    let mut verdict = one(tokens, at)?;
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        verdict &= one(tokens, at)?;
    }
    Ok(verdict)
}

fn one(tokens: &[&str], at: &mut usize) -> Result<bool, String> {
    let token = *tokens.get(*at).ok_or("it ends too early")?;
    *at += 1;
    match token {
        "(" => {
            let verdict = any(tokens, at)?;
            if tokens.get(*at) != Some(&")") {
                return Err("a bracket is not closed".into());
            }
            *at += 1;
            Ok(verdict)
        }
        ")" | "OR" | "AND" | "WITH" => Err(format!("{token:?} was not expected")),
        licence if tokens.get(*at) == Some(&"WITH") => {
            let exception = tokens.get(*at + 1).ok_or("it ends after WITH")?;
            *at += 2;
            Ok(ALLOWED.contains(&format!("{licence} WITH {exception}").as_str()))
        }
        licence => Ok(ALLOWED.contains(&licence)),
    }
}

#[test]
fn expressions_are_understood() {
    for yes in ["MIT", "MIT OR GPL-3.0", "GPL-3.0 OR (MIT AND ISC)", "Apache-2.0/MIT", "Apache-2.0 WITH LLVM-exception"]
    {
        assert_eq!(permits(yes), Ok(true), "{yes}");
    }
    for no in
        ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR GPL-3.0) AND AGPL-3.0", "GPL-2.0 WITH Classpath-exception-2.0", "mit"]
    {
        assert_eq!(permits(no), Ok(false), "{no}");
    }
    for wrong in ["", "MIT OR", "(MIT", "MIT MIT", "OR MIT", "MIT WITH"] {
        assert!(permits(wrong).is_err(), "{wrong:?}");
    }
}

fn packages(manifest: &str) -> Vec<Value> {
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    // Packages of other systems are not downloaded, so that they cannot be judged offline.
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", host])
        .args(["--manifest-path", manifest])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn every_package_may_be_used() {
    judge(&packages("Cargo.toml"));
}

#[test]
#[ignore = "it needs the fuzzer's packages, which `make check` downloads"]
fn every_package_of_the_fuzzer_may_be_used() {
    judge(&packages("fuzz/Cargo.toml"));
}

#[track_caller]
fn judge(packages: &[Value]) {
    assert!(packages.len() > 100, "{} packages are too few to be true", packages.len());
    let mut found = Vec::new();
    for package in packages {
        let name = format!("{} {}", package["name"].as_str().unwrap(), package["version"].as_str().unwrap());
        let licence = package["license"].as_str();
        if package["source"].is_null() {
            if licence != Some(OWN) {
                found.push(format!("{name} is ours, and its licence is {licence:?}, not {OWN}"));
            }
            if package["publish"] != Value::Array(Vec::new()) {
                found.push(format!("{name} is ours, and could be published"));
            }
            continue;
        }
        match licence.map(permits) {
            Some(Ok(true)) => {}
            Some(Ok(false)) => found.push(format!("{name}: {} is not on the list", licence.unwrap())),
            Some(Err(why)) => found.push(format!("{name}: {}: {why}", licence.unwrap())),
            None => found.push(format!("{name} names no licence")),
        }
        if package["source"] != REGISTRY {
            found.push(format!("{name} comes from {}", package["source"]));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A lock file: what each package, by name and version, depends on.
fn locked(path: &str) -> BTreeMap<(String, String), Vec<String>> {
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    let field = |package: &str, name: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let read = |package: &str| {
        let source = field(package, "source");
        assert!(source.is_none_or(|source| source == REGISTRY), "{path}: another source in {package}");
        let listed = package.split("dependencies = [").nth(1).unwrap_or("");
        let dependencies = listed.split('"').skip(1).step_by(2).map(str::to_owned).collect();
        ((field(package, "name").unwrap(), field(package, "version").unwrap()), dependencies)
    };
    text.split("[[package]]").skip(1).map(read).collect()
}

#[test]
fn what_is_fuzzed_is_what_is_built() {
    let (built, fuzzed) = (locked("Cargo.lock"), locked("fuzz/Cargo.lock"));
    // All below ours; what bolero is made of may have other versions.
    let mut to_see: Vec<String> = ["cases", "tests", "hostile-guests-artifact"].map(str::to_owned).to_vec();
    let mut seen = BTreeSet::new();
    while let Some(wanted) = to_see.pop() {
        let (name, version) = wanted.split_once(' ').unwrap_or((&wanted, ""));
        let matches = fuzzed.iter().filter(|((n, v), _)| n == name && (version.is_empty() || v == version));
        for (package, dependencies) in matches {
            if seen.insert(package.clone()) {
                to_see.extend(dependencies.iter().cloned());
            }
        }
    }
    assert!(seen.len() > 100, "{} packages are too few to be true", seen.len());
    let differ: Vec<_> = seen.iter().filter(|package| !built.contains_key(*package)).collect();
    assert!(differ.is_empty(), "fuzz/Cargo.lock has other versions than Cargo.lock: {differ:?}");
}

#[test]
fn cargo_deny_has_the_same_list() {
    let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let list = text.split("allow = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    let licences: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert_eq!(licences, ALLOWED);
}
