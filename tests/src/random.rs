//! Random histories, each drawn from one seed: faults of every kind, edits, listings, deaths, a decider that fails.

use decider::{Plan, Snapshot};
use engine::driver::DriverError;
use engine::invariants::check_resources;
use engine::io::{DeciderFailure, Input, Observation, OperationStatus};
use engine::policy::Policy;

use crate::build::{driver, shape, template};
use crate::session::Session;
use crate::world::{Course, World};

/// A generator of choices: the same from the same seed.
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

/// A decider that fails for one node of four, or for none, for seven seconds at a time: a function of its snapshot and of the
/// seed alone.
pub fn poisoned(seed: u64, snapshot: &Snapshot) -> Result<Plan, DeciderFailure> {
    let poison = Dice(seed ^ (snapshot.now_ms / 7_000)).roll(8);
    match snapshot.nodes.node.iter().any(|node| u64::from(*node) == poison) && poison < 4 {
        true => Err(DeciderFailure { decider: "n".into(), class: "trap".into(), detail: "trap".into() }),
        false => Ok(decider::reconcile(snapshot)),
    }
}

/// The settings of [`history`].
pub fn policy() -> Policy {
    Policy { probe_interval_ms: 5_000, ..Policy::default() }
}

/// A random history; `prepare` is given the session before anything happens.
///
/// # Errors
///
/// The driver cannot be made.
pub fn history(seed: u64, prepare: impl FnOnce(&mut Session)) -> Result<(Session, World), DriverError> {
    let mut dice = Dice(seed);
    let mut s = Session::new(driver(policy())?);
    s.decide = Box::new(move |snapshot| poisoned(seed, snapshot));
    prepare(&mut s);
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
            _ => operate(&mut s, &mut world, &mut dice),
        }
        world.land(s.now_ms);
        let doubled = check_resources(&world.live);
        s.violations.extend(doubled);
    }
    Ok((s, world))
}
