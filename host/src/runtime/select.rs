//! The select loop: one input at a time; all its outputs are drained before the next (SPEC 5).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use decider::Plan;
use engine::driver::{Driver, DriverError};
use engine::id::Millis;
use engine::io::{DeciderFailure, Fault, Input, OperationStatus, Output};
use engine::shape::ClusterShape;
use tokio::sync::mpsc;

use super::changes::Publisher;
use super::ending::Ending;
use super::handle::{Ask, Farewell, Shutdown};
use super::instruments::Instruments;
use super::swaps::Swaps;
use super::{HostError, HostEvent, Intervals};
use crate::backends::Backend;
use crate::clock::Clock;
use crate::decide::Decider;
use crate::executor::{Executor, ExecutorEvent, panic_words};
use crate::journal::{History, Journal};

/// A decider's answer to a call.
type Answer = (u64, Result<Plan, DeciderFailure>);

/// What the loop is put together from.
pub(crate) struct Parts {
    pub driver: Driver,
    pub executor: Executor,
    pub decider: Arc<dyn Decider>,
    pub journal: Box<dyn Journal>,
    pub history: History,
    pub clock: Clock,
    pub intervals: Intervals,
    pub backends: BTreeMap<String, Arc<dyn Backend>>,
    pub asks: mpsc::Receiver<Ask>,
    pub events: mpsc::Receiver<ExecutorEvent>,
    pub publisher: Publisher,
    pub instruments: Instruments,
}

pub(crate) struct Runtime {
    pub parts: Parts,
    pub swaps: Swaps,
    pub ending: Ending,
    answers: mpsc::UnboundedReceiver<Answer>,
    answer_sender: mpsc::UnboundedSender<Answer>,
    next_listing_ms: Millis,
    last_step_ms: Millis,
}

impl Runtime {
    pub fn new(parts: Parts, swaps: Swaps) -> Self {
        // At most one call is in flight, so it need not be bounded.
        let (answer_sender, answers) = mpsc::unbounded_channel();
        let now = parts.clock.now_ms();
        let next_listing_ms = now.saturating_add(millis(parts.intervals.listing));
        Runtime { parts, swaps, ending: Ending::No, answers, answer_sender, next_listing_ms, last_step_ms: now }
    }

    /// Runs until the host ends, and says how it ended.
    pub async fn run(mut self) -> Result<Farewell, HostError> {
        let cycled = self.cycle().await;
        // What runs may end; nobody folds it any more, but its sender must not be kept waiting.
        let executor = self.parts.executor.clone();
        let ended = executor.shutdown(self.parts.intervals.end_limit);
        tokio::pin!(ended);
        let given_up = loop {
            tokio::select! {
                left = &mut ended => break left,
                Some(_) = self.parts.events.recv() => {}
            }
        };
        self.publish();
        cycled?;
        let now = self.now_ms();
        self.parts.history.end(&self.parts.driver, now)?;
        let view = Arc::new(self.parts.driver.view());
        Ok(Farewell { view, given_up, unlisted: self.ending.unlisted() })
    }

    async fn cycle(&mut self) -> Result<(), HostError> {
        loop {
            self.fire()?;
            self.advance_ending();
            if self.ending.is_over() {
                return Ok(());
            }
            let wake = self.wake_ms();
            // What was asked for comes before what happened; nothing starves, since every step fires what is due.
            tokio::select! {
                biased;
                ask = self.parts.asks.recv() => self.answer(ask)?,
                Some((call, result)) = self.answers.recv() => self.decided(call, result)?,
                Some(event) = self.parts.events.recv() => self.event(event)?,
                () = self.parts.clock.sleep_until(wake) => {}
            }
        }
    }

    /// Fires what is due by time: the driver's wake-up or the tick, listings, the next view.
    fn fire(&mut self) -> Result<(), HostError> {
        let now = self.now_ms();
        if now >= self.tick_at() {
            // Something is due, or nothing happened for a whole interval: then a pass is the safety net.
            let idle = now >= self.last_step_ms.saturating_add(millis(self.parts.intervals.tick));
            self.step(if idle { Input::Resync } else { Input::Tick })?;
        }
        let now = self.now_ms();
        if now >= self.next_listing_ms {
            self.next_listing_ms = now.saturating_add(millis(self.parts.intervals.listing));
            for provider in self.parts.backends.keys() {
                self.parts.executor.list(provider, &self.parts.driver.state().run);
            }
        }
        self.look_after_watch()?;
        if self.parts.history.flush_at().is_some_and(|at| at <= now) {
            self.parts.history.flush()?;
        }
        if self.parts.publisher.due_at().is_some_and(|at| at <= now) {
            self.publish();
        }
        Ok(())
    }

    /// When the driver wants to be woken, and at the latest at the next tick. Never twice in one millisecond.
    fn tick_at(&self) -> Millis {
        let tick = self.last_step_ms.saturating_add(millis(self.parts.intervals.tick));
        let wanted = self.parts.driver.requeue_at().unwrap_or(tick);
        wanted.min(tick).max(self.last_step_ms.saturating_add(1))
    }

    fn wake_ms(&self) -> Millis {
        let view = self.parts.publisher.due_at();
        let others = [view, self.ending.retry_at(), self.parts.history.flush_at(), self.swaps.watch_until()];
        others.into_iter().flatten().chain([self.next_listing_ms]).fold(self.tick_at(), Millis::min)
    }

    fn answer(&mut self, ask: Option<Ask>) -> Result<(), HostError> {
        match ask {
            Some(Ask::Operate(order, reply)) => match self.operate(*order) {
                // The driver stands still; whoever asked learns the reason from the outcome.
                Err(fatal @ (HostError::Journal(_) | HostError::Driver(_))) => return Err(fatal),
                // Whoever asked may be gone.
                answer => drop(reply.send(answer)),
            },
            Some(Ask::Declare(declared, reply)) => {
                let answer = match self.ending {
                    Ending::No => self.declare(*declared),
                    _ => Err(HostError::Ended("it is being shut down".into())),
                };
                match answer {
                    Err(fatal @ (HostError::Journal(_) | HostError::Driver(_))) => return Err(fatal),
                    answer => {
                        self.publish();
                        drop(reply.send(answer));
                    }
                }
            }
            // Whoever asked may be gone.
            Some(Ask::Foresee(command, reply)) => drop(reply.send(self.foresee(&command))),
            Some(Ask::Export(reply)) => drop(reply.send(self.export())),
            Some(Ask::Look(look)) => look(&self.parts.driver),
            Some(Ask::Shape(shape, reply)) => {
                let answer = match self.ending {
                    Ending::No => self.desire(*shape),
                    _ => Err(HostError::Ended("it is being shut down".into())),
                };
                match answer {
                    // The driver stands still; whoever asked learns the reason from the outcome.
                    Err(fatal @ (HostError::Journal(_) | HostError::Driver(_))) => return Err(fatal),
                    answer => {
                        // Whoever waits for the fleet now must not see the one before.
                        self.publish();
                        // Whoever asked may be gone.
                        drop(reply.send(answer));
                    }
                }
            }
            Some(Ask::Within(act)) => act(self)?,
            Some(Ask::Policy(policy)) => self.step(Input::PolicyChanged(*policy))?,
            // Whoever asked may be gone.
            Some(Ask::Ping(reply)) => drop(reply.send(())),
            Some(Ask::Shutdown(Shutdown::TakeDown)) => self.take_down()?,
            Some(Ask::Shutdown(Shutdown::Keep)) | None => self.ending.cut_short(),
        }
        Ok(())
    }

    fn event(&mut self, event: ExecutorEvent) -> Result<(), HostError> {
        match event {
            ExecutorEvent::Input(Input::Listed { provider, listing }) => {
                let (name, complete) = (provider.clone(), listing.complete);
                self.step(Input::Listed { provider, listing })?;
                let words = (!complete).then(|| "its listing is not complete".to_owned());
                self.ending.listed(&name, words, self.now_ms());
                Ok(())
            }
            ExecutorEvent::Input(input) => self.step(input),
            ExecutorEvent::ListingFailed { provider, fault } => {
                let reason = fault.to_string();
                self.parts.instruments.listing_failed(&provider);
                self.ending.listed(&provider, Some(reason.clone()), self.now_ms());
                self.parts.publisher.say(HostEvent::ListingFailed { provider, reason });
                Ok(())
            }
        }
    }

    /// A new shape: checked by itself, by each backend, then by the driver. Its view is published before it is answered.
    pub fn desire(&mut self, shape: ClusterShape) -> Result<(), HostError> {
        self.check_shape(&shape)?;
        self.step(Input::Desired(shape))?;
        // It is answered: it must not be forgotten after that.
        self.parts.history.sync()?;
        self.publish();
        Ok(())
    }

    /// Folds one input, and all that follows from it at once.
    pub fn step(&mut self, input: Input) -> Result<(), HostError> {
        self.step_all(Some(input))
    }

    /// As [`Runtime::step`], where there is an input.
    pub fn step_all(&mut self, input: Option<Input>) -> Result<(), HostError> {
        let mut inputs = VecDeque::from_iter(input);
        let mut refused = None;
        while let Some(input) = inputs.pop_front() {
            // What the driver has folded need not be remembered any longer.
            let folded = match &input {
                Input::Completed { id, .. } | Input::Answered { id, status: OperationStatus::Ambiguous } => {
                    Some(id.attempt)
                }
                _ => None,
            };
            let now = self.now_ms();
            self.last_step_ms = now;
            let _span = self.parts.instruments.span(&input).entered();
            self.parts.instruments.given(&self.parts.driver, &*self.parts.decider, &input);
            let given = self.parts.history.is_kept().then(|| input.clone());
            self.parts.driver.also_show(self.swaps.shadow.as_ref().map(|shadow| &shadow.candidate));
            let said = self.parts.driver.handle(input, now);
            self.parts.instruments.folded(&self.parts.driver);
            if let Some(input) = given {
                self.parts.history.folded(input, said.as_ref().err(), now)?;
            }
            match said {
                Ok(()) => {}
                Err(DriverError::Shape(error)) => refused = Some(HostError::Shape(error)),
                Err(DriverError::Command(error)) => refused = Some(HostError::Command(error)),
                Err(restless @ DriverError::NeverBlocks { .. }) => {
                    self.parts.publisher.say(HostEvent::Restless { reason: restless.to_string() });
                }
                Err(fatal) => return Err(HostError::Driver(fatal)),
            }
            if let Some(attempt) = folded {
                self.parts.executor.forget(attempt);
            }
            self.drain(&mut inputs)?;
            self.parts.history.rested(&self.parts.driver, now)?;
            if self.swaps.is_due(&self.parts.driver)
                && let Some(input) = self.put_in_force()?
            {
                inputs.push_front(input);
            }
            self.parts.instruments.rested(&self.parts.driver);
        }
        self.tell_of_switch()?;
        self.parts.publisher.touch();
        refused.map_or(Ok(()), Err)
    }

    /// Acts on all outputs, in order. Nothing leaves before what announces it is durable (S1).
    fn drain(&mut self, inputs: &mut VecDeque<Input>) -> Result<(), HostError> {
        let mut unsynced = false;
        while let Some(output) = self.parts.driver.poll_output() {
            if unsynced && !matches!(output, Output::Record(_)) {
                self.sync()?;
                unsynced = false;
            }
            self.parts.history.output(&output, self.last_step_ms)?;
            self.parts.instruments.output(&output);
            match output {
                Output::Record(record) => {
                    self.parts.journal.append(&record)?;
                    unsynced = true;
                }
                Output::Submit(operation) => {
                    let id = operation.id;
                    if let Err(refused) = self.parts.executor.submit(operation) {
                        let result = Err(Fault::retryable(refused.to_string()));
                        inputs.push_back(Input::Completed { id, result });
                    }
                }
                Output::Ask(id) => {
                    let status = self.parts.executor.ask(id);
                    inputs.push_back(Input::Answered { id, status });
                }
                // It is asked of the decider that is put in force next.
                Output::Decide { .. } if self.swaps.is_due(&self.parts.driver) => {}
                // The start: the driver is told next which decider is in force, and asks anew.
                Output::Decide { .. } if self.swaps.active.digest != self.parts.driver.decider().digest => {}
                Output::Decide { call, snapshot } => {
                    self.swaps.asks(call, &snapshot, &self.parts.driver);
                    let (decider, sender) = (self.parts.decider.clone(), self.answer_sender.clone());
                    let digest = self.swaps.active.digest.clone();
                    let asked = tokio::spawn(async move { decider.decide(snapshot).await });
                    tokio::spawn(async move {
                        let result = asked.await.unwrap_or_else(|gone| {
                            let words = panic_words(gone).unwrap_or_else(|| "its task was dropped".into());
                            let detail = format!("the decider's call ended without an answer: {words}");
                            Err(DeciderFailure { decider: digest, class: "host".into(), detail })
                        });
                        // The host may have ended meanwhile.
                        let _ = sender.send((call, result));
                    });
                }
                Output::Notice(notice) => self.parts.publisher.say(HostEvent::Notice(notice)),
            }
        }
        if unsynced {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), HostError> {
        self.parts.journal.sync()?;
        let began = Instant::now();
        if self.parts.history.sync()? {
            self.parts.instruments.committed(began.elapsed());
        }
        Ok(())
    }

    pub fn publish(&mut self) {
        let now = self.now_ms();
        self.parts.publisher.publish(self.parts.driver.view(), now);
    }

    pub fn now_ms(&self) -> Millis {
        self.parts.clock.now_ms()
    }
}

pub(super) fn millis(duration: Duration) -> Millis {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
