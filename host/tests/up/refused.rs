//! What `up` refuses before it starts anything.

use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::fixture::{HOMEOSTAT, Place, STEADY, Up, fleet, group};

fn one() -> Place {
    Place::with(&fleet(&[group("web", 1, STEADY)]))
}

#[test]
fn a_second_host_of_the_run_is_told_who_is_there() {
    let place = one();
    let mut up = place.up(&[]);
    up.converged(0);
    let before = place.leases();
    for args in [&[][..], &["--keep"], &["--until-converged"]] {
        let (code, out, err) = place.run(args);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(err.contains(&format!("in use by process {}", up.pid())), "{err}");
        assert!(err.contains(&place.state().join("demo").display().to_string()), "{err}");
    }
    assert_eq!(place.leases(), before);
    up.take_down(Signal::INT);
    place.assert_empty();
    // Free again at once.
    assert_eq!(place.run(&["--until-converged"]).0, 0);
}

#[test]
fn two_runs_share_a_state_directory() {
    let place = one();
    let mut up = place.up(&[]);
    up.converged(0);
    let before = place.leases();
    place.write(&fleet(&[group("web", 2, STEADY)]).replace("run = \"demo\"", "run = \"other\""));
    let before_edit = up.mark();
    let mut other = place.up(&[]);
    other.converged(0);
    assert_eq!(place.leases_of("other").len(), 2);
    // The first one follows the same file, which is of another run now.
    up.note(before_edit, "nothing changed");
    other.take_down(Signal::INT);
    assert!(place.leases_of("other").is_empty());
    assert_eq!(place.leases(), before);
    up.take_down(Signal::INT);
    place.assert_empty();
}

#[test]
fn a_state_directory_that_cannot_be_used() {
    let place = one();
    let state = place.state();
    let refused = |words: &str| {
        let (code, out, err) = place.run(&["--until-converged"]);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(err.contains(words) && err.contains(&state.display().to_string()), "{words}: {err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert_eq!(place.labelled(), []);
    };
    std::fs::write(&state, "a file").unwrap();
    refused("state");
    assert_eq!(std::fs::read_to_string(&state).unwrap(), "a file");
    std::fs::remove_file(&state).unwrap();
    std::fs::create_dir_all(state.join("demo")).unwrap();
    let database = state.join("demo/state.db");
    for (text, words) in [
        (
            "precious notes that are no database, and long enough to have a header, one hundred bytes or so of them.",
            "state.db",
        ),
        ("SQLite format 3\0", "state.db"),
    ] {
        std::fs::write(&database, text).unwrap();
        std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o600)).unwrap();
        refused(words);
        assert_eq!(std::fs::read_to_string(&database).unwrap(), text, "it is kept");
    }
    std::fs::remove_file(&database).unwrap();
    std::fs::write(state.join("demo/leases"), "a file").unwrap();
    refused("leases");
    std::fs::remove_file(state.join("demo/leases")).unwrap();
    assert_eq!(place.run(&["--until-converged"]).0, 0);
}

/// Root may write anywhere, so this says something for others only.
#[test]
fn a_state_directory_without_permission() {
    let place = one();
    std::fs::create_dir_all(place.state()).unwrap();
    std::fs::set_permissions(place.state(), std::fs::Permissions::from_mode(0o500)).unwrap();
    let is_root = std::fs::write(place.state().join("probe"), "").is_ok();
    let (code, _, err) = place.run(&["--until-converged"]);
    std::fs::set_permissions(place.state(), std::fs::Permissions::from_mode(0o700)).unwrap();
    if is_root {
        assert_eq!(code, 0, "{err}");
    } else {
        assert!(code == 1 && err.contains("ermission denied"), "{err}");
    }
    assert_eq!(place.labelled(), []);
}

#[test]
fn a_decider_that_is_none() {
    let place = one();
    let file = place.path().join("decider.wasm");
    let path = file.display().to_string();
    for (bytes, words) in [(&b"garbage"[..], "not WebAssembly"), (b"", "empty"), (b"\0asm\x01\0\0\0", "core module")] {
        std::fs::write(&file, bytes).unwrap();
        let (code, out, err) = place.run(&["--decider", &path]);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(words) && err.contains(&path), "{err}");
    }
    std::fs::remove_file(&file).unwrap();
    let (code, _, err) = place.run(&["--decider", &path]);
    assert!(code == 2 && err.matches(&path).count() == 1 && err.contains("No such file"), "{err}");
    assert!(!place.state().exists());
}

#[test]
fn a_file_that_is_none() {
    let place = Place::new();
    for (text, words) in [(None, "No such file"), (Some("run = 1"), "run"), (Some("[[group]]\n"), "run")] {
        if let Some(text) = text {
            place.write(text);
        }
        let (code, out, err) = place.run(&[]);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(words), "{err}");
    }
    assert!(!place.state().exists());
    assert_eq!(place.run(&["--timeout", "1s"]).0, 2, "a time-out of what?");
    assert_eq!(place.run(&["--until-converged", "--timeout", "soon"]).0, 2);
}

#[test]
fn not_in_time() {
    let text = fleet(&[
        group("web", 1, STEADY),
        group("never", 1, "echo thinking about it; exec sleep 1000"),
        group("absent", 1, STEADY).replace("\"sh\"", "\"no-such-program\""),
    ]);
    let place = Place::with(&text);
    let (code, _, err) = place.run(&["--until-converged", "--timeout", "4s"]);
    assert_eq!(code, 3);
    let line = |start: &str| {
        err.lines().find(|line| line.trim_start().starts_with(start)).unwrap_or_else(|| panic!("{err}")).to_owned()
    };
    assert!(line("homeostat: not").contains("not converged within 4s"));
    let never = line("never-0:");
    assert!(never.contains("bootstrap-running, waits for the join probe (") && never.contains(" at most)"), "{never}");
    let absent = line("absent-0:");
    assert!(absent.contains("cannot start \"no-such-program\": No such file or directory"), "{absent}");
    assert!(!err.contains("web-0: "), "{err}");
    assert!(err.ends_with("homeostat: nothing is left\n"), "{err}");
    place.assert_empty();
    // For machines.
    let mut up = place.up(&["--until-converged", "--timeout", "4s"]);
    assert_eq!(up.ended().0, 3);
    let late = up.line(0, "not in time", |line| line["schema"] == "homeostat.not-in-time/v1");
    let nodes: Vec<&Value> = late["not_ready"].as_array().unwrap().iter().map(|node| &node["node"]).collect();
    assert_eq!((&late["timeout_ms"], nodes), (&json!(4_000), vec![&json!("never-0"), &json!("absent-0")]));
    place.assert_empty();
    // With --keep it stays, and is still not in time.
    let mut up = place.up(&["--until-converged", "--timeout", "4s", "--keep"]);
    assert_eq!(up.ended().0, 3);
    assert!(place.pids().len() >= 2);
    let mut up = Up::start({
        let mut command = std::process::Command::new(HOMEOSTAT);
        command.env("HOMEOSTAT_STATE", place.state()).arg("up").arg(place.file()).args(["-o", "json"]);
        command
    });
    up.node(0, "web-0", &[("ready", json!(true))]);
    up.take_down(Signal::INT);
    place.assert_empty();
}
