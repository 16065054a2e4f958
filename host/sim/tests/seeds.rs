//! The simulator itself: one seed is one run, on any number of threads; the unbroken engine violates nothing; a wrong decider
//! is found, named and shrunk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use sim::deciders::Wrong;
use sim::{Campaign, Decide, FaultKind, Rates, SetupError, replay, run_seed, shrink};

#[test]
fn the_unbroken_engine_violates_nothing_and_everything_is_exercised() {
    let campaign = Campaign { setup: common::setup(), first: 0, seeds: 500, jobs: 2 };
    let (tally, failing) = campaign.run(&common::native, &|_| ()).unwrap();
    assert_eq!(failing, None);
    assert_eq!(tally.seeds, 500);
    assert_eq!(tally.faults_not_exercised(), [], "each fault is forced at least once");
    assert_eq!(tally.rules_not_exercised(), [17], "R17 is never reached");
}

#[test]
fn one_seed_is_one_run_and_its_choices_repeat_it() {
    let setup = common::setup();
    for seed in [3, 40, 77] {
        let one = run_seed(&setup, seed, &mut *common::native(), true).unwrap();
        let other = run_seed(&setup, seed, &mut *common::native(), true).unwrap();
        assert_eq!(one, other);
        let again = replay(&setup, one.choices.clone(), &mut *common::native(), true).unwrap();
        assert_eq!(one.trace, again.trace);
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let results = [1, 3].map(|jobs| {
        Campaign { setup: common::setup(), first: 100, seeds: 60, jobs }.run(&common::native, &|_| ()).unwrap()
    });
    assert_eq!(results[0], results[1]);
}

#[test]
fn nothing_is_no_test() {
    let campaign = Campaign { setup: common::setup(), first: 0, seeds: 0, jobs: 1 };
    assert_eq!(campaign.run(&common::native, &|_| ()).unwrap_err(), SetupError::NoSeeds);
    let mut setup = common::setup();
    setup.until_ms = 0;
    assert_eq!(run_seed(&setup, 1, &mut *common::native(), false).unwrap_err(), SetupError::NoTime);
}

#[test]
fn a_fault_with_rate_0_never_happens() {
    let mut setup = common::setup();
    setup.rates = Rates::none().with(FaultKind::Crash, 500);
    let campaign = Campaign { setup, first: 0, seeds: 100, jobs: 2 };
    let (tally, failing) = campaign.run(&common::native, &|_| ()).unwrap();
    assert_eq!(failing, None);
    for fault in FaultKind::ALL {
        assert_eq!(tally.faults[*fault as usize] > 0, *fault == FaultKind::Crash, "{}", fault.label());
    }
}

/// The four example deciders: the first failing seed names the property, and shrinks to a trace that a person reads.
#[test]
fn wrong_deciders_are_found_named_and_shrunk() {
    let mut sizes = Vec::new();
    for wrong in Wrong::EXAMPLES {
        let mut setup = common::setup();
        setup.scrutiny = 1;
        let decider = move || -> Box<Decide<'static>> { Box::new(move |snapshot| Ok(wrong.decide(snapshot))) };
        let campaign = Campaign { setup, first: 0, seeds: 400, jobs: 2 };
        let (_, failing) = campaign.run(&decider, &|_| ()).unwrap();
        let failing = failing.unwrap_or_else(|| panic!("{wrong:?} is not found"));
        let id = failing.outcome.violation.as_ref().unwrap().id;
        assert_eq!(id, wrong.breaks(), "{wrong:?}: {:?}", failing.outcome.violation);
        // Bounded by work, not by time: the outcome is the same on every machine.
        let mut tries = 0;
        let mut more = || {
            tries += 1;
            tries < 20_000
        };
        let shrunk = shrink(&campaign.setup, &failing.outcome.choices, id, &mut *decider(), &mut more).unwrap();
        assert_eq!(shrunk.outcome.violation.as_ref().unwrap().id, id);
        println!("{wrong:?}: {:?}, {} runs, {} events", shrunk.outcome.violation, shrunk.runs, shrunk.outcome.events);
        println!("{}", shrunk.outcome.trace.join("\n"));
        sizes.push(shrunk.outcome.events);
    }
    sizes.sort_unstable();
    let median = (sizes[1] + sizes[2]) / 2;
    assert!(median <= 25, "{sizes:?}");
}

/// Runs so long that blocks of attempt ids are used up, also by hosts that are killed between the shape that needs another
/// block and the record of it: the host that starts again from that shape makes the record good.
#[test]
fn long_runs_use_up_blocks_of_attempt_ids() {
    let mut setup = common::setup();
    setup.shape.groups.truncate(1);
    setup.shape.groups[0].count = 1;
    setup.until_ms = 30 * 3_600_000;
    let campaign = Campaign { setup, first: 250, seeds: 60, jobs: 2 };
    let (_, failing) = campaign.run(&common::native, &|_| ()).unwrap();
    assert_eq!(failing, None);
}
