//! The folds: every row of SPEC 5 and 6. Deadlines are computed here, once, and stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use decider::{OperationKind, Stage};

use crate::driver::{Driver, DriverError};
use crate::folding::Folding;
use crate::id::{AttemptId, NodeId, OperationId};
use crate::io::{Done, Fault, Observation, OperationStatus, Output, Promise};
use crate::ledger::{self, LedgerEvent, Step};
use crate::mutation::Mutation;
use crate::pause::Effect;
use crate::schedule::after;
use crate::shape::{ClusterShape, ShapeError, Template, slot_name};
use crate::state::{DesiredSlot, ManagedNode, TemplateId};

/// How long to wait before asking the executor again about an operation whose result it promised.
const ASK_AGAIN_MS: u64 = 5_000;
/// Observations kept while the start of their bootstrap is still pending.
const MAX_EARLY: usize = 64;

impl Driver {
    /// A new shape: checked whole, then taken over whole (SPEC 2).
    pub(crate) fn fold_desired(&mut self, shape: ClusterShape) -> Result<(), DriverError> {
        if self.check_desired(&shape, true)? {
            self.take_over(shape);
        }
        Ok(())
    }

    /// Whether a shape may be taken over, and whether it is another one. The limits and providers are looked at where it may
    /// ask for more than there is.
    pub(crate) fn check_desired(&self, shape: &ClusterShape, more: bool) -> Result<bool, ShapeError> {
        if shape.run != self.state.run && !self.mutated(Mutation::AcceptOtherRun) {
            return Err(ShapeError::OtherRun { expected: self.state.run.clone(), found: shape.run.clone() });
        }
        if more {
            shape.check(&self.policy.limits, &self.provider_names)?;
        }
        for (at, group) in shape.groups.iter().enumerate() {
            let (value, limit) = (u64::from(group.count), self.state.free_indices(&group.id));
            if value > limit {
                return Err(ShapeError::Exhausted { field: format!("group[{at}].count"), value, limit });
            }
        }
        let Some(current) = &self.state.desired else { return Ok(true) };
        if shape.generation < current.generation && !self.mutated(Mutation::AcceptOlderGeneration) {
            let (current, found) = (current.generation, shape.generation);
            return Err(ShapeError::GenerationBack { current, found });
        }
        if shape.generation == current.generation && !self.mutated(Mutation::AcceptSameGeneration) {
            return match current.groups == shape.groups {
                true => Ok(false),
                false => Err(ShapeError::SameGeneration { generation: shape.generation }),
            };
        }
        Ok(true)
    }

    /// A checked shape is in force: its slots are desired, and no others.
    pub(crate) fn take_over(&mut self, shape: ClusterShape) {
        let mut wanted: BTreeMap<NodeId, DesiredSlot> = BTreeMap::new();
        for (at, group) in shape.groups.iter().enumerate() {
            let template = self.intern(&group.template);
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let indices: Vec<u32> = self.state.indices(&group.id, group.count).collect();
            for index in indices {
                let index = if self.mutated(Mutation::ScaleDownLowest) { index.saturating_add(1) } else { index };
                let node = self.node_id(&slot_name(&group.id, index), &group.id, index);
                wanted.insert(node, DesiredSlot { group: at, template, surge: false });
            }
        }
        for at in 0..self.state.slots.len() {
            let node = NodeId(u32::try_from(at).unwrap_or(u32::MAX));
            let mut desired = wanted.get(&node).copied().or_else(|| self.still_surges(node, &shape));
            if self.mutated(Mutation::KeepUndesired) {
                desired = desired.or(self.state.slots[at].desired);
            }
            if self.state.slots[at].desired != desired {
                self.state.slots[at].desired = desired;
                self.touch(node);
            }
        }
        self.state.desired = Some(Arc::new(shape));
        self.shape_revision += 1;
        self.queued = true;
    }

    /// The index of a template; equal content, equal index.
    pub(crate) fn intern(&mut self, template: &Arc<Template>) -> TemplateId {
        // Maps are sorted and floats finite, so the JSON is canonical; serialising these types cannot fail.
        let bytes = serde_json::to_string(template.as_ref()).unwrap_or_default();
        if let Some(known) = self.state.template_index.get(&bytes) {
            return *known;
        }
        let id = TemplateId(u32::try_from(self.state.templates.len()).unwrap_or(u32::MAX - 1));
        self.state.templates.push(template.clone());
        Arc::make_mut(&mut self.state.template_index).insert(bytes, id);
        id
    }

    /// An operation ended.
    pub(crate) fn fold_completed(&mut self, id: OperationId, result: Result<Done, Fault>) {
        if let Some(of) = self.sweep_of(id) {
            self.fold_swept(&of, id.attempt, result);
            return;
        }
        let holder = match self.state.holder(id.attempt) {
            None if self.mutated(Mutation::FoldSuperseded) => {
                self.state.attempts.get(&id.attempt).map(|known| known.node)
            }
            holder => holder,
        };
        let Some(node) = holder else {
            self.stats.superseded += 1;
            return;
        };
        let event = match &result {
            Ok(_) => LedgerEvent::Succeeded,
            Err(Fault::Ambiguous { .. }) => LedgerEvent::GivenUp,
            Err(_) => LedgerEvent::Failed,
        };
        let superseded = self.mutated(Mutation::FoldSuperseded) && self.state.holder(id.attempt).is_none();
        let forgets = self.mutated(Mutation::ForgetLease);
        let overtakes = self.mutated(Mutation::DropOvertaking) && self.overtakes(id);
        let policy = self.policy;
        let now = self.now;
        let settles = self.settles(node);
        let (mutation, any_id) = (self.mutation, self.mutated(Mutation::FoldLateResult));
        let stuck = self.mutated(Mutation::LedgerDiscardsAsked);
        let Some(held) = self.node_mut(node) else { return };
        if superseded {
            if let Ok(Done::Leased { lease, .. }) = result {
                held.lease = Some(lease);
            }
            return;
        }
        if overtakes {
            return;
        }
        let pending = match held.pending.take() {
            Some(pending) if pending.operation.id == id || any_id => pending,
            other => {
                held.pending = other;
                self.stats.late += 1;
                return;
            }
        };
        let asked = pending.status == crate::ledger::Status::Asked;
        match ledger::step(pending.status, event) {
            _ if stuck && asked => {
                held.pending = Some(pending);
                return;
            }
            Step::Discard => {
                held.pending = Some(pending);
                self.stats.late += 1;
                return;
            }
            Step::To(_) => {}
        }
        let early = std::mem::take(&mut held.early);
        let fold = Folding { policy: &policy, now, settles, mutation };
        let started = matches!(result, Ok(Done::Started { .. }));
        match result {
            Ok(done) => fold.succeeded(held, &pending, done),
            Err(fault) => {
                if forgets && pending.operation.request.kind() == OperationKind::DestroyLease {
                    held.lease = None;
                }
                fold.faulted(held, &pending, fault);
            }
        }
        if started {
            for observation in early {
                fold.observed(held, observation);
            }
        }
        self.touch(node);
    }

    /// The executor says what became of an operation whose deadline passed.
    pub(crate) fn fold_answered(&mut self, id: OperationId, status: OperationStatus) {
        match status {
            OperationStatus::Ambiguous if self.mutated(Mutation::IgnoreAnswer) => {}
            OperationStatus::Ambiguous => {
                let reason = "no result before its deadline".to_string();
                self.fold_completed(id, Err(Fault::Ambiguous { reason }));
            }
            // The result follows; `deadline_ms` already says when to ask again.
            OperationStatus::Completed => {}
        }
    }

    /// A bootstrap session reports.
    pub(crate) fn fold_observed(&mut self, attempt: AttemptId, observation: Observation) {
        let Some(node) = self.state.holder(attempt) else {
            self.stats.superseded += 1;
            return;
        };
        let (policy, now, mutation) = (self.policy, self.now, self.mutation);
        let Some(held) = self.node_mut(node) else { return };
        let starting = held
            .pending
            .as_ref()
            .is_some_and(|pending| pending.operation.request.kind() == OperationKind::StartBootstrap);
        if starting {
            if held.early.len() < MAX_EARLY {
                held.early.push(observation);
            }
            return;
        }
        let fold = Folding { policy: &policy, now, settles: None, mutation };
        if fold.observed(held, observation) {
            self.touch(node);
        }
    }

    /// What is due for one node: its operation's deadline, its stage's deadline.
    pub(crate) fn fire_node(&mut self, node: NodeId) {
        let (policy, now, mutation) = (self.policy, self.now, self.mutation);
        let patient = self.mutated(Mutation::IgnoreStageDeadline);
        let (never_asks, forgets) = (self.mutated(Mutation::NeverAsk), self.mutated(Mutation::ForgetAtDeadline));
        // While nobody may look for an endpoint, that none is found is no failure.
        let blind = self.state.slot(node).is_some_and(|slot| self.pause_on(&slot.group, Effect::Other).is_some());
        let Some(held) = self.node_mut(node) else { return };
        let mut changed = false;
        let mut ask = None;
        if let Some(pending) = held.pending.as_mut().filter(|pending| pending.deadline_ms <= now) {
            if let Step::To(status) = ledger::step(pending.status, LedgerEvent::DeadlinePassed) {
                pending.status = status;
            }
            pending.deadline_ms = after(now, ASK_AGAIN_MS);
            ask = Some(pending.operation.id).filter(|_| !never_asks);
            if forgets {
                held.pending = None;
                changed = true;
            }
        }
        let silent = held.climbs() && held.stage_deadline.is_some_and(|at| at <= now) && !patient;
        if silent && blind && held.stage == Stage::LeaseCreated {
            Folding { policy: &policy, now, settles: None, mutation }.enter(held, policy.stages.endpoint_ms, None);
            changed = true;
        } else if silent {
            let reason = match held.stage {
                Stage::LeaseCreated => "no endpoint within the stage's deadline",
                Stage::BootstrapRunning if held.stage_deadline >= held.stage_deadline_max => {
                    "not joined within the stage's deadline"
                }
                Stage::BootstrapRunning => "the bootstrap was silent for longer than its deadline",
                _ => "the stage's deadline passed",
            };
            Folding { policy: &policy, now, settles: None, mutation }.fail(held, reason.into(), false);
            changed = true;
        }
        if let Some(id) = ask {
            self.outputs.push_back(Output::Ask(id));
        }
        if changed {
            self.touch(node);
        }
    }

    /// Whether an older attempt's operation of the same kind is still in flight (for the mutation of S13).
    fn overtakes(&self, id: OperationId) -> bool {
        let in_flight = |node: &ManagedNode| node.pending.as_ref().map(|pending| pending.operation.request.kind());
        let nodes = || self.state.slots.iter().filter_map(|slot| slot.node.as_ref());
        let kind = nodes().find(|node| node.attempt == id.attempt).and_then(in_flight);
        nodes().any(|node| node.attempt < id.attempt && node.pending.is_some() && in_flight(node) == kind)
    }

    pub(crate) fn node_mut(&mut self, node: NodeId) -> Option<&mut ManagedNode> {
        self.slot_mut(node)?.node.as_mut()
    }

    /// For a windowed provider, how a create in doubt is settled.
    pub(crate) fn settles(&self, node: NodeId) -> Option<(u64, u32)> {
        let held = self.state.slot(node)?.node.as_ref()?;
        let template = self.state.templates.get(held.template.0 as usize)?;
        match self.providers.get(&template.provider)? {
            Promise::Keyed => None,
            Promise::Windowed { window_ms, listings } => Some((*window_ms, *listings)),
        }
    }
}
