//! The driver: inputs in, outputs out, one pass at a time (SPEC 5). The folds are in `fold.rs`, passes in `pass.rs`,
//! listings in `sweep.rs`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::command::CommandError;
use crate::id::{AttemptId, Millis, NodeId};
use crate::io::{DeciderFailure, DeciderIdentity, Input, Notice, Operation, Output, Promise};
use crate::mutation::Mutation;
use crate::pass::Pass;
use crate::policy::Policy;
use crate::record::Record;
use crate::schedule::{MAX_INSTANT_MS, after};
use crate::shape::{ShapeError, check_id};
use crate::state::{ClusterState, Slot};

/// Attempt ids are made durable in blocks of at least this many, and of as many as there are slots.
const RESERVE: u64 = 32;
/// Operations of attempts of an earlier start are numbered from `epoch` times this.
pub(crate) const EPOCH_STRIDE: u64 = 1_000_000;

/// What a driver is made from.
#[derive(Clone, Debug)]
pub struct DriverConfig {
    /// The run it keeps; fixed for its life.
    pub run: String,
    /// The operator's settings.
    pub policy: Policy,
    /// The backends there are, and what each can promise.
    pub providers: BTreeMap<String, Promise>,
    /// The decider in force.
    pub decider: DeciderIdentity,
    /// The first attempt id that was never given out; all below were, by earlier starts. At least 1.
    pub next_attempt: u64,
    /// How often the host was started before with this run.
    pub epoch: u64,
}

/// What the driver refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// The shape is refused whole; nothing changed.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The order is refused whole; nothing changed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// An input came before the outputs of the previous one were drained.
    #[error("{outputs} outputs of the previous input are not drained yet")]
    Undrained {
        /// How many.
        outputs: usize,
    },
    /// An instant so late that deadlines could not be computed any more; nothing changed.
    #[error("the instant {now_ms} ms is past the last one there is ({MAX_INSTANT_MS} ms)")]
    TimeOutOfRange {
        /// The instant.
        now_ms: Millis,
    },
    /// Pass after pass changed something without any input; the next pass waits.
    #[error("{passes} passes in a row did not come to rest; still changing: {nodes}", nodes = nodes.join(", "))]
    NeverBlocks {
        /// How many.
        passes: u32,
        /// The slots that kept changing.
        nodes: Vec<String>,
    },
    /// A listing that is not complete cannot be adopted (S14); nothing changed.
    #[error("the listing of {provider:?} is not complete: adopting from it could double or forget something")]
    IncompleteAdoption {
        /// The backend.
        provider: String,
    },
    /// Adoption happens before the first shape.
    #[error("what {provider:?} holds can only be adopted before the first shape arrives")]
    LateAdoption {
        /// The backend.
        provider: String,
    },
}

/// What was discarded, and how much was done. Counts only: nothing here reaches a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Passes finished.
    pub passes: u64,
    /// Calls of the decider.
    pub decider_calls: u64,
    /// Decisions skipped because the node changed while the pass ran.
    pub stale_decisions: u64,
    /// Plans that answered no pass in flight.
    pub stale_plans: u64,
    /// Results and observations of superseded or retired attempts, discarded (SPEC 3).
    pub superseded: u64,
    /// Results that came after their operation was classified, discarded (SPEC 7).
    pub late: u64,
}

/// The driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Driver {
    pub(crate) state: ClusterState,
    pub(crate) policy: Policy,
    // What rarely changes is shared, so that a copy of a driver costs little: a search makes millions of them.
    pub(crate) providers: Arc<BTreeMap<String, Promise>>,
    #[serde(skip)]
    pub(crate) provider_names: Arc<BTreeSet<String>>,
    pub(crate) decider: Arc<DeciderIdentity>,
    #[serde(skip)]
    pub(crate) rule_ids: Arc<[Arc<str>]>,
    pub(crate) epoch: u64,
    /// The first attempt id that no earlier start gave out.
    pub(crate) fence: u64,
    pub(crate) now: Millis,
    #[serde(skip)]
    pub(crate) outputs: VecDeque<Output>,
    /// Dispatched in this batch; they leave after its records (S1).
    #[serde(skip)]
    pub(crate) submits: Vec<Operation>,
    /// The earliest deadline of each slot that has one.
    #[serde(skip)]
    pub(crate) timers: BTreeSet<(Millis, NodeId)>,
    pub(crate) pass: Option<Pass>,
    pub(crate) next_call: u64,
    pub(crate) queued: bool,
    /// Passes in a row without an input from outside.
    pub(crate) chain: u32,
    /// When the last plan wants to be asked again.
    pub(crate) wake_at: Option<Millis>,
    /// No pass before: the decider failed as a whole, or never came to rest.
    pub(crate) pass_retry_at: Option<Millis>,
    pub(crate) pass_failures: u32,
    /// What was last reported about the decider as a whole.
    pub(crate) reported: Option<DeciderFailure>,
    /// Rises with every accepted shape.
    pub(crate) shape_revision: u64,
    pub(crate) stats: Stats,
    /// Others that are asked beside the one in force: some that are not shown rollouts, some that are.
    #[serde(skip)]
    pub(crate) also: [bool; 2],
    #[serde(skip)]
    pub(crate) mutation: Option<Mutation>,
}

impl Driver {
    /// A driver that knows nothing yet. Adopt what the backends hold, then give it a shape.
    pub fn new(config: DriverConfig) -> Result<Self, DriverError> {
        check_id("run", &config.run)?;
        let next_attempt = config.next_attempt.max(1);
        let mut driver = Driver {
            state: ClusterState {
                run: config.run,
                desired: None,
                observed_generation: 0,
                next_attempt,
                reserved_below: next_attempt,
                // A run that never started before has given nothing out, whatever bears its name.
                inherited_below: if config.epoch == 0 { 1 } else { next_attempt },
                slots: Vec::new(),
                names: Arc::default(),
                templates: Vec::new(),
                template_index: Arc::default(),
                attempts: BTreeMap::new(),
                forgotten_sequence: 0,
                reaps: BTreeMap::new(),
                orphans: BTreeMap::new(),
                retired: BTreeMap::new(),
                pauses: Vec::new(),
                sees_rollouts: false,
                windows: Default::default(),
            },
            policy: config.policy,
            provider_names: Arc::new(config.providers.keys().cloned().collect()),
            providers: Arc::new(config.providers),
            decider: Arc::default(),
            rule_ids: Arc::default(),
            epoch: config.epoch,
            fence: next_attempt,
            now: 0,
            outputs: VecDeque::new(),
            submits: Vec::new(),
            timers: BTreeSet::new(),
            pass: None,
            next_call: 1,
            queued: false,
            chain: 0,
            wake_at: None,
            pass_retry_at: None,
            pass_failures: 0,
            reported: None,
            shape_revision: 0,
            stats: Stats::default(),
            also: [false; 2],
            mutation: None,
        };
        driver.set_decider(config.decider);
        Ok(driver)
    }

    /// Folds one input at an instant. Refused inputs change nothing. An instant before the last one counts as the last one.
    pub fn handle(&mut self, input: Input, now_ms: Millis) -> Result<(), DriverError> {
        if !self.outputs.is_empty() {
            return Err(DriverError::Undrained { outputs: self.outputs.len() });
        }
        if now_ms > MAX_INSTANT_MS {
            return Err(DriverError::TimeOutOfRange { now_ms });
        }
        // Refused before anything else happens.
        let order = match &input {
            Input::Command(command) => Some(self.order(command)?),
            _ => None,
        };
        let earlier = self.now;
        self.now = self.now.max(now_ms);
        if !matches!(input, Input::Decided { .. }) {
            self.chain = 0;
        }
        let folded = match input {
            Input::Desired(shape) => self.fold_desired(shape),
            Input::Completed { id, result } => {
                self.fold_completed(id, result);
                Ok(())
            }
            Input::Answered { id, status } => {
                self.fold_answered(id, status);
                Ok(())
            }
            Input::Observed { attempt, observation } => {
                self.fold_observed(attempt, observation);
                Ok(())
            }
            Input::Listed { provider, listing } => {
                self.fold_listed(&provider, &listing);
                Ok(())
            }
            Input::Adopt { provider, listing } => self.fold_adopt(&provider, &listing),
            Input::Decided { call, result } => self.fold_decided(call, result),
            Input::DeciderChanged(identity) => {
                self.set_decider(identity);
                // A plan of the previous one cites the rules of the previous one: its pass is made again.
                if !self.mutated(Mutation::KeepPassAtSwap) {
                    self.pass = None;
                }
                self.forget_decider_failures();
                Ok(())
            }
            Input::Command(command) => {
                order.into_iter().for_each(|order| self.fold_command(command.clone(), order));
                Ok(())
            }
            Input::PolicyChanged(policy) => {
                self.policy = policy;
                self.queued = true;
                Ok(())
            }
            Input::Surveyed { provider, listing } => {
                self.fold_surveyed(&provider, &listing);
                Ok(())
            }
            Input::Restarted => {
                self.fold_restarted();
                Ok(())
            }
            Input::Tick => Ok(()),
            Input::Resync => {
                self.queued = true;
                Ok(())
            }
        };
        if folded.is_err() && self.outputs.is_empty() && self.submits.is_empty() && self.pass.is_none() {
            // Refused: time has not passed either.
            if matches!(
                folded,
                Err(DriverError::Shape(_) | DriverError::IncompleteAdoption { .. } | DriverError::LateAdoption { .. })
            ) {
                self.now = earlier;
                return folded;
            }
        }
        self.end_start_pause();
        self.fire_due();
        self.start_pass();
        self.flush();
        folded
    }

    /// The next output; `None` when all are drained.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the driver wants [`Input::Tick`] at the latest; `None` when only an input can change anything.
    pub fn requeue_at(&self) -> Option<Millis> {
        let timers = self.timers.first().map(|(at, _)| *at);
        let reaps = self.sweeps_due();
        let gate = self.pass_retry_at.filter(|_| self.queued && self.pass.is_none());
        reaps.chain(timers).chain(self.wake_at).chain(gate).min()
    }

    /// Observed state, to look at.
    pub fn state(&self) -> &ClusterState {
        &self.state
    }

    /// The operator's settings.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The backends there are, and what each can promise.
    pub fn providers(&self) -> &BTreeMap<String, Promise> {
        &self.providers
    }

    /// The decider in force.
    pub fn decider(&self) -> &DeciderIdentity {
        &self.decider
    }

    /// What was discarded and done.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// The latest instant folded.
    pub fn now_ms(&self) -> Millis {
        self.now
    }

    /// From now on each call of the decider is also put as these would be shown it if they were in force: from the same facts, at
    /// the same instant. See [`Driver::asked_otherwise`]. It changes nothing else, and is not kept in a checkpoint.
    pub fn also_show<'a>(&mut self, others: impl IntoIterator<Item = &'a DeciderIdentity>) {
        self.also = [false; 2];
        for other in others {
            self.also[usize::from(other.sees_rollouts())] = true;
        }
    }

    /// The call in flight as deciders are shown it whose contract shows more or less than that of the one in force; `None` where
    /// nobody asked for that when the call was made.
    pub fn asked_otherwise(&self) -> Option<&Arc<decider::Snapshot>> {
        self.pass.as_ref()?.otherwise()
    }

    /// Breaks one rule of the engine on purpose, to show that a checker notices (tests only).
    #[cfg(feature = "mutations")]
    pub fn mutate(&mut self, mutation: Mutation) {
        self.mutation = Some(mutation);
    }

    pub(crate) fn mutated(&self, mutation: Mutation) -> bool {
        cfg!(feature = "mutations") && self.mutation == Some(mutation)
    }

    fn set_decider(&mut self, identity: DeciderIdentity) {
        self.rule_ids = identity.rules.iter().map(|rule| Arc::from(rule.id.as_str())).collect();
        self.state.sees_rollouts = identity.sees_rollouts();
        self.decider = Arc::new(identity);
    }

    /// The number of a slot's name; a new one if it was never seen.
    pub(crate) fn node_id(&mut self, name: &str, group: &str, index: u32) -> NodeId {
        if let Some(known) = self.state.names.get(name) {
            return *known;
        }
        // More than u32::MAX names cannot come from shapes under the limits; the last number is then shared, and refused by validation.
        let id = NodeId(u32::try_from(self.state.slots.len()).unwrap_or(u32::MAX - 1));
        Arc::make_mut(&mut self.state.names).insert(name.into(), id);
        self.state.slots.push(Slot::vacant(name.into(), group.into(), index));
        id
    }

    pub(crate) fn slot_mut(&mut self, node: NodeId) -> Option<&mut Slot> {
        self.state.slots.get_mut(node.0 as usize)
    }

    /// A slot changed: its deadlines are armed anew and a pass is due.
    pub(crate) fn touch(&mut self, node: NodeId) {
        if let Some(slot) = self.slot_mut(node) {
            slot.revision += 1;
        }
        self.arm(node);
        self.queued = true;
    }

    /// Arms the slot's earliest deadline that is still to come.
    pub(crate) fn arm(&mut self, node: NodeId) {
        let now = self.now;
        let Some(slot) = self.state.slots.get_mut(node.0 as usize) else { return };
        // One that is due at this very instant is still to be fired: whatever else comes at it must not lose it.
        let loses = cfg!(feature = "mutations") && self.mutation == Some(Mutation::LoseDueTimer);
        if slot.armed.is_some_and(|at| at <= now) && !loses {
            return;
        }
        let mut next = earliest_after(slot, now);
        if cfg!(feature = "mutations") && self.mutation == Some(Mutation::NoDeadlineTimer) {
            let pending = slot.node.as_ref().and_then(|node| node.pending.as_ref()).map(|pending| pending.deadline_ms);
            next = next.filter(|at| Some(*at) != pending);
        }
        if slot.armed != next {
            if let Some(old) = slot.armed {
                self.timers.remove(&(old, node));
            }
            if let Some(at) = next {
                self.timers.insert((at, node));
            }
            slot.armed = next;
        }
    }

    /// A fresh attempt id for a slot, reserved durably before it can be used (S3).
    pub(crate) fn authorise(&mut self, node: NodeId) -> AttemptId {
        let id = AttemptId(self.state.next_attempt);
        if !self.mutated(Mutation::ReuseAttempt) || id.0 < 2 {
            self.state.next_attempt += 1;
        }
        if id.0 >= self.state.reserved_below {
            let block = RESERVE.max(self.state.slots.len() as u64);
            self.state.reserved_below = id.0.saturating_add(block);
            let below = AttemptId(self.state.reserved_below);
            if !self.mutated(Mutation::FenceNotRecorded) {
                self.outputs.push_back(Output::Record(Record::AttemptsReserved { below }));
            }
        }
        self.state.attempts.insert(id, crate::state::Authorised { node, next_sequence: 1 });
        self.forget_old_attempts();
        id
    }

    pub(crate) fn notice(&mut self, notice: Notice) {
        self.outputs.push_back(Output::Notice(notice));
    }

    /// Fires what is due at this instant.
    fn fire_due(&mut self) {
        while let Some(&(at, node)) = self.timers.first() {
            if at > self.now {
                break;
            }
            self.timers.pop_first();
            if let Some(slot) = self.slot_mut(node) {
                slot.armed = None;
            }
            self.fire_node(node);
            self.queued = true;
            self.arm(node);
        }
        self.fire_reaps();
        if self.wake_at.is_some_and(|at| at <= self.now) {
            self.wake_at = None;
            self.queued = true;
        }
    }

    /// Records leave before submissions (S1): one group commit per batch.
    fn flush(&mut self) {
        let submits = std::mem::take(&mut self.submits);
        let records = submits.iter().map(|operation| Output::Record(Record::Pending(Box::new(operation.clone()))));
        if self.mutated(Mutation::SubmitBeforeRecord) {
            let records: Vec<_> = records.collect();
            self.outputs.extend(submits.into_iter().map(Output::Submit));
            self.outputs.extend(records);
            return;
        }
        self.outputs.extend(records);
        // What the decider is asked must not overtake what has to be durable, nor delay what may leave.
        let decide = match self.outputs.iter().rposition(|output| matches!(output, Output::Decide { .. })) {
            Some(at) => self.outputs.remove(at),
            None => None,
        };
        self.outputs.extend(submits.into_iter().map(Output::Submit));
        self.outputs.extend(decide);
    }

    /// Waits before the next pass, because passes fail or never come to rest.
    pub(crate) fn gate_passes(&mut self) {
        self.pass_failures = self.pass_failures.saturating_add(1);
        let wait = crate::schedule::backoff_ms(&self.policy, AttemptId(0), self.pass_failures);
        self.pass_retry_at = Some(after(self.now, wait.max(1)));
    }
}

/// The earliest of a slot's deadlines that is later than `now`.
fn earliest_after(slot: &Slot, now: Millis) -> Option<Millis> {
    let retry = slot.quarantine.as_ref().map(|quarantine| quarantine.retry_at);
    let node = slot.node.as_ref();
    let of_node = node.into_iter().flat_map(|node| {
        [
            node.pending.as_ref().map(|pending| pending.deadline_ms),
            node.stage_deadline.filter(|_| node.climbs()),
            node.retry.next_effect_at,
            node.retry.probe_at,
            node.retry.restart_at,
        ]
    });
    of_node.chain([retry]).flatten().filter(|at| *at > now).min()
}
