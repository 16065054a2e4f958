//! The deciders go where the state goes: `snapshot export` and `import`.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::fixture::{Place, Up, signal, until};
use crate::lab::{HOMEOSTAT, Said, ask, daemon, nodes, over, said, web};

fn decider(place: &Place) -> Value {
    ask(place, &["status"]).ok()["decider"].clone()
}

fn swap(place: &Place, decider: &str) {
    let terms = ["--replay", "0s", "--shadow", "0s", "--watch", "0s", "--yes"];
    let ended = ask(place, &[&["decider", "swap", decider], &terms[..]].concat());
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
}

fn stop(up: &mut Up) {
    signal(up.pid(), Signal::TERM);
    assert_eq!(up.ended().0, 0, "{}", up.errors());
}

fn import(place: &Place, file: &Path) -> Said {
    let mut command = Command::new(HOMEOSTAT);
    command.args(["snapshot", "import"]).arg(file).arg("--state").arg(place.state()).env_remove("HOMEOSTAT_STATE");
    said(command)
}

/// What the daemon knows is gone; what runs stays.
fn forget(state: &Path) {
    for name in ["state.db", "state.db-wal", "state.db-shm", "head", "key", "lock"] {
        let _ = std::fs::remove_file(state.join(name));
    }
    for name in ["deciders", "compiled"] {
        let _ = std::fs::remove_dir_all(state.join(name));
    }
}

fn written(place: &Place, name: &str, export: &Value) -> PathBuf {
    let path = place.path().join(name);
    std::fs::write(&path, serde_json::to_vec(export).unwrap()).unwrap();
    path
}

#[test]
fn the_one_in_force_the_one_before_and_the_pinned_one_go_along() {
    let place = Place::with(&web(2));
    let mut up = daemon(&place, &[]);
    up.converged(0);
    let write = |name: &str, bytes: &[u8]| {
        let path = place.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let in_order = write("in-order.wasm", example_deciders::component("in-order").unwrap());
    let window = write("window.wasm", example_deciders::component("maintenance-window").unwrap());
    swap(&place, &in_order);
    swap(&place, &window);
    let file = place.path().join("demo.snapshot");
    let exported = ask(&place, &["snapshot", "export", file.to_str().unwrap()]);
    assert_eq!(exported.code, 0, "{}", exported.err);
    assert!(exported.err.contains("in-order"), "it says which go along: {}", exported.err);
    let (before, known, pids) = (decider(&place), nodes(&place), place.pids());
    let export: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(export["deciders"]["active"], before["digest"]);
    assert_eq!(export["deciders"]["components"].as_array().map(Vec::len), Some(2));
    // One whose component is gone meanwhile is left out, and that is said; without the one in force there is no export.
    let state = place.state().join("demo");
    let component = |digest: &Value| {
        state.join("deciders").join(format!("{}.wasm", digest.as_str().unwrap().strip_prefix("sha256:").unwrap()))
    };
    let (previous, active) = (component(&before["previous"]["digest"]), component(&before["digest"]));
    std::fs::rename(&previous, place.path().join("aside")).unwrap();
    let less = ask(&place, &["snapshot", "export", place.path().join("less.snapshot").to_str().unwrap()]);
    assert!(less.code == 0 && less.err.contains("left out"), "{} {}", less.code, less.err);
    std::fs::rename(&active, place.path().join("active")).unwrap();
    let none = ask(&place, &["snapshot", "export", place.path().join("none.snapshot").to_str().unwrap()]);
    assert!(none.code == 1 && (none.out + &none.err).contains("cannot be exported"));
    std::fs::rename(place.path().join("active"), &active).unwrap();
    std::fs::rename(place.path().join("aside"), &previous).unwrap();
    stop(&mut up);
    forget(&state);

    // What was changed is refused by name, and nothing is made of it.
    let other = json!(format!("sha256:{}", "0".repeat(64)));
    let bytes = |at: usize| export["deciders"]["components"][at]["component"].clone();
    for (what, change) in [
        (
            "another component",
            &(|wrong: &mut Value| wrong["deciders"]["components"][0]["component"] = bytes(1)) as &dyn Fn(&mut Value),
        ),
        ("no base64", &|wrong| wrong["deciders"]["components"][0]["component"] = json!("?")),
        ("no component", &|wrong| wrong["deciders"]["components"][1]["component"] = json!("Zm9v")),
        ("a missing one", &|wrong| {
            wrong["deciders"]["components"].as_array_mut().unwrap().pop();
        }),
        ("another one in force", &|wrong| wrong["deciders"]["active"] = other.clone()),
        ("another one in the list", &|wrong| wrong["deciders"]["registry"]["active"] = other.clone()),
        ("another list", &|wrong| wrong["deciders"]["registry"]["schema"] = json!("homeostat.deciders/v2")),
        ("a field that nobody knows", &|wrong| wrong["deciders"]["registry"]["surprise"] = json!(1)),
        ("a contract that nobody speaks", &|wrong| {
            for entry in wrong["deciders"]["registry"]["entries"].as_array_mut().unwrap() {
                entry["contract"] = json!("2.0.0");
            }
        }),
    ] {
        let mut wrong = export.clone();
        change(&mut wrong);
        let refused = import(&place, &written(&place, "wrong.snapshot", &wrong));
        assert_eq!(refused.code, 2, "{what}: {}{}", refused.out, refused.err);
        assert!(!state.join("state.db").exists() && !state.join("deciders").exists(), "{what}");
    }

    let imported = import(&place, &file);
    assert!(imported.code == 0 && imported.err.contains("maintenance-window"), "{} {}", imported.code, imported.err);
    let mut up = daemon(&place, &[]);
    up.converged(0);
    let after = decider(&place);
    assert_eq!((&after["digest"], &after["previous"]), (&before["digest"], &before["previous"]));
    assert_eq!((nodes(&place), place.pids()), (known.clone(), pids.clone()), "no node notices");
    let rolled = ask(&place, &["decider", "rollback", "--yes"]);
    assert_eq!(rolled.code, 0, "{}{}", rolled.out, rolled.err);
    until("the one before", || (decider(&place)["name"] == "in-order").then_some(()));
    // A pinned one that is not in force goes along too.
    ask(&place, &["decider", "pin", before["digest"].as_str().unwrap()]).ok();
    let pinned = place.path().join("pinned.snapshot");
    assert_eq!(ask(&place, &["snapshot", "export", pinned.to_str().unwrap()]).code, 0);
    stop(&mut up);
    forget(&state);
    assert_eq!(import(&place, &pinned).code, 0);
    let mut up = daemon(&place, &[]);
    up.converged(0);
    assert_eq!(decider(&place)["name"], "in-order");
    swap(&place, before["digest"].as_str().unwrap());
    assert_eq!(decider(&place)["digest"], before["digest"]);
    stop(&mut up);
    forget(&state);

    // One that an earlier version wrote has none: that is said, and the daemon begins with its own.
    let mut old = export.clone();
    old.as_object_mut().unwrap().remove("deciders");
    let imported = import(&place, &written(&place, "old.snapshot", &old));
    assert!(imported.code == 0 && imported.err.contains("no decider in the snapshot"), "{}", imported.err);
    let up = daemon(&place, &[]);
    up.converged(0);
    assert_eq!(decider(&place)["name"], "ladder");
    assert_eq!((nodes(&place), place.pids()), (known, pids));
    over(&place, up);
}
