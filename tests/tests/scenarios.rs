//! Every scenario in `scenarios/`, rendered anew and compared. `BLESS=1 cargo test -p tests --test scenarios` writes them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::path::PathBuf;

use scenario::{Run, run};

fn all() -> Vec<(PathBuf, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

fn play(path: &std::path::Path, text: &str) -> Run {
    run(text, |_| ()).unwrap_or_else(|error| panic!("{}:{}: {}", path.display(), error.line, error.why))
}

/// The lines that differ, with their numbers.
fn diff(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let first = expected.iter().zip(&found).take_while(|(a, b)| a == b).count();
    let show = |lines: &[&str], sign: &str| -> String {
        lines.iter().skip(first).take(12).map(|line| format!("{sign} {line}\n")).collect()
    };
    format!("from line {}:\n{}{}", first + 1, show(&expected, "-"), show(&found, "+"))
}

#[test]
fn scenarios_come_out_as_committed() {
    let mut failed = Vec::new();
    for (path, text) in all() {
        let run = play(&path, &text);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &run.text).unwrap();
        } else if run.text.trim_end() != text.trim_end() {
            failed.push(format!("{} {}", path.display(), diff(&text, &run.text)));
        }
        if !run.violations.is_empty() {
            failed.push(format!("{}: {}", path.display(), run.violations.join("; ")));
        }
        // What differs is said above, as text.
        failed.extend(run.misses.iter().filter(|miss| miss.diff.is_empty()).map(|miss| miss.what.clone()));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Every row of SPEC 4 that a run can reach has a scenario; R17 cannot be reached by the engine, and has a test of its own.
#[test]
fn every_rule_is_exercised_by_a_scenario() {
    let rules: BTreeSet<u8> = all().iter().flat_map(|(path, text)| play(path, text).rules).collect();
    let missing: Vec<u8> = (0..17).filter(|rule| !rules.contains(rule)).collect();
    assert!(missing.is_empty(), "no scenario exercises the rules {missing:?}");
    assert!(!rules.contains(&17), "the engine asked about facts that contradict each other (R17)");
}
