//! What a check must find, and what it must not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;

use decider::{Plan, Snapshot, Verb, reconcile};
use engine::io::{DeciderFailure, DeciderIdentity};
use model::{Check, Decide, Kind, Limit, Memo, Outcome, Scope, Verdict, Weaken, report};

fn native() -> DeciderIdentity {
    DeciderIdentity::native()
}

fn ladder(snapshot: &Snapshot) -> Result<Plan, DeciderFailure> {
    Ok(reconcile(snapshot))
}

fn run(scope: Scope, decide: &Decide<'_>, exact: bool, jobs: usize, most: u64) -> Outcome {
    let check = Check { scope, identity: native(), decide, exact, jobs, most, mutation: None };
    check.run(&mut |_| {}).unwrap()
}

fn check(scope: Scope) -> Outcome {
    run(scope, &ladder, false, 2, 10_000_000)
}

/// What asks for facts that contradict each other, or for a group that limits or holds something.
const NEVER: [&str; 6] = ["R17", "R18", "R19", "R20", "R21", "R22"];

#[track_caller]
fn holds(scope: Scope) -> Outcome {
    let outcome = check(scope);
    assert_eq!(outcome.verdict, Verdict::Holds, "{}", report::verdict(&scope, &outcome));
    // No scope has a budget, a circuit or a pause.
    let never = report::never_reached(&outcome);
    assert!(never.ends_with(&NEVER), "R17 is reached, or is not asked about: {never:?}");
    outcome
}

/// The text of a violation as it is committed. `BLESS=1` writes it anew.
#[track_caller]
fn shows(scope: Scope, name: &str) -> Outcome {
    let outcome = check(scope);
    let text = report::verdict(&scope, &outcome);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/paths").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{} is not as it was", path.display());
    outcome
}

fn broken(outcome: &Outcome) -> &model::Broken {
    match &outcome.verdict {
        Verdict::Broken(broken) => broken,
        other => panic!("{other:?}"),
    }
}

fn one(kind: Kind, faults: u8) -> Scope {
    Scope { nodes: 1, faults, kind, ..Scope::default() }
}

#[test]
fn one_slot_and_two_faults_hold() {
    for kind in Kind::ALL {
        let outcome = holds(one(kind, 2));
        assert_eq!(report::never_reached(&outcome), NEVER);
    }
}

#[test]
fn one_slot_and_four_faults_without_edits_hold() {
    let still = Scope { replacement: false, scaling: false, crashes: 0, ..one(Kind::Keyed, 4) };
    assert!(holds(still).settled > 1);
}

#[test]
fn two_slots_and_a_crash_hold() {
    for kind in Kind::ALL {
        let outcome = holds(Scope { kind, faults: 0, ..Scope::default() });
        assert!(outcome.progress.states > 50_000, "{}", outcome.progress.states);
    }
}

#[test]
fn the_result_does_not_depend_on_the_threads() {
    for scope in [one(Kind::Windowed, 1), Scope { faults: 0, kind: Kind::Windowed, ..Scope::default() }] {
        assert_eq!(run(scope, &ladder, false, 1, u64::MAX), run(scope, &ladder, false, 3, u64::MAX));
    }
    let weak = Scope { weaken: Some(Weaken::Sweep), ..one(Kind::Keyed, 1) };
    assert_eq!(run(weak, &ladder, false, 1, u64::MAX).verdict, run(weak, &ladder, false, 3, u64::MAX).verdict);
}

#[test]
fn a_limit_that_is_reached_is_said() {
    let outcome = run(one(Kind::Keyed, 2), &ladder, false, 2, 20_000);
    assert_eq!(outcome.verdict, Verdict::Unfinished(Limit::States));
    assert!(outcome.progress.waiting > 0);
}

/// With "list once, absent, create anew", a crash alone, without any other fault, doubles a resource.
#[test]
fn without_the_window_a_crash_alone_doubles_a_windowed_resource() {
    let weaken = Some(Weaken::WindowedSettle);
    let weak = Scope { weaken, replacement: false, scaling: false, ..one(Kind::Windowed, 0) };
    let outcome = shows(weak, "windowed-settle.txt");
    assert_eq!(broken(&outcome).violation.id, "S8");
    holds(Scope { weaken: None, ..weak });
    // Two slots and all edits find it as well; a keyed provider does not mind.
    let two = Scope { weaken, faults: 0, kind: Kind::Windowed, ..Scope::default() };
    assert_eq!(broken(&check(two)).violation.id, "S8");
    holds(Scope { kind: Kind::Keyed, ..weak });
}

/// Without the sweep of retired attempts, a create that lands late leaks.
#[test]
fn without_the_sweep_late_creates_leak() {
    let weak =
        Scope { weaken: Some(Weaken::Sweep), crashes: 0, scaling: false, replacement: false, ..one(Kind::Keyed, 3) };
    let outcome = shows(weak, "sweep.txt");
    assert_eq!(broken(&outcome).violation.id, "L3");
    assert!(broken(&outcome).never_settle > 100);
    holds(Scope { weaken: None, ..weak });
    let crash = shows(Scope { weaken: Some(Weaken::Sweep), ..one(Kind::Keyed, 0) }, "sweep-crash.txt");
    assert_eq!(broken(&crash).violation.id, "L3");
}

/// A decider whose plans are changed after the ladder has made them.
fn spoilt(spoil: impl Fn(&Snapshot, &mut Plan) + Sync, scope: Scope) -> Outcome {
    let decide = |snapshot: &Snapshot| {
        let mut plan = reconcile(snapshot);
        spoil(snapshot, &mut plan);
        Ok(plan)
    };
    let memo = Memo::new(&decide);
    let outcome = run(scope, &|snapshot| memo.decide(snapshot), true, 2, 10_000_000);
    assert!(!memo.is_empty());
    outcome
}

#[test]
fn a_broken_decider_is_found() {
    // It forgets a create in doubt.
    let skips = |_: &Snapshot, plan: &mut Plan| {
        let rules = &plan.decisions.rule;
        for at in (0..rules.len()).filter(|at| rules[*at] == 6).collect::<Vec<_>>() {
            plan.decisions.verb[at] = Verb::MarkDestroyed.code();
        }
    };
    assert_eq!(broken(&spoilt(skips, one(Kind::Keyed, 1))).violation.id, "S7");
    // It never starts again what has failed.
    let idle = |_: &Snapshot, plan: &mut Plan| {
        for verb in plan.decisions.verb.iter_mut().filter(|verb| **verb == Verb::Restart.code()) {
            *verb = Verb::Hold.code();
        }
        let held = plan.decisions.hold.iter_mut().zip(&plan.decisions.verb);
        held.filter(|(hold, verb)| **hold == 0 && **verb == 0).for_each(|(hold, _)| *hold = 4);
    };
    let outcome = spoilt(idle, one(Kind::Keyed, 1));
    assert_eq!(broken(&outcome).violation.id, "L4");
    assert!(broken(&outcome).never_settle > 0);
}

#[test]
fn the_ladder_as_somebody_elses_decider_holds_too() {
    let outcome = spoilt(|_, _| {}, one(Kind::Windowed, 1));
    assert_eq!(outcome.verdict, Verdict::Holds);
}

#[test]
fn nothing_is_no_scope() {
    for nodes in [0, 5] {
        let scope = Scope { nodes, ..Scope::default() };
        let check =
            Check { scope, identity: native(), decide: &ladder, exact: false, jobs: 1, most: 1, mutation: None };
        assert!(check.run(&mut |_| {}).is_err());
    }
}
