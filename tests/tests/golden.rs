//! Journals that are committed must replay for ever: with the native decider and with the component, bit for bit. Those that
//! are missing are written by `BLESS=1 cargo test -p tests --test golden`; those that exist never are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::path::PathBuf;

use decider::{Plan, Snapshot};
use engine::io::DeciderFailure;
use homeostat::sandbox::{Limits, Sandbox};
use journal::{Against, Answer, Entry, Reader, Replay, replay, verify};
use tests::histories::{DECIDER_FAILS, HISTORIES, fails_at_first, journal};

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/golden"))
}

fn golden() -> Vec<(String, Vec<u8>)> {
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(folder()).unwrap();
        for history in HISTORIES.iter().chain([&DECIDER_FAILS]) {
            let path = folder().join(format!("{}.jsonl", history.name));
            if !path.exists() {
                std::fs::write(path, journal(history).unwrap_or_else(|error| panic!("{error:?}"))).unwrap();
            }
        }
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
}

type Decide<'a> = &'a mut dyn FnMut(&Snapshot) -> Result<Plan, DeciderFailure>;

fn again(name: &str, bytes: &[u8], decide: Decide<'_>) -> Replay {
    let fails = name == DECIDER_FAILS.name;
    let ask = |_: &str, snapshot: &Snapshot| match fails_at_first(snapshot).filter(|_| fails) {
        Some(failure) => Err(failure),
        None => decide(snapshot),
    };
    let found =
        replay(&mut Reader::new(bytes), &Against::Recorded, ask).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(found.contrast.is_same(), "{name}: {:#?}", found.contrast.differences.first());
    assert_eq!((found.contrast.unrepeatable, found.unrecorded, found.torn_bytes), (0, 0, 0), "{name}");
    assert!(found.contrast.passes > 0, "{name} asks nothing");
    found
}

#[test]
fn golden_journals_replay_with_the_native_decider_and_with_the_component() {
    let component = Sandbox::new(Limits::default()).unwrap().built_in().unwrap();
    let all = golden();
    let names: BTreeSet<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    for history in HISTORIES.iter().chain([&DECIDER_FAILS]) {
        assert!(names.contains(history.name), "golden/{}.jsonl is missing: BLESS=1 writes it", history.name);
    }
    for (name, bytes) in &all {
        assert!(verify(&mut Reader::new(bytes.as_slice())).unwrap().ends_well(), "{name}");
        let native = again(name, bytes, &mut |snapshot| Ok(decider::reconcile(snapshot)));
        let compiled = again(name, bytes, &mut |snapshot| component.decide(snapshot));
        assert_eq!(native, compiled, "{name}");
    }
}

/// What they are for: between them they cover the ladder, failures of the decider, refusals, listings.
#[test]
fn golden_journals_cover_the_ladder() {
    let (mut rules, mut labels, mut failures) = (BTreeSet::new(), BTreeSet::new(), 0);
    for (_, bytes) in golden() {
        let mut reader = Reader::new(bytes.as_slice());
        while let Some(line) = reader.next_line().unwrap() {
            match &line.entry {
                Entry::Pass { answer: Answer::Plan(plan), .. } => rules.extend(plan.decisions.rule.iter().copied()),
                Entry::Pass { answer: Answer::Failure(_), .. } => failures += 1,
                Entry::Input { of, error } => {
                    labels.insert(of.label());
                    labels.extend(error.as_ref().map(|_| "refused"));
                }
                other => _ = labels.insert(other.label()),
            }
        }
    }
    // R17 cannot be reached.
    let missing: Vec<u8> = (0..17).filter(|rule| !rules.contains(rule)).collect();
    assert!(missing.is_empty(), "no golden journal has the rules {missing:?}");
    for label in ["desired", "completed", "observed", "listed", "adopt", "tick", "refused", "dispatch", "reserved"] {
        assert!(labels.contains(label), "no golden journal has {label}: {labels:?}");
    }
    assert!(failures > 5, "{failures}");
}

/// Two runs of one history give the same bytes, and what is read is written again with the bytes that were read.
#[test]
fn bytes_are_the_same_again() {
    for history in HISTORIES.iter().chain([&DECIDER_FAILS]) {
        let now = journal(history).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(
            now,
            journal(history).unwrap_or_else(|error| panic!("{error:?}")),
            "{}: two runs differ",
            history.name
        );
    }
    for (name, bytes) in &golden() {
        let mut reader = Reader::new(bytes.as_slice());
        let mut writer = journal::Writer::new(Vec::new());
        while let Some(line) = reader.next_line().unwrap() {
            writer.append(line.at_ms, &line.entry).unwrap();
        }
        assert!(writer.into_inner() == *bytes, "{name} is read and written again with other bytes");
    }
}
