//! Where no daemon answers.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use store::{Secret, SqliteStore, StateDir};

use super::operate;

fn state() -> (tempfile::TempDir, StateDir) {
    let folder = tempfile::tempdir().unwrap();
    let held = StateDir::open(folder.path().join("demo")).unwrap();
    let mut store = SqliteStore::open(&held).unwrap();
    Secret::open(&held, &mut store).unwrap();
    (folder, held)
}

fn verdicts(state: &str) -> Vec<(String, String, String)> {
    let ran = operate(&["doctor", "--state", state, "-o", "json"], "");
    assert_eq!(ran.code, 1, "{}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    let text = |check: &Value, field: &str| check[field].as_str().unwrap().to_owned();
    let checks = found["checks"].as_array().unwrap().iter();
    checks.map(|check| (text(check, "name"), text(check, "verdict"), text(check, "text"))).collect()
}

fn verdict<'v>(found: &'v [(String, String, String)], name: &str) -> (&'v str, &'v str) {
    let check = found.iter().find(|check| check.0 == name).unwrap_or_else(|| panic!("no {name}: {found:?}"));
    (&check.1, &check.2)
}

#[test]
fn the_doctor_looks_at_what_a_daemon_left() {
    let (folder, held) = state();
    let base = folder.path().to_str().unwrap();
    let found = verdicts(base);
    assert_eq!(verdict(&found, "daemon").0, "bad");
    assert_eq!(verdict(&found, "state directory").0, "ok");
    let (lock, words) = verdict(&found, "lock");
    assert!(lock == "warning" && words.contains(&format!("process {}", std::process::id())), "{words}");
    assert_eq!((verdict(&found, "key").0, verdict(&found, "store").0), ("ok", "ok"));
    drop(held);
    let found = verdicts(base);
    assert_eq!(verdict(&found, "lock").0, "ok");
    assert!(verdict(&found, "state directory").1.contains(" MiB free"), "{found:?}");
    assert_eq!(verdict(&found, "decider, backends, clock").0, "warning");
    let words = operate(&["doctor", "--state", base], "").out;
    assert!(!words.contains("homeostat doctor"), "it is the doctor that says so: {words}");

    let run = folder.path().join("demo");
    // Another key than the one that the database knows.
    let key = std::fs::read(run.join("key")).unwrap();
    std::fs::write(run.join("key"), [7; 32]).unwrap();
    let found = verdicts(base);
    assert_eq!((verdict(&found, "key").0, verdict(&found, "store").0), ("ok", "bad"), "{found:?}");
    std::fs::write(run.join("key"), &key).unwrap();
    assert_eq!(verdict(&verdicts(base), "store").0, "ok");
    // A database that can be opened and read, with one byte of a record changed.
    let whole = std::fs::read(run.join("state.db")).unwrap();
    let at = whole.windows(15).rposition(|bytes| bytes == b"key-fingerprint").unwrap() + 20;
    let mut flipped = whole.clone();
    flipped[at] ^= 1;
    std::fs::write(run.join("state.db"), flipped).unwrap();
    assert_eq!(verdict(&verdicts(base), "store").0, "bad");

    std::fs::set_permissions(run.join("key"), PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::write(run.join("state.db"), "not a database at all, but long enough to be looked at").unwrap();
    let found = verdicts(base);
    assert_eq!((verdict(&found, "key").0, verdict(&found, "store").0), ("bad", "bad"));
    let words = operate(&["doctor", "--state", base], "").out;
    assert!(words.contains("→ ") && words.contains("things do not work"), "{words}");
}

#[test]
fn a_token_is_the_one_that_the_daemon_takes() {
    let (folder, held) = state();
    let base = folder.path().to_str().unwrap();
    let ran = operate(&["token", "--state", base], "");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut store = SqliteStore::open(&held).unwrap();
    assert!(Secret::open(&held, &mut store).unwrap().accepts(client::TOKEN_LABEL, ran.out.trim()));
    std::fs::set_permissions(folder.path().join("demo/key"), PermissionsExt::from_mode(0o640)).unwrap();
    let ran = operate(&["token", "--state", base], "");
    assert!(ran.code == 1 && ran.out.is_empty() && ran.err.contains("open to others"), "{}", ran.err);
    assert_eq!(operate(&["token", "--socket", "/x"], "").code, 2);
}

#[test]
fn state_is_put_aside_only_when_its_run_is_typed() {
    let (folder, held) = state();
    drop(held);
    let base = folder.path().to_str().unwrap();
    let db = folder.path().join("demo/state.db");
    assert_eq!(operate(&["reset-state", "demo", "--state", base], "").code, 2);
    let ran = operate(&["reset-state", "demo", "--state", base], "y\n");
    assert!(ran.code == 2 && db.exists(), "{}", ran.err);
    assert!(ran.err.contains("knows of 1 resource") && ran.err.contains("web-0  a7  process/proc-1"), "{}", ran.err);
    assert_eq!(operate(&["reset-state", "none", "--state", base], "demo\n").code, 2);
    let ran = operate(&["reset-state", "demo", "--state", base], "demo\n");
    assert!(ran.code == 0 && !db.exists(), "{}", ran.err);
    assert_eq!(ran.out, "");
    std::fs::write(&db, "").unwrap();
    let ran = operate(&["reset-state", "demo", "--state", base, "--yes", "-o", "json"], "");
    let done: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(done["schema"], "homeostat.reset-state/v1");
    assert_eq!(done["resources"][0]["lease"], "proc-1");
    // Never below a daemon that runs.
    let daemon = super::Daemon::new();
    let ran = operate(&["reset-state", "demo", "--state", daemon.state(), "--yes"], "");
    assert!(ran.code == 1 && ran.err.contains("stop it first"), "{}", ran.err);
}

#[test]
fn a_snapshot_goes_out_for_its_owner_only_and_comes_in_where_nothing_is() {
    let daemon = super::Daemon::new();
    let file = daemon.folder.path().join("export.json");
    let path = file.to_str().unwrap();
    assert_eq!(daemon.ask(&["snapshot", "export", path]).code, 0);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let ran = daemon.ask(&["snapshot", "export", path]);
    assert!(ran.code == 1 && ran.err.contains("choose another name"), "{}", ran.err);
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().to_str().unwrap();
    let ran = operate(&["snapshot", "import", path, "--state", base], "");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(folder.path().join("demo/imported").exists());
    // Through a pipe, and what a script is told.
    let piped = daemon.ask(&["snapshot", "export", "-"]);
    let exported: serde_json::Value = serde_json::from_str(&piped.out).unwrap();
    assert_eq!(exported["schema"], "homeostat.snapshot/v1");
    let elsewhere = tempfile::tempdir().unwrap();
    let to = elsewhere.path().to_str().unwrap();
    let ran = operate(&["snapshot", "import", "-", "--state", to, "-o", "json"], &piped.out);
    let imported: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(imported["schema"], "homeostat.snapshot-import/v1");
    assert_eq!(imported["next_seq"], exported["next_seq"]);
    assert!(elsewhere.path().join("demo/imported").exists());
    let other = daemon.folder.path().join("other.json");
    let written = daemon.json(&["snapshot", "export", other.to_str().unwrap()]);
    assert_eq!(written["schema"], "homeostat.snapshot-export/v1");
    assert_eq!(written["path"], other.to_str().unwrap());
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(operate(&["snapshot", "import", path, "--state", base], "").code, 2);
}
