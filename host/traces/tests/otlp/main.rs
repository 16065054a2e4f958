//! Spans arrive at a collector, with their attributes, and nobody waits for one that is gone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod collector;
mod protobuf;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use collector::Collector;
use engine::id::{AttemptId, ExternalKey, OperationId};
use engine::io::{Operation, Request};
use tracing_subscriber::layer::SubscriberExt;

fn destroy(sequence: u32) -> Operation {
    let attempt = AttemptId(7);
    Operation {
        id: OperationId { attempt, sequence: sequence.into() },
        key: ExternalKey { run: "demo".into(), slot: "web-0".into(), attempt },
        provider: "cloud".into(),
        request: Request::DestroyLease { lease: "L7".into() },
        deadline_ms: 60_000,
    }
}

fn attributes(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn passes_operations_and_commands_arrive_with_their_attributes() {
    let collector = Collector::start();
    let (exporter, layer) = traces::exporter(&collector.url()).unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        traces::command("01ARZ", "kill").in_scope(|| {});
        let pass = traces::pass(42, 3);
        pass.in_scope(|| {
            let good = traces::operation(&destroy(5));
            traces::ended(&good, &Ok::<(), &str>(()));
            let bad = traces::operation(&destroy(6));
            traces::ended(&bad, &Err::<(), &str>("refused: no permission"));
            drop(traces::operation(&destroy(7)));
        });
        // Below INFO nothing is sent.
        tracing::debug_span!("detail").in_scope(|| {});
    });
    // What is left is sent at the end.
    drop(exporter);

    let requests = collector.stop();
    assert!(!requests.is_empty(), "nothing arrived");
    for request in &requests {
        assert_eq!(request.line, "POST /v1/traces HTTP/1.1");
        assert_eq!(request.headers.get("content-type").map(String::as_str), Some("application/x-protobuf"));
    }
    let batches: Vec<_> = requests.iter().flat_map(|request| protobuf::batches(&request.body)).collect();
    for batch in &batches {
        assert_eq!(batch.resource.get("service.name").map(String::as_str), Some("homeostat"));
    }
    let spans: Vec<_> = batches.into_iter().flat_map(|batch| batch.spans).collect();
    let mut names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["command", "operation", "operation", "operation", "pass"]);
    let one = |name: &str, key: &str, value: &str| {
        let found = spans.iter().find(|s| s.name == name && s.attributes.get(key).is_some_and(|held| held == value));
        found.unwrap_or_else(|| panic!("no {name} with {key} {value}: {spans:#?}"))
    };
    let holds = |span: &protobuf::Span, wanted: &[(&str, &str)]| {
        for (key, value) in attributes(wanted) {
            assert_eq!(span.attributes.get(&key), Some(&value), "{key} of {span:#?}");
        }
    };
    holds(one("command", "id", "01ARZ"), &[("command", "kill")]);
    let pass = one("pass", "call", "42");
    holds(pass, &[("nodes", "3")]);
    assert!(pass.parent.is_empty(), "a pass is part of nothing");
    let good = one("operation", "id", "a7.5");
    holds(good, &[("kind", "destroy-lease"), ("node", "web-0"), ("backend", "cloud"), ("outcome", "done")]);
    holds(one("operation", "id", "a7.6"), &[("outcome", "refused: no permission")]);
    let given_up = one("operation", "id", "a7.7");
    assert_eq!(given_up.attributes.get("outcome"), None, "one that is given up says nothing");
    for span in [good, given_up] {
        assert_eq!((&span.parent, &span.trace), (&pass.id, &pass.trace), "part of its pass");
        assert!(span.end_ns >= span.start_ns && span.start_ns > 0);
    }
}

#[test]
fn a_collector_that_is_gone_holds_nobody_up() {
    // A port of the system's, at which nobody listens, and which no other test gets.
    let (exporter, layer) = traces::exporter("http://127.0.0.1:1/").unwrap();
    let began = Instant::now();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        for call in 0..10_000 {
            traces::pass(call, 3).in_scope(|| {});
        }
    });
    drop(exporter);
    // It answers nothing at all, so a wait would be one for a time-out.
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

/// It takes the connection and never answers: its time-out is not waited for.
#[test]
fn a_collector_that_hangs_delays_the_end_by_a_second() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (exporter, layer) = traces::exporter(&url).unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        (0..100).for_each(|call| traces::pass(call, 3).in_scope(|| {}));
    });
    let began = Instant::now();
    drop(exporter);
    // The time-out is 10 s.
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}

#[test]
fn what_is_no_url_is_refused_by_name() {
    let refused = traces::exporter::<tracing_subscriber::Registry>("no url").err().expect("refused").to_string();
    assert!(refused.starts_with("no url: "), "{refused}");
}
