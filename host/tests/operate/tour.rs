//! The tour (docs/hot-swap.md): a fleet of fifty processes under a load of edits and kills, whose decider is swapped again and
//! again: to one with budgets, back to the one without (refused, with the list), to one that traps after a while (taken back by
//! itself), to one in JavaScript, and back. Nothing is lost and nothing is doubled meanwhile.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hostile_guests_artifact as guests;
use rustix::process::Signal;
use serde_json::Value;

use crate::fixture::{Place, fleet, group, is_running, signal, until};
use crate::lab::{HOMEOSTAT, Said, ask, daemon, over, said};
use crate::packages::packages;

const NODES: u32 = 50;

/// The fleet, whose nodes say this and stay.
fn text(count: u32, version: u32) -> String {
    let web = group("web", count, &format!("echo ready {version}; exec sleep 1000"));
    fleet(&[web.replacen("settings =", "rollout = { max-unavailable = 10 }\nsettings =", 1)])
}

/// Edits and kills, again and again, until told to stop; kills alone while told not to edit.
fn load(place: &Place, stop: &AtomicBool, still: &AtomicBool) {
    let mut random = 1u64;
    for round in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pids: Vec<i32> = place.pids().into_values().collect();
        if let Some(pid) = pids.get(usize::try_from(random >> 33).unwrap() % pids.len().max(1)) {
            signal(*pid, Signal::KILL);
        }
        // Every edit is another generation; every second one another template too.
        if !still.load(Ordering::Relaxed) {
            place.write(&text(NODES - round % 3, round / 2));
        }
        std::thread::sleep(Duration::from_millis(400));
    }
}

fn swap(place: &Place, decider: &str, terms: &[&str]) -> Said {
    ask(place, &[&["decider", "swap", decider, "--yes"], terms].concat())
}

#[track_caller]
fn switched(said: Said) -> Value {
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let swap = said.json();
    assert_eq!(swap["verdict"], "switched", "{swap}");
    swap
}

fn status(place: &Place) -> Value {
    ask(place, &["status"]).ok()
}

fn generation(place: &Place) -> u64 {
    status(place)["generation"].as_u64().unwrap()
}

fn file(place: &Place, name: &str, component: &[u8]) -> PathBuf {
    let path = place.path().join(name);
    std::fs::write(&path, component).unwrap();
    path
}

/// A new decider in JavaScript, as its author builds it.
fn javascript(place: &Place) -> PathBuf {
    let project = place.path().join("night-shift");
    let mut new = Command::new(HOMEOSTAT);
    new.args(["decider", "new", "night-shift", "--lang", "javascript", "--folder"]).arg(&project);
    let ended = said(new);
    assert_eq!(ended.code, 0, "{}", ended.err);
    std::os::unix::fs::symlink(packages("javascript", &project), project.join("node_modules")).unwrap();
    let component = place.path().join("javascript.wasm");
    let mut build = Command::new(project.join("build.sh"));
    build.arg(&component).env("HOMEOSTAT", HOMEOSTAT).stdin(Stdio::null());
    let ended = said(build);
    assert_eq!(ended.code, 0, "build.sh: {}{}", ended.out, ended.err);
    component
}

#[test]
fn the_tour() {
    if std::env::var("HOMEOSTAT_SKIP_LANGUAGES").is_ok_and(|list| list.split(',').any(|word| word == "javascript")) {
        return eprintln!("the tour is left out: HOMEOSTAT_SKIP_LANGUAGES");
    }
    let place = Place::with(&text(NODES, 0));
    let (script, earlier) = (javascript(&place), file(&place, "ladder-1.0.wasm", guests::CONTRACT_1_0));
    let traps = file(&place, "traps-later.wasm", guests::TRAPS_LATER);
    let [script, earlier, traps] = [&script, &earlier, &traps].map(|path| path.to_str().unwrap());
    let up = daemon(&place, &["--decider", earlier]);
    up.converged(0);
    let (stop, still) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|threads| {
        threads.spawn(|| load(&place, &stop, &still));
        let over = Over(&stop);

        // To the one with budgets.
        let swapped =
            switched(swap(&place, "built-in", &["--replay", "1h", "--shadow", "2s", "--watch", "1s", "--wait-watch"]));
        // Which says beforehand what its budgets change.
        let reports = swapped["reports"].to_string();
        assert!(reports.contains("fewer-destroys") && reports.contains("R19"), "{reports}");
        let budgeted = status(&place)["decider"]["digest"].clone();
        // And not back by accident: the one without would replace more at once.
        std::thread::sleep(Duration::from_secs(3));
        let refused = swap(&place, earlier, &["--replay", "10s", "--shadow", "3s"]);
        assert_eq!(refused.code, 5, "{}{}", refused.out, refused.err);
        let found = refused.json();
        assert_eq!(found["verdict"], "refused", "{found}");
        let listed = found["reports"].to_string();
        assert!(listed.contains("more-destroys") && listed.contains("R19"), "{listed}");
        assert!(found["refusal"]["accept"].to_string().contains("destroys"), "{found}");
        assert_eq!(status(&place)["decider"]["digest"], budgeted);

        // To one that traps after a while.
        until("a generation that is far from it", || (generation(&place) % 40 < 8).then_some(()));
        // It stays that far, however long the swap takes on a busy machine.
        still.store(true, Ordering::Relaxed);
        let began = generation(&place);
        switched(swap(&place, traps, &["--replay", "0s", "--shadow", "1s", "--watch", "10m"]));
        still.store(false, Ordering::Relaxed);
        until("it is taken back", || (status(&place)["decider"]["digest"] == budgeted).then_some(()));
        let decider = status(&place)["decider"].clone();
        assert!(generation(&place) > began + 20, "it was in force for a while");
        assert!(decider["rolled_back"]["why"].as_str().is_some_and(|why| !why.is_empty()), "{decider}");
        assert_eq!(swap(&place, traps, &["--replay", "0s", "--shadow", "0s"]).code, 5, "it is quarantined");

        // To the one in JavaScript, which decides the same.
        let swapped = switched(swap(&place, script, &["--replay", "5s", "--shadow", "3s", "--watch", "10m"]));
        let equal = swapped["reports"].as_array().unwrap().iter();
        assert!(equal.map(|report| report["tally"]["equal"].as_u64().unwrap()).sum::<u64>() > 3, "{swapped}");
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(status(&place)["decider"]["name"], "night-shift");

        // And back; then, with open eyes, to the one without budgets, and back again.
        switched(swap(&place, "built-in", &["--replay", "0s", "--shadow", "1s", "--watch", "0s"]));
        let accepted = ["--replay", "0s", "--shadow", "1s", "--watch", "0s", "--accept-divergence", "destroys"];
        switched(swap(&place, earlier, &accepted));
        switched(swap(&place, "built-in", &["--replay", "0s", "--shadow", "0s", "--watch", "0s"]));
        drop(over);
    });

    // Nothing is lost, and nothing is there twice.
    place.write(&text(NODES, 1_000));
    until("the last wish", || {
        let status = status(&place);
        let nodes = status["nodes"].as_array()?;
        let ready = nodes.iter().filter(|node| node["ready"] == true).count();
        (status["converged"] == true && ready == NODES as usize).then_some(())
    });
    let leases = place.leases_of("demo");
    assert_eq!(leases.len(), NODES as usize);
    assert!(leases.iter().all(|(_, lease)| lease.pid.is_some_and(is_running)), "{leases:?}");
    assert_eq!(place.labelled().len(), NODES as usize);
    assert_eq!(ask(&place, &["orphans"]).ok()["orphans"].as_array().map(Vec::len), Some(0));
    over(&place, up);
}

/// Ends the load, also when the tour fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
