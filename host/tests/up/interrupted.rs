//! One signal at any moment, and nothing is left; a second one, and what is left is said.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::fixture::{Place, STEADY, fleet, group, is_running, until};

/// Ends after a while, and never on TERM.
const STUBBORN: &str = "trap '' TERM; echo ready; while :; do sleep 0.05; done";

fn groups(counts: [u32; 3]) -> String {
    let slow = "sleep 0.1; echo ready; exec sleep 1000";
    fleet(&[group("web", counts[0], STEADY), group("slow", counts[1], slow), group("hard", counts[2], STUBBORN)])
}

/// Whether this process was started with a signal ignored, as shells start what they put into the background: then an early
/// one, before the program listens, means nothing instead of ending it.
fn is_ignored(name: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(ignored, 16).unwrap() >> (name.as_raw() - 1) & 1 == 1
}

fn at_moments(name: Signal, moments: impl Iterator<Item = u64>) {
    if is_ignored(name) {
        eprintln!("NOT TESTED: this process was started with {name:?} ignored");
        return;
    }
    for moment in moments {
        let place = Place::with(&groups([3, 2, 1]));
        let mut up = place.up(&[]);
        std::thread::sleep(Duration::from_millis(moment));
        up.signal(name);
        let (code, last) = up.ended();
        place.assert_empty();
        // Before it could hear signals at all, the default ends it.
        if code == -1 {
            assert_eq!(up.mark(), 0, "after {moment} ms");
            continue;
        }
        assert_eq!(code, 0, "after {moment} ms: {}", up.errors());
        assert_eq!((&last["schema"], &last["clean"]), (&json!("homeostat.end/v1"), &json!(true)), "{last}");
    }
}

#[test]
fn an_interrupt_at_any_moment_of_the_start() {
    at_moments(Signal::INT, (0..=600).step_by(75));
}

#[test]
fn a_termination_at_any_moment_of_the_start() {
    at_moments(Signal::TERM, (10..=600).step_by(85));
}

#[test]
fn a_hang_up_at_any_moment_of_the_start() {
    at_moments(Signal::HUP, (30..=600).step_by(140));
}

#[test]
fn in_the_middle_of_a_change() {
    for (moment, counts) in [(20, [8, 4, 1]), (70, [8, 0, 2]), (90, [0, 5, 0]), (130, [1, 0, 0]), (200, [4, 4, 0])] {
        let place = Place::with(&groups([4, 2, 1]));
        let mut up = place.up(&[]);
        up.converged(0);
        place.write(&groups(counts));
        std::thread::sleep(Duration::from_millis(moment));
        up.take_down(Signal::INT);
        place.assert_empty();
    }
}

/// While nodes fail and back off.
#[test]
fn in_the_middle_of_a_crash_loop() {
    let place = Place::with(&fleet(&[group("web", 3, "sleep 0.03; exit 7"), group("gone", 1, "exit 1")]));
    let mut up = place.up(&[]);
    up.node(0, "web-1", &[("failures", json!(3))]);
    up.take_down(Signal::TERM);
    place.assert_empty();
}

#[test]
fn under_nohup_a_hang_up_means_nothing() {
    let place = Place::with(&fleet(&[group("web", 1, STEADY)]));
    let inner = place.command(&["-o", "json"]);
    let mut command = std::process::Command::new("nohup");
    command.arg(inner.get_program()).args(inner.get_args()).env_remove("HOMEOSTAT_STATE");
    let mut up = crate::fixture::Up::start(command);
    up.converged(0);
    let (before, mark) = (place.leases(), up.mark());
    up.signal(Signal::HUP);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!((place.leases(), up.mark()), (before, mark));
    up.take_down(Signal::TERM);
    place.assert_empty();
}

#[test]
fn a_second_signal_leaves_the_rest_and_says_so() {
    // A grace that outlasts everybody's patience.
    let hard = group("hard", 2, STUBBORN).replace("300ms", "10m");
    let place = Place::with(&fleet(&[group("web", 2, STEADY), hard.clone()]));
    let mut up = place.up(&[]);
    up.converged(0);
    let leases = place.leases();
    up.signal(Signal::INT);
    up.node(0, "web-0", &[("schema", json!("homeostat.gone/v1"))]);
    up.node(0, "web-1", &[("schema", json!("homeostat.gone/v1"))]);
    up.signal(Signal::INT);
    // Nobody who asks twice wants to wait for a grace that is longer than this has patience.
    let (code, last) = up.ended();
    assert_eq!((code, &last["clean"], &last["kept"]), (1, &json!(false), &json!(false)), "{last}");
    assert_eq!(last["removed"], json!(["web-0", "web-1"]));
    let left = last["left"].as_array().unwrap();
    for (one, slot) in left.iter().zip(["hard-0", "hard-1"]) {
        let lease = &leases[slot];
        let dir = place.state().join(format!("demo/leases/{slot}.{}", lease.attempt));
        assert_eq!(
            *one,
            json!({ "node": slot, "attempt": lease.attempt, "pid": lease.pid, "port": lease.port, "dir": dir })
        );
        assert!(is_running(lease.pid.unwrap()) && dir.is_dir());
    }
    assert_eq!(left.len(), 2);
    // The next one goes on where it was: both are still being taken down, and what is desired gets a new attempt.
    let hard = hard.replace("count = 2", "count = 1");
    place.write(&fleet(&[hard]));
    let mut up = place.up(&[]);
    let kill = |pid: i32| rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL);
    for slot in ["hard-0", "hard-1"] {
        until("it is being ended", || {
            let lines = up.lines.lock().unwrap();
            lines.iter().any(|line| line["node"] == slot && line["deleting"] == true).then_some(())
        });
        kill(leases[slot].pid.unwrap()).unwrap();
    }
    up.converged(0);
    let now = place.leases();
    assert_eq!(now.len(), 1);
    assert!(now["hard-0"].attempt > leases["hard-1"].attempt);
    up.signal(Signal::INT);
    up.node(0, "hard-0", &[("deleting", json!(true))]);
    kill(now["hard-0"].pid.unwrap()).unwrap();
    assert_eq!(up.ended().0, 0);
    place.assert_empty();
}
