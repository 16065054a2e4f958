//! One step of the production driver: an input in the model's numbers, all that follows from it at once, judged by the
//! engine's own checkers.

use std::collections::VecDeque;
use std::sync::Arc;

use decider::{Plan, Progress, Snapshot};
use engine::driver::Driver;
use engine::id::{AttemptId, OperationId};
use engine::invariants::{self, Violation, check_step};
use engine::io::{DeciderFailure, Done, Fault, Input, Listing, Notice, Observation, OperationStatus, Output, Resource};
use engine::state::ClusterState;
use engine::validate::check_plan;
use engine::watch::Watch;

use crate::machine::{Failing, Form, In, Machine, Sent, Step, Word, about, ask, doubt_of, pending_of};
use crate::moves::NO_ROOM;
use crate::names;
use crate::scope::{GROUP, PROVIDER};
use crate::world::Reply;

/// Makes a form of a driver, in which these attempts matter. The form's driver may be another one of the same form; so the
/// attempts that its numbers stand for in this one come with it.
pub type Make<'a> = dyn Fn(Driver, &[AttemptId]) -> (Arc<Form>, Vec<AttemptId>) + 'a;

struct Run<'a> {
    machine: &'a Machine<'a>,
    driver: Driver,
    /// The state before the first input.
    before: &'a ClusterState,
    /// Begun with the second input: most steps have but one.
    watch: Option<Watch>,
    judged: u32,
    sent: Vec<engine::io::Operation>,
    found: Option<Violation>,
    rules: &'a mut [u64],
}

impl Machine<'_> {
    pub(crate) fn compute(&self, form: &Form, input: In, rules: &mut [u64], make: &Make<'_>) -> Step {
        if let In::Keep(mask) = input {
            let kept = form.attempts.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1);
            let kept: Vec<AttemptId> = kept.map(|(_, attempt)| *attempt).collect();
            return self.finish(form, form.driver.clone(), &kept, &[], None, make);
        }
        let mut run = Run {
            machine: self,
            driver: form.driver.clone(),
            before: form.driver.state(),
            watch: None,
            judged: 0,
            sent: Vec::new(),
            found: None,
            rules,
        };
        let now = run.driver.now_ms() + if let In::Tick { ms } = input { ms } else { 0 };
        for input in self.inputs(form, input) {
            run.feed(input, now);
        }
        let Run { driver, sent, found, .. } = run;
        self.finish(form, driver, &form.attempts, &sent, found, make)
    }

    fn finish(
        &self,
        form: &Form,
        driver: Driver,
        kept: &[AttemptId],
        operations: &[engine::io::Operation],
        mut violation: Option<Violation>,
        make: &Make<'_>,
    ) -> Step {
        let (mut doubt_kept, mut doubt_new) = (0, 0);
        for (at, attempt) in form.attempts.iter().enumerate() {
            let Some(doubt) = doubt_of(&driver, *attempt) else { continue };
            let same = doubt_of(&form.driver, *attempt) == Some(doubt);
            let new = pending_of(&form.driver, *attempt).is_some_and(|pending| pending.operation.id == doubt);
            doubt_kept |= u32::from(same) << at;
            doubt_new |= u32::from(new) << at;
        }
        let (next, attempts) = make(driver, kept);
        if !next.whole {
            violation.get_or_insert(Violation { id: "L4", what: "a pass is never answered".into() });
        }
        if next.attempts.len() > 16 {
            violation.get_or_insert(Violation { id: NO_ROOM, what: "more attempts matter at once than fit".into() });
        }
        let number =
            |attempt: AttemptId| attempts.iter().position(|known| *known == attempt).map_or(u8::MAX, |at| at as u8);
        let mut sent = Vec::new();
        for operation in operations {
            let (lease, session) = about(&operation.request);
            let named = match &operation.request {
                engine::io::Request::LookupEndpoint { lease }
                | engine::io::Request::StartBootstrap { lease, .. }
                | engine::io::Request::CancelBootstrap { lease, .. }
                | engine::io::Request::DestroyLease { lease } => Some(names::parse(lease).0),
                _ => None,
            };
            if named.is_some_and(|attempt| attempt != operation.key.attempt) {
                let what = format!("{} touches a resource that does not bear {}", operation.id, operation.key);
                violation.get_or_insert(Violation { id: "S15", what });
            }
            sent.push(Sent {
                attempt: number(operation.id.attempt),
                ask: ask(&operation.request),
                number: lease.unwrap_or(0),
                session: session.unwrap_or(0),
            });
        }
        let renumbered = form.attempts.iter().map(|attempt| number(*attempt)).collect();
        Step { next, renumbered, sent, doubt_kept, doubt_new, violation }
    }

    /// An input in the driver's own words.
    fn inputs(&self, form: &Form, input: In) -> Vec<Input> {
        let attempt = |at: u8| form.attempts.get(usize::from(at)).copied().unwrap_or(AttemptId(0));
        let pending = |at: u8| {
            let id = pending_of(&form.driver, attempt(at)).map(|pending| pending.operation.id);
            id.unwrap_or(OperationId { attempt: attempt(at), sequence: 0 })
        };
        match input {
            In::Shape(edits) => vec![Input::Desired(self.shape(edits))],
            In::Answer { attempt: at, reply, number, session } => {
                vec![Input::Completed { id: pending(at), result: result(reply, attempt(at), number, session) }]
            }
            In::Fails { attempt: at, fault } => {
                let fault = match fault {
                    Failing::Unknown => Fault::Ambiguous { reason: "connection reset".into() },
                    Failing::Retryable => Fault::retryable("503: try again"),
                    Failing::Permanent => Fault::permanent("no permission"),
                    Failing::NotReady => Fault::NotReady { reason: "no address yet".into() },
                };
                vec![Input::Completed { id: pending(at), result: Err(fault) }]
            }
            In::Late { attempt: at, doubted, reply, number, session } => {
                // An operation that is neither pending nor remembered has an id that is neither's.
                let doubt = doubt_of(&form.driver, attempt(at)).filter(|_| doubted);
                let id = doubt.unwrap_or(OperationId { attempt: attempt(at), sequence: 0 });
                vec![Input::Completed { id, result: result(reply, attempt(at), number, session) }]
            }
            In::Hears { attempt: at, word } => {
                let observation = match word {
                    Word::Joined => Observation::Joined,
                    Word::Failed => Observation::Failed {
                        progress: Progress::StartFailed,
                        reason: "the boot command failed".into(),
                        permanent: false,
                    },
                    Word::Ended => Observation::Closed { exit: Some("exit status 137".into()) },
                    Word::Silent => Observation::Closed { exit: None },
                };
                vec![Input::Observed { attempt: attempt(at), observation }]
            }
            In::Listed { resources } => {
                let listing = Listing { complete: true, resources: self.listed(form, resources) };
                vec![Input::Listed { provider: PROVIDER.into(), listing }]
            }
            In::Tick { .. } => vec![Input::Tick],
            In::Restarted { running, edits } => {
                let mut inputs = vec![Input::Restarted];
                for known in form.driver.live_sessions() {
                    let at = form.attempts.iter().position(|attempt| *attempt == known.key.attempt);
                    if at.is_none_or(|at| running >> at & 1 == 0) {
                        let observation = Observation::Closed { exit: None };
                        inputs.push(Input::Observed { attempt: known.key.attempt, observation });
                    }
                }
                inputs.push(Input::Desired(self.shape(edits)));
                inputs
            }
            In::Keep(_) => Vec::new(),
        }
    }

    fn listed(&self, form: &Form, mut packed: u128) -> Vec<Resource> {
        let state = form.driver.state();
        let mut resources = Vec::new();
        while packed != 0 {
            let (number, at) = ((packed >> 1 & 15) as u8, (packed >> 5 & 31) as usize);
            packed >>= 10;
            let Some(attempt) = form.attempts.get(at) else { continue };
            let slot = state.attempts.get(attempt).and_then(|known| state.slot(known.node));
            let slot = slot.map_or_else(|| engine::shape::slot_name(GROUP, 0), |slot| slot.name.clone());
            let key = Some(state.key(&slot, *attempt));
            resources.push(Resource { lease: names::lease(*attempt, number), key, template: None });
        }
        resources
    }
}

fn result(reply: Reply, attempt: AttemptId, number: u8, session: u8) -> Result<Done, Fault> {
    let lease = || names::lease(attempt, number);
    let session = || names::session(attempt, number, session);
    Ok(match reply {
        Reply::Leased => Done::Leased { lease: lease(), adopted: false },
        Reply::LeasedAgain => Done::Leased { lease: lease(), adopted: true },
        Reply::Absent => Done::Absent,
        Reply::Found => Done::Found { endpoint: names::endpoint(attempt, number) },
        Reply::Started => Done::Started { session: session(), adopted: false },
        Reply::StartedAgain => Done::Started { session: session(), adopted: true },
        Reply::Cancelled => Done::Cancelled,
        Reply::Destroyed => Done::Destroyed,
        Reply::Gone | Reply::None => return Err(Fault::retryable("404: no such resource")),
    })
}

impl Run<'_> {
    /// One input and all that follows from it at once: the decider answers, and the executor says of an operation whose
    /// deadline has passed that it gave it up.
    fn feed(&mut self, input: Input, now: u64) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let judged = match &input {
                Input::Decided { call, .. } => Input::Decided { call: *call, result: Ok(Plan::default()) },
                input => input.clone(),
            };
            if self.judged == 1 {
                self.watch = Some(Watch::new(self.driver.state()));
            }
            self.judged += 1;
            let folded = self.driver.handle(input, now);
            let mut outputs = Vec::new();
            while let Some(output) = self.driver.poll_output() {
                outputs.push(output);
            }
            let after = self.driver.state();
            let found = match &mut self.watch {
                None => check_step(&invariants::Step { before: self.before, input: &judged, outputs: &outputs, after }),
                Some(watch) => watch.step(&judged, &outputs, after),
            };
            if let Some(first) = found.into_iter().next() {
                self.found.get_or_insert(first);
            }
            if let Err(error) = folded {
                self.broken("L4", error.to_string());
            }
            for output in outputs {
                match output {
                    Output::Record(_) => {}
                    Output::Submit(operation) => self.sent.push(operation),
                    Output::Ask(id) => inputs.push_back(Input::Answered { id, status: OperationStatus::Ambiguous }),
                    Output::Decide { call, snapshot } => {
                        let result = self.decide(&snapshot);
                        inputs.push_back(Input::Decided { call, result });
                    }
                    Output::Notice(Notice::Inconsistent { node, facts }) => {
                        self.broken("L4", format!("the facts of {node} contradict each other: {facts}"));
                    }
                    Output::Notice(Notice::AwaitsPerson { node, rule, facts }) => {
                        self.broken("L4", format!("{node} waits for a person by {rule}: {facts}"));
                    }
                    Output::Notice(_) => {}
                }
            }
        }
    }

    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, DeciderFailure> {
        let plan = (self.machine.decide)(snapshot)?;
        // The engine refuses such a plan; that a decider makes it is what is to be learnt.
        if let Err(error) = check_plan(&plan, snapshot, self.machine.identity.rules.len()) {
            self.broken(error.property(), format!("the plan is refused: {error}"));
        }
        for rule in &plan.decisions.rule {
            if let Some(count) = self.rules.get_mut(usize::from(*rule)) {
                *count += 1;
            }
        }
        Ok(plan)
    }

    fn broken(&mut self, id: &'static str, what: String) {
        self.found.get_or_insert(Violation { id, what });
    }
}
