//! Commands: what they do, once for each id, and what is said of them.

use serde_json::json;

use crate::fixture::{Place, until};
use crate::lab::{ask, daemon, kill, nodes, over, web};

#[test]
fn every_answer_has_its_schema() {
    let place = Place::with(&web(2));
    let up = daemon(&place, &[]);
    up.converged(0);
    let file = place.file();
    let file = file.to_str().unwrap();
    for (args, schema) in [
        (&["status"][..], "homeostat.status/v1"),
        (&["describe", "web-0"], "homeostat.node/v1"),
        (&["explain", "web-0"], "homeostat.explanation/v1"),
        (&["history", "web-0"], "homeostat.history/v1"),
        (&["events"], "homeostat.history/v1"),
        (&["logs", "web-0"], "homeostat.logs/v1"),
        (&["orphans"], "homeostat.orphans/v1"),
        (&["doctor"], "homeostat.diagnosis/v1"),
        (&["diff", file], "homeostat.diff/v1"),
        (&["scale", "web=2", "--yes"], "homeostat.command/v1"),
        (&["snapshot", "export"], "homeostat.snapshot/v1"),
        (&["token"], "homeostat.token/v1"),
    ] {
        let said = ask(&place, args);
        assert_eq!((said.code, &said.json()["schema"]), (0, &json!(schema)), "{args:?}: {}", said.err);
    }
    let explained = ask(&place, &["explain", "web-1"]).ok();
    assert_eq!(explained["rule"]["id"], "R11");
    assert!(explained["facts"].as_array().unwrap().iter().any(|fact| fact["matters"] == true), "{explained}");
    assert!(explained["summary"].as_str().unwrap().contains("web-1 is ready"), "{explained}");
    let logs = ask(&place, &["logs", "web-1"]).ok();
    assert_eq!(logs["lines"][0]["text"], "ready", "{logs}");
    let history = ask(&place, &["history", "web-1"]).ok();
    let items = history["items"].as_array().unwrap();
    assert!(items.iter().any(|item| item["kind"] == "dispatch") && items.iter().all(|item| item["node"] == "web-1"));
    for (args, code) in [
        (&["describe", "web-9"][..], 1),
        (&["kill", "web-9", "--yes"], 1),
        (&["kill", "web-0"], 2),
        (&["destroy", "web"], 2),
    ] {
        let said = ask(&place, args);
        assert_eq!(said.code, code, "{args:?}: {}{}", said.out, said.err);
    }
    over(&place, up);
}

#[test]
fn an_id_acts_once_before_and_after_a_crash() {
    let place = Place::with(&web(2));
    let mut up = daemon(&place, &[]);
    up.converged(0);
    let first = ask(&place, &["scale", "web=3", "--yes", "--id", "one", "--wait"]).ok();
    assert_eq!((&first["replayed"], &first["creates"]), (&json!(false), &json!(["web-2"])));
    let again = ask(&place, &["scale", "web=3", "--yes", "--id", "one"]).ok();
    assert_eq!((&again["replayed"], &again["creates"]), (&json!(true), &json!(["web-2"])));
    let other = ask(&place, &["scale", "web=4", "--yes", "--id", "one"]);
    assert!(other.code == 1 && other.err.contains("one"), "{} {}", other.code, other.err);
    ask(&place, &["scale", "web=1", "--yes", "--id", "two", "--wait"]).ok();

    kill(&mut up);
    assert_eq!(ask(&place, &["status"]).code, 4);
    let mut up = daemon(&place, &[]);
    up.converged(0);
    // The file still says 2; what was ordered since stands.
    assert_eq!(nodes(&place).len(), 1);
    assert_eq!(ask(&place, &["scale", "web=3", "--yes", "--id", "one"]).ok()["replayed"], true);
    assert_eq!(nodes(&place).len(), 1, "it acted once");

    // Killed while the command is on its way: sent again it acts once, whatever became of it.
    let pids = place.pids();
    // Attempts are numbered for the whole run: web-0 to web-2 had 1 to 3.
    let mut last = 3;
    for round in 0..6_u32 {
        let id = format!("kill-{round}");
        let before = nodes(&place)[0].1;
        let pid = up.pid();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_micros(u64::from(round) * 1_500));
            crate::fixture::signal(pid, rustix::process::Signal::KILL);
        });
        ask(&place, &["kill", "web-0", "--yes", "--id", &id]);
        killer.join().unwrap();
        up.ended();
        up = daemon(&place, &[]);
        up.converged(0);
        ask(&place, &["kill", "web-0", "--yes", "--id", &id]).ok();
        assert_eq!(ask(&place, &["kill", "web-0", "--yes", "--id", &id]).ok()["replayed"], true);
        until("another web-0", || {
            let node = ask(&place, &["describe", "web-0"]).ok();
            (node["ready"] == true && node["attempt"].as_u64() > Some(before)).then_some(())
        });
        last += 1;
        assert_eq!(nodes(&place)[0].1, last, "round {round}: killed once");
    }
    assert_ne!(place.pids(), pids);
    over(&place, up);
}

#[test]
fn the_life_of_a_fleet_by_orders() {
    let place = Place::with(&web(3));
    let up = daemon(&place, &[]);
    up.converged(0);
    let before = place.pids();
    // Killed: another attempt takes its place, and nobody else notices.
    ask(&place, &["kill", "web-1", "--yes", "--wait"]).ok();
    let after = place.pids();
    assert!(
        after["web-1"] != before["web-1"] && after["web-0"] == before["web-0"] && after["web-2"] == before["web-2"]
    );
    // Destroyed: it is forgotten, and its name is not used again.
    ask(&place, &["destroy", "web-1", "--yes", "--wait"]).ok();
    ask(&place, &["add-node", "web", "--wait"]).ok();
    let names: Vec<String> = nodes(&place).into_iter().map(|(node, _)| node).collect();
    assert_eq!(names, ["web-0", "web-2", "web-3"]);
    // Paused: what dies is not replaced until it is resumed.
    ask(&place, &["pause", "web", "--only", "create"]).ok();
    crate::fixture::signal(place.pids()["web-0"], rustix::process::Signal::KILL);
    let held = until("it is held", || {
        let status = ask(&place, &["status"]).ok();
        let held = status["nodes"][0]["held"].as_str().map(str::to_owned);
        held.map(|held| (held, status))
    });
    assert!(held.0.contains("paused: create") && !held.1["converged"].as_bool().unwrap(), "{}", held.0);
    assert_eq!(held.1["pauses"][0]["resume"], "homeostat resume web --only create");
    assert_eq!(place.pids().len(), 2);
    ask(&place, &["resume", "web", "--only", "create"]).ok();
    until("it is back", || (place.pids().len() == 3).then_some(()));
    // An edit of the file is what counts from then on; `apply` does exactly what it showed.
    let edited = web(2);
    let other = place.path().join("other.toml");
    std::fs::write(&other, &edited).unwrap();
    let path = other.to_str().unwrap();
    let diff = ask(&place, &["diff", path]);
    assert_eq!((diff.code, &diff.json()["schema"]), (6, &json!("homeostat.diff/v1")), "{}", diff.err);
    let applied = ask(&place, &["apply", path, "--yes", "--wait"]).ok();
    assert_eq!(applied["destroys"], json!(["web-3"]), "{applied}");
    assert_eq!(ask(&place, &["diff", path]).code, 0);
    over(&place, up);
}
