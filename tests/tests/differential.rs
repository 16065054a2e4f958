//! S11, S12: the component and the native decider are one function, byte for byte, on snapshots of every kind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;

use decider::{Plan, Snapshot};
use homeostat::sandbox::{Limits, LoadedDecider, Sandbox};
use tests::snapshots::{Random, plausible, wild};

fn component() -> LoadedDecider {
    Sandbox::new(Limits::default()).unwrap().built_in().unwrap()
}

fn bytes(plan: &Plan) -> Vec<u8> {
    serde_json::to_vec(plan).unwrap()
}

fn compare(component: &LoadedDecider, snapshot: &Snapshot, seed: u64, rules: &mut BTreeSet<u8>) {
    let native = decider::reconcile(snapshot);
    let plan = component.reconcile(snapshot).unwrap();
    assert!(
        bytes(&native) == bytes(&plan),
        "seed {seed}: the two decide differently on {}",
        serde_json::to_string(snapshot).unwrap()
    );
    rules.extend(plan.decisions.rule);
}

#[test]
fn thousands_of_wild_snapshots_get_the_same_plan() {
    let component = component();
    let mut rules = BTreeSet::new();
    for seed in 0..4_000 {
        let mut random = Random::new(seed);
        let rows = random.below(40) as usize;
        compare(&component, &wild(&mut random, rows), seed, &mut rules);
    }
    let described = component.description().rules.len();
    assert!(rules.len() >= described - 1, "only rules {rules:?} of {described} were met: the generator is too tame");
}

#[test]
fn large_plausible_snapshots_get_the_same_plan() {
    let component = component();
    for (seed, rows) in [(1, 0), (2, 1), (3, 1_000), (4, 65_537), (5, 200_000)] {
        compare(&component, &plausible(&mut Random::new(seed), rows), seed, &mut BTreeSet::new());
    }
}

#[test]
fn the_component_describes_itself_as_the_native_decider_does() {
    assert_eq!(component().description(), &decider::describe());
}
