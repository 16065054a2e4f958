//! `examples/snapshot.json`, for authors of deciders to start from: a fleet with something to decide for each node.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use decider::{Snapshot, Verb};
use engine::io::{Fault, Input, Observation};
use engine::policy::Policy;
use tests::build::{driver, shape, template};
use tests::session::{Session, natural};

fn fleet() -> Snapshot {
    let mut s = Session::new(driver(Policy::default()).unwrap());
    s.now_ms = 1_000_000;
    s.feed(Input::Desired(shape(1, &[("web", 3, template("fake", "v1"))])));
    s.bring_up();
    let dead = s.attempt("web-2").unwrap();
    s.feed(Input::Observed { attempt: dead, observation: Observation::Closed { exit: Some("exit status 1".into()) } });
    s.slow = true;
    for operation in s.in_flight() {
        s.feed(Input::Completed { id: operation.id, result: Ok(natural(&operation)) });
    }
    s.slow = false;
    s.answer();
    s.feed(Input::Desired(shape(2, &[("web", 3, template("fake", "v1")), ("db", 1, template("fake", "v1"))])));
    let create = s.in_flight().into_iter().find(|operation| operation.key.slot == "db-0").unwrap();
    s.feed(Input::Completed { id: create.id, result: Err(Fault::retryable("no capacity")) });
    s.now_ms += 5_000;
    // Nobody has decided anything about this one yet.
    s.slow = true;
    s.feed(Input::Desired(shape(3, &[("web", 2, template("fake", "v2")), ("db", 2, template("fake", "v1"))])));
    s.driver.whole_snapshot()
}

/// `BLESS=1 cargo test --test snapshot_example` writes it.
#[test]
fn the_example_snapshot_is_what_the_engine_makes_and_can_be_decided() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/snapshot.json");
    let made = fleet();
    let text = format!("{}\n", serde_json::to_string_pretty(&made).unwrap());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let read: Snapshot = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(read, made, "BLESS=1 writes it");
    let plan = decider::reconcile(&read);
    let verbs: Vec<_> = plan.decisions.verb.iter().map(|code| Verb::from_code(*code).unwrap().label()).collect();
    assert_eq!(verbs, ["begin-delete", "begin-delete", "reap", "create-lease", "insert"]);
}
