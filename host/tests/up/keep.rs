//! Fleets that outlive their host: kept on purpose, or because the host was killed.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::fixture::{Place, STEADY, Watch, fleet, group, is_running};

fn kept(groups: &[String]) -> Place {
    let place = Place::with(&fleet(groups));
    let mut up = place.up(&["--until-converged", "--keep"]);
    let (code, last) = up.ended();
    assert_eq!((code, &last["kept"], &last["removed"]), (0, &json!(true), &json!([])), "{}", up.errors());
    assert_eq!(last["left"].as_array().unwrap().len(), place.leases().len());
    place
}

#[test]
fn a_kept_fleet_is_adopted_as_it_is() {
    let groups = [group("web", 3, STEADY), group("db", 1, STEADY)];
    let place = kept(&groups);
    let before = place.leases();
    assert_eq!(place.pids().len(), 4);
    for _ in 0..3 {
        let mut up = place.up(&["--keep"]);
        up.converged(0);
        assert_eq!(place.leases(), before);
        up.signal(Signal::INT);
        assert_eq!(up.ended().0, 0);
        assert_eq!(place.leases(), before);
    }
    let mut up = place.up(&[]);
    up.converged(0);
    assert_eq!(place.leases(), before);
    // An adopted node that dies is noticed like any.
    let mark = up.mark();
    crate::fixture::signal(before["web-1"].pid.unwrap(), Signal::KILL);
    up.node(mark, "web-1", &[("stage", json!("failed"))]);
    up.node(mark, "web-1", &[("ready", json!(true))]);
    up.take_down(Signal::INT);
    place.assert_empty();
}

#[test]
fn what_changed_meanwhile_is_settled() {
    let place = kept(&[group("web", 3, STEADY), group("db", 1, STEADY), group("old", 2, STEADY)]);
    let before = place.leases();
    // Dead meanwhile, too: its directory is all that is left.
    crate::fixture::signal(before["web-1"].pid.unwrap(), Signal::KILL);
    place.write(&fleet(&[
        group("web", 2, STEADY),
        group("db", 1, "echo ready again; exec sleep 1000"),
        group("new", 1, STEADY),
    ]));
    let watch = Watch::over(&place);
    let mut up = place.up(&[]);
    up.converged(0);
    // The dead one may be taken for alive until its session looks.
    let pids = crate::fixture::until("all run", || Some(place.pids()).filter(|pids| pids.len() == 4));
    assert_eq!(pids.keys().collect::<Vec<_>>(), ["db-0", "new-0", "web-0", "web-1"]);
    assert_eq!(Some(pids["web-0"]), before["web-0"].pid);
    for slot in ["db-0", "web-1", "web-2", "old-0", "old-1"] {
        assert!(!is_running(before[slot].pid.unwrap()), "{slot}");
    }
    let after = place.leases();
    assert!(after["db-0"].attempt > before["db-0"].attempt && after["web-1"].attempt > before["web-1"].attempt);
    watch.assert_never_two();
    up.take_down(Signal::TERM);
    place.assert_empty();
}

/// Killed at any moment: the next one settles it, with one process a slot all the time.
fn killed_at(moments: impl Iterator<Item = u64>) {
    let slow = "sleep 0.1; echo ready; exec sleep 1000";
    let groups = [group("web", 3, STEADY), group("slow", 2, slow)];
    let place = Place::with(&fleet(&groups));
    let watch = Watch::over(&place);
    let mut attempts = Vec::new();
    for moment in moments {
        let mut up = place.up(&[]);
        std::thread::sleep(Duration::from_millis(moment));
        up.signal(Signal::KILL);
        assert_eq!(up.ended().0, -1);
        attempts.extend(place.leases().values().map(|lease| lease.attempt));
    }
    let before = place.pids();
    let mut up = place.up(&[]);
    up.converged(0);
    let after = place.pids();
    assert_eq!(after.len(), 5);
    assert_eq!(place.labelled().len(), 5);
    assert!(before.iter().all(|(slot, pid)| after[slot] == *pid), "{before:?} {after:?}");
    // In the middle of a take-down, too.
    place.write(&fleet(&[group("web", 1, "echo ready; : other; exec sleep 1000")]));
    std::thread::sleep(Duration::from_millis(70));
    up.signal(Signal::KILL);
    assert_eq!(up.ended().0, -1);
    let mut up = place.up(&["--until-converged"]);
    assert_eq!(up.ended().0, 0, "{}", up.errors());
    watch.assert_never_two();
    place.assert_empty();
}

#[test]
fn killed_early() {
    killed_at([5, 20, 30, 35, 40, 45, 50, 55, 60, 70, 80].into_iter());
}

#[test]
fn killed_late() {
    killed_at((90..600).step_by(65));
}

#[test]
fn killed_while_nodes_crash() {
    let place = Place::with(&fleet(&[group("web", 3, "sleep 0.02; exit 7"), group("db", 1, STEADY)]));
    let watch = Watch::over(&place);
    for moment in [100, 150, 220] {
        let mut up = place.up(&[]);
        up.node(0, "db-0", &[("ready", json!(true))]);
        std::thread::sleep(Duration::from_millis(moment));
        up.signal(Signal::KILL);
        up.ended();
    }
    place.write(&fleet(&[group("db", 1, STEADY)]));
    let mut up = place.up(&[]);
    up.converged(0);
    assert_eq!(place.leases().keys().collect::<Vec<_>>(), ["db-0"]);
    up.take_down(Signal::INT);
    watch.assert_never_two();
    place.assert_empty();
}
