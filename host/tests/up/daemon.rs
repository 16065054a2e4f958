//! `homeostat daemon`: the fleet outlives it, and it knows the fleet again.

use std::time::Duration;

use rustix::process::Signal;

use crate::fixture::{Place, STEADY, fleet, group, signal, until};

fn of(count: u32) -> String {
    fleet(&[group("web", count, STEADY)])
}

#[test]
fn a_stop_leaves_the_fleet_and_a_start_knows_it() {
    let place = Place::with(&of(3));
    let mut first = place.daemon();
    first.converged(0);
    let (pids, leases) = (place.pids(), place.leases());
    signal(first.pid(), Signal::TERM);
    assert_eq!(first.ended().0, 0, "{}", first.errors());
    assert_eq!(place.pids(), pids, "nothing ends with the daemon");

    let mut second = place.daemon();
    second.converged(0);
    assert_eq!((place.pids(), place.leases()), (pids.clone(), leases));
    // A node that dies is noticed by the daemon that did not start it.
    let mark = second.mark();
    signal(pids["web-1"], Signal::KILL);
    until("another web-1", || place.pids().get("web-1").filter(|pid| **pid != pids["web-1"]).copied());
    second.converged(mark);
    assert_eq!(place.leases()["web-1"].attempt, 4);
    // One that dies while no daemon runs is noticed by the next.
    signal(second.pid(), Signal::TERM);
    assert_eq!(second.ended().0, 0);
    signal(pids["web-2"], Signal::KILL);
    let mut third = place.daemon();
    until("another web-2", || place.pids().get("web-2").filter(|pid| **pid != pids["web-2"]).copied());
    // An edit; the file does not count generations, the state does.
    place.write(&of(0));
    until("nothing", || place.labelled().is_empty().then_some(()));
    until("no lease", || place.leases().is_empty().then_some(()));
    signal(third.pid(), Signal::TERM);
    assert_eq!(third.ended().0, 0);
    place.assert_empty();
}

#[test]
fn a_kill_at_rest_forgets_nothing() {
    let place = Place::with(&of(2));
    let mut first = place.daemon();
    first.converged(0);
    place.durably_converged();
    signal(first.pid(), Signal::KILL);
    first.ended();
    let pids = place.pids();
    let mut second = place.daemon();
    second.converged(0);
    std::thread::sleep(Duration::from_millis(500));
    let lines = second.lines.lock().unwrap().clone();
    let nodes: Vec<_> = lines.iter().filter(|line| line["node"].is_string()).collect();
    assert!(nodes.len() == 2 && nodes.iter().all(|line| line["ready"] == true), "{lines:?}");
    assert_eq!(place.pids(), pids);
    place.write(&of(0));
    until("nothing", || place.labelled().is_empty().then_some(()));
    signal(second.pid(), Signal::TERM);
    assert_eq!(second.ended().0, 0);
}

/// At instants that nobody chose, while people edit: what runs is never doubled, and in the end it is what is wanted.
#[test]
fn kills_while_people_edit() {
    let place = Place::with(&of(3));
    for round in 0..12_u32 {
        let mut daemon = place.daemon();
        std::thread::sleep(Duration::from_millis(u64::from(round * 37 % 410)));
        place.write(&of(1 + round * 5 % 4));
        std::thread::sleep(Duration::from_millis(u64::from(round * 53 % 290)));
        signal(daemon.pid(), Signal::KILL);
        daemon.ended();
        let mut slots: Vec<String> = place.labelled().into_iter().map(|(name, _)| name).collect();
        slots.sort();
        let all = slots.len();
        slots.dedup();
        assert_eq!(slots.len(), all, "round {round}: one process a lease");
    }
    place.write(&of(2));
    let mut last = place.daemon();
    last.converged(0);
    until("two and no more", || (place.labelled().len() == 2 && place.leases_of("demo").len() == 2).then_some(()));
    place.write(&of(0));
    until("nothing", || (place.labelled().is_empty() && place.leases_of("demo").is_empty()).then_some(()));
    signal(last.pid(), Signal::TERM);
    assert_eq!(last.ended().0, 0);
}

#[test]
fn a_daemon_without_its_database_does_not_begin_anew() {
    let place = Place::with(&of(1));
    let mut first = place.daemon();
    first.converged(0);
    let pids = place.pids();
    // One at a time.
    let mut other = place.daemon();
    assert_eq!(other.ended().0, 1);
    assert!(other.errors().contains(&format!("in use by process {}", first.pid())), "{}", other.errors());
    signal(first.pid(), Signal::TERM);
    assert_eq!(first.ended().0, 0);
    for name in ["state.db", "key"] {
        let (at, aside) = (place.state().join("demo").join(name), place.path().join("aside"));
        std::fs::rename(&at, &aside).unwrap();
        let mut again = place.daemon();
        assert_eq!(again.ended().0, 1, "{name}");
        assert!(again.errors().contains(name), "{}", again.errors());
        assert!(!at.exists(), "{name} is not made anew");
        std::fs::rename(&aside, &at).unwrap();
    }
    assert_eq!(place.pids(), pids);
    place.write(&of(0));
    let mut last = place.daemon();
    until("nothing", || place.labelled().is_empty().then_some(()));
    signal(last.pid(), Signal::TERM);
    assert_eq!(last.ended().0, 0);
}

/// Its journal is read like any other, while it runs and afterwards.
#[test]
fn the_verbs_for_journals_read_a_state_directory() {
    let place = Place::with(&of(2));
    let mut daemon = place.daemon();
    daemon.converged(0);
    place.write(&of(1));
    until("one", || (place.labelled().len() == 1 && place.leases_of("demo").len() == 1).then_some(()));
    let dir = place.state().join("demo");
    let ask = |args: &[&str], path: &std::path::Path| {
        let output = std::process::Command::new(crate::fixture::HOMEOSTAT).args(args).arg(path).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    for running in [true, false] {
        if !running {
            signal(daemon.pid(), Signal::TERM);
            assert_eq!(daemon.ended().0, 0);
        }
        for path in [dir.clone(), dir.join("state.db")] {
            let (code, said, wrong) = ask(&["journal", "verify"], &path);
            assert!(code == 0 && said.contains(": ok: "), "{said}{wrong}");
            let (code, said, wrong) = ask(&["replay"], &path);
            assert!(code == 0, "{said}{wrong}");
            let (code, said, wrong) = ask(&["journal", "show", "--node", "web-1"], &path);
            assert!(code == 0 && said.contains("destroy-lease"), "{said}{wrong}");
        }
        std::fs::write(place.path().join("script"), "next\n").unwrap();
        let (code, said, wrong) = ask(&["step", "--script", place.path().join("script").to_str().unwrap()], &dir);
        assert!(code == 0, "{said}{wrong}");
        // To cut it is nobody's business.
        let (code, _, wrong) = ask(&["journal", "cut", "--in-place"], &dir.join("state.db"));
        assert!(code == 2 && wrong.contains("not a journal"), "{wrong}");
    }
    let (code, _, wrong) = ask(&["journal", "verify"], &place.path());
    assert!(code == 2 && wrong.contains("state.db"), "{wrong}");
    place.write(&of(0));
    let mut last = place.daemon();
    until("nothing", || place.labelled().is_empty().then_some(()));
    signal(last.pid(), Signal::TERM);
    assert_eq!(last.ended().0, 0);
}
