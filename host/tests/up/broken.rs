//! A fleet file that is missing or broken when the daemon starts: the fleet goes on, and everybody is told.

use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::fixture::{HOMEOSTAT, Place, STEADY, Up, fleet, group, signal, until};

fn of(count: u32) -> String {
    fleet(&[group("web", count, STEADY)])
}

/// What a verb says about the daemon of a place.
fn ask(place: &Place, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(HOMEOSTAT);
    command.env_remove("HOMEOSTAT_STATE").args(args).arg("--state").arg(place.state());
    let ended = command.output().unwrap();
    (ended.status.code().unwrap(), String::from_utf8(ended.stdout).unwrap() + &String::from_utf8_lossy(&ended.stderr))
}

fn status(place: &Place) -> Value {
    serde_json::from_str(&ask(place, &["status", "-o", "json"]).1).unwrap()
}

fn stop(mut up: Up) -> String {
    signal(up.pid(), Signal::TERM);
    let code = up.ended().0;
    assert_eq!(code, 0, "{}", up.errors());
    up.errors()
}

/// Starts as if nothing were wrong with the state; says what is wrong with the file wherever people look.
#[track_caller]
fn goes_on(place: &Place, words: &str) -> Up {
    let up = place.daemon();
    up.converged(0);
    up.note(0, "the fleet goes on as it was, in generation 1, and takes the file over as soon as it can be");
    until(words, || up.errors().contains(words).then_some(()));
    let (code, said) = ask(place, &["status"]);
    assert!(code == 0 && said.contains("fleet file") && said.contains(words), "{said}");
    let refused = &status(place)["refused_file"];
    assert_eq!(refused["file"], place.file().to_str().unwrap());
    assert!(refused["since_ms"].as_u64() > Some(0));
    let (_, said) = ask(place, &["doctor"]);
    let line = said.lines().find(|line| line.contains("fleet file")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("warning") && line.contains(words), "{said}");
    up
}

#[test]
fn the_fleet_goes_on_while_its_file_is_missing_or_broken() {
    let place = Place::with(&of(2));
    let first = place.daemon();
    first.converged(0);
    let pids = place.pids();
    assert_eq!(status(&place)["refused_file"], Value::Null);
    stop(first);

    // Missing; a node that dies is replaced all the same, in the shape that is known.
    std::fs::remove_file(place.file()).unwrap();
    let second = goes_on(&place, "fleet.toml: No such file");
    assert_eq!(place.pids(), pids, "no node was touched");
    let mark = second.mark();
    signal(pids["web-1"], Signal::KILL);
    until("another web-1", || place.pids().get("web-1").filter(|pid| **pid != pids["web-1"]).copied());
    second.converged(mark);
    let pids = place.pids();

    // Another mistake, then the file itself, by the watch.
    place.write("run = \"demo\"\n[[group]]\nid = \"web\"\ncount = 0\nsurprise = 1\n");
    until("another reason", || status(&place)["refused_file"].to_string().contains("group[0].boot").then_some(()));
    let mark = second.mark();
    place.write(&of(3));
    second.converged(mark);
    assert_eq!(status(&place)["refused_file"], Value::Null);
    assert_eq!((place.pids().len(), place.pids()["web-0"]), (3, pids["web-0"]));
    stop(second);

    // Broken in its text; taken over on SIGHUP, and known for the same: no other generation.
    place.write("run = \"demo\n");
    let third = {
        let up = place.daemon();
        up.converged(0);
        up.note(0, "goes on as it was, in generation 2");
        up
    };
    place.write(&of(3));
    third.signal(Signal::HUP);
    until("taken over", || status(&place)["refused_file"].is_null().then_some(()));
    assert_eq!(status(&place)["generation"], 2);
    place.write(&of(0));
    until("nothing", || (place.labelled().is_empty() && place.leases_of("demo").is_empty()).then_some(()));
    stop(third);
    place.assert_empty();
}

#[test]
fn a_file_that_states_a_lower_generation_is_refused_at_the_start_too() {
    let numbered = |generation: u32, count| format!("generation = {generation}\n{}", of(count));
    let place = Place::with(&numbered(1, 1));
    let first = place.daemon();
    first.converged(0);
    let pids = place.pids();
    stop(first);
    // The same generation with other content.
    place.write(&numbered(1, 3));
    let second = goes_on(&place, "generation");
    assert_eq!(place.pids(), pids);
    let mark = second.mark();
    place.write(&numbered(2, 0));
    until("nothing", || place.labelled().is_empty().then_some(()));
    second.converged(mark);
    stop(second);
}

#[test]
fn without_a_state_that_knows_a_shape_a_broken_file_is_an_error() {
    let broken = |place: &Place| {
        let mut up = place.daemon();
        let code = up.ended().0;
        assert!(up.errors().contains("fleet.toml"), "{}", up.errors());
        code
    };
    let place = Place::with("run = ");
    assert_eq!(broken(&place), 2, "nothing was ever known");
    assert!(!place.state().join("demo").exists(), "nothing is made");
    // What `up` took down is not brought back by a mistake.
    place.write(&of(1));
    let mut up = place.up(&[]);
    up.converged(0);
    up.take_down(Signal::TERM);
    place.write("run = ");
    assert_eq!(broken(&place), 2);
    assert_eq!(place.run(&[]).0, 2, "`up` never goes on with a broken file");
    place.assert_empty();
    // Nor what was given up.
    place.write(&of(1));
    let daemon = place.daemon();
    daemon.converged(0);
    stop(daemon);
    let (code, said) = ask(&place, &["reset-state", "demo", "--yes"]);
    assert_eq!(code, 0, "{said}");
    place.write("run = ");
    assert_eq!(broken(&place), 2);
    assert_eq!(place.run(&[]).0, 2);
}
