//! Yesterday's state beside today's nodes: it takes no action by itself, makes nothing, and uses no id again (SPEC 10).

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::fixture::{Place, STEADY, Up, fleet, group, signal, until};
use crate::lab::{Held, is_as_wanted, leases, processes};

fn of(count: u32) -> String {
    fleet(&[group("web", count, STEADY)])
}

fn slots(count: u32) -> Vec<String> {
    (0..count).map(|index| format!("web-{index}")).collect()
}

fn stop(daemon: &mut Up) {
    signal(daemon.pid(), Signal::TERM);
    assert_eq!(daemon.ended().0, 0, "{}", daemon.errors());
}

/// The files of the state, not those of the nodes.
fn copy_state(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn remove_state(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// Three nodes, a copy of the state, and then a day: one is replaced, the fleet grows. What is held in the end.
fn a_day(place: &Place, copy: &Path) -> Vec<Held> {
    let mut daemon = place.daemon();
    daemon.converged(0);
    stop(&mut daemon);
    copy_state(&place.state().join("demo"), copy);
    let mut daemon = place.daemon();
    daemon.converged(0);
    let lost = leases(place).into_iter().find(|one| one.slot == "web-1").unwrap();
    signal(lost.pid.unwrap(), Signal::KILL);
    until("another web-1", || (!leases(place).contains(&lost) && is_as_wanted(place, &slots(3), STEADY)).then_some(()));
    place.write(&of(5));
    until("five", || is_as_wanted(place, &slots(5), STEADY).then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    stop(&mut daemon);
    leases(place)
}

/// For a while nothing at all changes.
fn nothing_happens(place: &Place, held: &[Held], processes_before: &[(String, u64, i32)]) {
    for _ in 0..30 {
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(leases(place), held, "it acted by itself");
        assert_eq!(processes(place), processes_before);
    }
}

#[test]
fn yesterdays_state_finds_todays_nodes_and_acts_by_nobody() {
    for head in [true, false] {
        let place = Place::with(&of(3));
        let copy = place.path().join("copy");
        let held = a_day(&place, &copy);
        let (dir, running) = (place.state().join("demo"), processes(&place));
        remove_state(&dir);
        copy_state(&copy, &dir);
        if !head {
            // As the manual says for a database alone.
            std::fs::remove_file(dir.join("head")).unwrap();
        }
        let mut daemon = place.daemon();
        daemon.note(0, "the state is older than the world");
        for orphan in ["web-1.4", "web-3.", "web-4."] {
            daemon.note(0, orphan);
        }
        daemon.note(0, "does not show web-1.2");
        nothing_happens(&place, &held, &running);
        // Nor when it is killed and asked again, nor when somebody edits the file.
        signal(daemon.pid(), Signal::KILL);
        daemon.ended();
        let mut daemon = place.daemon();
        place.write(&of(6));
        daemon.note(0, "generation");
        nothing_happens(&place, &held, &running);
        stop(&mut daemon);
    }
}

#[test]
fn a_lost_state_finds_its_nodes_and_makes_nothing() {
    let place = Place::with(&of(3));
    let held = a_day(&place, &place.path().join("copy"));
    let running = processes(&place);
    remove_state(&place.state().join("demo"));
    let mut daemon = place.daemon();
    daemon.note(0, "it has never heard of 5 resources of this run that are there");
    nothing_happens(&place, &held, &running);
    // Whoever destroys them all by hand gets the fleet anew, under ids that were never used.
    stop(&mut daemon);
    for (_, _, pid) in &running {
        signal(*pid, Signal::KILL);
    }
    until("they end", || processes(&place).is_empty().then_some(()));
    std::fs::remove_dir_all(place.state().join("demo/leases")).unwrap();
    let mut daemon = place.daemon();
    until("five again", || is_as_wanted(&place, &slots(5), STEADY).then_some(()));
    let highest = held.iter().map(|one| one.attempt).max().unwrap();
    assert!(leases(&place).iter().all(|one| one.attempt > highest), "{:?}", leases(&place));
    stop(&mut daemon);
}
