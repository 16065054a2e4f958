//! The document and the server say the same.

use std::collections::{BTreeMap, BTreeSet};

use api::Limits;
use serde_json::{Value, json};

use crate::raw::{Answer, Events, ask, connect, get, post, request, upload};
use crate::{Daemon, daemon};

const COMMAND: &str = r#"{"id":"c-1","command":{"do":"scale","group":"web","count":4}}"#;

const SHADOW: &str = r#"{"id":"s-1","command":{"do":"shadow","decider":"built-in"}}"#;

fn example(path: &str) -> String {
    path.replace("{node}", "web-0").replace("{decider}", "active").replace("{swap}", "s-1")
}

/// A schema of the document, with all it refers to.
fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut whole = json!({ "components": document["components"] });
    for (key, value) in schema.as_object().unwrap() {
        whole[key] = value.clone();
    }
    jsonschema::draft202012::new(&whole).unwrap_or_else(|error| panic!("{error}: {schema}"))
}

pub fn check(document: &Value, schema: &Value, value: &Value, what: &str) {
    let errors: Vec<String> = validator(document, schema)
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}\n{value:#}");
}

/// The answer is one of those that the document has for the operation.
pub fn documented(document: &Value, method: &str, path: &str, answer: &Answer) {
    let what = format!("{method} {path}: {}", answer.status);
    let operation = &document["paths"][path][method.to_lowercase()];
    assert!(operation.is_object(), "{what}: it is not in the document");
    let mut response = &operation["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{what}: the status is not documented");
    if let Some(reference) = response["$ref"].as_str() {
        response = document.pointer(reference.strip_prefix('#').unwrap()).unwrap();
    }
    let media_type = answer.header("content-type").unwrap();
    let content = &response["content"][media_type];
    assert!(content.is_object(), "{what}: {media_type} is not documented: {response}");
    if media_type.ends_with("json") {
        check(document, &content["schema"], &answer.json(), &what);
    }
}

pub async fn served(daemon: &Daemon) -> Value {
    let answer = get(&daemon.socket, "/v1/openapi.json").await;
    assert_eq!(answer.status, 200);
    answer.json()
}

#[tokio::test]
async fn every_documented_path_answers_as_documented() {
    let daemon = daemon(Limits::default()).await;
    (0..12).for_each(|_| daemon.fake.step());
    let document = served(&daemon).await;
    let mut seen = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            seen.insert(path.clone());
            if path == "/v1/watch" {
                continue;
            }
            let target = example(path);
            let answer = match (method.as_str(), path.as_str()) {
                ("get", _) => get(&daemon.socket, &target).await,
                ("post", "/v1/plan") => {
                    post(&daemon.socket, &target, r#"{"command":{"do":"kill","nodes":["web-1"]}}"#).await
                }
                ("post", "/v1/commands") => post(&daemon.socket, &target, COMMAND).await,
                ("post", "/v1/deciders") => upload(&daemon.socket, b"\0asm ladder 1.1.0 waits").await,
                ("post", "/v1/deciders/commands") => post(&daemon.socket, &target, SHADOW).await,
                other => panic!("{other:?} has no example here"),
            };
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            documented(&document, method, path, &answer);
        }
    }
    assert_eq!(seen.len(), 19, "{seen:?}");
}

#[tokio::test]
async fn watched_events_are_as_documented() {
    let daemon = daemon(Limits::default()).await;
    let document = served(&daemon).await;
    let schemas = &document["paths"]["/v1/watch"]["get"]["responses"]["200"]["content"];
    assert!(schemas["text/event-stream"].is_object());
    let events = &document["paths"]["/v1/watch"]["get"]["responses"]["200"]["x-events"];
    let mut watch = Events::open(connect(&daemon.socket).await, "/v1/watch?from=another-start-7", &[]).await;
    let mut seen = BTreeMap::new();
    while seen.values().sum::<usize>() < 40 {
        daemon.fake.step();
        let event = watch.next().await.unwrap();
        check(&document, &events[&event.name], &event.payload, &event.name);
        *seen.entry(event.name).or_insert(0) += 1;
    }
    daemon.server.shutdown(crate::raw::PATIENCE).await;
    while let Some(event) = watch.next().await {
        check(&document, &events[&event.name], &event.payload, &event.name);
        *seen.entry(event.name).or_insert(0) += 1;
    }
    assert_eq!(seen.keys().map(String::as_str).collect::<Vec<_>>(), ["change", "end", "list", "relist"], "{seen:?}");
}

#[tokio::test]
async fn every_refusal_is_documented_and_names_what_is_wrong() {
    let daemon = daemon(Limits { body_bytes: 4_000, ..Limits::default() }).await;
    let document = served(&daemon).await;
    let expected = [
        ("/v1/nodes/{node}", "/v1/nodes/nope", 404, "not-found", "\"nope\""),
        ("/v1/nodes/{node}/explanation", "/v1/nodes/n%0ao/explanation", 404, "not-found", "n\\no"),
        ("/v1/nodes/{node}/logs", "/v1/nodes/nope/logs", 404, "not-found", "nope"),
        ("/v1/nodes/{node}/logs", "/v1/nodes/web-0/logs?lines=0", 422, "invalid", "lines: 0"),
        ("/v1/nodes/{node}/logs", "/v1/nodes/web-0/logs?lines=ten", 400, "malformed", "lines"),
        ("/v1/nodes/{node}", "/v1/nodes/%ff", 400, "malformed", "UTF-8"),
        ("/v1/history", "/v1/history?node=nope", 404, "not-found", "nope"),
        ("/v1/history", "/v1/history?limit=1001", 422, "invalid", "limit: 1001"),
        ("/v1/history", "/v1/history?befor=1", 400, "malformed", "befor"),
        ("/v1/decisions", "/v1/decisions?limit=100000", 422, "invalid", "limit: 100000"),
    ];
    for (path, target, status, kind, words) in expected {
        let answer = get(&daemon.socket, target).await;
        documented(&document, "GET", path, &answer);
        let detail = answer.problem(status, kind);
        assert!(detail.contains(words), "{target}: {detail}");
    }
    let large = format!(r#"{{"id":"{}"}}"#, "x".repeat(4_000));
    let guarded = r#"{"id":"c-3","command":{"do":"destroy","groups":["worker"]}}"#;
    let old = r#"{"id":"c-4","expect_generation":9,"command":{"do":"scale","group":"web","count":4}}"#;
    let other = r#"{"id":"c-1","command":{"do":"scale","group":"web","count":5}}"#;
    let expected = [
        ("/v1/commands", "{", 400, "malformed", "line 1"),
        ("/v1/commands", r#"{"id":"a","command":{"do":"scale"}} trailing"#, 422, "invalid", "group"),
        ("/v1/commands", "[]", 422, "invalid", ""),
        (
            "/v1/commands",
            r#"{"id":"a","command":{"do":"scale","group":"web","count":-1}}"#,
            422,
            "invalid",
            "command: ",
        ),
        ("/v1/commands", r#"{"id":"a","command":{"do":"explode"}}"#, 422, "invalid", "explode"),
        ("/v1/commands", r#"{"id":"a","command":{"do":"kill","nodes":[],"force":true}}"#, 422, "invalid", "force"),
        ("/v1/commands", r#"{"id":"","command":{"do":"kill","nodes":["web-0"]}}"#, 422, "invalid", "id: \"\""),
        ("/v1/commands", r#"{"id":"a b","command":{"do":"kill","nodes":["web-0"]}}"#, 422, "invalid", "a b"),
        ("/v1/commands", r#"{"id":"a","command":{"do":"kill","nodes":["nope"]}}"#, 404, "not-found", "nope"),
        ("/v1/plan", r#"{"command":{"do":"scale","group":"nope","count":1}}"#, 404, "not-found", "nope"),
        ("/v1/plan", r#"{"command":null}"#, 422, "invalid", "command"),
        ("/v1/commands", guarded, 403, "guard", "destroys-per-minute"),
        ("/v1/commands", old, 409, "conflict", "not 9"),
        ("/v1/commands", COMMAND, 200, "", ""),
        ("/v1/commands", other, 409, "conflict", "c-1"),
        ("/v1/commands", &large, 413, "too-large", "4000"),
        ("/v1/plan", &large, 413, "too-large", "4000"),
    ];
    for (path, body, status, kind, words) in expected {
        let answer = post(&daemon.socket, path, body).await;
        documented(&document, "POST", path, &answer);
        if status != 200 {
            let detail = answer.problem(status, kind);
            assert!(detail.contains(words), "{body}: {detail}");
        }
    }
    for (header, words) in [(("Content-Type", "text/plain"), "text/plain"), (("Accept", "*/*"), "missing")] {
        let answer = ask(connect(&daemon.socket).await, &request("POST", "/v1/plan", &[header], b"{}")).await;
        documented(&document, "POST", "/v1/plan", &answer);
        assert!(answer.problem(415, "type").contains(words), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_command_given_again_acts_once() {
    let daemon = daemon(Limits::default()).await;
    let first = post(&daemon.socket, "/v1/commands", COMMAND).await.json();
    let again = post(&daemon.socket, "/v1/commands", COMMAND).await.json();
    assert_eq!((&first["replayed"], &again["replayed"]), (&json!(false), &json!(true)));
    assert_eq!((&first["creates"], &again["at_ms"]), (&json!(["web-3"]), &first["at_ms"]));
    assert_eq!(get(&daemon.socket, "/v1/status").await.json()["generation"], 2);
}

#[tokio::test]
async fn what_is_not_in_the_table_is_not_there() {
    let daemon = daemon(Limits::default()).await;
    let document = served(&daemon).await;
    for target in
        ["/v1", "/v1/", "/v2/status", "/v1/status/", "//v1/status", "/v1/nodes/", "/v1/nodes/a/b", "/v1/../v1/status"]
    {
        assert!(get(&daemon.socket, target).await.problem(404, "not-found").contains(target), "{target}");
    }
    for (path, methods) in document["paths"].as_object().unwrap() {
        let target = example(path);
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"] {
            if methods.get(method.to_lowercase()).is_some() {
                continue;
            }
            let answer = ask(connect(&daemon.socket).await, &request(method, &target, &[], b"")).await;
            documented_method(&document, path, &answer);
            let allow: BTreeSet<&str> = answer.header("allow").unwrap().split(',').collect();
            let known: BTreeSet<String> =
                methods.as_object().unwrap().keys().map(|known| known.to_uppercase()).collect();
            assert!(known.iter().all(|known| allow.contains(known.as_str())), "{method} {target}: {allow:?}");
        }
    }
}

fn documented_method(document: &Value, path: &str, answer: &Answer) {
    answer.problem(405, "method");
    let any = document["paths"][path].as_object().unwrap().values().next().unwrap();
    assert!(any["responses"]["405"].is_object(), "{path}");
}

#[test]
fn the_document_is_whole() {
    let document = api::document();
    assert_eq!(document["openapi"], "3.1.1");
    let mut ids = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{path}: {}", operation["operationId"]);
            assert!(!operation["summary"].as_str().unwrap().is_empty(), "{path}");
        }
    }
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 100);
    for reference in references {
        assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference}");
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(jsonschema::draft202012::meta::is_valid(schema), "{name}: {schema}");
        validator(&document, schema);
    }
}

/// A route that is made elsewhere would be missing from the document.
#[test]
fn routes_are_made_from_the_table_only() {
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&src).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with("dashboard") || !name.ends_with(".rs") {
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).unwrap();
        found.extend(
            text.lines().filter(|line| line.contains(".route(")).map(|line| format!("{name}: {}", line.trim())),
        );
    }
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("routes.rs"), "{found:#?}");
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            references.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| collect(field, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}
