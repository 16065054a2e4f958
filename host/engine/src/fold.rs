//! The folds: every row of SPEC 5 and 6. Deadlines are computed here, once, and stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use decider::{OperationKind, Progress, Stage};

use crate::driver::{Driver, DriverError};
use crate::id::{AttemptId, Millis, NodeId, OperationId};
use crate::io::{Done, Fault, Observation, OperationStatus, Output, Promise, Request};
use crate::ledger::{self, LedgerEvent, Step};
use crate::mutation::Mutation;
use crate::schedule::{after, backoff_ms, stretched_ms};
use crate::shape::{ClusterShape, ShapeError, Template, slot_name};
use crate::state::{Ambiguous, DesiredSlot, Failure, ManagedNode, Pending, TemplateId};

/// How long to wait before asking the executor again about an operation whose result it promised.
const ASK_AGAIN_MS: u64 = 5_000;
/// How often a bootstrap in doubt is tried to be adopted before its lease is destroyed without that.
pub(crate) const ADOPTION_TRIES: u32 = 3;
/// Observations kept while the start of their bootstrap is still pending.
const MAX_EARLY: usize = 64;

impl Driver {
    /// A new shape: checked whole, then taken over whole (SPEC 2).
    pub(crate) fn fold_desired(&mut self, shape: ClusterShape) -> Result<(), DriverError> {
        if shape.run != self.state.run {
            return Err(ShapeError::OtherRun { expected: self.state.run.clone(), found: shape.run }.into());
        }
        shape.check(&self.policy.limits, &self.provider_names)?;
        if let Some(current) = &self.state.desired {
            let same = current.groups == shape.groups;
            if shape.generation < current.generation && !self.mutated(Mutation::AcceptOlderGeneration) {
                let (current, found) = (current.generation, shape.generation);
                return Err(ShapeError::GenerationBack { current, found }.into());
            }
            if shape.generation == current.generation {
                return if same {
                    Ok(())
                } else {
                    Err(ShapeError::SameGeneration { generation: shape.generation }.into())
                };
            }
        }
        let mut wanted: BTreeMap<NodeId, DesiredSlot> = BTreeMap::new();
        for (at, group) in shape.groups.iter().enumerate() {
            let template = self.intern(&group.template);
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            for index in 0..group.count {
                let index = if self.mutated(Mutation::ScaleDownLowest) { index.saturating_add(1) } else { index };
                let node = self.node_id(&slot_name(&group.id, index), &group.id, index);
                wanted.insert(node, DesiredSlot { group: at, template });
            }
        }
        for at in 0..self.state.slots.len() {
            let node = NodeId(u32::try_from(at).unwrap_or(u32::MAX));
            let desired = wanted.get(&node).copied();
            if self.state.slots[at].desired != desired {
                self.state.slots[at].desired = desired;
                self.touch(node);
            }
        }
        self.state.desired = Some(Arc::new(shape));
        self.shape_revision += 1;
        self.queued = true;
        Ok(())
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
        self.state.template_index.insert(bytes, id);
        id
    }

    /// An operation ended.
    pub(crate) fn fold_completed(&mut self, id: OperationId, result: Result<Done, Fault>) {
        if self
            .state
            .reaps
            .get(&id.attempt)
            .is_some_and(|reap| reap.pending.as_ref().is_some_and(|p| p.operation.id == id))
        {
            self.fold_reaped(id, result);
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
            Some(pending) if pending.operation.id == id => pending,
            other => {
                held.pending = other;
                self.stats.late += 1;
                return;
            }
        };
        match ledger::step(pending.status, event) {
            Step::Discard => {
                held.pending = Some(pending);
                self.stats.late += 1;
                return;
            }
            Step::To(_) => {}
        }
        let early = std::mem::take(&mut held.early);
        let fold = Folding { policy: &policy, now, settles };
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
        let (policy, now) = (self.policy, self.now);
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
        let fold = Folding { policy: &policy, now, settles: None };
        if fold.observed(held, observation) {
            self.touch(node);
        }
    }

    /// What is due for one node: its operation's deadline, its stage's deadline.
    pub(crate) fn fire_node(&mut self, node: NodeId) {
        let (policy, now) = (self.policy, self.now);
        let Some(held) = self.node_mut(node) else { return };
        let mut changed = false;
        let mut ask = None;
        if let Some(pending) = held.pending.as_mut().filter(|pending| pending.deadline_ms <= now) {
            if let Step::To(status) = ledger::step(pending.status, LedgerEvent::DeadlinePassed) {
                pending.status = status;
            }
            pending.deadline_ms = after(now, ASK_AGAIN_MS);
            ask = Some(pending.operation.id);
        }
        if held.climbs() && held.stage_deadline.is_some_and(|at| at <= now) {
            let reason = match held.stage {
                Stage::LeaseCreated => "no endpoint within the stage's deadline",
                Stage::BootstrapRunning if held.stage_deadline >= held.stage_deadline_max => {
                    "not joined within the stage's deadline"
                }
                Stage::BootstrapRunning => "the bootstrap was silent for longer than its deadline",
                _ => "the stage's deadline passed",
            };
            Folding { policy: &policy, now, settles: None }.fail(held, reason.into(), false);
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
    fn settles(&self, node: NodeId) -> Option<(u64, u32)> {
        let held = self.state.slot(node)?.node.as_ref()?;
        let template = self.state.templates.get(held.template.0 as usize)?;
        match self.providers.get(&template.provider)? {
            Promise::Keyed => None,
            Promise::Windowed { window_ms, listings } => Some((*window_ms, *listings)),
        }
    }
}

/// What a fold needs besides the node.
pub(crate) struct Folding<'a> {
    pub policy: &'a crate::policy::Policy,
    pub now: Millis,
    /// Window and number of listings, for a windowed provider.
    pub settles: Option<(u64, u32)>,
}

impl Folding<'_> {
    fn succeeded(&self, node: &mut ManagedNode, pending: &Pending, done: Done) {
        let climbs = node.climbs();
        match (&pending.operation.request, done) {
            (Request::CreateLease(_) | Request::SettleCreate(_), Done::Leased { lease, .. }) => {
                node.lease = Some(lease);
                self.settled(node);
                if climbs {
                    node.stage = Stage::LeaseCreated;
                    self.enter(node, self.policy.stages.endpoint_ms, None);
                }
            }
            (Request::SettleCreate(_), Done::Absent) => self.absent(node, pending),
            (Request::LookupEndpoint { .. }, Done::Found { endpoint }) => {
                node.endpoint = Some(endpoint);
                self.settled(node);
                if climbs {
                    node.stage = Stage::EndpointKnown;
                    node.stage_deadline = None;
                    node.stage_deadline_max = None;
                }
            }
            (Request::StartBootstrap { .. }, Done::Started { session, .. }) => {
                node.session = Some(session);
                self.settled(node);
                if climbs {
                    node.stage = Stage::BootstrapRunning;
                    node.progress = Progress::None;
                    self.enter(node, self.policy.stages.bootstrap_ms, Some(self.policy.stages.join_ms));
                }
            }
            (Request::CancelBootstrap { .. }, Done::Cancelled) => {
                node.session = None;
                self.settled(node);
            }
            (Request::DestroyLease { .. }, Done::Destroyed) => {
                node.lease = None;
                node.endpoint = None;
                node.session = None;
                self.settled(node);
            }
            (request, done) => {
                let reason = format!("the backend answered {done:?} to a {}", request.kind().label());
                self.faulted(node, pending, Fault::Ambiguous { reason });
            }
        }
    }

    fn faulted(&self, node: &mut ManagedNode, pending: &Pending, fault: Fault) {
        let kind = pending.operation.request.kind();
        let tries = node.retry.ambiguous.as_ref().map_or(0, |doubt| doubt.absences);
        node.last_error = Some(format!("{}: {fault}", kind.label()));
        match fault {
            Fault::NotReady { .. } if kind == OperationKind::LookupEndpoint => {
                node.retry.probe_at = Some(after(self.now, self.policy.probe_interval_ms));
            }
            Fault::NotReady { .. } => {
                node.retry.next_effect_at = Some(after(self.now, self.policy.probe_interval_ms));
            }
            Fault::Retryable { reason, retry_after_ms } => {
                if let (Request::SettleCreate(_), Some(doubt)) = (&pending.operation.request, &mut node.retry.ambiguous)
                {
                    // Only complete listings in a row count (S14).
                    doubt.absences = 0;
                }
                if kind == OperationKind::StartBootstrap && retry_after_ms.is_none() && node.climbs() {
                    return self.fail(node, reason, false);
                }
                if kind == OperationKind::CreateLease && node.climbs() && node.retry.ambiguous.is_none() {
                    node.stage = Stage::New;
                }
                self.tried_to_adopt(node, kind, tries);
                self.back_off(node, retry_after_ms);
            }
            Fault::Permanent { reason } => {
                let cleaning = matches!(kind, OperationKind::CancelBootstrap | OperationKind::DestroyLease);
                if node.climbs() && !cleaning {
                    return self.fail(node, reason, true);
                }
                if matches!(pending.operation.request, Request::SettleCreate(_)) {
                    // A listing that is refused says nothing about what it would show (S14).
                    return self.back_off(node, Some(self.policy.backoff_cap_ms));
                }
                if node.doubt() == Some(kind) {
                    // The backend looked for the key before it refused: nothing is held under it. What lands later is
                    // swept by its label (SPEC 7).
                    node.retry.ambiguous = None;
                }
                self.back_off(node, Some(self.policy.backoff_cap_ms));
                node.retry.provider_wait = None;
                if !cleaning {
                    node.retry.next_effect_at = None;
                }
            }
            Fault::Ambiguous { .. } => {
                let request = match &pending.operation.request {
                    Request::CreateLease(request) | Request::SettleCreate(request) => Some(request.clone()),
                    _ => None,
                };
                // Settling sends nothing: the doubt is as old as it was.
                let kept = matches!(pending.operation.request, Request::SettleCreate(_));
                match &mut node.retry.ambiguous {
                    Some(doubt) if kept => doubt.absences = 0,
                    doubt => {
                        *doubt = Some(Ambiguous {
                            id: pending.operation.id,
                            kind,
                            since_ms: self.now,
                            absences: 0,
                            request,
                        });
                    }
                }
                self.tried_to_adopt(node, kind, tries);
                self.back_off(node, None);
            }
        }
    }

    /// A bootstrap in doubt could not be adopted to be cancelled. After some tries its lease is destroyed all the same:
    /// what runs on it ends with it. Else a machine that never answers again would be kept for ever.
    fn tried_to_adopt(&self, node: &mut ManagedNode, kind: OperationKind, tries: u32) {
        if kind != OperationKind::StartBootstrap || node.climbs() || node.lease.is_none() {
            return;
        }
        if tries + 1 >= ADOPTION_TRIES {
            node.retry.ambiguous = None;
        } else if let Some(doubt) = node.retry.ambiguous.as_mut().filter(|doubt| doubt.kind == kind) {
            doubt.absences = tries + 1;
        }
    }

    /// A complete listing lacks the label of a create in doubt (SPEC 7, windowed).
    fn absent(&self, node: &mut ManagedNode, pending: &Pending) {
        let Some((window_ms, listings)) = self.settles else { return };
        let Some(doubt) = &mut node.retry.ambiguous else { return };
        doubt.absences = doubt.absences.saturating_add(1);
        let over = after(doubt.since_ms, window_ms);
        if doubt.absences >= listings.max(1) && pending.sent_ms >= over {
            node.retry.ambiguous = None;
            node.retry.next_effect_at = None;
            if node.climbs() {
                node.stage = Stage::New;
            }
        } else {
            node.retry.next_effect_at = Some(after(self.now, self.policy.probe_interval_ms.max(1)));
        }
    }

    /// An operation ended well: nothing is in doubt, nothing waits.
    fn settled(&self, node: &mut ManagedNode) {
        node.retry.ambiguous = None;
        node.retry.next_effect_at = None;
        node.retry.provider_wait = None;
        node.retry.probe_at = None;
        node.last_error = None;
    }

    /// One more failure in a row: wait, and at least as long as the provider asked.
    fn back_off(&self, node: &mut ManagedNode, retry_after_ms: Option<u64>) {
        node.retry.failures = node.retry.failures.saturating_add(1);
        let ours = after(self.now, backoff_ms(self.policy, node.attempt, node.retry.failures));
        let theirs = retry_after_ms.map(|wait| after(self.now, wait));
        node.retry.provider_wait = theirs;
        node.retry.next_effect_at = Some(ours.max(theirs.unwrap_or(0)));
    }

    /// Enters a stage that has a deadline; after failures it is longer.
    pub(crate) fn enter(&self, node: &mut ManagedNode, span_ms: u64, max_ms: Option<u64>) {
        let stretched = |span| after(self.now, stretched_ms(self.policy, span, node.retry.failures).max(1));
        let max = max_ms.map(stretched);
        let at = stretched(span_ms);
        node.stage_deadline = Some(max.map_or(at, |max| at.min(max)));
        node.stage_deadline_max = max;
    }

    /// The attempt failed (SPEC 6): facts are kept for people, clean-up starts at once, the restart backs off.
    pub(crate) fn fail(&self, node: &mut ManagedNode, reason: String, permanent: bool) {
        if !node.climbs() {
            return;
        }
        node.stage = Stage::Failed;
        node.failure = Some(Failure { at_ms: self.now, reason, permanent });
        node.stage_deadline = None;
        node.stage_deadline_max = None;
        node.retry.failures = node.retry.failures.saturating_add(1);
        let wait = match permanent {
            true => self.policy.backoff_cap_ms,
            false => backoff_ms(self.policy, node.attempt, node.retry.failures),
        };
        node.retry.restart_at = Some(after(self.now, wait).max(node.retry.provider_wait.unwrap_or(0)));
        node.retry.next_effect_at = node.retry.provider_wait.filter(|at| *at > self.now);
        node.retry.probe_at = None;
    }

    /// Folds an observation; whether it changed anything.
    pub(crate) fn observed(&self, node: &mut ManagedNode, observation: Observation) -> bool {
        let booting = node.climbs() && matches!(node.stage, Stage::BootstrapRunning | Stage::Joined);
        match observation {
            Observation::Progress(progress) => {
                if node.stage.is_ready() {
                    return false;
                }
                node.progress = progress;
                self.extend(node)
            }
            Observation::Output(_) => self.extend(node),
            Observation::Joined => {
                if !(booting && node.stage == Stage::BootstrapRunning && node.session.is_some()) {
                    return false;
                }
                node.stage = Stage::Joined;
                node.progress = Progress::Join;
                node.stage_deadline = None;
                node.stage_deadline_max = None;
                true
            }
            Observation::Failed { progress, reason, permanent } => {
                node.progress = progress;
                self.fail(node, reason, permanent);
                true
            }
            Observation::Closed { exit } => {
                let had = node.session.take().is_some();
                if node.climbs() && node.stage.is_ready() {
                    // Only positive evidence is a death (S14).
                    if let Some(exit) = exit {
                        self.fail(node, format!("died after it was ready: {exit}"), false);
                    }
                } else if booting {
                    let exit = exit.unwrap_or_else(|| "no exit status".into());
                    self.fail(node, format!("closed before it converged: {exit}"), false);
                }
                had
            }
        }
    }

    fn extend(&self, node: &mut ManagedNode) -> bool {
        if !(node.climbs() && node.stage == Stage::BootstrapRunning) {
            return false;
        }
        let span = stretched_ms(self.policy, self.policy.stages.bootstrap_ms, node.retry.failures);
        let at = after(self.now, span.max(1));
        node.stage_deadline = Some(node.stage_deadline_max.map_or(at, |max| at.min(max)));
        true
    }
}
