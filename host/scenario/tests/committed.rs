//! The scenarios of `tests/scenarios` and `examples/policy-tests`, with the native decider.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::{Path, PathBuf};

use scenario::{Bounds, Coverage, Report, Script, Status, Subject, play};

fn files(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// Plays every case of a folder, and requires that it passes.
fn covered(folder: &str) -> Coverage {
    let subject = Subject::native();
    let mut report = Report::new("ladder".into(), &subject);
    for (path, text) in files(folder) {
        let wrong = |error| -> ! { panic!("{}: {error}", path.display()) };
        let script = Script::parse(&text).unwrap_or_else(|error| wrong(error));
        script.check(&subject.identity.rules, false).unwrap_or_else(|error| wrong(error));
        let mut texts = Vec::new();
        for case in &script.cases {
            let played = play(&script, case, &subject, &Bounds::default()).unwrap_or_else(|error| wrong(error));
            report.push(&path.display().to_string(), case, &subject, &played);
            texts.push(case.written(&played));
        }
        assert_eq!(script.rendered(texts.iter().map(String::as_str)).trim_end(), text.trim_end(), "{}", path.display());
    }
    let failed: Vec<_> = report.tested.iter().filter(|tested| tested.status != Status::Passed).collect();
    for tested in &failed {
        eprintln!("{} {} {:#?}", tested.file, tested.name, tested.misses);
    }
    assert!(failed.is_empty(), "{} cases fail", failed.len());
    report.coverage
}

#[test]
fn scenarios_exercise_every_rule_that_the_engine_reaches() {
    let coverage = covered("tests/scenarios");
    assert_eq!(coverage.uncovered(), ["R17"], "the engine never asks about facts that contradict each other");
}

#[test]
fn policy_tests_exercise_every_rule_and_every_row_of_the_ladder() {
    let coverage = covered("examples/policy-tests");
    assert_eq!(coverage.uncovered(), Vec::<&str>::new());
    assert_eq!(coverage.uncovered_rows(), Vec::<&scenario::Covered>::new());
    assert_eq!(coverage.percent(), 100);
}

/// Every test is in the index, and every test and scenario of the index exists.
#[test]
fn the_index_of_the_policy_tests_is_complete() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("examples/policy-tests");
    let index = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let names = |file: &str| -> Vec<String> {
        let script = Script::parse(&std::fs::read_to_string(folder.join(file)).unwrap()).unwrap();
        script.cases.into_iter().map(|case| case.name.unwrap()).collect()
    };
    let rows: Vec<Vec<&str>> = index
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| what failed"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let listed: Vec<&str> = rows.iter().map(|row| row[1]).collect();
    assert_eq!(listed, names("failures.txt"));
    for row in &rows {
        assert!(root.join("tests/scenarios").join(row[2]).is_file(), "{}", row[2]);
    }
    // The kinds of failure of SPEC 6, each of which has a row.
    for kind in [
        "create-lease",
        "lookup-endpoint: not ready yet",
        "lookup-endpoint: error",
        "start-bootstrap",
        "bootstrap at run time, join",
        "closed before convergence",
        "a stage's own deadline: no endpoint",
        "a stage's own deadline: a silent bootstrap",
        "a stage's own deadline: not joined in time",
        "a ready node dies",
        "cancel-bootstrap, destroy-lease",
        "any timeout, or ambiguous create",
        "provider says wait",
        "provider refuses for good",
    ] {
        assert!(rows.iter().any(|row| row[0] == kind), "{kind}");
    }
    let rules = [names("rules.txt"), names("rollouts.txt")].concat();
    for rule in decider::describe().rules {
        assert_eq!(rules.iter().filter(|name| name.starts_with(&format!("{}:", rule.id))).count(), 1, "{}", rule.id);
    }
}
