//! adopt-orphan and destroy-orphan.

use engine::id::{AttemptId, ExternalKey};
use engine::io::{Fault, Listing, Operation, Request, Resource};
use engine::shape::Template;
use std::sync::Arc;

use super::*;

fn key(slot: &str, attempt: u64) -> ExternalKey {
    ExternalKey { run: "test".into(), slot: slot.into(), attempt: AttemptId(attempt) }
}

fn list(s: &mut Session, resources: &[(&str, ExternalKey, Option<Arc<Template>>)]) -> Came {
    let resources = resources.iter().map(|(lease, key, template)| Resource {
        lease: (*lease).into(),
        key: Some(ExternalKey { run: s.driver.state().run.clone(), ..key.clone() }),
        template: template.clone(),
    });
    let listing = Listing { complete: true, resources: resources.collect() };
    let came = s.feed(Input::Listed { provider: "fake".into(), listing });
    clean(s);
    came
}

fn adopt(lease: &str) -> Command {
    Command::AdoptOrphan { provider: "fake".into(), lease: lease.into() }
}

fn destroy(lease: &str) -> Command {
    Command::DestroyOrphan { provider: "fake".into(), lease: lease.into() }
}

fn destroys(s: &Session) -> Vec<Operation> {
    let orphans = s.driver.state().orphans.values();
    let pending = orphans.filter_map(|orphan| orphan.destroying.as_ref()?.pending.as_ref());
    pending.map(|pending| pending.operation.clone()).collect()
}

/// A slot without a node, and an orphan with its label.
fn vacant() -> Session {
    let mut s = up(&[("web", 1)], Guards::default());
    order(&mut s, pause(None, Only::Create));
    order(&mut s, Command::Scale { group: "web".into(), count: 2 });
    list(&mut s, &[("L-stray", key("web-1", 40), Some(template("fake", "v1")))]);
    assert_eq!(s.driver.view().orphans[0].node, "web-1");
    s
}

#[test]
fn an_orphan_becomes_the_holder_of_its_slot() {
    let mut s = vacant();
    order(&mut s, adopt("L-stray"));
    assert_eq!(s.attempt("web-1"), Some(AttemptId(40)));
    assert!(s.driver.state().reserved_below > 40);
    run(&mut s);
    assert!(s.driver.is_converged(), "nothing had to be made");
    assert!(s.driver.view().orphans.is_empty());
    order(&mut s, resume(None, Only::Create));
    order(&mut s, Command::Kill { nodes: names(&["web-1"]) });
    run(&mut s);
    assert!(s.attempt("web-1").unwrap() > AttemptId(40));
    // It is ours now: a listing that lags shows a retired attempt.
    list(&mut s, &[("L-stray", key("web-1", 40), None)]);
    assert_eq!(s.driver.view().reaping.len(), 1);
}

#[test]
fn what_cannot_be_adopted_says_why() {
    let mut s = vacant();
    assert!(matches!(refused(&mut s, adopt("L-none")), CommandError::UnknownOrphan { .. }));
    let strays = [
        ("L-held", key("web-0", 41), None),
        ("L-nowhere", key("cache-0", 42), None),
        ("L-liar", key("web-1", u64::MAX), None),
        ("L-other", key("web-1", 1), None),
    ];
    list(&mut s, &strays);
    let said = refused(&mut s, adopt("L-held")).to_string();
    assert!(said.contains("web-0 is held by a1"), "{said}");
    let said = refused(&mut s, adopt("L-nowhere")).to_string();
    assert!(said.contains("no slot of the shape"), "{said}");
    assert!(matches!(refused(&mut s, adopt("L-liar")), CommandError::Exhausted { .. }));
    let said = refused(&mut s, adopt("L-other")).to_string();
    assert!(said.contains("a1 is an attempt of web-0"), "{said}");
}

#[test]
fn an_orphan_of_unknown_make_is_said_to_be_replaced() {
    let mut s = vacant();
    list(&mut s, &[("L-plain", key("web-1", 50), None)]);
    let (said, _) = order(&mut s, adopt("L-plain"));
    assert_eq!(said.replaces, ["web-1"]);
    order(&mut s, resume(None, Only::Create));
    run(&mut s);
    assert!(s.driver.is_converged());
    assert!(s.attempt("web-1").unwrap() > AttemptId(50));
}

#[test]
fn a_destroyed_orphan_is_an_operation_of_its_own() {
    let mut s = vacant();
    let (said, came) = order(&mut s, destroy("L-stray"));
    assert_eq!(said.destroys, ["L-stray"]);
    let operation = destroys(&s).remove(0);
    assert_eq!(operation.key.attempt, AttemptId(40));
    assert!(matches!(&operation.request, Request::DestroyLease { lease } if lease == "L-stray"));
    assert!(came.outputs.contains(&Output::Submit(operation.clone())));
    // While it is on its way, neither a listing without it nor one with it changes anything; nor a second order.
    list(&mut s, &[]);
    list(&mut s, &[("L-stray", key("web-1", 40), None)]);
    order(&mut s, destroy("L-stray"));
    assert_eq!(destroys(&s), std::slice::from_ref(&operation));
    assert!(matches!(refused(&mut s, adopt("L-stray")), CommandError::OrphanRefused { .. }));
    // A failure is retried with backoff, across a restart too.
    s.feed(Input::Completed { id: operation.id, result: Err(Fault::retryable("busy")) });
    assert!(destroys(&s).is_empty());
    s.wake();
    let again = destroys(&s).remove(0);
    assert!(again.id.sequence > operation.id.sequence);
    s.feed(Input::Restarted);
    s.wake();
    let third = destroys(&s).remove(0);
    let came = s.feed(Input::Completed { id: third.id, result: Ok(natural(&third)) });
    assert!(notices(&came).contains(&Notice::OrphanGone { provider: "fake".into(), lease: "L-stray".into() }));
    assert!(s.driver.view().orphans.is_empty());
    clean(&s);
    // No later attempt bears its key.
    order(&mut s, resume(None, Only::Create));
    run(&mut s);
    assert!(s.attempt("web-1").unwrap() > AttemptId(40));
}

#[test]
fn two_orphans_of_one_attempt_go_one_after_the_other() {
    let mut s = vacant();
    list(&mut s, &[("L-stray", key("web-1", 40), None), ("L-twin", key("web-1", 40), None)]);
    order(&mut s, destroy("L-stray"));
    order(&mut s, destroy("L-twin"));
    let first = destroys(&s);
    assert_eq!(first.len(), 1, "one at a time");
    s.feed(Input::Completed { id: first[0].id, result: Ok(natural(&first[0])) });
    let second = destroys(&s);
    assert_eq!(second.len(), 1);
    s.feed(Input::Completed { id: second[0].id, result: Ok(natural(&second[0])) });
    assert!(s.driver.view().orphans.is_empty());
    clean(&s);
}

#[test]
fn a_pause_holds_the_destroy_of_an_orphan() {
    let mut s = vacant();
    order(&mut s, pause(Some("web"), Only::Destroy));
    order(&mut s, destroy("L-stray"));
    assert!(destroys(&s).is_empty());
    rests(&mut s);
    order(&mut s, resume(Some("web"), Only::Destroy));
    assert_eq!(destroys(&s).len(), 1);
}

#[test]
fn the_orphans_of_an_earlier_checkpoint_are_read() {
    let s = vacant();
    let mut value: serde_json::Value = serde_json::from_slice(&s.driver.checkpoint().unwrap()).unwrap();
    value["schema"] = "homeostat/checkpoint/1".into();
    let state = &mut value["driver"]["state"];
    for field in ["retired", "pauses", "windows"] {
        state.as_object_mut().unwrap().remove(field);
    }
    let label = state["orphans"][0][1]["key"].clone();
    state["orphans"][0][1] = label;
    let driver = Driver::restore(&serde_json::to_vec(&value).unwrap()).unwrap();
    assert_eq!(driver.view().orphans[0].node, "web-1");
    assert!(driver.view().pauses.is_empty());
    value["schema"] = "homeostat/checkpoint/9".into();
    assert!(Driver::restore(&serde_json::to_vec(&value).unwrap()).is_err());
}
