use rustix::process::Signal;
use serde_json::json;

use crate::fixture::{Place, STEADY, Watch, fleet, group, is_running, signal, until};

/// Brings up one node, does something to its process, and waits for its replacement.
fn replaced(script: &str, deed: impl FnOnce(&Place, i32)) -> String {
    let place = Place::with(&fleet(&[group("web", 1, script), group("other", 1, STEADY)]));
    let watch = Watch::over(&place);
    let mut up = place.up(&[]);
    up.converged(0);
    let (before, mark) = (place.leases(), up.mark());
    let pid = before["web-0"].pid.unwrap();
    deed(&place, pid);
    let failed = up.node(mark, "web-0", &[("stage", json!("failed"))]);
    assert_eq!((&failed["failures"], &failed["attempt"]), (&json!(1), &json!(before["web-0"].attempt)));
    let ready = up.node(mark, "web-0", &[("ready", json!(true))]);
    let after = place.leases();
    assert!(after["web-0"].attempt > before["web-0"].attempt && ready["attempt"] == after["web-0"].attempt);
    assert!(!is_running(pid));
    assert_eq!(place.leases_of("demo").len(), 2, "the old directory is gone");
    assert_eq!(after["other-0"], before["other-0"], "nobody else is touched");
    up.take_down(Signal::INT);
    watch.assert_never_two();
    place.assert_empty();
    failed["error"].as_str().unwrap().to_owned()
}

#[test]
fn a_killed_node_is_replaced() {
    let why = replaced(STEADY, |_, pid| signal(pid, Signal::KILL));
    assert!(why.contains("signal 9"), "{why}");
}

#[test]
fn a_stopped_node_that_then_dies_is_replaced() {
    let why = replaced(STEADY, |_, pid| {
        signal(pid, Signal::STOP);
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(is_running(pid));
        signal(pid, Signal::KILL);
    });
    assert!(why.contains("signal 9"), "{why}");
}

#[test]
fn a_node_that_ends_well_after_it_was_ready_is_replaced() {
    // The first attempt ends with 0; the next finds the file and stays.
    let script = "echo ready; while [ ! -e {state}/go ]; do sleep 0.05; done; [ -e {state}/went ] && exec sleep 1000; touch {state}/went; exit 0";
    let why = replaced(script, |place, _| std::fs::write(place.state().join("demo/shared/go"), "").unwrap());
    assert!(why.contains("exit status 0"), "{why}");
}

#[test]
fn what_an_ended_node_left_running_goes_with_it() {
    // Its child outlives it, in a session of its own.
    let script = "setsid sleep 999 & echo ready; exec sleep 1000";
    replaced(script, |place, pid| {
        let child = until("the child", || {
            let mut others =
                place.labelled().into_iter().filter(|(name, other)| name.starts_with("web-0.") && *other != pid);
            others.next().map(|(_, other)| other)
        });
        signal(pid, Signal::KILL);
        until("the child to go too", || (!is_running(child)).then_some(()));
    });
}

/// Only a child dies: the node is not its child.
#[test]
fn a_child_that_dies_is_the_nodes_own_affair() {
    let script = "echo ready; sleep 998 & wait; echo went on; exec sleep 1000";
    let place = Place::with(&fleet(&[group("web", 1, script)]));
    let mut up = place.up(&[]);
    up.converged(0);
    let (before, mark) = (place.leases(), up.mark());
    let pid = before["web-0"].pid.unwrap();
    let child = until("the child", || place.labelled().into_iter().find(|(_, other)| *other != pid));
    signal(child.1, Signal::KILL);
    let log = place.state().join(format!("demo/leases/web-0.{}/output.log", before["web-0"].attempt));
    until("it goes on", || std::fs::read_to_string(&log).unwrap().contains("went on").then_some(()));
    assert_eq!(place.leases(), before);
    up.take_down(Signal::INT);
    assert!(up.lines.lock().unwrap().iter().skip(mark).all(|line| line["stage"] != "failed"));
    place.assert_empty();
}
