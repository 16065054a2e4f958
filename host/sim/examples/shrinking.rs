//! How short the traces get: every mutation's first failing seed, shrunk for ten seconds at most. `shrinking [SECONDS]`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::error::Error;
use std::time::{Duration, Instant};

use engine::mutation::Mutation;
use sim::deciders::Wrong;
use sim::{Decide, run_seed, shrink};

fn main() -> Result<(), Box<dyn Error>> {
    let limit = Duration::from_secs(std::env::args().nth(1).map_or(Ok(10), |text| text.parse())?);
    let only = std::env::args().nth(2);
    let mut sizes = Vec::new();
    for mutation in Mutation::ALL {
        if only.as_ref().is_some_and(|only| *only != format!("{mutation:?}")) {
            continue;
        }
        let mut setup = common::setup();
        setup.mutation = Some(*mutation);
        setup.scrutiny = 4;
        let mut decide: Box<Decide<'static>> = match Wrong::of(*mutation) {
            Some(wrong) => Box::new(move |snapshot| Ok(wrong.decide(snapshot))),
            None => common::native(),
        };
        let mut found = None;
        for seed in 0..6_000 {
            let outcome = run_seed(&setup, seed, &mut *decide, false)?;
            if let Some(violation) = outcome.violation {
                found = Some((seed, violation.id, outcome.choices));
                break;
            }
        }
        let Some((seed, id, choices)) = found else {
            println!("{mutation:?}: not caught");
            continue;
        };
        let began = Instant::now();
        let shrunk = shrink(&setup, &choices, id, &mut *decide, &mut || began.elapsed() < limit)?;
        let (events, left) = (shrunk.outcome.events, shrunk.choices.len());
        println!(
            "{events:4} events, {left:5} of {:5} choices, {:6} runs, {:5.2} s: {mutation:?} seed {seed} {id}",
            choices.len(),
            shrunk.runs,
            began.elapsed().as_secs_f64()
        );
        if only.is_some() {
            println!("{}", shrunk.outcome.trace.join("\n"));
        }
        sizes.push(events);
    }
    sizes.sort_unstable();
    println!("median {:?}, largest {:?}", sizes.get(sizes.len() / 2), sizes.last());
    Ok(())
}
