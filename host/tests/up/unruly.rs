//! Nodes that hang, flood, and are many.

use rustix::process::Signal;
use serde_json::json;

use crate::fixture::{Place, STEADY, fleet, group, until};

#[test]
fn a_probe_that_hangs_keeps_nobody_else() {
    let hangs =
        group("hangs", 2, "exec sleep 1000").replace("{ stdout = \"^ready\" }", "{ exec = [\"sleep\", \"1000\"] }");
    let place = Place::with(&fleet(&[hangs, group("web", 4, STEADY)]));
    let mut up = place.up(&[]);
    for index in 0..4 {
        up.node(0, &format!("web-{index}"), &[("ready", json!(true))]);
    }
    assert!(up.lines.lock().unwrap().iter().all(|line| line["group"] != "hangs" || line["ready"] == false));
    up.take_down(Signal::INT);
    // The probe's own process is gone too.
    place.assert_empty();
}

#[test]
fn a_flood_of_output_drowns_nobody() {
    let flood = "echo ready; exec yes 'a line of output that comes without end'";
    let place = Place::with(&fleet(&[group("flood", 2, flood), group("web", 2, STEADY)]));
    let mut up = place.up(&[]);
    up.converged(0);
    let logs = |name: &str| {
        let leases = place.leases();
        let dir = place.state().join(format!("demo/leases/flood-0.{}", leases["flood-0"].attempt));
        std::fs::metadata(dir.join(name)).map(|meta| meta.len()).ok()
    };
    // Cut at least once, so that it stays bounded.
    until("the log is cut", || logs("output.log.1"));
    let mark = up.mark();
    place.write(&fleet(&[group("flood", 2, flood), group("web", 4, STEADY)]));
    up.converged(mark);
    // There is none for an instant while it is cut.
    assert!(until("the log", || logs("output.log")) < 2 << 30);
    up.take_down(Signal::INT);
    place.assert_empty();
}

#[test]
fn nodes_keep_the_limit_on_open_files_that_was() {
    let place = Place::with(&fleet(&[group("web", 1, "sleep 0.1; ulimit -Sn > limit; echo ready; exec sleep 1000")]));
    let inner = place.command(&["-o", "json"]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -Sn 300; exec \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
    let mut up = crate::fixture::Up::start(command);
    up.converged(0);
    let own = std::fs::read_to_string(format!("/proc/{}/limits", up.pid())).unwrap();
    let line = own.lines().find(|line| line.starts_with("Max open files")).unwrap().to_owned();
    let numbers: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers[0], numbers[1], "{line}");
    let dir = place.state().join(format!("demo/leases/web-0.{}/work/limit", place.leases()["web-0"].attempt));
    assert_eq!(std::fs::read_to_string(dir).unwrap().trim(), "300");
    up.take_down(Signal::INT);
    place.assert_empty();
}

/// More of them than the usual limit of open files has room for is tried by hand; these are enough to see a pile-up.
#[test]
fn many_nodes_come_and_go() {
    let place = Place::with(&fleet(&[group("web", 120, STEADY)]));
    let mut up = place.up(&[]);
    up.converged(0);
    assert_eq!(place.pids().len(), 120);
    let mark = up.mark();
    place.write(&fleet(&[group("web", 100, STEADY)]));
    up.converged(mark);
    assert_eq!(place.pids().len(), 100);
    assert!(!place.leases().contains_key("web-100"));
    let last = up.take_down(Signal::INT);
    assert_eq!(last["removed"].as_array().unwrap().len(), 100);
    place.assert_empty();
}
