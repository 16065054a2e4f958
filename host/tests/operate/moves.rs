//! State that is exported, imported and reset; orphans.

use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use crate::fixture::{Place, signal, until};
use crate::lab::{HOMEOSTAT, ask, daemon, nodes, over, said, web};

#[test]
fn an_exported_state_is_imported_and_gone_on_with() {
    let place = Place::with(&web(3));
    let mut up = daemon(&place, &[]);
    up.converged(0);
    // The file is no edit because it is read elsewhere: what was ordered since stands there too.
    ask(&place, &["scale", "web=2", "--yes", "--wait"]).ok();
    let file = place.path().join("demo.snapshot");
    let path = file.to_str().unwrap();
    assert_eq!(ask(&place, &["snapshot", "export", path]).code, 0);
    let (pids, attempts) = (place.pids(), nodes(&place));
    signal(up.pid(), Signal::TERM);
    up.ended();
    // Into a directory with state: refused, and nothing changes.
    let import = |place: &Place| {
        let mut command = Command::new(HOMEOSTAT);
        command.args(["snapshot", "import", path, "--state"]).arg(place.state()).env_remove("HOMEOSTAT_STATE");
        said(command)
    };
    assert_ne!(import(&place).code, 0);
    let state = place.state().join("demo");
    for name in ["state.db", "state.db-wal", "state.db-shm", "head", "key", "lock"] {
        let _ = std::fs::remove_file(state.join(name));
    }
    let imported = import(&place);
    assert_eq!(imported.code, 0, "{}{}", imported.out, imported.err);
    let up = daemon(&place, &[]);
    up.converged(0);
    assert_eq!((place.pids(), nodes(&place)), (pids, attempts), "it knows each node again");
    over(&place, up);
}

#[test]
fn reset_state_says_what_it_leaves_and_orphans_are_adopted_or_destroyed() {
    let place = Place::with(&web(2));
    let mut up = daemon(&place, &[]);
    up.converged(0);
    let reset = |args: &[&str]| {
        let mut command = Command::new(HOMEOSTAT);
        command
            .args(["reset-state", "demo"])
            .args(args)
            .arg("--state")
            .arg(place.state())
            .env_remove("HOMEOSTAT_STATE");
        command.stdin(std::process::Stdio::null());
        said(command)
    };
    assert_eq!(reset(&["--yes"]).code, 1, "a daemon runs");
    let pids = place.pids();
    signal(up.pid(), Signal::TERM);
    up.ended();
    let asked = reset(&[]);
    assert!(
        asked.code == 2 && asked.err.contains("web-1"),
        "not without a person's word: {} {}",
        asked.code,
        asked.err
    );
    let done = reset(&["--yes"]);
    assert!(done.code == 0 && done.err.contains("web-0.1"), "{} {}", done.code, done.err);
    assert_eq!(place.pids(), pids, "nothing is ended");
    // A fresh run: what bears its name is an orphan, and nothing is made beside it before a person says so.
    let up = daemon(&place, &[]);
    let orphans = until("orphans are listed", || {
        let said = ask(&place, &["orphans"]);
        let list = (said.code == 0).then(|| said.json())?["orphans"].as_array().unwrap().clone();
        (list.len() == 2).then_some(list)
    });
    assert_eq!(orphans[0]["provider"], json!("process"));
    for (pid, slot) in pids.values().zip(pids.keys()) {
        assert!(crate::fixture::is_running(*pid), "{slot} is left alone");
    }
    let name = |at: usize| format!("process/{}", orphans[at]["lease"].as_str().unwrap());
    let destroyed = ask(&place, &["destroy", "--orphan", &name(1), "--yes"]);
    assert_eq!(destroyed.code, 0, "{}", destroyed.err);
    let adopted = ask(&place, &["adopt", &name(0)]);
    assert_eq!(adopted.code, 0, "{}", adopted.err);
    until("the fleet is whole", || {
        let status = ask(&place, &["status"]).ok();
        (status["converged"] == true && status["orphans"].as_array().unwrap().is_empty()).then_some(())
    });
    assert_eq!(place.pids().len(), 2);
    let slot = orphans[0]["node"].as_str().unwrap();
    assert_eq!(place.pids()[slot], pids[slot], "the adopted one is the same process");
    over(&place, up);
}

#[test]
fn an_orphan_that_would_be_replaced_is_adopted_when_that_is_meant() {
    let place = Place::with(&web(1));
    let mut up = daemon(&place, &[]);
    up.converged(0);
    signal(up.pid(), Signal::KILL);
    up.ended();
    // The state and the lease's own directory are lost; the process lives.
    let pids = place.pids();
    std::fs::remove_dir_all(place.state().join("demo")).unwrap();
    let up = daemon(&place, &[]);
    let orphan = until("the orphan is listed", || {
        let said = ask(&place, &["orphans"]);
        let list = (said.code == 0).then(|| said.json())?["orphans"].as_array().unwrap().clone();
        Some(format!("process/{}", list.first()?["lease"].as_str()?))
    });
    let asked = ask(&place, &["adopt", &orphan]);
    assert!(asked.code == 2 && asked.err.contains("ended and replaced"), "{} {}", asked.code, asked.err);
    assert!(asked.err.contains("not known"), "{}", asked.err);
    assert!(crate::fixture::is_running(pids["web-0"]), "nothing was done");
    let adopted = ask(&place, &["adopt", &orphan, "--yes", "--wait"]);
    assert_eq!(adopted.code, 0, "{}", adopted.err);
    assert_ne!(place.pids()["web-0"], pids["web-0"]);
    assert!(!crate::fixture::is_running(pids["web-0"]));
    over(&place, up);
}
