//! Random histories, recorded: they replay to the same plans, damage is detected, and a torn tail is cut anywhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use decider::Snapshot;
use journal::{Against, Reader, Replay, replay, verify};
use tests::Recording;
use tests::build::config;
use tests::random::{history, poisoned, policy};
use tests::snapshots::Random;

fn recorded(seed: u64) -> Vec<u8> {
    let recording = Recording::of(&config(policy())).unwrap();
    history(seed, |session| session.record(recording.clone())).unwrap();
    recording.ended()
}

fn again(seed: u64, bytes: &[u8]) -> Replay {
    let ask = |_: &str, snapshot: &Snapshot| poisoned(seed, snapshot);
    replay(&mut Reader::new(bytes), &Against::Recorded, ask).unwrap_or_else(|error| panic!("seed {seed}: {error}"))
}

#[test]
fn random_histories_replay_to_the_same_plans() {
    let (mut passes, mut failures, mut dispatches) = (0, 0, 0);
    for seed in 0..200 {
        let bytes = recorded(seed);
        assert!(verify(&mut Reader::new(bytes.as_slice())).unwrap().ends_well());
        let found = again(seed, &bytes);
        assert!(found.contrast.is_same(), "seed {seed}: {:#?}", found.contrast.differences.first());
        assert_eq!((found.unrecorded, found.torn_bytes), (0, 0), "seed {seed}");
        passes += found.contrast.passes;
        failures += found.contrast.recorded.failures;
        dispatches += found.dispatches;
    }
    assert!(
        passes > 10_000 && failures > 500 && dispatches > 2_000,
        "{passes} passes, {failures} failures, {dispatches} dispatches"
    );
}

#[test]
fn a_decider_that_does_not_fail_decides_otherwise_where_it_failed_and_nowhere_else() {
    let mut healed = 0;
    for seed in 0..30 {
        let bytes = recorded(seed);
        let ask = |_: &str, snapshot: &Snapshot| Ok(decider::reconcile(snapshot));
        let found = replay(&mut Reader::new(bytes.as_slice()), &Against::Recorded, ask).unwrap().contrast;
        assert_eq!(found.differing_decisions, 0, "seed {seed}");
        assert_eq!(found.differing_passes, found.recorded.failures, "seed {seed}");
        healed += found.differing_passes;
    }
    assert!(healed > 50, "{healed}");
}

#[test]
fn random_damage_is_detected_and_random_tears_are_cut() {
    let mut random = Random::new(7);
    for seed in 0..20 {
        let bytes = recorded(seed);
        for _ in 0..100 {
            let mut damaged = bytes.clone();
            let at = random.below(bytes.len() as u64) as usize;
            damaged[at] ^= 1 + random.below(255) as u8;
            let sound = verify(&mut Reader::new(damaged.as_slice())).is_ok_and(|verdict| verdict.ends_well());
            assert!(!sound, "seed {seed}: byte {at} was changed and nobody noticed");
        }
        let first = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for _ in 0..10 {
            let cut = first + random.below((bytes.len() - first) as u64) as usize;
            let torn = verify(&mut Reader::new(&bytes[..cut])).unwrap();
            let whole = &bytes[..torn.whole_bytes as usize];
            assert!(again(seed, whole).contrast.is_same());
            assert_eq!(torn.records, verify(&mut Reader::new(whole)).unwrap().records);
        }
    }
}
