//! Random histories, each drawn from one seed: faults of every kind, edits, listings, deaths, a decider that fails. Every
//! step is checked against S1–S15; then the faults stop, and the fleet must converge, rest, and leak nothing (L1–L4).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use decider::Stage;
use engine::invariants::check_resources;
use engine::io::{Input, Observation};
use tests::random::history;
use tests::session::Session;
use tests::world::{Course, World};

/// No more faults: everything works, bootstraps join, backends are listed now and then. The number of rounds is bounded.
fn fair(s: &mut Session, world: &mut World) -> bool {
    s.decide = Box::new(|snapshot| Ok(decider::reconcile(snapshot)));
    for round in 0..600 {
        // What is due has happened before anybody looks.
        world.land(s.now_ms);
        for operation in s.in_flight() {
            let result = world.perform(&operation, Course::Works, s.now_ms);
            s.feed(Input::Completed { id: operation.id, result });
        }
        let slots = &s.driver.state().slots;
        let booting: Vec<_> = slots
            .iter()
            .filter_map(|slot| slot.node.as_ref())
            .filter(|node| node.stage == Stage::BootstrapRunning)
            .map(|node| node.attempt)
            .collect();
        for attempt in booting {
            s.feed(Input::Observed { attempt, observation: Observation::Joined });
        }
        if round % 20 == 0 {
            for provider in ["fake", "market"] {
                let mut listing = world.listing(true, usize::MAX);
                listing.resources.retain(|resource| {
                    resource.key.as_ref().is_some_and(|key| key.slot.starts_with("gpu") == (provider == "market"))
                });
                s.feed(Input::Listed { provider: provider.into(), listing });
            }
        }
        s.violations.extend(check_resources(&world.live));
        if !s.violations.is_empty() {
            return false;
        }
        let done = s.driver.is_converged() && s.driver.state().reaps.is_empty() && world.late.is_empty();
        let held = s.driver.state().slots.iter().filter(|slot| slot.node.is_some()).count();
        if done && world.live.len() == held {
            return true;
        }
        if s.in_flight().is_empty() {
            let at = s.driver.requeue_at().unwrap_or(s.now_ms + 30_000);
            s.now_ms = s.now_ms.max(at).max(s.now_ms + 1);
            s.feed(Input::Tick);
        }
    }
    false
}

#[test]
fn random_histories_violate_nothing_and_converge_once_faults_stop() {
    let seeds = std::env::var("HOMEOSTAT_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(400u64);
    for seed in 0..seeds {
        let (mut s, mut world) = history(seed, |_| ()).unwrap();
        assert_eq!(s.violations, [], "seed {seed}");
        let settled = fair(&mut s, &mut world);
        assert_eq!(s.violations, [], "seed {seed}, after the faults stopped");
        assert!(settled, "seed {seed} does not settle: {:#?}\nworld {:?}", s.driver.view(), world.live);
        s.check_rest();
        assert_eq!(s.violations, [], "seed {seed}, at rest");
    }
}

#[test]
fn one_seed_gives_one_history() {
    for seed in [1, 7, 23] {
        let (one, _) = history(seed, |_| ()).unwrap();
        let (other, _) = history(seed, |_| ()).unwrap();
        assert_eq!(one.driver.state(), other.driver.state());
        assert_eq!(one.driver.stats(), other.driver.stats());
    }
}
