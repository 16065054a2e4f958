//! A simulated run as a journal: sound, the same run as without one, and decided again bit for bit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use decider::describe;
use journal::{Against, Entry, Reader, RecordedInput, Replay, SIMULATED, replay, verify};
use sim::deciders::Wrong;
use sim::{Decide, OTHER, Which, record, renumber, run_seed, shrink};

fn again(journal: &[u8], decide: &mut Decide<'_>) -> Replay {
    let ask = |digest: &str, snapshot: &decider::Snapshot| {
        let mut plan = decide(snapshot)?;
        if digest.ends_with(OTHER) {
            renumber(&mut plan, describe().rules.len());
        }
        Ok(plan)
    };
    replay(&mut Reader::new(journal), &Against::Recorded, ask).unwrap()
}

#[test]
fn every_seed_replays_bit_for_bit() {
    let setup = common::setup();
    let mut decide = common::native();
    let (mut lost, mut restarted, mut simulated, mut failures) = (0, 0, 0, 0);
    let mut orders = std::collections::BTreeMap::new();
    for seed in 0..150 {
        let (outcome, bytes) = record(&setup, Which::Seed(seed), &describe(), &mut *decide).unwrap();
        assert_eq!(outcome, run_seed(&setup, seed, &mut *decide, true).unwrap(), "seed {seed}");
        let verdict = verify(&mut Reader::new(bytes.as_slice())).unwrap();
        assert!(verdict.ends_well(), "seed {seed}: {:?}", outcome.violation);
        lost += verdict.segments.len() - 1;
        let found = again(&bytes, &mut *decide);
        assert!(found.contrast.is_same(), "seed {seed}: {:#?}", found.contrast.differences.first());
        assert_eq!((found.unrecorded, found.contrast.unrepeatable), (0, 0), "seed {seed}");
        simulated += found.simulated_answers;
        let mut reader = Reader::new(bytes.as_slice());
        while let Some(line) = reader.next_line().unwrap() {
            match &line.entry {
                Entry::Input { of: RecordedInput::Restarted, .. } => restarted += 1,
                Entry::Input { of: RecordedInput::Command(command), .. } => {
                    *orders.entry(command.label()).or_insert(0) += 1;
                }
                Entry::Pass { decider, answer: journal::Answer::Failure(_), .. } => {
                    // An answer to no call in flight names nobody.
                    assert!(
                        [SIMULATED, ""].contains(&decider.as_str()),
                        "seed {seed}: the native decider does not fail"
                    );
                    failures += 1;
                }
                _ => {}
            }
        }
    }
    // Otherwise it shows little.
    assert!(lost > 5 && restarted > 20, "{lost} {restarted}");
    assert!(failures > 20 && simulated > failures, "{failures} {simulated}");
    assert_eq!(orders.len(), 9, "every kind of order is in them: {orders:?}");
}

#[test]
fn a_shrunk_violation_is_a_journal_that_breaks_off_and_replays() {
    let setup = common::setup();
    let mut decide: Box<Decide<'static>> = Box::new(|snapshot| Ok(Wrong::IgnoresBackoff.decide(snapshot)));
    let failing = (0..500).find_map(|seed| {
        let outcome = run_seed(&setup, seed, &mut *decide, false).unwrap();
        outcome.violation.clone().map(|violation| (outcome, violation))
    });
    let (outcome, violation) = failing.unwrap();
    let mut runs = 0;
    let mut more = || {
        runs += 1;
        runs < 2_000
    };
    let shrunk = shrink(&setup, &outcome.choices, violation.id, &mut *decide, &mut more).unwrap();
    let which = Which::Choices(shrunk.choices.clone());
    let (recorded, bytes) = record(&setup, which.clone(), &describe(), &mut *decide).unwrap();
    assert_eq!(recorded, shrunk.outcome);
    assert!(!verify(&mut Reader::new(bytes.as_slice())).unwrap().ends_well());
    assert!(again(&bytes, &mut *decide).contrast.is_same());
    // The decider as it should be answers otherwise, and a second recording is the same bytes.
    assert!(!again(&bytes, &mut *common::native()).contrast.is_same());
    assert_eq!(record(&setup, which, &describe(), &mut *decide).unwrap().1, bytes);
}
