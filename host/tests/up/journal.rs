//! `up --journal`: what a real fleet did is decided again, bit for bit.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::fixture::{HOMEOSTAT, Place, STEADY, fleet, group};

fn homeostat(args: &[&str], file: &Path) -> (i32, Value) {
    let output = Command::new(HOMEOSTAT).args(args).arg(file).args(["-o", "json"]).output().unwrap();
    let said = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
    let value =
        serde_json::from_slice(said).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(said)));
    (output.status.code().unwrap(), value)
}

#[test]
fn a_fleet_with_failures_and_edits_replays_bit_for_bit() {
    let place = Place::with(&fleet(&[group("web", 3, STEADY), group("bad", 1, "exit 3")]));
    let file = place.path().join("journal.jsonl");
    let journal = file.to_str().unwrap().to_owned();
    let mut up = place.up(&["--journal", &journal]);
    up.node(0, "web-2", &[("ready", json!(true))]);
    up.node(0, "bad-0", &[("failures", json!(2))]);
    // While it is written it can be read.
    let (code, replayed) = homeostat(&["replay"], &file);
    assert_eq!((code, &replayed["same"]), (0, &json!(true)), "{replayed}");
    // And written by nobody else.
    let (code, _, err) = place.run(&["--journal", &journal]);
    assert!(code == 2 && err.contains("being written by another process"), "{code} {err}");
    let mark = up.mark();
    place.write(&fleet(&[group("web", 1, STEADY)]));
    up.converged(mark);
    up.take_down(Signal::INT);

    let (code, verified) = homeostat(&["journal", "verify"], &file);
    assert_eq!((code, &verified["ends_with_mark"]), (0, &json!(true)), "{verified}");
    let (code, replayed) = homeostat(&["replay"], &file);
    assert_eq!((code, &replayed["same"]), (0, &json!(true)), "{replayed}");
    assert!(replayed["dispatches"].as_u64().unwrap() > 15 && replayed["passes"].as_u64().unwrap() > 30, "{replayed}");
    assert!(replayed["recorded"]["destroys"].as_u64().unwrap() >= 5, "{replayed}");
}

/// Killed in the middle, torn at the end: the next life goes on in the same journal, and both replay.
#[test]
fn a_host_that_was_killed_goes_on_in_its_journal() {
    let place = Place::with(&fleet(&[group("web", 2, STEADY)]));
    let file = place.path().join("journal.jsonl");
    let journal = file.to_str().unwrap().to_owned();
    let mut up = place.up(&["--journal", &journal]);
    up.converged(0);
    up.signal(Signal::KILL);
    up.ended();
    let whole = std::fs::read(&file).unwrap();
    let cut = whole.len() - 40;
    std::fs::write(&file, &whole[..cut]).unwrap();

    let mut up = place.up(&["--journal", &journal]);
    up.note(0, "of a torn record off");
    up.converged(0);
    up.take_down(Signal::TERM);
    place.assert_empty();
    let (code, verified) = homeostat(&["journal", "verify"], &file);
    // The state goes on, and so does its copy: one life of the driver, with a restart in it.
    assert_eq!((code, verified["runs"].as_array().unwrap().len()), (0, 1), "{verified}");
    assert_eq!(verified["runs"][0]["ended"], json!(true));
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"restarted\""));
    let (code, replayed) = homeostat(&["replay"], &file);
    assert_eq!((code, &replayed["same"], &replayed["runs"]), (0, &json!(true), &json!(1)), "{replayed}");
}

#[test]
fn a_file_that_cannot_be_continued_is_refused_before_anything_starts() {
    let place = Place::with(&fleet(&[group("web", 1, STEADY)]));
    let notes = place.path().join("notes.txt");
    std::fs::write(&notes, "precious").unwrap();
    let damaged = place.path().join("damaged.jsonl");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/01-climb.jsonl");
    let text = std::fs::read_to_string(golden).unwrap();
    std::fs::write(&damaged, text.replacen("desired", "desirex", 1)).unwrap();
    let folder = place.path();
    for (file, reason) in [
        (notes.to_str().unwrap(), "not a journal"),
        (damaged.to_str().unwrap(), "was changed after it was written"),
        (folder.to_str().unwrap(), "not a regular file"),
        ("/nowhere/journal.jsonl", "No such file"),
        ("/dev/full", "not a regular file"),
    ] {
        let (code, _, err) = place.run(&["--journal", file]);
        assert!(code == 2 && err.contains(reason) && err.lines().count() < 4, "{file}: {code} {err}");
    }
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "precious");
    assert!(place.leases().is_empty());
}
