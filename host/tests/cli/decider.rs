//! `homeostat decider`.

use hostile_guests_artifact as guests;
use serde_json::Value;

use super::{Folder, example, homeostat, json, refused, text};

#[test]
fn the_built_in_one_shows_itself() {
    let said = text(&homeostat(&["decider", "inspect"]).stdout);
    for part in [
        "ladder",
        "sha256:",
        "1.1.0 (this host speaks 1.0 and 1.1)",
        "imports   nothing",
        "homeostat:decider/policy@1.1.0",
        "R17",
    ] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    let json = json(&["decider", "inspect", "-o", "json"]);
    assert_eq!((&json["schema"], &json["name"]), (&"homeostat.decider/v1".into(), &"ladder".into()));
    assert_eq!(json["rules"].as_array().unwrap().len(), 23);
}

#[test]
fn what_is_no_decider_is_refused() {
    let folder = Folder::new("components");
    let empty = folder.file("empty.wasm", b"");
    let random = folder.file("random.wasm", (0..10_000u32).map(|at| ((at * 7919) >> 3) as u8).collect::<Vec<_>>());
    let module = folder.file("module.wasm", b"\0asm\x01\0\0\0");
    let broken = folder.file("broken.wasm", b"\0asm\x0d\0\x01\0\xff\xff\xff");
    for (file, reason) in [
        (empty.as_str(), "it is empty"),
        (random.as_str(), "it is not WebAssembly"),
        (module.as_str(), "core module"),
        (broken.as_str(), "not a valid component"),
        ("/nowhere.wasm", "No such file"),
        ("/dev/zero", "a device"),
    ] {
        let said = refused(&["decider", "inspect", file]);
        assert!(said.contains(file) && said.contains(reason), "{said}");
        refused(&["plan", &example("hello.toml"), "--decider", file]);
    }
}

const SNAPSHOT: &str = r#"{
  "now-ms": 1000, "run": "demo", "generation": 1,
  "settings": { "backoff-initial-ms": 1000, "backoff-cap-ms": 60000, "probe-interval-ms": 1000 },
  "groups": [{ "name": "web", "count": 2, "nodes": 1, "ready": 0, "failed": 0, "deleting": 0, "pending": 1 }],
  "templates": [{ "provider": "process", "role": "", "labels": [] }],
  "nodes": {
    "node": [0, 1], "attempt": [0, 7], "group": [0, 0], "slot": [0, 1], "stage": [0, 2], "intent": [0, 0],
    "template": [4294967295, 0], "desired-template": [0, 0], "live": [0, 0], "progress": [0, 0], "pending": [0, 1],
    "pending-deadline": [0, 6000], "ambiguous": [0, 0], "failures": [0, 0], "next-effect-at": [0, 0],
    "probe-at": [0, 0], "restart-at": [0, 0], "stage-deadline": [0, 0]
  }
}"#;

#[test]
fn it_is_asked_for_a_plan() {
    let folder = Folder::new("run");
    let snapshot = folder.file("snapshot.json", SNAPSHOT);
    let output = homeostat(&["decider", "run", "built-in", &snapshot]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1], ["web-0", "-", "R0", "insert"]);
    assert_eq!(lines[2], ["web-1", "a7", "R5", "hold", "the", "operation's", "result", "in", "5s"]);
    assert!(said.contains("to be asked again in 5s"), "{said}");
    let json = json(&["decider", "run", "built-in", &snapshot, "-o", "json"]);
    assert_eq!((&json["schema"], &json["wake_at_ms"]), (&"homeostat.decision/v1".into(), &6000.into()));
    assert_eq!(json["decisions"][1]["until_ms"], 6000);
}

#[test]
fn bad_snapshots_are_refused() {
    let folder = Folder::new("snapshots");
    for (content, place, reason) in [
        (String::new(), ":1:0:", "not a snapshot"),
        ("{".into(), ":1:1:", "EOF"),
        ("[]".into(), ":1:", "not a snapshot"),
        ("\0\0".into(), ":1:1:", "not a snapshot"),
        (SNAPSHOT.replace("\"run\": \"demo\", ", ""), ":12:1:", "missing field `run`"),
        (SNAPSHOT.replace("\"now-ms\": 1000", "\"now-ms\": -1"), ":2:", "invalid value: integer `-1`"),
        (SNAPSHOT.replace("\"generation\": 1", "\"generatoin\": 1"), ":2:", "unknown field `generatoin`"),
        (SNAPSHOT.replace("\"stage\": [0, 2]", "\"stage\": [0, 256]"), ":7:", "256"),
        (SNAPSHOT.replace("\"stage\": [0, 2]", "\"stage\": [0]"), ":", "nodes.stage: it has 1 entries"),
        (SNAPSHOT.replace("\"node\": [0, 1]", "\"node\": [1, 1]"), ":", "nodes.node[1]: 1 after 1"),
        (format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)), ":1:", "not a snapshot"),
    ] {
        let path = folder.file("snapshot.json", &content);
        let said = refused(&["decider", "run", "built-in", &path]);
        assert!(said.contains(&format!("{path}{place}")) && said.contains(reason), "{said}");
        let json: Value = serde_json::from_str(&refused(&["-o", "json", "decider", "run", "built-in", &path])).unwrap();
        assert_eq!(json["schema"], "homeostat.error/v1");
    }
    let huge = folder.sparse("huge.json", 1 << 30);
    for (file, reason) in [(huge.as_str(), "over the limit"), (folder.path(), "a directory")] {
        assert!(refused(&["decider", "run", "built-in", file]).contains(reason));
    }
}

#[test]
fn what_it_costs_is_measured_beside_the_built_in_one() {
    let said = text(&homeostat(&["decider", "bench", "--nodes", "1,50"]).stdout);
    for part in ["ladder", "against the built-in", " 50 ", " 1.0\n"] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    let folder = Folder::new("bench");
    let other = folder.file("other.wasm", [homeostat::sandbox::BUILT_IN, &[0, 3, 1, b'x', 1]].concat());
    let json = json(&["decider", "bench", &other, "--nodes", "20", "-o", "json", "--limit", "fuel-per-node=0"]);
    let deciders = json["deciders"].as_array().unwrap();
    assert_eq!((&json["schema"], deciders.len()), (&"homeostat.decider-bench/v1".into(), 2));
    let cell = |at: usize| &deciders[at]["calls"][0];
    assert!(cell(0)["fuel"].as_u64().unwrap() > 0 && cell(0)["call_ns"].as_u64().unwrap() > 0, "{json}");
    assert_eq!(cell(0)["fuel"], cell(1)["fuel"], "the same code for the same fleet");
    let starved = homeostat(&["decider", "bench", "--nodes", "20", "--limit", "fuel-base=1000"]);
    let said = format!("{}{}", text(&starved.stdout), text(&starved.stderr));
    assert!(said.contains("fuel"), "{said}");
    // One that fails does not keep the others from being measured, and is no success.
    let empty = folder.file("empty.wasm", guests::NO_DECISIONS);
    let failed = homeostat(&["decider", "bench", &empty, &other, "--nodes", "20,1"]);
    let (table, said) = (text(&failed.stdout), text(&failed.stderr));
    assert_eq!((failed.status.code(), table.lines().count()), (Some(1), 7), "{table}{said}");
    assert!(said.contains(&format!("{empty} (invalid-plan, for 20 nodes): node 0 has no decision")), "{said}");
    refused(&["decider", "bench", "--nodes", "0"]);
}
