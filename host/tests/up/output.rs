//! What comes out, and readers that do not read.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;

use crate::fixture::{Place, STEADY, fleet, group, signal, until};

/// Every line is checked by the fixture; here that each kind comes.
#[test]
fn every_line_is_json_of_a_named_schema() {
    let place = Place::with(&fleet(&[group("web", 2, STEADY)]));
    let mut up = place.up(&[]);
    up.converged(0);
    place.write("garbage");
    up.note(0, "nothing changed");
    up.take_down(Signal::INT);
    let lines = up.lines.lock().unwrap();
    for schema in ["change", "gone", "converged", "note", "end"] {
        let name = format!("homeostat.{schema}/v1");
        assert!(lines.iter().any(|line| line["schema"] == name), "{name}");
    }
    assert_eq!(
        lines.iter().filter(|line| line["schema"] == "homeostat.converged/v1").count(),
        1,
        "the end is no success"
    );
    let endpoint = lines.iter().find(|line| line["ready"] == true).unwrap()["endpoint"].as_str().unwrap().to_owned();
    assert!(endpoint.starts_with("127.0.0.1:"));
    // Standard error has only the error, as JSON too.
    let error: serde_json::Value = serde_json::from_str(up.errors().trim()).unwrap();
    assert_eq!(error["schema"], "homeostat.error/v1");
    assert_eq!(lines.last().unwrap()["removed"], json!(["web-0", "web-1"]));
}

#[test]
fn a_reader_that_leaves_changes_nothing() {
    let place = Place::with(&fleet(&[group("web", 2, STEADY)]));
    let mut child = place.command(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    // The first that is seen may be a moment later.
    assert!(first.starts_with("node=web-0 ") && first.ends_with(" ready=false\n"), "{first}");
    until("the fleet", || (place.pids().len() == 2).then_some(()));
    // More lines into the broken pipe.
    place.write(&fleet(&[group("web", 4, STEADY)]));
    until("more of it", || (place.pids().len() == 4).then_some(()));
    signal(i32::try_from(child.id()).unwrap(), Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(
        err.ends_with("homeostat: nothing is left\n") && !err.contains("panicked") && !err.contains("roken pipe"),
        "{err}"
    );
    place.assert_empty();
}

/// As with `| less`: nobody reads, the pipe is full, and the fleet is followed and taken down all the same.
#[test]
fn a_reader_that_stops_reading_holds_up_nothing() {
    let crash = group("crash", 8, "exit 1");
    let place = Place::with(&fleet(&[group("web", 2, STEADY), crash]));
    let mut child = place.command(&[]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // A pipe holds 64 KiB: lines of more than that.
    let record = place.state().join("demo/leases");
    until("many attempts", || {
        let highest = place.leases().values().map(|lease| lease.attempt).max();
        (record.exists() && highest? > 150).then_some(())
    });
    place.write(&fleet(&[group("web", 3, STEADY)]));
    until("the edit", || (place.pids().len() == 3 && place.labelled().len() == 3).then_some(()));
    signal(i32::try_from(child.id()).unwrap(), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(out.len() >= 60_000, "{} bytes were waiting", out.len());
    place.assert_empty();
}

/// What the journal of systemd reads says of each line how bad it is; what anybody else reads does not.
#[test]
fn lines_for_the_journal_have_priorities() {
    use std::os::linux::fs::MetadataExt;
    let place = Place::with(&fleet(&[group("web", 1, STEADY)]).replace("count = 1", "cuont = 1"));
    let log = place.path().join("stderr");
    let said = |stream: Option<String>| {
        let file = std::fs::File::create(&log).unwrap();
        let stream = stream.unwrap_or_else(|| {
            let found = file.metadata().unwrap();
            format!("{}:{}", found.st_dev(), found.st_ino())
        });
        let mut command = place.command(&[]);
        command.env("JOURNAL_STREAM", stream).stderr(file).stdout(std::process::Stdio::null());
        assert_eq!(command.status().unwrap().code(), Some(2));
        std::fs::read_to_string(&log).unwrap()
    };
    let journal = said(None);
    assert!(journal.lines().count() > 2 && journal.lines().all(|line| line.starts_with("<3>")), "{journal}");
    for other in ["", "1:2", "x", "8:"] {
        let plain = said(Some(other.to_owned()));
        assert!(plain.contains("cuont") && !plain.contains("<3>"), "{other:?}: {plain}");
    }
    // While it runs: what is good to know, and what somebody should look at.
    place.write(&fleet(&[group("web", 1, STEADY)]));
    let file = std::fs::File::create(&log).unwrap();
    let found = file.metadata().unwrap();
    let mut command = std::process::Command::new(crate::fixture::HOMEOSTAT);
    command.env_remove("HOMEOSTAT_STATE").arg("daemon").arg(place.file()).arg("--state").arg(place.state());
    command.env("JOURNAL_STREAM", format!("{}:{}", found.st_dev(), found.st_ino())).stderr(file);
    let mut daemon = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let wait = |words: &str| {
        until(words, || std::fs::read_to_string(&log).unwrap().lines().any(|line| line.contains(words)).then_some(()));
    };
    wait("<6>homeostat: run demo");
    place.write("run = ");
    wait("<4>homeostat: the edit is refused");
    place.write(&fleet(&[group("web", 0, STEADY)]));
    until("nothing", || place.labelled().is_empty().then_some(()));
    signal(i32::try_from(daemon.id()).unwrap(), Signal::TERM);
    assert_eq!(daemon.wait().unwrap().code(), Some(0));
    wait("<6>homeostat: terminated: the fleet goes on");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.lines().all(|line| ["<3>", "<4>", "<6>"].iter().any(|mark| line.starts_with(mark))), "{text}");
}
