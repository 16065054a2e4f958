//! Deciders and swaps, as they are asked for over the wire.

use std::time::Duration;

use api::Limits;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::contract::{check, documented, served};
use crate::raw::{Answer, Events, ask, connect, get, post, request, upload};
use crate::{Daemon, daemon};

const FINE: &[u8] = b"\0asm ladder 1.1.0 waits";

async fn command(daemon: &Daemon, id: &str, what: Value) -> Answer {
    let body = json!({ "id": id, "command": what }).to_string();
    post(&daemon.socket, "/v1/deciders/commands", &body).await
}

/// The digest of a component that was sent.
async fn sent(daemon: &Daemon, component: &[u8]) -> String {
    let answer = upload(&daemon.socket, component).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["digest"].as_str().unwrap().to_owned()
}

async fn swap(daemon: &Daemon, id: &str) -> Value {
    let answer = get(&daemon.socket, &format!("/v1/swaps/{id}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[tokio::test]
async fn a_component_that_comes_again_is_known() {
    let daemon = daemon(Limits::default()).await;
    let first = upload(&daemon.socket, FINE).await.json();
    let again = upload(&daemon.socket, FINE).await.json();
    assert_eq!((&first["known"], &again["known"]), (&json!(false), &json!(true)));
    assert_eq!(first["digest"], again["digest"]);
    let list = get(&daemon.socket, "/v1/deciders").await.json();
    let names: Vec<_> = list["deciders"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["built-in", "ladder"]);
    let digits = first["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    for name in [digits, &digits[..8], &digits[..8].to_uppercase()] {
        let answer = get(&daemon.socket, &format!("/v1/deciders/{name}")).await.json();
        assert_eq!(answer["version"], "1.1.0", "{name}");
    }
}

#[tokio::test]
async fn what_is_no_component_is_refused_before_it_is_kept() {
    let daemon = daemon(Limits { component_bytes: 100_000, ..Limits::default() }).await;
    let document = served(&daemon).await;
    let sent = |kind: &'static str, body: &[u8]| {
        let request = request("POST", "/v1/deciders", &[("Content-Type", kind)], body);
        let socket = daemon.socket.clone();
        async move { ask(connect(&socket).await, &request).await }
    };
    let large = [FINE, &[b'x'; 100_000]].concat();
    let expected: [(_, &[u8], _, _, _); 6] = [
        ("application/wasm", b"", 422, "invalid", "WebAssembly"),
        ("application/wasm", b"\x7fELF", 422, "invalid", "WebAssembly"),
        ("application/wasm", b"\0asm clock 1.0.0 no-decider", 422, "invalid", "wasi:clocks"),
        ("application/json", FINE, 415, "type", "application/json"),
        ("application/octet-stream", FINE, 415, "type", "application/wasm"),
        ("application/wasm", &large, 413, "too-large", "100000 bytes"),
    ];
    for (kind, body, status, problem, words) in expected {
        let answer = sent(kind, body).await;
        documented(&document, "POST", "/v1/deciders", &answer);
        assert!(answer.problem(status, problem).contains(words), "{}", answer.text());
    }
    // Without a length it is counted while it comes.
    let mut stream = connect(&daemon.socket).await;
    let head = "POST /v1/deciders HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/wasm\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = [b"8000\r\n".as_slice(), &[0; 0x8000], b"\r\n"].concat();
    for _ in 0..4 {
        let _ = stream.write_all(&chunk).await;
    }
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read).await;
    Answer::parse(&read).unwrap().problem(413, "too-large");
    assert_eq!(get(&daemon.socket, "/v1/deciders").await.json()["deciders"].as_array().unwrap().len(), 1);
}

/// Components are large, and their check costs something: only so many come at once, and a slow one gives its turn up.
#[tokio::test]
async fn slow_components_do_not_keep_others_out_for_long() {
    let body_time = Duration::from_secs(1);
    let daemon = daemon(Limits { components: 1, body_time, ..Limits::default() }).await;
    let mut slow = connect(&daemon.socket).await;
    let head = "POST /v1/deciders HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/wasm\r\nContent-Length: 900000\r\n\r\n\0asm";
    slow.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    // Everything else goes on meanwhile.
    assert_eq!(get(&daemon.socket, "/v1/status").await.status, 200);
    assert_eq!(post(&daemon.socket, "/v1/plan", r#"{"command":{"do":"kill","nodes":["web-0"]}}"#).await.status, 200);
    // It is told to come back, or its turn comes.
    let mut tries = 0;
    while upload(&daemon.socket, FINE).await.status != 200 {
        tries += 1;
        assert!(tries < 20);
    }
    assert!(tries < 3, "{tries}");
}

#[tokio::test]
async fn commands_that_make_no_sense_say_why() {
    let daemon = daemon(Limits::default()).await;
    let document = served(&daemon).await;
    let digest = sent(&daemon, FINE).await;
    let with = |terms: Value| json!({ "do": "swap", "decider": digest, "terms": terms });
    let many = vec!["all"; 65];
    let expected = [
        ("c-1", json!({ "do": "swap", "decider": "ladder" }), 422, "invalid", "ladder"),
        ("c-1", json!({ "do": "swap", "decider": "ffffffff" }), 404, "not-found", "ffffffff"),
        ("c-1", json!({ "do": "swap" }), 422, "invalid", "decider"),
        ("c-1", json!({ "do": "explode" }), 422, "invalid", "explode"),
        ("c-1", with(json!({ "accept": ["nothing"] })), 422, "invalid", "nothing"),
        ("c-1", with(json!({ "accept": many })), 422, "invalid", "64"),
        ("c-1", with(json!({ "watch_failed": "0%" })), 422, "invalid", "0%"),
        ("c-1", with(json!({ "watch_ms": 0, "watch_failed": "5%" })), 422, "invalid", "watch_failed"),
        ("c-1", with(json!({ "shadow_ms": 40_000_000_000_u64 })), 422, "invalid", "year"),
        ("c-1", with(json!({ "shadow": 4 })), 422, "invalid", "shadow"),
        ("", json!({ "do": "unpin" }), 422, "invalid", "id: "),
        ("a b", json!({ "do": "unpin" }), 422, "invalid", "a b"),
        ("c-1", json!({ "do": "unpin", "now": true }), 422, "invalid", "now"),
        ("c-1", json!({ "do": "rollback" }), 404, "not-found", "before"),
        ("c-1", json!({ "do": "stop-shadow" }), 409, "conflict", "shadow"),
        ("c-1", json!({ "do": "cancel", "swap": "nope" }), 404, "not-found", "nope"),
        ("c-1", json!({ "do": "cancel", "swap": "../nope" }), 404, "not-found", "nope"),
    ];
    for (id, what, status, kind, words) in expected {
        let answer = command(&daemon, id, what.clone()).await;
        documented(&document, "POST", "/v1/deciders/commands", &answer);
        let detail = answer.problem(status, kind);
        assert!(detail.contains(words), "{what}: {detail}");
    }
    let expected = [
        ("/v1/deciders/{decider}", "/v1/deciders/nope", 404, "not-found", "nope"),
        ("/v1/deciders/{decider}", "/v1/deciders/12345678", 404, "not-found", "decider ls"),
        ("/v1/deciders/{decider}", "/v1/deciders/previous", 404, "not-found", "before"),
        ("/v1/deciders/{decider}", "/v1/deciders/%ff", 400, "malformed", "UTF-8"),
        ("/v1/swaps", "/v1/swaps?limit=0", 422, "invalid", "limit: 0"),
        ("/v1/swaps", "/v1/swaps?limit=101", 422, "invalid", "limit: 101"),
        ("/v1/swaps", "/v1/swaps?last=1", 400, "malformed", "last"),
        ("/v1/swaps/{swap}", "/v1/swaps/nope", 404, "not-found", "nope"),
        ("/v1/swaps/{swap}", "/v1/swaps/%0anope", 404, "not-found", "nope"),
    ];
    for (path, target, status, kind, words) in expected {
        let answer = get(&daemon.socket, target).await;
        documented(&document, "GET", path, &answer);
        assert!(answer.problem(status, kind).contains(words), "{target}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_swap_is_begun_once_for_each_id_and_other_content_is_refused() {
    let daemon = daemon(Limits::default()).await;
    let digest = sent(&daemon, FINE).await;
    let what = json!({ "do": "swap", "decider": digest });
    let first = command(&daemon, "w-1", what.clone()).await.json();
    let again = command(&daemon, "w-1", what).await.json();
    assert_eq!((&first["replayed"], &again["replayed"]), (&json!(false), &json!(true)));
    assert_eq!((&first["swap"], &again["at_ms"]), (&json!("w-1"), &first["at_ms"]));
    let other = json!({ "do": "swap", "decider": digest, "terms": { "replay_ms": 5 } });
    assert!(command(&daemon, "w-1", other).await.problem(409, "conflict").contains("w-1"));
    // One id is one command, whatever it is about.
    let scale = r#"{"id":"w-1","command":{"do":"scale","group":"web","count":4}}"#;
    post(&daemon.socket, "/v1/commands", scale).await;
    let scale = r#"{"id":"c-7","command":{"do":"scale","group":"web","count":4}}"#;
    assert_eq!(post(&daemon.socket, "/v1/commands", scale).await.status, 200);
    assert!(command(&daemon, "c-7", json!({ "do": "unpin" })).await.problem(409, "conflict").contains("c-7"));
    let body = json!({ "id": "c-8", "expect_revision": 7, "command": { "do": "unpin" } }).to_string();
    assert!(post(&daemon.socket, "/v1/deciders/commands", &body).await.problem(409, "conflict").contains("not 7"));
    assert_eq!(get(&daemon.socket, "/v1/swaps").await.json()["swaps"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_swap_is_watched_from_its_check_to_its_rollback() {
    let daemon = daemon(Limits::default()).await;
    let document = served(&daemon).await;
    let digest = sent(&daemon, b"\0asm trapper 2.0.0 traps").await;
    let mut watch = Events::open(connect(&daemon.socket).await, "/v1/watch", &[]).await;
    assert_eq!(command(&daemon, "w-1", json!({ "do": "swap", "decider": digest })).await.status, 200);
    let (mut running, mut in_force) = (Vec::new(), Vec::new());
    let events = &document["paths"]["/v1/watch"]["get"]["responses"]["200"]["content"];
    assert!(events.is_object());
    let events = &document["paths"]["/v1/watch"]["get"]["responses"]["200"]["x-events"];
    loop {
        daemon.fake.step();
        let last = swap(&daemon, "w-1").await;
        if !last["ended_ms"].is_null() {
            break;
        }
    }
    loop {
        let event = watch.next().await.unwrap();
        check(&document, &events[&event.name], &event.payload, &event.name);
        let of = &event.payload["of"];
        match event.payload["kind"].as_str() {
            Some("swap") => {
                assert_eq!(of["id"], "w-1");
                let stages = of["stages"].as_array().unwrap();
                running.extend(stages.iter().filter(|stage| stage["state"] == "running").map(|s| s["stage"].clone()));
            }
            Some("decider") => in_force.push((of["name"].clone(), of["rolled_back"]["from"]["name"].clone())),
            _ => {}
        }
        if in_force.len() == 2 {
            break;
        }
    }
    running.dedup();
    assert_eq!(running, ["check", "replay", "shadow", "switch", "watch"]);
    assert_eq!(in_force, [(json!("trapper"), Value::Null), (json!("built-in"), json!("trapper"))]);
    let found = swap(&daemon, "w-1").await;
    assert_eq!((&found["verdict"], &found["kind"]), (&json!("rolled-back"), &json!("swap")));
    assert!(found["text"].as_str().unwrap().contains("fuel"), "{found}");
    let list = get(&daemon.socket, "/v1/deciders").await.json();
    let trapper = list["deciders"].as_array().unwrap().iter().find(|entry| entry["name"] == "trapper").unwrap();
    assert_eq!(trapper["quarantine"]["swap"], "w-1");
    let status = get(&daemon.socket, "/v1/status").await.json();
    assert_eq!(status["decider"]["rolled_back"]["swap"], "w-1");
    assert_eq!(status["swaps"][0]["verdict"], "rolled-back");
}

#[tokio::test]
async fn a_refused_one_says_what_would_accept_it() {
    let daemon = daemon(Limits::default()).await;
    let document = served(&daemon).await;
    let digest = sent(&daemon, b"\0asm ladder 1.2.0 diverges").await;
    let until_ended = async |id: &str| {
        while swap(&daemon, id).await["verdict"].is_null() {
            daemon.fake.step();
        }
        let answer = get(&daemon.socket, &format!("/v1/swaps/{id}")).await;
        documented(&document, "GET", "/v1/swaps/{swap}", &answer);
        answer.json()
    };
    command(&daemon, "w-1", json!({ "do": "swap", "decider": digest })).await;
    let refused = until_ended("w-1").await;
    assert_eq!((&refused["verdict"], &refused["refusal"]["reason"]), (&json!("refused"), &json!("divergence")));
    let divergence = &refused["reports"][0]["divergences"][0];
    assert_eq!((&divergence["direction"], &divergence["refused"]), (&json!("more-destroys"), &json!(true)));
    assert_eq!(get(&daemon.socket, "/v1/status").await.json()["decider"]["name"], "built-in");
    let accept = refused["refusal"]["accept"].clone();
    command(&daemon, "w-2", json!({ "do": "swap", "decider": digest, "terms": { "accept": accept } })).await;
    assert_eq!(until_ended("w-2").await["verdict"], "switched");
    // A newer wish takes the place of one that has not switched.
    command(&daemon, "w-3", json!({ "do": "swap", "decider": "built-in" })).await;
    command(&daemon, "w-4", json!({ "do": "swap", "decider": "built-in" })).await;
    assert_eq!(swap(&daemon, "w-3").await["verdict"], "superseded");
    command(&daemon, "c-5", json!({ "do": "cancel", "swap": "w-4" })).await;
    assert_eq!(swap(&daemon, "w-4").await["verdict"], "cancelled");
    assert!(
        command(&daemon, "c-6", json!({ "do": "cancel", "swap": "w-4" }))
            .await
            .problem(409, "conflict")
            .contains("ended")
    );
}
