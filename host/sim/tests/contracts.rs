//! What a decider of another contract is shown beside the one in force is what it would be asked if it were in force.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::sync::Arc;

use decider::{Snapshot, marks, v1_0};
use engine::driver::Driver;
use engine::io::{DeciderIdentity, Input, Output};
use journal::{Against, Leaning, Reader, Step, Walk, replay};
use sim::{Which, record};

fn of_contract(version: &str) -> DeciderIdentity {
    DeciderIdentity { contract: version.into(), ..DeciderIdentity::native() }
}

/// What the driver asks once this one is in force.
fn in_force(mut driver: Driver, other: &DeciderIdentity) -> Arc<Snapshot> {
    let now = driver.now_ms();
    driver.handle(Input::DeciderChanged(other.clone()), now).unwrap();
    let outputs = std::iter::from_fn(|| driver.poll_output());
    outputs
        .filter_map(|output| match output {
            Output::Decide { snapshot, .. } => Some(snapshot),
            _ => None,
        })
        .last()
        .unwrap()
}

#[derive(Debug, Default)]
struct Seen {
    passes: u64,
    differ: u64,
    budgets: u64,
    /// Surge slots, vacant and held, in the snapshot of contract 1.1.
    vacant: u64,
    held: u64,
}

/// Walks journals of runs under one contract, and compares each whole pass as the other one is shown it.
fn walk(own: &str, other: &str) -> Seen {
    let (own, other) = (of_contract(own), of_contract(other));
    let mut setup = common::setup();
    setup.identity = own.clone();
    let mut decide = common::native();
    let mut seen = Seen::default();
    let description = decider::Description { contract: own.contract.clone(), ..decider::describe() };
    for seed in 0..300 {
        let (_, bytes) = record(&setup, Which::Seed(seed), &description, &mut *decide).unwrap();
        let mut reader = Reader::new(bytes.as_slice());
        let mut walk = Walk::new();
        walk.also_show(vec![other.clone()]);
        let mut expected = None;
        while let Some(line) = reader.next_line().unwrap() {
            let before = walk.driver().map(|driver| (driver.is_between_passes(), driver.stats().passes));
            let step = walk.follow(&line).unwrap();
            if let Step::Answered { asked: Some(asked), .. } = step {
                // Runs put another decider in force, too.
                if asked.contract != own.contract {
                    expected = None;
                    continue;
                }
                assert_eq!(asked.shown_to(&own), Some(&asked.snapshot), "seed {seed}, record {}", line.seq);
                let shown = asked.shown_to(&other).unwrap();
                if let Some((call, expected)) = expected.take().filter(|(call, _)| *call == asked.call) {
                    let at = format!("seed {seed}, call {call}, asked before record {}", line.seq);
                    match other.sees_rollouts() {
                        true => assert_eq!(shown, &expected, "{at}"),
                        false => assert_eq!(v1_0::Snapshot::from(&**shown), v1_0::Snapshot::from(&*expected), "{at}"),
                    }
                    seen.passes += 1;
                    seen.differ += u64::from(*shown != asked.snapshot);
                    let later = if own.sees_rollouts() { &asked.snapshot } else { shown };
                    seen.budgets += u64::from(later.groups.iter().any(|group| group.max_unavailable.is_some()));
                    let surge = later.nodes.rows().filter(|row| row.marks & marks::SURGE != 0);
                    for row in surge {
                        *(if row.attempt == 0 { &mut seen.vacant } else { &mut seen.held }) += 1;
                    }
                }
            }
            let call = walk.outputs().iter().find_map(|output| match output {
                Output::Decide { call, .. } => Some(*call),
                _ => None,
            });
            let Some(call) = call else { continue };
            let driver = walk.driver().unwrap();
            let begins = before.is_some_and(|(between, passes)| between || driver.stats().passes > passes);
            // A decider that comes into force begins a pass, and tries what failed under the one before again.
            if begins
                && *driver.decider().contract == *own.contract
                && driver.state().slots.iter().all(|slot| slot.quarantine.is_none())
            {
                expected = Some((call, in_force(driver.clone(), &other)));
            }
        }
    }
    seen
}

#[test]
fn a_later_contract_is_shown_what_it_would_be() {
    let seen = walk("1.0.0", "1.1.0");
    assert!(seen.passes > 2_000 && seen.differ > 1_000 && seen.budgets > 500, "{seen:?}");
    assert!(seen.vacant > 5, "{seen:?}");
}

#[test]
fn an_earlier_contract_is_shown_what_it_would_be() {
    let seen = walk("1.1.0", "1.0.0");
    assert!(seen.passes > 2_000 && seen.differ > 1_000 && seen.budgets > 500, "{seen:?}");
    assert!(seen.vacant > 5 && seen.held > 50, "{seen:?}");
}

#[test]
fn a_replay_by_another_contract_is_compared_as_that_contract_shows_it() {
    let (own, other) = (of_contract("1.0.0"), of_contract("1.1.0"));
    let mut setup = common::setup();
    setup.identity = own.clone();
    let description = decider::Description { contract: own.contract.clone(), ..decider::describe() };
    let mut kinds = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let (_, bytes) = record(&setup, Which::Seed(seed), &description, &mut *common::native()).unwrap();
        let against = Against::Other(DeciderIdentity { digest: "other".into(), ..other.clone() });
        let ask = |_: &str, shown: &Snapshot| Ok(decider::reconcile(shown));
        let found = replay(&mut Reader::new(bytes.as_slice()), &against, ask).unwrap().contrast;
        assert_eq!(found.other.failures, found.recorded.failures, "each answer is valid for what was shown");
        kinds.extend(found.groups().into_iter().map(|group| (group.recorded, group.other, group.leaning)));
    }
    let has = |recorded: &str, other: &str, leaning| {
        assert!(kinds.contains(&(recorded.into(), other.into(), leaning)), "{recorded} -> {other}: {kinds:#?}");
    };
    has("R4 begin-delete", "R19 hold", Leaning::FewerDestroys);
    has("not shown by its contract", "R0 insert", Leaning::MoreCreates);
}

#[test]
fn nobody_is_shown_what_nobody_asked_for() {
    let setup = common::setup();
    let (_, bytes) = record(&setup, Which::Seed(3), &decider::describe(), &mut *common::native()).unwrap();
    let mut reader = Reader::new(bytes.as_slice());
    let mut walk = Walk::new();
    let mut answered = 0;
    while let Some(line) = reader.next_line().unwrap() {
        if let Step::Answered { asked: Some(asked), .. } = walk.follow(&line).unwrap() {
            assert_eq!(asked.shown_to(&of_contract("1.0.4")), None);
            answered += 1;
        }
        assert_eq!(walk.driver().and_then(Driver::asked_otherwise), None);
    }
    assert!(answered > 10);
}
