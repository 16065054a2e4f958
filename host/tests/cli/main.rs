//! The program as its users meet it: exit codes, messages, and what never takes more than one screen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod check;
mod decider;
mod examples;
mod fleet_files;
mod journal;
mod languages;
mod packages;
mod policy;
mod simulate;
mod step;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// One screen, in lines.
const SCREEN: usize = 40;

fn homeostat(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homeostat"));
    command.args(args).env_remove("NO_COLOR").env_remove("HOMEOSTAT_STATE").stdin(Stdio::null());
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(args: &[&str]) -> Value {
    let output = homeostat(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    path.to_str().unwrap().to_owned()
}

/// A directory that goes away.
struct Folder(PathBuf, #[allow(dead_code)] tempfile::TempDir);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = tempfile::Builder::new().prefix(&format!("homeostat-cli-{name}-")).tempdir().unwrap();
        Folder(folder.path().to_owned(), folder)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A file of that size with nothing in it.
    fn sparse(&self, name: &str, bytes: u64) -> String {
        let path = self.file(name, "");
        fs::File::options().write(true).open(&path).unwrap().set_len(bytes).unwrap();
        path
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

/// Refused with exit code 2, on one screen, without a word on standard output; what it says.
fn refused(args: &[&str]) -> String {
    let output = homeostat(args);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert!(said.lines().count() <= SCREEN, "{args:?}: {said}");
    let json = said.starts_with('{');
    assert!(json || said.lines().all(|line| line.chars().count() <= 420), "{args:?}: {said}");
    assert!(!said.contains("panicked"), "{said}");
    assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{args:?}: {said:?}");
    said
}

#[test]
fn plan_shows_templates_slots_and_steps() {
    let output = homeostat(&["plan", &example("web.toml")]);
    let said = text(&output.stdout);
    for part in ["front-0 … front-2", "api-0 … api-1", "store-0", "GET http://{endpoint}/healthz", "then settled"] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    let json = json(&["plan", &example("web.toml"), "-o", "json"]);
    assert_eq!(json["schema"], "homeostat.plan/v1");
    assert_eq!(json["slots"].as_array().unwrap().len(), 6);
    assert_eq!(json["settled"], true);
    let steps: Vec<Vec<(&str, &str)>> = json["rounds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|round| {
            let steps = round.as_array().unwrap().iter();
            steps.map(|step| (step["rule"].as_str().unwrap(), step["verb"].as_str().unwrap())).collect()
        })
        .collect();
    let expected = [
        ("R0", "insert"),
        ("R12", "create-lease"),
        ("R13", "lookup-endpoint"),
        ("R16", "start-bootstrap"),
        ("R14", "convergence-observed"),
    ];
    assert_eq!(steps, expected.map(|step| vec![step; 6]));
}

#[test]
fn plan_says_what_the_guards_hold() {
    let folder = Folder::new("guards");
    let group = "[[group]]\nid = \"web\"\ncount = 5\n[group.boot]\ncommand = [\"true\"]\n";
    let text_of = format!("run = \"demo\"\n{group}[guards]\nlive-resources = 3\ncreates-per-hour = 4\n");
    let path = &folder.file("fleet.toml", text_of);
    assert_eq!(homeostat(&["validate", path]).status.code(), Some(0));
    let said = text(&homeostat(&["plan", path]).stdout);
    let json = json(&["plan", path, "-o", "json"]);
    assert!(said.contains("then settled") && said.contains("guard live-resources: 3 of 5 nodes"), "{said}");
    assert_eq!(json["held"][1], "guard creates-per-hour: 4 of 5 nodes; then creates are paused until somebody resumes");
}

#[test]
fn usage_errors_are_2_and_help_is_0() {
    // All verbs, in groups, are more than one screen.
    let nothing = homeostat(&[]);
    assert_eq!((nothing.status.code(), nothing.stdout.len()), (Some(2), 0));
    assert!(text(&nothing.stderr).contains("Look at a fleet:"));
    for args in [
        &["fly"][..],
        &["validate"],
        &["validate", "a", "b"],
        &["validate", "x", "--color", "blue"],
        &["validate", "x", "-o", "yaml"],
        &["up", "x", "--timeout", "5s"],
        &["up", "x", "--until-converged", "--timeout", "-5s"],
        &["up", "x", "--until-converged", "--timeout", "5"],
        &["completions", "tcsh"],
        &["decider"],
    ] {
        refused(args);
    }
    for args in [&["--help"][..], &["-h"], &["--version"], &["up", "--help"], &["decider", "run", "-h"]] {
        assert_eq!(homeostat(args).status.code(), Some(0), "{args:?}");
    }
    // Whoever asked for JSON gets it also where the rest of the line is wrong.
    for args in [&["-o", "json", "scale", "web"][..], &["kill", "-ojson"], &["fly", "--output=json"]] {
        let output = homeostat(args);
        let error: Value = serde_json::from_slice(&output.stderr).unwrap_or_else(|e| panic!("{args:?}: {e}"));
        assert_eq!((output.status.code(), &error["schema"]), (Some(2), &"homeostat.error/v1".into()), "{args:?}");
        let words = error["error"].as_str().unwrap();
        assert!(!words.is_empty() && !words.contains("Usage") && !words.starts_with("error"), "{words}");
    }
    let help = text(&homeostat(&["--help"]).stdout);
    assert!(help.contains("3  not in time") && !help.contains("demo-server"), "{help}");
}

#[test]
fn completions_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let output = homeostat(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        let script = text(&output.stdout);
        assert!(script.contains("until-converged") && script.contains("script"), "{shell}");
    }
}

#[test]
fn colours_follow_the_option() {
    let bad = ["validate", "/nowhere"];
    let coloured = |args: &[&str]| homeostat(args).stderr.contains(&0x1b);
    assert!(!coloured(&bad));
    assert!(!coloured(&[&bad[..], &["--color", "never"]].concat()));
    assert!(coloured(&[&bad[..], &["--color", "always"]].concat()));
}

/// A reader that goes away is no reason to panic, nor to fail.
#[test]
fn a_closed_pipe_is_quiet() {
    for args in [&["schema"][..], &["plan", &example("web.toml")], &["completions", "bash"], &["decider", "inspect"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_homeostat"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}: {said}");
        assert!(said.is_empty(), "{args:?}: {said}");
    }
}

#[test]
fn the_schema_is_one_for_editors() {
    let schema = json(&["schema"]);
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], serde_json::json!(["run"]));
    let group = &schema["$defs"]["GroupTable"];
    assert_eq!(group["required"], serde_json::json!(["id", "count", "boot"]));
    assert!(group["properties"]["join"]["description"].as_str().unwrap().contains("{endpoint}"));
    assert_eq!(schema["$defs"]["Duration"]["type"], "string");
    assert!(schema["$defs"]["Duration"]["pattern"].is_string());
}
