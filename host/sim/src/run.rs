//! One run: the event loop between the world, the people and the driver.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::driver::{Driver, DriverConfig};
use engine::id::{AttemptId, Millis, OperationId};
use engine::invariants::Violation;
use engine::io::{DeciderIdentity, Input, Observation, Operation, Promise};
use engine::policy::Policy;
use engine::shape::ClusterShape;
use engine::watch::Watch;

use crate::audit::Audit;
use crate::bounds::Bound;
use crate::choices::Choices;
use crate::crashes::Doomed;
use crate::decisions::Trouble;
use crate::event::{Event, HostClock, Known, Phase};
use crate::faults::{FaultKind, Place, Swarm};
use crate::people::People;
use crate::record::Tape;
use crate::setup::{Decide, Outcome, Setup, SetupError};
use crate::tally::Tally;
use crate::trace::Trace;
use crate::world::World;

pub(crate) struct Sim<'a> {
    pub setup: &'a Setup,
    pub decide: &'a mut Decide<'a>,
    pub choices: Choices,
    pub swarm: Swarm,
    pub world: World,
    pub people: People,
    pub driver: Driver,
    pub watch: Watch,
    pub audit: Audit,
    pub now: Millis,
    pub clock: HostClock,
    /// The number of this start of the host, from 0.
    pub host: u64,
    pub up: bool,
    /// The durable fence: attempt ids below may have been given out.
    pub fence: u64,
    /// The number of this memory of the host: a start without its state begins another.
    pub memory: u64,
    /// The host dies after so many more outputs.
    pub dies_after: Option<u32>,
    /// What it leaves behind then, if its state survives.
    pub doomed: Option<Box<Doomed>>,
    /// The driver that the next start begins with.
    pub recovered: Option<Driver>,
    /// When the clock last jumped ahead.
    pub jumped_ms: Millis,
    queue: BTreeMap<(Millis, u64), Event>,
    queued: u64,
    pub phase: Phase,
    pub cut_ms: Millis,
    pub flying: BTreeMap<AttemptId, OperationId>,
    /// Late results that the executor promises instead of giving the operation up.
    pub promised: BTreeSet<OperationId>,
    pub known: BTreeMap<AttemptId, Known>,
    pub trouble: Trouble,
    /// The other decider is in force.
    pub renumbered: bool,
    /// The last call of the decider, and whether it was the other one that was asked.
    pub asked: (u64, bool),
    /// The fault that hit each node last, plus one.
    pub blame: Vec<u8>,
    pub last_rule: Vec<u8>,
    pub plans: u32,
    /// How often the decider failed by itself.
    pub failures: u32,
    pub found: Option<Violation>,
    pub tally: Tally,
    pub trace: Option<Trace>,
    /// The journal, for a run that is recorded.
    pub tape: Option<&'a mut Tape>,
    last_tick: Millis,
    settled_state: Option<engine::state::ClusterState>,
    /// The passes until it settled.
    pub settled_passes: u64,
    pub pass_asked: bool,
    /// Somebody comes to resume what is paused.
    pub person_comes: bool,
}

/// Where simulated time begins: a plausible instant, so that going back is possible.
const BEGIN_MS: Millis = 1_000_000_000;
/// Between two listings of a backend, as the host does it.
pub(crate) const LISTING_MS: Millis = 30_000;
/// How long a fleet that has settled is watched.
pub(crate) const QUIET_MS: Millis = 3 * 60_000;
/// No run has more inputs than this.
const MAX_STEPS: u64 = 3_000_000;

impl<'a> Sim<'a> {
    pub fn new<'b: 'a>(
        setup: &'a Setup,
        mut choices: Choices,
        forced: Option<FaultKind>,
        decide: &'a mut Decide<'b>,
        traced: bool,
    ) -> Result<Self, SetupError> {
        // The closure lives longer than the run.
        let decide: &'a mut Decide<'a> = decide;
        if setup.until_ms == 0 {
            return Err(SetupError::NoTime);
        }
        if setup.shape.groups.is_empty() {
            return Err(SetupError::NoGroups);
        }
        let swarm = Swarm::draw(&mut choices, &setup.rates, forced);
        let names: BTreeSet<String> = setup.shape.groups.iter().map(|group| group.template.provider.clone()).collect();
        setup.shape.check(&setup.policy.limits, &names)?;
        let promises = names.into_iter().map(|name| {
            let promise = match choices.below(2) {
                0 => Promise::Keyed,
                _ => Promise::Windowed { window_ms: 30_000, listings: 2 },
            };
            (name, promise)
        });
        let world = World::new(&setup.shape.run, promises.collect());
        let people = People::new(&setup.shape, &setup.policy);
        let cut_ms = BEGIN_MS + setup.until_ms / 64 * u64::from(1 + choices.below(64));
        let driver = Driver::new(config(setup, setup.identity.clone(), &people.policy, &world, 1, 0))?;
        let watch = Watch::new(driver.state());
        let audit = Audit::new(people.policy.guards);
        let trace = traced.then(|| Trace::new(&world, &people.policy));
        let mut sim = Sim {
            tally: Tally::new(setup.identity.rules.len()),
            setup,
            decide,
            choices,
            swarm,
            world,
            people,
            driver,
            watch,
            audit,
            now: BEGIN_MS,
            clock: HostClock::default(),
            host: 0,
            up: true,
            fence: 1,
            memory: 0,
            dies_after: None,
            doomed: None,
            recovered: None,
            jumped_ms: 0,
            queue: BTreeMap::new(),
            queued: 0,
            phase: Phase::Faulty,
            cut_ms,
            flying: BTreeMap::new(),
            promised: BTreeSet::new(),
            known: BTreeMap::new(),
            trouble: Trouble::None,
            renumbered: false,
            asked: (0, false),
            blame: Vec::new(),
            last_rule: Vec::new(),
            plans: 0,
            failures: 0,
            found: None,
            trace,
            tape: None,
            last_tick: 0,
            settled_state: None,
            settled_passes: 0,
            pass_asked: false,
            person_comes: false,
        };
        sim.break_rule();
        Ok(sim)
    }

    /// Switches the mutation on, where the engine is built with mutations.
    #[cfg_attr(not(feature = "mutations"), allow(clippy::unused_self, clippy::needless_pass_by_ref_mut))]
    fn break_rule(&mut self) {
        #[cfg(feature = "mutations")]
        if let Some(mutation) = self.setup.mutation {
            self.driver.mutate(mutation);
        }
    }

    /// The host is started anew without its state: what is durable is the fence and the number of starts.
    pub fn new_driver(&mut self) {
        let config = config(self.setup, self.in_force(), &self.people.policy, &self.world, self.fence, self.host);
        if let Some(tape) = &mut self.tape {
            tape.start(&config, self.clock.shows(self.now));
        }
        match Driver::new(config) {
            Ok(driver) => self.driver = driver,
            Err(error) => self.broken("L4", format!("the host does not start again: {error}")),
        }
        self.break_rule();
        self.watch = Watch::new(self.driver.state());
        self.audit = Audit::new(self.people.policy.guards);
        self.pass_asked = false;
    }

    pub fn run(mut self) -> Outcome {
        for provider in 0..self.world.providers.len() {
            self.after(LISTING_MS + provider as u64 * 1_000, Event::List { provider });
        }
        if self.swarm.has_incidents() {
            self.next_incident();
        }
        let shape = self.first_shape();
        self.feed(Input::Desired(shape));
        while self.found.is_none() && self.step() {}
        self.end_tape();
        self.tally.seeds += 1;
        self.tally.simulated_ms += self.now - BEGIN_MS;
        let events = self.trace.as_ref().map_or(0, |trace| trace.events);
        // What was broken only in the long run shows when the test waits for the fleet to settle.
        let in_the_long_run = self.found.as_ref().is_some_and(|found| found.id.starts_with('L'));
        let within = in_the_long_run.then(|| self.bound().ms);
        let (trace, scenario) = self.trace.map_or_else(Default::default, |trace| trace.finish(within));
        // One more than was taken: only a list that is used up stops the faults.
        let mut choices = self.choices.taken().to_vec();
        choices.push(0);
        Outcome { violation: self.found, choices, tally: self.tally, trace, scenario, events }
    }

    /// One event, or the driver's wake-up. `false` at the end of the run.
    fn step(&mut self) -> bool {
        match self.phase {
            Phase::Faulty if self.now >= self.cut_ms || self.choices.is_over() => self.stop_faults(),
            Phase::Settling { by_ms, by_step } => {
                self.call_person();
                if self.is_settled() {
                    self.settled_state = Some(self.driver.state().clone());
                    self.settled_passes = self.tally.passes;
                    self.phase = Phase::Quiet { until_ms: self.now + QUIET_MS };
                    self.say(|| "settled".into());
                } else if self.now > by_ms || self.tally.steps > by_step {
                    let why = self.unsettled();
                    self.broken("L1", why);
                    return false;
                }
            }
            Phase::Quiet { until_ms } if self.now >= until_ms => {
                self.judge_rest();
                return false;
            }
            _ => {}
        }
        if self.tally.steps > MAX_STEPS {
            self.broken("L4", format!("{MAX_STEPS} inputs and no end"));
            return false;
        }
        let event = self.queue.first_key_value().map(|((at, _), _)| *at);
        let wake = self.wake();
        let stop = match self.phase {
            Phase::Faulty => self.cut_ms,
            Phase::Settling { by_ms, .. } => by_ms + 1,
            Phase::Quiet { until_ms } => until_ms,
        };
        let next = event.into_iter().chain(wake).min().unwrap_or(stop).min(stop.max(self.now));
        self.tally.node_ms += (next - self.now) * self.people.slots();
        self.now = next;
        if event.is_some_and(|at| at <= next) {
            if let Some((_, event)) = self.queue.pop_first() {
                self.happen(event);
            }
        } else if wake.is_some_and(|at| at <= next) {
            self.last_tick = self.now;
            self.feed(Input::Tick);
        }
        true
    }

    /// When the driver wants to be woken; never twice in one millisecond.
    fn wake(&mut self) -> Option<Millis> {
        if !self.up {
            return None;
        }
        let Some(at) = self.driver.requeue_at() else {
            if !self.pass_asked
                && matches!(self.phase, Phase::Settling { .. })
                && !self.driver.is_converged()
                && self.flying.is_empty()
                && self.driver.state().pauses.is_empty()
                && !self.people.pauses_rollout()
            {
                let why = self.unsettled();
                self.broken("L4", format!("nothing will ever wake it up; {why}"));
            }
            return None;
        };
        Some(self.clock.when(at, self.now).max(self.last_tick + 1))
    }

    /// Something will happen.
    pub fn after(&mut self, ms: u64, event: Event) {
        self.queued += 1;
        self.queue.insert((self.now + ms, self.queued), event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Perform { operation, mode, sent, host } => self.perform(*operation, mode, sent, host),
            Event::Complete { id, result, host } => {
                if host == self.host {
                    self.landed(id);
                    self.promised.remove(&id);
                    self.feed(Input::Completed { id, result });
                }
            }
            Event::Report { number, attempt, observation } => self.report(number, attempt, observation),
            Event::List { provider } => self.list(provider),
            Event::Incident => {
                if self.phase == Phase::Faulty {
                    self.incident();
                    self.next_incident();
                }
            }
            Event::Answer { call, result, host } => {
                if host == self.host {
                    self.pass_asked = false;
                    self.feed(Input::Decided { call, result });
                }
            }
            Event::MoveEndpoint { lease } => {
                if self.phase == Phase::Faulty && self.world.move_endpoint(&lease, self.now) {
                    self.say(|| format!("the address of {lease} changes"));
                }
            }
            Event::Orders(orders) => self.follow_up(orders),
            Event::Person => self.person(),
            Event::Restart => self.restart(),
        }
    }

    /// The fault at one opportunity, counted.
    pub fn strike(&mut self, place: Place) -> Option<FaultKind> {
        if self.phase != Phase::Faulty {
            return None;
        }
        self.swarm.strike(&mut self.choices, place)
    }

    /// A fault happens; to one slot, or to all.
    pub fn count(&mut self, fault: FaultKind, slot: Option<&str>) {
        self.tally.faults[fault as usize] += 1;
        let blame = fault as u8 + 1;
        match slot {
            Some(slot) => {
                if let Some(node) = self.driver.state().names.get(slot) {
                    let at = node.0 as usize;
                    if self.blame.len() <= at {
                        self.blame.resize(at + 1, 0);
                    }
                    self.blame[at] = blame;
                }
            }
            None => self.blame.fill(blame),
        }
        let whom = slot.map_or_else(String::new, |slot| format!(" for {slot}"));
        self.say(|| format!("fault: {}{whom}", fault.label()));
    }

    /// The decider answered at once.
    pub fn answered(&mut self) {
        self.pass_asked = false;
    }

    /// No call of this operation is in flight any more, as far as the host knows.
    pub fn landed(&mut self, id: OperationId) {
        if self.flying.get(&id.attempt) == Some(&id) {
            self.flying.remove(&id.attempt);
        }
    }

    /// A property is broken.
    pub fn broken(&mut self, id: &'static str, what: String) {
        self.found.get_or_insert(Violation { id, what });
    }

    /// What the provider saw.
    pub fn take_violations(&mut self) {
        if let Some(first) = self.world.violations.pop() {
            self.found.get_or_insert(first);
        }
    }

    /// A line of the trace.
    pub fn say(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.say(self.now - BEGIN_MS, &line());
        }
    }

    /// Calls of this start of the host that are on their way: each takes effect, or never left.
    pub fn orphan_calls(&mut self) {
        let host = self.host;
        let mine = |event: &Event| matches!(event, Event::Perform { host: of, .. } if *of == host);
        let keys: Vec<(Millis, u64)> =
            self.queue.iter().filter(|(_, event)| mine(event)).map(|(key, _)| *key).collect();
        for key in keys {
            if self.choices.below(2) == 0 {
                self.queue.remove(&key);
            }
        }
    }

    /// Whether a call, or the end of a session, is still going to happen.
    pub fn effects_outstanding(&self) -> bool {
        let ends = |said: &Observation| matches!(said, Observation::Closed { .. } | Observation::Failed { .. });
        self.queue.values().any(|event| match event {
            Event::Perform { .. } | Event::Restart => true,
            Event::Report { observation, .. } => ends(observation),
            _ => false,
        })
    }

    /// Whether a windowed provider may still make, or begin to show, what a create asked of it.
    pub fn window_is_open(&self) -> bool {
        let windowed = |name: &str| matches!(self.world.promise(self.world.provider(name)), Promise::Windowed { .. });
        let coming = self.queue.values().any(|event| match event {
            Event::Perform { operation, .. } => {
                windowed(&operation.provider) && operation.request.kind() == decider::OperationKind::CreateLease
            }
            _ => false,
        });
        coming || self.world.live.iter().any(|held| held.promised_at > self.now)
    }

    /// Resources that the host can know of: what lives, and what is on its way, this operation included.
    pub fn live_resources(&self, next: &Operation) -> usize {
        let calls = self.queue.values().filter_map(|event| match event {
            Event::Perform { operation, .. } if operation.request.kind() == decider::OperationKind::CreateLease => {
                Some(&operation.key)
            }
            _ => None,
        });
        let lives = self.world.live.iter().filter(|held| !held.excused).filter_map(|held| held.key.as_ref());
        let ours = lives.filter(|key| key.run == self.setup.shape.run);
        calls.chain(ours).chain([&next.key]).map(|key| key.attempt).collect::<BTreeSet<_>>().len()
    }

    /// The bound within which the run must settle from here.
    pub fn bound(&self) -> Bound {
        let host_now = self.clock.shows(self.now);
        let lag = self.driver.now_ms().saturating_sub(host_now);
        let bound = Bound::of(&self.people.policy, self.people.most_slots(), self.world.providers.len() as u64, lag);
        // Surge slots come on top of the others, at most as many.
        let slots = self.people.slots().saturating_mul(2);
        if self.people.is_serial() { bound.one_by_one(&self.people.policy, slots) } else { bound }
    }

    pub fn since_begin(&self) -> Millis {
        self.now - BEGIN_MS
    }

    pub fn settled_state(&self) -> Option<&engine::state::ClusterState> {
        self.settled_state.as_ref()
    }

    /// The latest shape, as the host has it from its file.
    pub fn shape_in_force(&self) -> Arc<ClusterShape> {
        self.people.current()
    }
}

pub(crate) fn config(
    setup: &Setup,
    decider: DeciderIdentity,
    policy: &Policy,
    world: &World,
    next_attempt: u64,
    epoch: u64,
) -> DriverConfig {
    DriverConfig {
        run: setup.shape.run.clone(),
        policy: *policy,
        providers: world.providers.iter().cloned().collect(),
        decider,
        next_attempt,
        epoch,
    }
}
