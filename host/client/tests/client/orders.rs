//! Verbs that change something.

use super::fake::Options;
use super::{Daemon, Ran, operate};

/// The id that the verb said.
fn id(ran: &Ran) -> &str {
    ran.err.lines().find_map(|line| line.strip_prefix("command ")).unwrap_or_else(|| panic!("no id: {}", ran.err))
}

#[test]
fn a_command_carries_an_id_and_acts_once() {
    let daemon = Daemon::new();
    let first = daemon.ask(&["scale", "web=5"]);
    assert_eq!(first.code, 0, "{}", first.err);
    let ulid = id(&first);
    assert!(ulid.len() == 26 && ulid.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()), "{ulid}");
    assert!(first.out.ends_with("(generation 2)\n"), "{}", first.out);
    let again = daemon.ask(&["scale", "web=5", "--id", ulid]);
    assert_eq!((again.code, daemon.generation()), (0, 2), "{}", again.err);
    assert_eq!(again.out, first.out);
    assert!(again.err.contains("replayed: ") && again.err.contains("nothing was done now"), "{}", again.err);
    assert_eq!(daemon.json(&["scale", "web=5", "--id", ulid])["replayed"], true);
    let other = daemon.ask(&["scale", "web=6", "--id", ulid]);
    assert_eq!((other.code, daemon.generation()), (1, 2), "{}", other.err);
    for wrong in ["", "a b", "ü", &"x".repeat(65)] {
        let ran = daemon.ask(&["add-node", "web", "--id", wrong]);
        assert_eq!((ran.code, daemon.generation()), (2, 2), "{}", ran.err);
    }
}

#[test]
fn victims_are_listed_and_a_person_agrees() {
    let daemon = Daemon::new();
    // Nobody there: refused, and nothing is sent.
    for args in [&["destroy", "web"][..], &["destroy", "web-0"], &["kill", "web-0"], &["scale", "web=1"]] {
        let ran = daemon.ask(args);
        assert_eq!((ran.code, daemon.generation()), (2, 1), "{args:?}: {}", ran.err);
        assert!(ran.err.contains("--yes") && !ran.err.contains("command "), "{}", ran.err);
    }
    // More than one takes more than a `y`.
    for (args, typed, wrong) in [
        (&["destroy", "web"][..], "web", "y"),
        (&["kill", "web-0", "web-1"], "2", "yes"),
        (&["scale", "web=1"], "web", "1"),
    ] {
        let ran = daemon.ask_person(args, &format!("{wrong}\n"));
        assert_eq!((ran.code, daemon.generation()), (2, 1), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(&format!("Type {typed} to go on")), "{}", ran.err);
        assert!(ran.err.contains("nothing was changed"), "{}", ran.err);
    }
    let ran = daemon.ask_person(&["kill", "web-0", "web-1"], "2\n");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("web-0  a") && ran.err.contains("web-1  a"), "{}", ran.err);
    let ran = daemon.ask_person(&["destroy", "web-2"], "y\n");
    assert_eq!((ran.code, daemon.generation()), (0, 2), "{}", ran.err);
    let ran = daemon.ask_person(&["destroy", "web"], "web\n");
    assert_eq!((ran.code, daemon.generation()), (0, 3), "{}", ran.err);
    assert!(ran.err.contains("Group web with 2 nodes"), "{}", ran.err);
}

#[test]
fn a_guard_is_exit_code_5() {
    let daemon = Daemon::new();
    let ran = daemon.ask(&["destroy", "worker", "--yes"]);
    assert_eq!((ran.code, daemon.generation()), (5, 1), "{}", ran.err);
    assert!(ran.err.contains("guard") && ran.err.contains("docs/fleet-file.md"), "{}", ran.err);
}

#[test]
fn orphans_pauses_and_mistakes() {
    let daemon = Daemon::new();
    assert_eq!(daemon.ask(&["destroy", "--orphan", "process/proc-4711"]).code, 2);
    assert_eq!(daemon.ask_person(&["destroy", "--orphan", "process/proc-4711"], "y\n").code, 0);
    assert_eq!(daemon.ask(&["adopt", "process/none"]).code, 1);
    let ran = daemon.ask(&["pause", "web", "--only", "create"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "paused: creates in group web\n"), "{}", ran.err);
    let status = daemon.ask(&["status"]).out;
    assert!(status.contains("create of web, by an operator, for "), "{status}");
    let ran = daemon.ask(&["resume", "web", "--only", "create"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "resumed: creates in group web; what was held goes on\n"),
        "{}",
        ran.err
    );
    for args in [
        &["destroy"][..],
        &["destroy", "web", "--orphan", "a/b"],
        &["destroy", "--orphan", "a"],
        &["scale", "web"],
        &["scale", "=3"],
        &["scale", "web=many"],
        &["pause", "--only", "some"],
        &["add-node", "web", "--timeout", "5s"],
        &["kill"],
    ] {
        assert_eq!(daemon.ask(args).code, 2, "{args:?}");
    }
    assert_eq!(daemon.ask(&["kill", "web-0", "web-99", "--yes"]).code, 1);
    assert_eq!(daemon.generation(), 1);
}

#[test]
fn waiting_ends_when_it_has_come_about() {
    let options = Options { groups: vec![("web".into(), 2)], ..Options::default() };
    let daemon = Daemon::after(0, options.clone());
    // Nothing moves.
    let ran = daemon.ask(&["scale", "web=3", "--wait", "--timeout", "300ms"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("not within 300ms") && ran.err.contains("\n  web-0  "), "{}", ran.err);
    let daemon = Daemon::after(0, options).moving();
    let ran = daemon.ask(&["destroy", "web-1", "--yes", "--wait", "--timeout", "120s"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(!daemon.ask(&["status", "--all"]).out.contains("\nweb-1 "));
}

#[test]
fn a_file_is_compared_and_applied() {
    let daemon = Daemon::new();
    let file = daemon.folder.path().join("fleet.json");
    let path = file.to_str().unwrap();
    let template = serde_json::json!({
        "provider": "process", "boot": {"command": ["x"]},
        "join": {"probe": {"tcp": "127.0.0.1:1"}, "interval_ms": 1, "timeout_ms": 2},
    });
    let group = serde_json::json!({"id": "web", "count": 4, "template": template});
    std::fs::write(&file, serde_json::json!({"run": "other", "generation": 1, "groups": [group]}).to_string()).unwrap();
    let ran = daemon.ask(&["diff", path]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("\"other\"") && ran.err.contains("\"demo\""), "{}", ran.err);
    std::fs::write(&file, serde_json::json!({"run": "demo", "generation": 1, "groups": [group]}).to_string()).unwrap();
    let ran = daemon.ask(&["diff", path]);
    assert_eq!((ran.code, daemon.generation()), (6, 1), "{}", ran.err);
    assert!(ran.out.contains("generation 1 → 2") && ran.out.contains("group web: boot.command[1]"), "{}", ran.out);
    assert_eq!(daemon.json(&["diff", path])["differs"], true);
    assert_eq!(daemon.ask(&["apply", path]).code, 2);
    let ran = daemon.ask_person(&["apply", path], "n\n");
    assert_eq!((ran.code, daemon.generation()), (2, 1), "{}", ran.err);
    let ran = daemon.ask_person(&["apply", path], "y\n");
    assert_eq!((ran.code, daemon.generation()), (0, 2), "{}", ran.err);
    assert!(ran.err.contains("Apply this to generation 1?"), "{}", ran.err);
    assert_eq!(operate(&["apply", "/nonexistent.json", "--state", daemon.state()], "").code, 1);
}
