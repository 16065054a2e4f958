//! What the house looks like: which way the arrows point, what the pure rooms may not contain, sizes, names, paths.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use tests::source::{SourceFile, files, root};

/// Longer files want to be a folder.
const MAX_LINES: usize = 500;

/// Which packages of this workspace a package may depend on, tests apart.
const ARROWS: &[(&str, &[&str])] = &[
    ("decider", &[]),
    ("decider-guest", &["decider"]),
    ("decider-wasm", &["decider-guest"]),
    ("guest-build", &[]),
    ("decider-artifact", &["guest-build"]),
    ("engine", &["decider"]),
    ("model", &["decider", "engine"]),
    ("sim", &["decider", "engine", "journal", "store"]),
    ("journal", &["decider", "engine"]),
    ("store", &["decider", "engine", "journal"]),
    ("api", &["decider", "engine"]),
    ("client", &["api", "engine", "step", "store"]),
    ("inspect", &["api", "decider", "engine", "journal", "step", "store"]),
    ("scenario", &["decider", "engine"]),
    ("step", &["decider", "engine", "journal"]),
    ("traces", &["engine"]),
    ("scaffold", &[]),
    ("contract-1-0", &[]),
    (
        "homeostat",
        &[
            "api",
            "client",
            "decider",
            "decider-artifact",
            "engine",
            "inspect",
            "journal",
            "model",
            "scaffold",
            "scenario",
            "sim",
            "step",
            "store",
            "traces",
        ],
    ),
    ("hostile-guests", &["decider", "decider-guest"]),
    ("hostile-guests-artifact", &["guest-build"]),
    ("example-deciders", &["guest-build"]),
    ("cases", &["decider", "engine", "scenario"]),
    ("tests", &["api", "cases", "client", "decider", "engine", "homeostat", "journal", "scenario", "store"]),
    ("benches", &["decider", "engine", "homeostat", "tests"]),
    ("embed", &["homeostat"]),
];

/// What each decider of `examples/deciders` may depend on; yours may be among them.
const DECIDERS: (&str, &[&str]) = ("examples/deciders/", &["decider", "decider-guest"]);

/// All that the engine is compiled from: no async runtime, no sandbox, no clock, no source of randomness.
const ENGINE_IS_MADE_OF: &[&str] = &[
    "decider",
    "engine",
    "itoa",
    "memchr",
    "proc-macro2",
    "quote",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_json",
    "syn",
    "thiserror",
    "thiserror-impl",
    "unicode-ident",
    "zmij",
];

const BANNED_NAMES: &[&str] = &["manager", "handler", "helper", "helpers", "util", "utils", "misc", "data", "info"];

fn sources() -> Vec<SourceFile> {
    let files = files().unwrap();
    assert!(files.len() > 100, "only {} files below {}", files.len(), root().display());
    files
}

fn rust() -> impl Iterator<Item = SourceFile> {
    sources().into_iter().filter(SourceFile::is_rust)
}

fn none(found: Vec<String>, what: &str) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

/// Lines of code in which `is_wrong` finds something, as `file:line: what`.
fn lines(files: impl Iterator<Item = SourceFile>, is_wrong: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        for (number, line) in file.code() {
            found.extend(is_wrong(&line).map(|what| format!("{}:{number}: {what}", file.path)));
        }
    }
    found
}

/// Words of a line: identifiers, keywords, numbers.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "cargo {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn arrows_point_one_way() {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]))
            .unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let mut allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    for package in packages {
        if package["manifest_path"].as_str().unwrap().contains(DECIDERS.0) {
            allowed.entry(package["name"].as_str().unwrap()).or_insert(DECIDERS.1);
        }
    }
    let ours: BTreeSet<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    assert_eq!(ours, allowed.keys().copied().collect(), "ARROWS names every package of the workspace");
    let mut found = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = dependency["name"].as_str().unwrap();
            if ours.contains(to) && dependency["kind"] != "dev" && !allowed[name].contains(&to) {
                found.push(format!("{name} -> {to}"));
            }
        }
    }
    none(found, "arrows that do not exist in the plan of the house");
}

#[test]
fn the_decider_depends_on_nothing_and_the_engine_on_little() {
    let tree = |package: &str| -> BTreeSet<String> {
        let tree = ["tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none", "--package", package];
        cargo(&tree).lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    };
    assert_eq!(tree("decider"), BTreeSet::from(["decider".to_owned()]));
    let allowed: BTreeSet<String> = ENGINE_IS_MADE_OF.iter().map(|name| name.to_string()).collect();
    let unexpected: Vec<String> = tree("engine").difference(&allowed).cloned().collect();
    none(unexpected, "packages below the engine that ENGINE_IS_MADE_OF does not allow");
}

#[test]
fn the_pure_rooms_have_no_clock_no_io_and_no_random_order() {
    let pure = ["decider-wasm/core/src/", "decider-wasm/guest/src/", "decider-wasm/src/", "host/engine/src/"];
    impure(&pure, &["time", "fs", "net", "thread", "env", "process", "io", "os"]);
    // It reads and writes what it is given.
    impure(&["host/journal/src/", "host/scenario/src/"], &["time", "fs", "net", "thread", "env", "process", "os"]);
}

#[track_caller]
fn impure(rooms: &[&str], modules: &[&str]) {
    let files = rust().filter(|file| rooms.iter().any(|room| file.path.starts_with(room)) && !file.is_test());
    let found = lines(files, |line| {
        // `wasmtime` is not among them: behind a feature, the contract's types say how it lifts and lowers them.
        let banned = ["SystemTime", "HashMap", "HashSet", "RandomState", "tokio", "async", "await"];
        let word = words(line).find(|word| banned.contains(word));
        let module = modules.iter().find(|module| {
            line.match_indices(&format!("std::{module}")).any(|(at, found)| {
                !line[at + found.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
            })
        });
        word.map(str::to_owned).or(module.map(|module| format!("std::{module}")))
    });
    none(found, "what a pure room may not contain");
}

#[test]
fn files_can_be_read_at_one_sitting() {
    let too_long = |file: &SourceFile| {
        let unit_tests = file.text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(file.text.len());
        let length = file.text[..unit_tests].lines().count();
        (length > MAX_LINES).then(|| format!("{}: {length} lines, more than {MAX_LINES}", file.path))
    };
    none(
        rust().filter(|file| !file.is_test()).filter_map(|file| too_long(&file)).collect(),
        "files that want to be folders",
    );
}

#[test]
fn names_say_what_a_thing_is() {
    /// `TermInfo` and `term_info` are both term, info.
    fn parts(name: &str) -> Vec<String> {
        let mut parts = vec![String::new()];
        for c in name.chars() {
            if c == '_' || c == '-' || c.is_uppercase() {
                parts.push(String::new());
            }
            if c.is_alphanumeric() {
                parts.last_mut().unwrap().extend(c.to_lowercase());
            }
        }
        parts
    }
    let banned = |name: &str| parts(name).into_iter().find(|part| BANNED_NAMES.contains(&part.as_str()));
    assert_eq!(banned("TermInfo").as_deref(), Some("info"));
    assert_eq!(banned("string_utils").as_deref(), Some("utils"));
    assert_eq!(banned("Metadata"), None);

    let mut found = lines(rust(), |line| {
        let declared: Vec<&str> = words(line).collect();
        declared.windows(2).find_map(|pair| {
            let declares = matches!(pair[0], "mod" | "struct" | "enum" | "trait" | "type");
            let bare = matches!(pair[1], "Event" | "State") && line.starts_with("pub ");
            (declares && (bare || banned(pair[1]).is_some())).then(|| pair.join(" "))
        })
    });
    for file in sources() {
        found.extend(file.path.split(['/', '.']).filter_map(|part| Some(format!("{}: {}", file.path, banned(part)?))));
    }
    none(found, "names that say nothing");
}

#[test]
fn nothing_panics_on_purpose_outside_tests() {
    // The guests' crates of the tests misbehave on purpose.
    let files = rust().filter(|file| !file.is_test() && !file.path.starts_with("tests/"));
    let found = lines(files, |line| {
        let calls = [".unwrap()", ".unwrap_err()", ".expect(", "panic!(", "todo!(", "unimplemented!(", "unreachable!("];
        calls.iter().find(|call| line.contains(*call)).map(|call| call.to_string())
    });
    none(found, "panics outside tests");
}

#[test]
fn every_crate_has_the_workspace_lints() {
    // One without a package only lists its members.
    let is_package = |file: &SourceFile| file.path.ends_with("/Cargo.toml") && file.text.contains("[package]");
    let manifests = sources().into_iter().filter(is_package);
    // Their bindings are generated, and contain unsafe code that the lints deny.
    let generated = [
        "decider-wasm/Cargo.toml",
        "decider-wasm/guest/Cargo.toml",
        "tests/guests/Cargo.toml",
        "tests/guests/contract-1-0/Cargo.toml",
    ];
    // What a project of its own begins with is no member.
    let templates = "host/scaffold/templates/";
    let without = manifests
        .filter(|file| !generated.contains(&file.path.as_str()) && !file.path.starts_with(templates))
        .filter(|file| !file.text.contains("[lints]\nworkspace = true"))
        .map(|file| file.path);
    none(without.collect(), "manifests without [lints] workspace = true");
}

#[test]
fn unsafe_code_is_where_it_is_known_to_be() {
    let known = [
        "decider-wasm/guest/src/allocator.rs", // a global allocator cannot be written without
        "host/src/sandbox/cache.rs",           // runs compiled code that carries this host's own tag
        "host/src/sandbox/call.rs",            // skips wasmtime's check of the export's type, done once at load
        "host/src/sandbox/loaded.rs",          // … and vouches for that
        "host/src/sandbox/memory.rs",          // asks glibc to give back what a compiler has freed
    ];
    let files = rust().filter(|file| !file.is_test() && !known.contains(&file.path.as_str()));
    none(lines(files, |line| words(line).find(|word| *word == "unsafe").map(|_| line.to_owned())), "unsafe code");
}

#[test]
fn no_path_of_somebodys_machine() {
    let folders = [concat!("/", "work"), concat!("/", "root"), concat!("/", "home"), concat!("/", "Users")];
    let mut found = Vec::new();
    for file in sources() {
        for (at, line) in file.text.lines().enumerate() {
            for folder in folders {
                for (start, _) in line.match_indices(folder) {
                    let before = line[..start].chars().next_back();
                    let after = line[start + folder.len()..].chars().next();
                    // `https://example.org/work` and `a/work/b` are no paths from the root; `/workspace` is another word.
                    let begins = before.is_none_or(|c| !c.is_alphanumeric() && !"./}-_".contains(c));
                    let ends = after.is_none_or(|c| !c.is_alphanumeric() && !"-_".contains(c));
                    if begins && ends {
                        found.push(format!("{}:{}: {}", file.path, at + 1, line.trim()));
                    }
                }
            }
        }
    }
    none(found, "paths of somebody's machine");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut found = Vec::new();
    for file in sources().into_iter().filter(|file| file.path.ends_with(".md")) {
        let folder = root().join(&file.path).parent().unwrap().to_path_buf();
        for (start, _) in file.text.match_indices("](") {
            let target = file.text[start + 2..].split([')', '#']).next().unwrap();
            if !target.is_empty() && !target.contains("://") && !folder.join(target).exists() {
                found.push(format!("{}: {target}", file.path));
            }
        }
    }
    none(found, "links that lead nowhere");
}

#[test]
fn the_pages_show_the_ladder_as_it_is() {
    let text = |path: &str| sources().into_iter().find(|file| file.path == path).unwrap().text;
    let ladder = text("decider-wasm/core/ladder.txt");
    let (_, table) = ladder.split_once("\n\n").unwrap();
    assert!(text("docs/contract.md").contains(table.trim_end()), "docs/contract.md has another ladder than ladder.txt");
}

/// Whoever writes a policy finds each record's fields on the page for authors.
#[test]
fn the_guide_for_authors_names_every_field_of_the_contract() {
    let contract = std::fs::read_to_string(root().join("wit/decider.wit")).unwrap();
    let guide = std::fs::read_to_string(root().join("docs/policy-authors.md")).unwrap();
    let fields: Vec<&str> = contract
        .lines()
        .filter_map(|line| line.strip_prefix("        ")?.split_once(": ").map(|(name, _)| name))
        .filter(|name| name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-'))
        .collect();
    assert!(fields.len() > 60, "{fields:?}");
    let missing = fields.iter().filter(|field| !guide.contains(&format!("`{field}`"))).map(ToString::to_string);
    none(missing.collect(), "not in docs/policy-authors.md");
}
