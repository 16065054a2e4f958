//! Every deliberate defect of `engine::mutation` is caught by some seed, and named as a property that it breaks. A mutation
//! that nothing catches fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../../host/sim/tests/common/mod.rs"]
mod common;

use engine::mutation::Mutation;
use sim::deciders::Wrong;
use sim::{Decide, run_seed};

const SEEDS: u64 = 6_000;

/// The seed that catches it, and what it is caught as.
fn caught(mutation: Mutation) -> Option<(u64, &'static str, String)> {
    let mut setup = common::setup();
    setup.mutation = Some(mutation);
    setup.scrutiny = 4;
    let mut decide: Box<Decide<'static>> = match Wrong::of(mutation) {
        Some(wrong) => Box::new(move |snapshot| Ok(wrong.decide(snapshot))),
        None => common::native(),
    };
    (0..SEEDS).find_map(|seed| {
        let violation = run_seed(&setup, seed, &mut *decide, false).unwrap().violation?;
        Some((seed, violation.id, violation.what))
    })
}

#[test]
fn every_mutation_is_caught() {
    assert!(Mutation::ALL.len() >= 50, "{} mutations", Mutation::ALL.len());
    let mut wrong = Vec::new();
    for mutation in Mutation::ALL {
        match caught(*mutation) {
            None => wrong.push(format!("{mutation:?}: not caught in {SEEDS} seeds: {}", mutation.what())),
            Some((seed, id, what)) if !mutation.breaks().contains(&id) => {
                wrong.push(format!("{mutation:?}: seed {seed} calls it {id} ({what})"));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
