//! The host is killed and starts again: from what is durable (SPEC 10), or with the fence alone when its state is lost.

use engine::checkpoint::CheckpointError;
use engine::driver::Driver;
use engine::id::Millis;
use engine::io::{Input, Observation, Output};
use engine::record::Record;
use engine::watch::Watch;

use crate::audit::Audit;
use crate::event::Event;
use crate::run::Sim;
use crate::trace::Mark;
use crate::world::session_name;

/// What a host that is going to die leaves on disk. Inputs are durable before the effects they announce leave; those
/// after the last effect may be lost.
pub(crate) struct Durable {
    /// The driver when its death was drawn; all until then is durable.
    checkpoint: Box<Driver>,
    /// What was folded since then.
    inputs: Vec<Remembered>,
    /// So many of them had to be durable before an effect left.
    synced: usize,
}

/// An input that may be lost, when it came, and what was known before it.
struct Remembered {
    input: Input,
    shown: Millis,
    mark: Option<Mark>,
    audit: Audit,
}

impl Sim<'_> {
    /// The host dies before the next so-and-so-manieth output: between a record and its effect, between two effects, or
    /// at once. `durable`: its state survives.
    pub(crate) fn begin_dying(&mut self, durable: bool) {
        if let Some(tape) = &mut self.tape {
            tape.forget_marks();
        }
        self.durable = None;
        if durable {
            match self.through_bytes() {
                Ok(checkpoint) => self.durable = Some(Durable { checkpoint, inputs: Vec::new(), synced: 0 }),
                Err(error) => return self.broken("L4", format!("no checkpoint: {error}")),
            }
        }
        self.dies_after = Some(self.choices.below(24));
        if self.choices.below(2) == 0 {
            self.crash();
        }
    }

    /// What a store gives back of the driver.
    fn through_bytes(&self) -> Result<Box<Driver>, CheckpointError> {
        #[cfg_attr(not(feature = "mutations"), allow(unused_mut))]
        let mut driver = Driver::restore(&self.driver.checkpoint()?)?;
        #[cfg(feature = "mutations")]
        if let Some(mutation) = self.setup.mutation {
            driver.mutate(mutation);
        }
        Ok(Box::new(driver))
    }

    /// An input is about to be folded by a host that is going to die.
    pub(crate) fn remember(&mut self, input: &Input, shown: Millis) {
        if let Some(durable) = &mut self.durable {
            if let Some(tape) = &mut self.tape {
                tape.mark();
            }
            let mark = self.trace.as_ref().map(crate::trace::Trace::mark);
            let audit = self.audit.clone();
            durable.inputs.push(Remembered { input: input.clone(), shown, mark, audit });
        }
    }

    /// An effect leaves: what announced it is durable.
    pub(crate) fn synced(&mut self) {
        #[cfg(feature = "mutations")]
        if self.setup.mutation == Some(engine::mutation::Mutation::SyncLeftOut) {
            return;
        }
        if let Some(durable) = &mut self.durable {
            durable.synced = durable.inputs.len();
        }
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
        match self.durable.take() {
            Some(durable) => self.recover(durable, down),
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

    /// The driver is rebuilt from what was durable.
    fn recover(&mut self, durable: Durable, down: u64) {
        let Durable { checkpoint, mut inputs, synced } = durable;
        let tail = u32::try_from(inputs.len() - synced).unwrap_or(0);
        let lost = self.choices.below(tail + 1) as usize;
        let rest = inputs.split_off(inputs.len() - lost);
        if let Some(tape) = &mut self.tape {
            tape.lose(lost);
        }
        let mut driver = *checkpoint;
        for Remembered { input, shown, .. } in inputs {
            // What the first start refused is refused again.
            let _ = driver.handle(input, shown);
            while let Some(output) = driver.poll_output() {
                // A fence that the first start did not come to is made durable now: attempts below it will be given out.
                if let Output::Record(Record::AttemptsReserved { below }) = output {
                    self.fence = self.fence.max(below.0);
                }
            }
        }
        self.recovered = Some(driver);
        self.say(|| match lost {
            0 => format!("the host is killed; it starts again in {down} ms"),
            _ => format!("the host is killed before its last {lost} inputs were synced; it starts again in {down} ms"),
        });
        if rest.iter().any(|lost| matches!(lost.input, Input::Command(_))) {
            // Nobody was told that it was accepted: it is given again, or not.
            let in_force = self.recovered.as_ref().and_then(|driver| driver.state().desired.as_ref());
            self.people.ordered(in_force);
        }
        if let Some(first) = rest.into_iter().next() {
            self.audit = first.audit;
            if let (Some(trace), Some(mark)) = (&mut self.trace, first.mark) {
                trace.lost(mark);
            }
        }
    }

    /// The host starts. With its state: what was pending is in doubt, and sessions are listened to again. Without:
    /// every backend is listed, completely, before anything else.
    pub(crate) fn restart(&mut self) {
        self.up = true;
        self.say(|| "the host starts again".into());
        match self.recovered.take() {
            Some(driver) => {
                self.driver = driver;
                self.watch = Watch::new(self.driver.state());
                self.feed(Input::Restarted);
                self.listen_again();
                let in_force = self.in_force();
                if *self.driver.decider() != in_force {
                    self.feed(Input::DeciderChanged(in_force));
                }
                if *self.driver.policy() != self.people.policy {
                    self.feed(Input::PolicyChanged(self.people.policy));
                }
            }
            None => {
                self.new_driver();
                for provider in 0..self.world.providers.len() {
                    let name = self.world.providers[provider].0.clone();
                    if let Some(listing) = self.world.list(provider, None, self.now) {
                        self.feed(Input::Adopt { provider: name, listing });
                    }
                }
            }
        }
        let shape = self.shape_in_force();
        if self.up && self.found.is_none() {
            self.feed(Input::Desired((*shape).clone()));
        }
    }

    /// Sessions that the state knows report to this start of the host; those that ended meanwhile say so, with or without
    /// an exit status.
    fn listen_again(&mut self) {
        let host = self.host;
        for known in self.driver.live_sessions() {
            let held = self.world.leased(&known.lease).map(|at| &mut self.world.live[at]);
            let there = held.is_some();
            let session = held.and_then(|held| held.session.as_mut());
            let ours = session.filter(|session| session_name(session.number) == known.session);
            match ours {
                Some(session) => {
                    session.heard_by = host;
                    let (number, joined) = (session.number, session.joined);
                    if joined {
                        let (attempt, observation) = (known.attempt, Observation::Joined);
                        self.after(50, Event::Report { number, attempt, observation });
                    }
                }
                None => {
                    let exit = (there && self.choices.below(2) == 1).then(|| "exit status 1".to_string());
                    self.feed(Input::Observed { attempt: known.attempt, observation: Observation::Closed { exit } });
                }
            }
        }
    }
}
