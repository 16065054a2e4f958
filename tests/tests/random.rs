//! Random histories, each drawn from one seed: faults of every kind, edits, listings, deaths, a decider that fails. Every
//! step is checked against S1–S15; then the faults stop, and the fleet must converge, rest, and leak nothing (L1–L4).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use decider::Stage;
use engine::invariants::check_resources;
use engine::io::{DeciderFailure, Input, Observation, OperationStatus};
use engine::policy::Policy;
use tests::build::{driver, shape, template};
use tests::session::Session;
use tests::world::{Course, World};

/// splitmix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

fn course(dice: &mut Dice) -> Course {
    match dice.roll(12) {
        0 => Course::Fails,
        1 => Course::Refused,
        2 => Course::LostDone,
        3 => Course::LostNothing,
        // Within the window that the windowed provider declares.
        4 => Course::LostLate(dice.roll(29_000)),
        _ => Course::Works,
    }
}

fn edit(s: &mut Session, dice: &mut Dice, generation: &mut u64) {
    *generation += 1 + dice.roll(2);
    let tag = ["v1", "v2"][dice.roll(2) as usize];
    let web = template("fake", tag);
    let gpu = template("market", tag);
    let groups = [("web", dice.roll(4) as u32, web), ("gpu", dice.roll(3) as u32, gpu)];
    s.feed(Input::Desired(shape(*generation, &groups[..1 + dice.roll(2) as usize])));
}

fn operate(s: &mut Session, world: &mut World, dice: &mut Dice) {
    let flying = s.in_flight();
    if flying.is_empty() {
        return;
    }
    let operation = flying[dice.roll(flying.len() as u64) as usize].clone();
    if dice.roll(15) == 0 {
        s.feed(Input::Answered { id: operation.id, status: OperationStatus::Ambiguous });
        return;
    }
    let result = world.perform(&operation, course(dice), s.now_ms);
    let again = result.clone();
    s.feed(Input::Completed { id: operation.id, result });
    if dice.roll(10) == 0 {
        s.feed(Input::Completed { id: operation.id, result: again });
    }
}

fn observe(s: &mut Session, dice: &mut Dice) {
    let highest = s.driver.state().next_attempt;
    let attempt = engine::id::AttemptId(1 + dice.roll(highest));
    let observation = match dice.roll(6) {
        0 => Observation::Joined,
        1 => Observation::Progress(decider::Progress::Start),
        2 => Observation::Closed { exit: Some("exit status 1".into()) },
        3 => Observation::Closed { exit: None },
        4 => Observation::Failed { progress: decider::Progress::JoinFailed, reason: "no".into(), permanent: false },
        _ => Observation::Output("a line".into()),
    };
    s.feed(Input::Observed { attempt, observation });
}

fn list(s: &mut Session, world: &World, dice: &mut Dice) {
    let shown = dice.roll(world.live.len() as u64 + 1) as usize;
    // An empty or partial listing that does not say so is a lie no provider tells; one that says so is evidence of presence only.
    let complete = shown == world.live.len() && dice.roll(2) == 0;
    let provider = ["fake", "market"][dice.roll(2) as usize];
    let mut listing = world.listing(complete, shown);
    listing.resources.retain(|resource| {
        resource.key.as_ref().is_some_and(|key| key.slot.starts_with("gpu") == (provider == "market"))
    });
    s.feed(Input::Listed { provider: provider.into(), listing });
}

fn history(seed: u64) -> (Session, World, u64) {
    let mut dice = Dice(seed);
    let policy = Policy { probe_interval_ms: 5_000, ..Policy::default() };
    let mut s = Session::new(driver(policy).unwrap());
    let mut world = World::default();
    let mut generation = 0;
    edit(&mut s, &mut dice, &mut generation);
    for _ in 0..150 {
        match dice.roll(20) {
            0 => edit(&mut s, &mut dice, &mut generation),
            1 | 2 => observe(&mut s, &mut dice),
            3 => list(&mut s, &world, &mut dice),
            4 => {
                s.now_ms += dice.roll(20_000);
                s.feed(Input::Tick);
            }
            5 | 6 => {
                // Nothing to wake up for is fine.
                let _ = s.wake();
            }
            7 => {
                let poison = dice.roll(4) as u32;
                s.decide = Box::new(move |snapshot| match snapshot.nodes.node.contains(&poison) {
                    true => Err(DeciderFailure { decider: "n".into(), class: "trap".into(), detail: "trap".into() }),
                    false => Ok(decider::reconcile(snapshot)),
                });
            }
            8 | 9 => s.decide = Box::new(|snapshot| Ok(decider::reconcile(snapshot))),
            _ => operate(&mut s, &mut world, &mut dice),
        }
        world.land(s.now_ms);
        let doubled = check_resources(&world.live);
        s.violations.extend(doubled);
    }
    (s, world, generation)
}

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
        let (mut s, mut world, _) = history(seed);
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
        let (one, _, _) = history(seed);
        let (other, _, _) = history(seed);
        assert_eq!(one.driver.state(), other.driver.state());
        assert_eq!(one.driver.stats(), other.driver.stats());
    }
}
