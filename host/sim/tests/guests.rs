//! Deciders that are wrong in ways of their own: what is found, what is said, and that nothing panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use decider::{HoldKind, Plan, Snapshot, Verb};
use sim::{Campaign, Decide, Outcome};

/// The first failing seed of a hundred, played again with a trace.
fn broken_by(wrong: fn(&Snapshot, &mut Plan)) -> Option<Outcome> {
    let decider = move || -> Box<Decide<'static>> {
        Box::new(move |snapshot| {
            let mut plan = decider::reconcile(snapshot);
            wrong(snapshot, &mut plan);
            Ok(plan)
        })
    };
    let mut setup = common::setup();
    setup.scrutiny = 1;
    let campaign = Campaign { setup, first: 0, seeds: 100, jobs: 2 };
    let (_, failing) = campaign.run(&decider, &|_| ()).unwrap();
    failing.map(|failing| sim::run_seed(&campaign.setup, failing.seed, &mut *decider(), true).unwrap())
}

fn said(outcome: &Outcome) -> (&'static str, String) {
    outcome.violation.clone().map(|violation| (violation.id, violation.what)).unwrap()
}

fn hold(plan: &mut Plan, at: usize, kind: HoldKind) {
    plan.decisions.verb[at] = Verb::Hold.code();
    plan.decisions.hold[at] = kind.code();
    plan.decisions.until[at] = 0;
}

/// Its columns cannot be read as rows.
#[test]
fn columns_of_unequal_lengths_are_a_violation_and_no_panic() {
    let outcome = broken_by(|_, plan| plan.decisions.rule.truncate(1)).unwrap();
    let (_, what) = said(&outcome);
    assert!(what.starts_with("the plan is refused"), "{what}");
}

/// All is well from one o'clock to midnight, and no simulation begins before noon.
#[test]
fn a_decision_that_hangs_on_the_time_of_day_is_found() {
    let outcome = broken_by(|snapshot, plan| {
        if snapshot.now_ms % 86_400_000 < 3_600_000 {
            for at in 0..plan.decisions.len() {
                if plan.decisions.hold[at] == HoldKind::Steady.code() {
                    hold(plan, at, HoldKind::Observation);
                }
            }
        }
    });
    let (id, what) = said(&outcome.unwrap());
    assert_eq!(id, "S11", "{what}");
    assert!(what.contains("nothing changed and nothing due"), "{what}");
}

/// Nothing happens to the fleet, but the host would never sleep.
#[test]
fn a_wake_up_that_is_always_past_is_found() {
    let outcome = broken_by(|snapshot, plan| plan.wake_at_ms = snapshot.now_ms - 1).unwrap();
    let (id, what) = said(&outcome);
    assert_eq!(id, "L2", "{what}");
    assert!(what.contains("wake-at-ms"), "{what}");
}

#[test]
fn what_is_decided_by_the_place_in_the_list_is_told_in_words() {
    let outcome = broken_by(|_, plan| {
        for at in 1..plan.decisions.len() {
            if plan.decisions.verb[at] == Verb::CreateLease.code() {
                hold(plan, at, HoldKind::Steady);
            }
        }
    });
    let (id, what) = said(&outcome.unwrap());
    assert_eq!(id, "S12", "{what}");
    assert!(what.contains("alone, without the ") && what.contains(" others, create-lease (R12)"), "{what}");
}

/// What shows only in the long run is a test that waits for it.
#[test]
fn a_fleet_that_never_settles_is_a_scenario_that_waits_for_it() {
    let outcome = broken_by(|_, plan| {
        for at in 0..plan.decisions.len() {
            if plan.decisions.verb[at] == Verb::DestroyLease.code() {
                hold(plan, at, HoldKind::Steady);
            }
        }
    })
    .unwrap();
    let (id, what) = said(&outcome);
    assert_eq!(id, "L4", "{what}");
    let end: Vec<&str> = outcome.scenario.lines().rev().take(2).collect();
    assert_eq!(end[0], "expect no violation");
    assert!(end[1].starts_with("settles within "), "{}", outcome.scenario);
}
