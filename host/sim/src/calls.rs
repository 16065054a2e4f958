//! Calls: how an operation goes, what it does to the world, and how its result comes back.

use decider::Progress;
use engine::id::{AttemptId, Millis};
use engine::io::{Done, Fault, Input, Observation, Operation, Promise, Request};

use crate::event::{Event, Known, Phase};
use crate::faults::{FaultKind, Place};
use crate::run::Sim;
use crate::world::{Birth, ListingFault, session_name};

/// How a call goes.
#[derive(Clone, Debug)]
pub(crate) enum Mode {
    /// It takes effect and the result comes.
    Plain,
    /// The result comes twice.
    Twice,
    /// The result comes this much later.
    Late(u64),
    /// The result never comes.
    Dropped,
    /// It takes effect; the caller is told that nobody knows.
    Lost,
    /// It takes effect when nobody waits for it any more.
    Unexpected,
    /// It does nothing.
    Fails(Fault),
    /// The resource is shown for a while after its end.
    Lingers(u64),
}

impl Sim<'_> {
    /// A call leaves.
    pub(crate) fn submit(&mut self, operation: Operation) {
        self.judge_call(&operation);
        let (sent, host, id) = (self.now, self.host, operation.id);
        if self.phase != Phase::Faulty {
            let event = Event::Perform { operation: Box::new(operation), mode: Mode::Plain, sent, host };
            return self.after(20, event);
        }
        let fault = self.strike(Place::Call).filter(|fault| fits(*fault, &operation));
        if let Some(fault) = fault {
            self.count(fault, Some(&operation.key.slot));
        }
        let latency = 20 + 40 * u64::from(self.choices.below(4));
        let allowed = operation.deadline_ms.saturating_sub(self.clock.shows(self.now)).clamp(1_000, 600_000);
        let ambiguous = || Fault::Ambiguous { reason: "connection reset".into() };
        let keeps = match self.world.promise(self.world.provider(&operation.provider)) {
            Promise::Keyed => 120_000,
            Promise::Windowed { window_ms, .. } => window_ms / 2,
        };
        let perform = |operation, mode| Event::Perform { operation: Box::new(operation), mode, sent, host };
        let Some(fault) = fault else { return self.after(latency, perform(operation, Mode::Plain)) };
        match fault {
            FaultKind::ResultDropped => self.after(latency, perform(operation, Mode::Dropped)),
            FaultKind::ResultDuplicated => self.after(latency, perform(operation, Mode::Twice)),
            FaultKind::ResultReordered => {
                let extra = self.choices.span_ms(10_000);
                self.after(latency + extra, perform(operation, Mode::Plain));
            }
            FaultKind::ResultLate => {
                if self.choices.below(2) == 1 {
                    self.promised.insert(id);
                }
                self.after(latency, perform(operation, Mode::Late(allowed + 1_000)));
            }
            FaultKind::TimeoutCommitted => self.after(latency, perform(operation, Mode::Lost)),
            FaultKind::TimeoutCommitsLater => {
                let extra = self.choices.span_ms(keeps / 2);
                self.after(latency, Event::Complete { id, result: Err(ambiguous()), host });
                self.after((latency + extra).min(keeps), perform(operation, Mode::Unexpected));
            }
            FaultKind::TimeoutNever => self.after(latency, perform(operation, Mode::Fails(ambiguous()))),
            FaultKind::ServerError => self.fails(operation, latency, Fault::retryable("503: try again")),
            FaultKind::RateLimited => self.fails(operation, latency, Fault::retryable("429: too many requests")),
            FaultKind::RetryAfter => {
                let wait = self.choices.span_ms(60_000);
                let fault = Fault::Retryable { reason: "429: too many requests".into(), retry_after_ms: Some(wait) };
                self.fails(operation, latency, fault);
            }
            FaultKind::ErrorInOk => {
                let words = "200 with an error body".to_string();
                let fault = match operation.request {
                    Request::CreateLease(_) | Request::StartBootstrap { .. } => Fault::Ambiguous { reason: words },
                    _ => Fault::retryable(words),
                };
                self.fails(operation, latency, fault);
            }
            FaultKind::Refused => {
                self.after(latency, perform(operation, Mode::Fails(Fault::permanent("no permission"))))
            }
            FaultKind::SlowCall => self.after(allowed * 3 / 4, perform(operation, Mode::Plain)),
            FaultKind::DestroyFailsTwenty => {
                if let Request::DestroyLease { lease } = &operation.request {
                    self.world.stubborn.entry(lease.clone()).or_insert(20);
                }
                self.after(latency, perform(operation, Mode::Plain));
            }
            FaultKind::DestroyLingers => {
                let lingers = self.choices.span_ms(300_000);
                self.after(latency, perform(operation, Mode::Lingers(lingers)));
            }
            // A hang: it never does anything and never answers.
            _ => {}
        }
    }

    fn fails(&mut self, operation: Operation, latency: u64, fault: Fault) {
        let (sent, host) = (self.now, self.host);
        self.after(latency, Event::Perform { operation: Box::new(operation), mode: Mode::Fails(fault), sent, host });
    }

    /// What the executor and the provider notice about a call when it arrives.
    fn judge_call(&mut self, operation: &Operation) {
        let (id, key) = (operation.id, &operation.key);
        if matches!(self.phase, Phase::Quiet { .. }) {
            self.broken("L2", format!("{id}, a {}, left a settled fleet", operation.request.kind().label()));
        }
        if let Some(other) = self.flying.insert(id.attempt, id) {
            self.broken("S2", format!("{id} is submitted while {other} runs"));
        }
        let memory = self.memory;
        let fresh = || Known { slot: key.slot.clone(), memory, last_sequence: 0 };
        let first = !self.known.contains_key(&id.attempt);
        let known = self.known.entry(id.attempt).or_insert_with(fresh);
        let wrong = if known.slot != key.slot {
            Some(format!("attempt {} was for {} and is for {}", id.attempt, known.slot, key.slot))
        } else if id.sequence <= known.last_sequence {
            Some(format!("operation id {id} is used again"))
        } else if known.memory != memory && matches!(operation.request, Request::CreateLease(_)) {
            Some(format!("attempt {} of an earlier start of the host creates again", id.attempt))
        } else {
            None
        };
        known.last_sequence = id.sequence;
        if let Some(wrong) = wrong {
            self.broken("S3", wrong);
        }
        let mut audit = std::mem::take(&mut self.audit);
        let found = audit.leaves(operation, &self.driver, first, || self.live_resources(operation));
        self.audit = audit;
        if let Some(violation) = found {
            self.found.get_or_insert(violation);
        }
        if matches!(operation.request, Request::CreateLease(_))
            && let Some(other) = self.world.predecessor(key)
            && !other.key.as_ref().is_some_and(|other| self.driver.state().reaps.contains_key(&other.attempt))
        {
            let what = format!("{id} creates for {} while {} of its predecessor lives", key.slot, other.lease);
            self.broken("S8", what);
        }
    }

    /// A call takes effect.
    pub(crate) fn perform(&mut self, operation: Operation, mode: Mode, sent: Millis, host: u64) {
        let id = operation.id;
        let lingers = if let Mode::Lingers(ms) = mode { ms } else { 0 };
        let unexpected = matches!(mode, Mode::Unexpected) || host != self.host;
        // A call that was given up meanwhile takes effect when nobody waits for it.
        let given_up = self.flying.get(&id.attempt) != Some(&id);
        let result = match &mode {
            Mode::Fails(Fault::Permanent { .. }) if self.holds(&operation) => {
                self.effect(&operation, sent, host, false, 0)
            }
            Mode::Fails(fault) => Err(fault.clone()),
            _ => self.effect(&operation, sent, host, unexpected || given_up, lingers),
        };
        self.take_violations();
        if unexpected {
            if let Request::DestroyLease { lease } = &operation.request {
                // For a host that was started since, it is as if the resource had vanished by itself.
                self.world.vanished.insert(lease.clone());
            }
            let (slot, kind) = (&operation.key.slot, operation.request.kind().label());
            let line = format!("the lost {kind} {id} of {slot} takes effect: {result:?}");
            return self.say(|| line);
        }
        match mode {
            Mode::Dropped => {}
            Mode::Lost => {
                let reason = "connection reset".into();
                self.landed(id);
                self.feed(Input::Completed { id, result: Err(Fault::Ambiguous { reason }) });
            }
            Mode::Late(ms) => self.after(ms, Event::Complete { id, result, host }),
            Mode::Twice => {
                let again = self.choices.span_ms(10_000);
                self.after(again, Event::Complete { id, result: result.clone(), host });
                self.landed(id);
                self.feed(Input::Completed { id, result });
            }
            _ => {
                self.landed(id);
                self.feed(Input::Completed { id, result });
            }
        }
    }

    /// What is there already is adopted before anything can be refused.
    fn holds(&self, operation: &Operation) -> bool {
        let held = self.world.find(&operation.key).and_then(|at| self.world.live.get(at));
        match operation.request {
            Request::CreateLease(_) => held.is_some(),
            Request::StartBootstrap { .. } => held.is_some_and(|resource| resource.session.is_some()),
            _ => false,
        }
    }

    fn effect(
        &mut self,
        operation: &Operation,
        sent: Millis,
        host: u64,
        late: bool,
        lingers: u64,
    ) -> Result<Done, Fault> {
        let now = self.now;
        match &operation.request {
            Request::CreateLease(request) => {
                let birth = self.birth(operation, sent, late);
                let (lease, adopted) = self.world.create(operation, &request.template, birth, now);
                Ok(Done::Leased { lease, adopted })
            }
            Request::StartBootstrap { lease, endpoint, .. } => {
                let (number, adopted, joined) = self.world.start(operation, lease, endpoint, host, now)?;
                if joined {
                    let report =
                        Event::Report { number, attempt: operation.id.attempt, observation: Observation::Joined };
                    self.after(50, report);
                } else if !adopted {
                    self.script(number, operation);
                }
                Ok(Done::Started { session: session_name(number), adopted })
            }
            Request::SettleCreate(_) => {
                let listing = self.listing_fault();
                if let Some((fault, _)) = listing {
                    self.count(fault, Some(&operation.key.slot));
                }
                self.world.perform(operation, lingers, listing.map(|(_, how)| how), now)
            }
            _ => self.world.perform(operation, lingers, None, now),
        }
    }

    /// How a new resource starts.
    fn birth(&mut self, operation: &Operation, sent: Millis, late: bool) -> Birth {
        // What comes within its window was to be expected, except by a host that knows nothing of it.
        let remembered = self.known.get(&operation.id.attempt).is_some_and(|known| known.memory == self.memory);
        let (invisible_most, promised_at, excused) = match self.world.promise(self.world.provider(&operation.provider))
        {
            Promise::Keyed => (40_000, self.now, late),
            Promise::Windowed { window_ms, .. } => (window_ms / 4, sent + window_ms, late && !remembered),
        };
        let mut birth = Birth { late, excused, promised_at, ..Birth::default() };
        let fault = self.strike(Place::Birth);
        if let Some(fault) = fault {
            self.count(fault, Some(&operation.key.slot));
        }
        match fault {
            Some(FaultKind::Invisible) => {
                birth.invisible_ms = self.choices.span_ms(invisible_most / 2).min(invisible_most)
            }
            Some(FaultKind::EndpointLate) => {
                let endpoint_ms = self.people.policy.stages.endpoint_ms;
                birth.no_endpoint_ms = match self.choices.below(4) {
                    // Never, as far as this attempt is concerned.
                    3 => endpoint_ms.saturating_mul(20).min(1 << 40),
                    _ => self.choices.span_ms(endpoint_ms),
                };
            }
            Some(FaultKind::EndpointMoves) => {
                let at = self.choices.span_ms(10_000);
                // The next reference is the one this resource gets.
                let lease = format!("L{}", self.world.next_number());
                self.after(at, Event::MoveEndpoint { lease });
            }
            _ => {}
        }
        birth
    }

    /// What a new session will report.
    fn script(&mut self, number: u64, operation: &Operation) {
        let attempt = operation.id.attempt;
        let stages = self.people.policy.stages;
        let fault = self.strike(Place::Session);
        if let Some(fault) = fault {
            self.count(fault, Some(&operation.key.slot));
        }
        let quick = stages.bootstrap_ms.min(stages.join_ms) / 2;
        let joins = match self.phase {
            Phase::Faulty => (300 + 700 * u64::from(self.choices.below(4))).min(quick),
            _ => 500.min(quick),
        };
        let say = |sim: &mut Self, at, observation| sim.after(at, Event::Report { number, attempt, observation });
        match fault {
            Some(FaultKind::BootStalls) => {}
            Some(FaultKind::BootEndsEarly) => {
                let exit = (self.choices.below(2) == 1).then(|| "exit status 1".to_string());
                let mut at = joins;
                if self.choices.below(4) == 3 {
                    // It had just joined.
                    say(self, joins, Observation::Joined);
                    at += self.choices.span_ms(5_000);
                }
                say(self, at, Observation::Closed { exit });
            }
            Some(FaultKind::BootFails) => {
                let permanent = self.choices.below(4) == 3;
                let reason = "the boot command failed".into();
                say(self, joins, Observation::Failed { progress: Progress::StartFailed, reason, permanent });
            }
            Some(FaultKind::JoinSlow) => {
                let step = (stages.bootstrap_ms / 2).max(stages.join_ms / 32).max(1);
                let last = stages.join_ms + 1_000;
                for at in (1..).map(|n| n * step).take_while(|at| *at < last) {
                    say(self, at, Observation::Progress(Progress::Start));
                }
                say(self, last, Observation::Joined);
            }
            Some(FaultKind::BootReportsLate) => {
                if let Some((_, session)) = self.world.session(number) {
                    session.late_words = true;
                }
                say(self, joins, Observation::Joined);
                let after = self.choices.span_ms(300_000);
                say(self, joins + after, Observation::Progress(Progress::Start));
                say(self, joins + after + 1, Observation::Closed { exit: Some("exit status 143".into()) });
            }
            _ => {
                if self.phase == Phase::Faulty && self.choices.below(4) == 1 {
                    say(self, joins / 2, Observation::Progress(Progress::Start));
                }
                say(self, joins, Observation::Joined);
            }
        }
    }

    /// A session reports, if the host listens to it.
    pub(crate) fn report(&mut self, number: u64, attempt: AttemptId, observation: Observation) {
        let host = self.host;
        let (heard, late_words) = match self.world.session(number) {
            Some((_, session)) => {
                if observation == Observation::Joined {
                    session.joined = true;
                }
                (session.heard_by == host, session.late_words)
            }
            // Words of a session that was cancelled, or whose resource is gone.
            None => {
                let closing = matches!(observation, Observation::Closed { .. });
                let heard = self.phase == Phase::Faulty && !closing && self.swarm.rate(FaultKind::BootReportsLate) > 0;
                (heard, true)
            }
        };
        if late_words && matches!(observation, Observation::Closed { .. }) && self.world.session(number).is_some() {
            // Only a session that is gone says so late; this one goes on.
            return;
        }
        if matches!(observation, Observation::Closed { .. }) {
            self.world.end_session(number);
        }
        if heard {
            self.feed(Input::Observed { attempt, observation });
        }
    }

    /// A backend is listed.
    pub(crate) fn list(&mut self, provider: usize) {
        self.after(crate::run::LISTING_MS, Event::List { provider });
        if !self.up {
            return;
        }
        let fault = self.listing_fault();
        if let Some((fault, _)) = fault {
            self.count(fault, None);
        }
        let name = self.world.providers.get(provider).map(|(name, _)| name.clone()).unwrap_or_default();
        match self.world.list(provider, fault.map(|(_, how)| how), self.now) {
            Some(listing) => self.feed(Input::Listed { provider: name, listing }),
            None => self.say(|| format!("{name} cannot be listed")),
        }
    }

    fn listing_fault(&mut self) -> Option<(FaultKind, ListingFault)> {
        let fault = self.strike(Place::Listing)?;
        let how = match fault {
            FaultKind::ListStale => ListingFault::Stale,
            FaultKind::ListPartial => ListingFault::Partial,
            FaultKind::ListEmpty => ListingFault::Empty,
            _ => ListingFault::Fails,
        };
        Some((fault, how))
    }
}

/// Whether a fault can happen to a call of this kind.
fn fits(fault: FaultKind, operation: &Operation) -> bool {
    let destroy = matches!(operation.request, Request::DestroyLease { .. });
    match fault {
        FaultKind::DestroyFailsTwenty | FaultKind::DestroyLingers => destroy,
        _ => true,
    }
}
