//! Each safety property has a checker that a deliberately broken engine trips. A mutation that nothing catches fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;

use decider::Stage;
use engine::id::{AttemptId, ExternalKey};
use engine::invariants::{Violation, check_resources, check_same_place, check_same_plan};
use engine::io::{Fault, Input, Listing, Observation, Resource};
use engine::mutation::Mutation;
use engine::policy::Policy;
use tests::build::{driver, shape, template};
use tests::session::{Session, natural};

fn session(mutation: Option<Mutation>) -> Session {
    let mut driver = driver(Policy::default()).unwrap();
    if let Some(mutation) = mutation {
        driver.mutate(mutation);
    }
    Session::new(driver)
}

/// A life with everything in it: up, a death, a failed create, doubt, drift, scale-down, listings, a late result.
fn life(mutation: Option<Mutation>) -> Session {
    let mut s = session(mutation);
    let (v1, v2) = (template("fake", "v1"), template("fake", "v2"));
    s.feed(Input::Desired(shape(1, &[("web", 3, v1.clone())])));
    s.bring_up();
    s.check_rest();
    // Listings: nothing, a retired attempt's late resource, another run's.
    s.feed(Input::Listed { provider: "fake".into(), listing: Listing { complete: true, resources: vec![] } });
    let label = |run: &str, slot: &str, attempt| ExternalKey {
        run: run.into(),
        slot: slot.into(),
        attempt: AttemptId(attempt),
    };
    let resource = |lease: &str, key| Resource { lease: lease.into(), key: Some(key), template: None };
    let foreign = resource("L-theirs", label("other", "web-9", 900));
    s.feed(Input::Listed { provider: "fake".into(), listing: Listing { complete: true, resources: vec![foreign] } });
    // A ready node dies; its successor starts; a late result of the dead one arrives.
    let dead = s.attempt("web-1").unwrap();
    s.feed(Input::Observed { attempt: dead, observation: Observation::Closed { exit: Some("exit status 1".into()) } });
    drain(&mut s);
    s.wake();
    let late = engine::id::OperationId { attempt: dead, sequence: 1 };
    s.feed(Input::Completed {
        id: late,
        result: Ok(engine::io::Done::Leased { lease: "L-late".into(), adopted: false }),
    });
    s.bring_up();
    // A create in doubt, then the slot is not desired any more.
    s.feed(Input::Desired(shape(2, &[("web", 3, v1.clone()), ("db", 1, v1.clone())])));
    fail_first(&mut s, Fault::Ambiguous { reason: "reset".into() });
    s.feed(Input::Desired(shape(3, &[("web", 3, v1.clone())])));
    for _ in 0..20 {
        drain(&mut s);
        s.wake();
    }
    s.bring_up();
    // Drift of everything, with a destroy that fails once.
    s.feed(Input::Desired(shape(4, &[("web", 3, v2.clone())])));
    for _ in 0..3 {
        succeed_first(&mut s);
    }
    fail_first(&mut s, Fault::retryable("busy"));
    for _ in 0..40 {
        drain(&mut s);
        s.wake();
        s.bring_up();
    }
    s.feed(Input::Desired(shape(3, &[("web", 2, v2.clone())])));
    s.feed(Input::Desired(shape(6, &[("web", 1, v2)])));
    drain(&mut s);
    s
}

fn succeed_first(s: &mut Session) {
    if let Some(operation) = s.in_flight().first() {
        s.feed(Input::Completed { id: operation.id, result: Ok(natural(operation)) });
    }
}

fn fail_first(s: &mut Session, fault: Fault) {
    if let Some(operation) = s.in_flight().first() {
        s.feed(Input::Completed { id: operation.id, result: Err(fault) });
    }
}

/// Everything in flight succeeds, but no bootstrap joins by itself.
fn drain(s: &mut Session) {
    for _ in 0..200 {
        if s.in_flight().is_empty() {
            return;
        }
        succeed_first(s);
    }
}

fn ids(violations: &[Violation]) -> BTreeSet<&'static str> {
    violations.iter().map(|violation| violation.id).collect()
}

#[test]
fn the_unbroken_engine_violates_nothing() {
    let s = life(None);
    assert_eq!(s.violations, []);
    let settled: Vec<Stage> =
        s.driver.state().slots.iter().filter_map(|slot| Some(slot.node.as_ref()?.stage)).collect();
    assert_eq!(settled, [Stage::Dormant]);
}

#[test]
fn each_mutation_is_caught_by_the_checker_of_its_property() {
    let expected = [
        (Mutation::SubmitBeforeRecord, "S1"),
        (Mutation::DispatchTwice, "S2"),
        (Mutation::ReuseAttempt, "S3"),
        (Mutation::FoldSuperseded, "S4"),
        (Mutation::DestroyedTooEarly, "S5"),
        (Mutation::ForgetLease, "S6"),
        (Mutation::ForgetAmbiguous, "S7"),
        (Mutation::ReplaceBeforeCleanUp, "S8"),
        (Mutation::ScaleDownLowest, "S9"),
        (Mutation::AcceptOlderGeneration, "S10"),
        (Mutation::RestlessPass, "S11"),
        (Mutation::DecideByCompany, "S12"),
        (Mutation::BelieveAbsence, "S14"),
        (Mutation::ReapForeign, "S15"),
    ];
    for (mutation, id) in expected {
        let found = life(Some(mutation)).violations;
        assert!(ids(&found).contains(id), "{mutation:?} must break {id}; found {found:?}");
    }
}

/// S13: every result is delivered once, in one order or the other.
fn two_orders(mutation: Option<Mutation>) -> Vec<Violation> {
    let run = |reverse: bool| {
        let mut s = session(mutation);
        let mut answered = BTreeSet::new();
        s.feed(Input::Desired(shape(1, &[("web", 3, template("fake", "v1"))])));
        loop {
            let mut flying = s.in_flight();
            flying.retain(|operation| answered.insert(operation.id));
            if flying.is_empty() {
                return s;
            }
            if reverse {
                flying.reverse();
            }
            for operation in flying {
                s.feed(Input::Completed { id: operation.id, result: Ok(natural(&operation)) });
            }
        }
    };
    let (one, other) = (run(false), run(true));
    check_same_place(one.driver.state(), other.driver.state())
}

#[test]
fn the_order_of_independent_inputs_does_not_matter() {
    assert_eq!(two_orders(None), []);
    assert_eq!(ids(&two_orders(Some(Mutation::DropOvertaking))), BTreeSet::from(["S13"]));
}

#[test]
fn two_resources_under_one_key_are_seen() {
    let key = ExternalKey { run: "demo".into(), slot: "web-0".into(), attempt: AttemptId(1) };
    let resource = |lease: &str| Resource { lease: lease.into(), key: Some(key.clone()), template: None };
    assert_eq!(check_resources(&[resource("a")]), []);
    assert_eq!(ids(&check_resources(&[resource("a"), resource("b")])), BTreeSet::from(["S8"]));
}

#[test]
fn two_plans_that_differ_are_seen() {
    let s = life(None);
    let plan = decider::reconcile(&s.driver.whole_snapshot());
    let mut other = plan.clone();
    other.decisions.rule[0] ^= 1;
    assert_eq!(check_same_plan(&plan, &plan), []);
    assert_eq!(ids(&check_same_plan(&plan, &other)), BTreeSet::from(["S11"]));
}
