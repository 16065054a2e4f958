//! The host is killed and starts again: from what its store made durable (SPEC 10), or with the fence alone when its state is
//! lost. The store is the one in memory; what is appended, synced, written down and folded again is what the host does.

use decider::Description;
use engine::driver::{Driver, DriverConfig, DriverError};
use engine::id::Millis;
use engine::io::{Input, Listing, Observation, Output};
use engine::recovery::LiveSession;
use engine::watch::Watch;
use store::{Keep, KeepError, MemoryStore, Retention, Schedule, Store, refold_with};

use crate::audit::Audit;
use crate::event::Event;
use crate::run::{Sim, config};
use crate::trace::Mark;
use crate::world::session_name;

/// After how many records the driver is written down: the host's own number, and two that a host that is going to die reaches.
const CHECKPOINTS: [u64; 3] = [20_000, 4, 12];
/// Little, so that history is dropped too.
const KEEP: Retention = Retention { max_records: 8, max_age_ms: 60_000 };

/// The store of a host that is going to die.
pub(crate) struct Doomed {
    keep: Keep<MemoryStore>,
    /// Inputs that may not be durable.
    inputs: Vec<Remembered>,
    /// Something was announced, and no sync came after it.
    unsynced: bool,
}

/// An input that may be lost, and what was known before it.
struct Remembered {
    /// The number of its record.
    seq: u64,
    is_order: bool,
    mark: Option<Mark>,
    audit: Audit,
}

impl Doomed {
    /// What a host with this driver has made durable.
    fn new(driver: &Driver, config: &DriverConfig, every: u64, now_ms: Millis) -> Result<Self, KeepError> {
        let schedule = Schedule { checkpoint_every: every, keep: KEEP };
        let store = Box::new(MemoryStore::new());
        let (mut keep, _) = Keep::begin(store, schedule, config, &Description::default(), now_ms)?;
        keep.checkpoint(driver)?;
        Ok(Doomed { keep, inputs: Vec::new(), unsynced: false })
    }
}

impl Sim<'_> {
    /// The host dies before the next so-and-so-manieth output: between a record and its effect, between two effects, or
    /// at once. `durable`: its state survives.
    pub(crate) fn begin_dying(&mut self, durable: bool) {
        self.doomed = None;
        if durable {
            let every = CHECKPOINTS[self.choices.below(3) as usize];
            let decider = self.driver.decider().clone();
            let config = config(self.setup, decider, self.driver.policy(), &self.world, self.fence, self.host);
            match Doomed::new(&self.driver, &config, every, self.clock.shows(self.now)) {
                Ok(doomed) => self.doomed = Some(Box::new(doomed)),
                Err(error) => return self.broken("L4", format!("nothing can be kept: {error}")),
            }
            if let Some(tape) = &mut self.tape {
                tape.mark();
            }
        }
        self.dies_after = Some(self.choices.below(24));
        if self.choices.below(2) == 0 {
            self.crash();
        }
    }

    /// A step of the store of a host that is going to die; nothing where there is none.
    fn keep(&mut self, step: impl FnOnce(&mut Doomed) -> Result<(), KeepError>) {
        if let Some(Err(error)) = self.doomed.as_mut().map(|doomed| step(doomed)) {
            self.broken("L4", format!("the store refuses: {error}"));
        }
    }

    /// An input is about to be folded.
    pub(crate) fn remember(&mut self, input: &Input, shown: Millis) {
        let Some(doomed) = &self.doomed else { return };
        let seq = doomed.keep.head().next_seq;
        let mark = self.trace.as_ref().map(crate::trace::Trace::mark);
        let is_order = matches!(input, Input::Command(_));
        let remembered = Remembered { seq, is_order, mark, audit: self.audit.clone() };
        self.keep(|doomed| {
            // What nothing waits for is not volatile for long.
            if doomed.keep.flush_at().is_some_and(|at| at <= shown) {
                doomed.keep.flush()?;
            }
            let durable = doomed.keep.store().durable().next_seq;
            doomed.inputs.retain(|input| input.seq >= durable);
            doomed.inputs.push(remembered);
            Ok(())
        });
    }

    /// It was folded.
    pub(crate) fn keep_input(&mut self, input: Input, error: Option<&DriverError>, shown: Millis) {
        self.keep(|doomed| doomed.keep.folded(input, error, shown).map(drop));
    }

    /// An output is about to be acted on: nothing leaves before what announces it is durable (S1).
    pub(crate) fn keep_output(&mut self, output: &Output, shown: Millis) {
        if self.doomed.is_none() {
            return;
        }
        let announces = matches!(output, Output::Record(_));
        if !announces {
            self.sync();
        }
        self.keep(|doomed| {
            doomed.unsynced |= announces;
            doomed.keep.output(output, shown).map(drop)
        });
    }

    /// All outputs of an input were acted on.
    pub(crate) fn keep_rest(&mut self, shown: Millis) {
        self.sync();
        if let Some(mut doomed) = self.doomed.take() {
            let rested = doomed.keep.rested(&self.driver, shown).map(drop);
            self.doomed = Some(doomed);
            self.keep(|_| rested);
        }
    }

    fn sync(&mut self) {
        #[cfg(feature = "mutations")]
        if self.setup.mutation == Some(engine::mutation::Mutation::SyncLeftOut) {
            return;
        }
        self.keep(|doomed| match std::mem::take(&mut doomed.unsynced) {
            true => doomed.keep.sync().map(drop),
            false => Ok(()),
        });
    }

    /// The host is killed. Calls on their way may take effect.
    pub(crate) fn crash(&mut self) {
        self.dies_after = None;
        self.up = false;
        self.pass_asked = false;
        self.orphan_calls();
        self.host += 1;
        self.flying.clear();
        self.promised.clear();
        let down = self.choices.span_ms(60_000);
        match self.doomed.take() {
            Some(doomed) => self.recover(*doomed, down),
            None => {
                self.memory += 1;
                self.world.excuse_all();
                self.world.take_for_ours(self.fence);
                self.say(|| format!("the host is killed and its state is lost; it starts again in {down} ms"));
                if let Some(trace) = &mut self.trace {
                    trace.state_lost(self.fence);
                }
            }
        }
        self.after(down, Event::Restart);
    }

    /// The driver is rebuilt from what is durable.
    fn recover(&mut self, doomed: Doomed, down: u64) {
        let Doomed { keep, inputs, unsynced: _ } = doomed;
        let mut store = keep.into_store();
        // Killed before a group commit, or between that and what it announces.
        if store.head() != Store::durable(&*store) && self.choices.below(2) == 0 {
            let synced = store.sync();
            self.kept(synced.map_err(KeepError::from));
        }
        store.crash();
        let durable = Store::durable(&*store).next_seq;
        #[cfg(feature = "mutations")]
        let mutation = self.setup.mutation;
        let folded = refold_with(&mut *store, |driver| {
            #[cfg(feature = "mutations")]
            if let Some(mutation) = mutation {
                driver.mutate(mutation);
            }
            #[cfg(not(feature = "mutations"))]
            let _ = driver;
        });
        let Some((driver, recorder)) = self.kept(folded).flatten() else {
            return self.broken("L4", "what was durable is gone".into());
        };
        if let Some(tape) = &mut self.tape {
            tape.lose(durable, recorder);
        }
        // A fence that the first start did not come to is made durable now: attempts below it will be given out.
        self.fence = self.fence.max(driver.state().reserved_below);
        self.recovered = Some(driver);
        let lost: Vec<Remembered> = inputs.into_iter().filter(|input| input.seq >= durable).collect();
        self.say(|| match lost.len() {
            0 => format!("the host is killed; it starts again in {down} ms"),
            lost => {
                format!("the host is killed before its last {lost} inputs were synced; it starts again in {down} ms")
            }
        });
        if lost.iter().any(|lost| lost.is_order) {
            // Nobody was told that it was accepted: it is given again, or not.
            let in_force = self.recovered.as_ref().and_then(|driver| driver.state().desired.as_ref());
            self.people.ordered(in_force);
        }
        if let Some(first) = lost.into_iter().next() {
            self.audit = first.audit;
            if let (Some(trace), Some(mark)) = (&mut self.trace, first.mark) {
                trace.lost(mark);
            }
        }
    }

    fn kept<T>(&mut self, done: Result<T, KeepError>) -> Option<T> {
        done.map_err(|error| self.broken("L4", error.to_string())).ok()
    }

    /// The host starts. With its state: what was pending is in doubt, what the backends hold is compared with it, and sessions
    /// are listened to again. Without: what they hold is adopted. Both list every backend, completely, before anything else.
    pub(crate) fn restart(&mut self) {
        self.up = true;
        self.say(|| "the host starts again".into());
        match self.recovered.take() {
            Some(driver) => {
                self.driver = driver;
                self.watch = Watch::new(self.driver.state());
                let sessions = self.driver.live_sessions();
                self.feed(Input::Restarted);
                let in_force = self.in_force();
                if *self.driver.decider() != in_force {
                    self.feed(Input::DeciderChanged(in_force));
                }
                if *self.driver.policy() != self.people.policy {
                    self.feed(Input::PolicyChanged(self.people.policy));
                }
                for (provider, listing) in self.complete_listings() {
                    self.feed(Input::Surveyed { provider, listing });
                }
                self.listen_again(sessions);
            }
            None => {
                self.new_driver();
                for (provider, listing) in self.complete_listings() {
                    self.feed(Input::Adopt { provider, listing });
                }
            }
        }
        let shape = self.shape_in_force();
        if self.up && self.found.is_none() {
            self.feed(Input::Desired((*shape).clone()));
        }
    }

    fn complete_listings(&mut self) -> Vec<(String, Listing)> {
        let names: Vec<String> = self.world.providers.iter().map(|(name, _)| name.clone()).collect();
        let listed = names.into_iter().enumerate();
        listed.filter_map(|(at, name)| Some((name, self.world.list(at, None, self.now)?))).collect()
    }

    /// Sessions that the state knows report to this start of the host; those that ended meanwhile say so, with or without
    /// an exit status.
    fn listen_again(&mut self, sessions: Vec<LiveSession>) {
        let host = self.host;
        for known in sessions {
            let held = self.world.leased(&known.lease).map(|at| &mut self.world.live[at]);
            let there = held.is_some();
            let session = held.and_then(|held| held.session.as_mut());
            let ours = session.filter(|session| session_name(session.number) == known.session);
            match ours {
                Some(session) => {
                    session.heard_by = host;
                    let (number, joined) = (session.number, session.joined);
                    if joined {
                        let (attempt, observation) = (known.key.attempt, Observation::Joined);
                        self.after(50, Event::Report { number, attempt, observation });
                    }
                }
                None => {
                    let exit = (there && self.choices.below(2) == 1).then(|| "exit status 1".to_string());
                    self.feed(Input::Observed {
                        attempt: known.key.attempt,
                        observation: Observation::Closed { exit },
                    });
                }
            }
        }
    }
}
