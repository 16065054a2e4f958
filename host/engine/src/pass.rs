//! Passes (SPEC 5, 9): a snapshot out, a plan in, checked whole, then applied. Where the decider fails, the snapshot is
//! halved until the nodes that provoke it stand alone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use decider::{DecisionRow, HoldKind, Plan, Snapshot, Stage, Verb};

use crate::driver::{Driver, DriverError};
use crate::guard::{Gate, may_hold};
use crate::id::{AttemptId, Millis, NodeId};
use crate::io::{DeciderFailure, Notice, Output};
use crate::mutation::Mutation;
use crate::schedule::{after, backoff_ms};
use crate::state::{Decision, Quarantine};
use crate::validate::check_plan;

/// Passes in a row without any input before the driver says that they never come to rest.
const MAX_CHAIN: u32 = 64;
/// Calls of the decider in one pass, when it fails and nodes are isolated.
const MAX_CALLS: u32 = 64;
/// A plan cannot ask to be made again sooner than this.
const MIN_WAKE_MS: u64 = 100;

/// The pass in flight.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pass {
    /// The decider call that is awaited.
    call: u64,
    shape_revision: u64,
    snapshot: Arc<Snapshot>,
    /// The same call for deciders of the other kind, where it was asked for.
    #[serde(skip)]
    otherwise: Option<Arc<Snapshot>>,
    /// The nodes of that call, and the revision each had.
    part: Vec<(NodeId, u64)>,
    /// What is still to be decided, the next part last.
    rest: Vec<Vec<NodeId>>,
    calls_left: u32,
    /// An empty snapshot is being tried, to learn whether the decider fails for any.
    probing: Option<(Vec<NodeId>, DeciderFailure)>,
    /// The empty snapshot was answered: it is nodes that provoke the failure.
    nodes_provoke: bool,
    wake_at: Option<Millis>,
    changed: Vec<NodeId>,
    newly_held: Vec<(DeciderFailure, Vec<String>)>,
    /// Some node was not decided: the generation is not evaluated whole.
    partial: bool,
}

impl Pass {
    pub(crate) fn otherwise(&self) -> Option<&Arc<Snapshot>> {
        self.otherwise.as_ref()
    }
}

impl Driver {
    /// Starts a pass if one is queued and none runs.
    pub(crate) fn start_pass(&mut self) {
        if !self.queued || self.pass.is_some() || self.state.desired.is_none() {
            return;
        }
        if self.pass_retry_at.is_some_and(|at| at > self.now) {
            return;
        }
        self.offer_surge();
        self.queued = false;
        self.pass_retry_at = None;
        self.wake_at = None;
        self.chain = self.chain.saturating_add(1);
        let now = self.now;
        let mut whole = Vec::new();
        let mut rest = Vec::new();
        let mut partial = false;
        for (at, slot) in self.state.slots.iter().enumerate() {
            if slot.desired.is_none() && slot.node.is_none() {
                continue;
            }
            let node = NodeId(u32::try_from(at).unwrap_or(u32::MAX));
            match &slot.quarantine {
                None => whole.push(node),
                // What failed is tried alone, so that it cannot fail the others again.
                Some(held) if held.revision != slot.revision || held.retry_at <= now => rest.push(vec![node]),
                Some(_) => partial = true,
            }
        }
        rest.push(whole);
        let mut pass = Pass {
            call: 0,
            shape_revision: self.shape_revision,
            snapshot: Arc::new(Snapshot::default()),
            otherwise: None,
            part: Vec::new(),
            rest,
            calls_left: MAX_CALLS,
            probing: None,
            nodes_provoke: false,
            wake_at: None,
            changed: Vec::new(),
            newly_held: Vec::new(),
            partial,
        };
        let first = pass.rest.pop().unwrap_or_default();
        self.ask(&mut pass, first);
        self.pass = Some(pass);
    }

    /// Asks the decider about some nodes.
    fn ask(&mut self, pass: &mut Pass, nodes: Vec<NodeId>) {
        pass.call = self.next_call;
        self.next_call += 1;
        self.stats.decider_calls += 1;
        let is_first = pass.calls_left == MAX_CALLS;
        pass.calls_left = pass.calls_left.saturating_sub(1);
        pass.snapshot = Arc::new(self.snapshot(&nodes));
        let also = self.also[usize::from(!self.state.sees_rollouts)];
        pass.otherwise = also.then(|| Arc::new(self.other_snapshot(&nodes, is_first)));
        pass.part =
            nodes.into_iter().map(|node| (node, self.state.slot(node).map_or(0, |slot| slot.revision))).collect();
        self.outputs.push_back(Output::Decide { call: pass.call, snapshot: pass.snapshot.clone() });
    }

    /// The decider answered.
    pub(crate) fn fold_decided(&mut self, call: u64, result: Result<Plan, DeciderFailure>) -> Result<(), DriverError> {
        let Some(mut pass) = self.pass.take_if(|pass| pass.call == call) else {
            self.stats.stale_plans += 1;
            return Ok(());
        };
        let checked = result.and_then(|plan| match check_plan(&plan, &pass.snapshot, self.decider.rules.len()) {
            Ok(()) => Ok(plan),
            Err(_) if self.mutated(Mutation::SkipValidation) => Ok(plan),
            Err(error) => Err(DeciderFailure {
                decider: self.decider.digest.clone(),
                class: "invalid-plan".into(),
                detail: error.to_string(),
            }),
        });
        match (checked, pass.probing.take()) {
            (Ok(_), Some((part, failure))) => {
                pass.nodes_provoke = true;
                self.isolate(&mut pass, part, failure);
            }
            (Ok(plan), None) => self.apply(&mut pass, &plan),
            (Err(failure), Some(_)) => return self.fail_pass(failure),
            (Err(failure), None) => {
                let part: Vec<NodeId> = pass.part.iter().map(|(node, _)| *node).collect();
                let known =
                    part.iter().all(|node| self.state.slot(*node).is_some_and(|slot| slot.quarantine.is_some()));
                if part.is_empty() {
                    return self.fail_pass(failure);
                }
                if pass.nodes_provoke || known {
                    self.isolate(&mut pass, part, failure);
                } else {
                    self.ask(&mut pass, Vec::new());
                    pass.probing = Some((part, failure));
                    self.pass = Some(pass);
                    return Ok(());
                }
            }
        }
        if pass.shape_revision != self.shape_revision && !pass.rest.is_empty() {
            // What is left is about slots that need not be there any more; nothing of it would be applied.
            pass.rest.clear();
            pass.partial = true;
            self.queued = true;
        }
        while let Some(next) = pass.rest.pop() {
            if next.is_empty() {
                continue;
            }
            self.ask(&mut pass, next);
            self.pass = Some(pass);
            return Ok(());
        }
        self.finish_pass(pass)
    }

    /// Halves the nodes for which the decider failed; one that stands alone is held, with the error as its reason.
    fn isolate(&mut self, pass: &mut Pass, part: Vec<NodeId>, failure: DeciderFailure) {
        if part.len() > 1 && pass.calls_left > 1 {
            let mut left = part;
            let right = left.split_off(left.len() / 2);
            pass.rest.push(right);
            pass.rest.push(left);
            return;
        }
        pass.partial = true;
        let (now, policy) = (self.now, self.policy);
        let for_ever = self.mutated(Mutation::QuarantineForEver);
        let mut fresh = Vec::new();
        for node in part {
            let Some(slot) = self.slot_mut(node) else { continue };
            let before = slot.quarantine.take();
            let tries = before.as_ref().map_or(0, |held| held.tries).saturating_add(1);
            if before.is_none_or(|held| held.failure != failure || held.revision != slot.revision) {
                fresh.push(slot.name.clone());
            }
            let mut wait = backoff_ms(&policy, AttemptId(0), tries).max(1);
            if for_ever {
                wait = crate::schedule::MAX_SPAN_MS;
            }
            slot.quarantine = Some(Quarantine {
                revision: slot.revision,
                failure: failure.clone(),
                retry_at: after(now, wait),
                tries,
            });
            self.arm(node);
        }
        if !fresh.is_empty() {
            match pass.newly_held.iter_mut().find(|(known, _)| known.class == failure.class) {
                Some((_, names)) => names.extend(fresh),
                None => pass.newly_held.push((failure, fresh)),
            }
        }
    }

    /// The decider fails for every snapshot: state is unchanged, everything holds, reported once per change.
    fn fail_pass(&mut self, failure: DeciderFailure) -> Result<(), DriverError> {
        self.queued = !self.mutated(Mutation::DropFailedPass);
        self.gate_passes();
        if self.reported.as_ref() != Some(&failure) {
            self.reported = Some(failure.clone());
            self.notice(Notice::DeciderFailed { nodes: Vec::new(), failure });
        }
        Ok(())
    }

    fn finish_pass(&mut self, pass: Pass) -> Result<(), DriverError> {
        self.stats.passes += 1;
        for (failure, mut nodes) in pass.newly_held {
            nodes.sort();
            self.notice(Notice::DeciderFailed { nodes, failure });
        }
        let healthy = self.state.slots.iter().all(|slot| slot.quarantine.is_none());
        if self.reported.take().is_some() && healthy {
            self.notice(Notice::DeciderRecovered);
        }
        if pass.shape_revision == self.shape_revision && !pass.partial {
            let generation = self.state.desired.as_ref().map_or(0, |shape| shape.generation);
            self.state.observed_generation = self.state.observed_generation.max(generation);
            if self.mutated(Mutation::AcceptOlderGeneration) {
                self.state.observed_generation = generation;
            }
        }
        self.wake_at = pass.wake_at;
        if self.queued && self.chain >= MAX_CHAIN {
            let passes = std::mem::take(&mut self.chain);
            self.gate_passes();
            let mut nodes: Vec<String> =
                pass.changed.iter().filter_map(|node| Some(self.state.slot(*node)?.name.clone())).collect();
            nodes.sort();
            return Err(DriverError::NeverBlocks { passes, nodes });
        }
        self.pass_failures = 0;
        Ok(())
    }

    /// Another decider: what failed under the previous one is decided again.
    pub(crate) fn forget_decider_failures(&mut self) {
        for slot in &mut self.state.slots {
            slot.quarantine = None;
        }
        self.reported = None;
        self.pass_retry_at = None;
        self.pass_failures = 0;
        self.queued = true;
    }

    /// Applies a valid plan: node by node, each only if nothing about it changed while the decider ran.
    fn apply(&mut self, pass: &mut Pass, plan: &Plan) {
        if pass.shape_revision != self.shape_revision {
            self.stats.stale_decisions += plan.decisions.len() as u64;
            self.queued = true;
            return;
        }
        if plan.wake_at_ms != 0 {
            let at = plan.wake_at_ms.max(self.now.saturating_add(MIN_WAKE_MS));
            pass.wake_at = Some(pass.wake_at.map_or(at, |other| other.min(at)));
        }
        // Ascending, as the snapshot; plans mostly keep that order.
        let part = std::mem::take(&mut pass.part);
        let mut gate = Gate::default();
        let fresh = self.fresh(&pass.snapshot);
        for (at, row) in plan.decisions.rows().enumerate() {
            let node = NodeId(row.node);
            let revision = match part.get(at) {
                Some((asked, revision)) if *asked == node => Some(*revision),
                _ => part.binary_search_by_key(&node, |(asked, _)| *asked).ok().map(|found| part[found].1),
            };
            let verb = Verb::from_code(row.verb).unwrap_or(Verb::Hold);
            let group = self.rests_on(node, verb);
            let totals = group.is_none_or(|group| fresh.get(group).copied().unwrap_or(true));
            let stale = self.state.slot(node).map(|slot| slot.revision) != revision || !totals;
            if stale && !self.mutated(Mutation::ApplyStale) {
                self.stats.stale_decisions += 1;
                pass.partial = true;
                self.queued = true;
                continue;
            }
            self.apply_one(pass, &mut gate, node, &row);
        }
    }

    fn apply_one(&mut self, pass: &mut Pass, gate: &mut Gate, node: NodeId, row: &DecisionRow) {
        let now = self.now;
        let verb = Verb::from_code(row.verb).unwrap_or(Verb::Hold);
        let hold = HoldKind::from_code(row.hold);
        let rule = self.rule_ids.get(usize::from(row.rule)).cloned().unwrap_or_else(|| Arc::from("?"));
        let Some(slot) = self.slot_mut(node) else { return };
        slot.quarantine = None;
        let was_inconsistent = slot.decision.as_ref().is_some_and(|last| last.hold == Some(HoldKind::Person));
        slot.decision = Some(Decision {
            rule,
            verb,
            hold,
            until_ms: (row.until != 0).then_some(row.until),
            at_ms: now,
            revision: slot.revision,
        });
        // What holds it may have counted the time since when.
        let earlier = slot.held.take();
        if verb == Verb::Hold {
            if hold == Some(HoldKind::Person) {
                self.await_person(&pass.snapshot, node, earlier, was_inconsistent);
            }
            if hold == Some(HoldKind::Steady) && self.mutated(Mutation::RestlessPass) {
                self.touch(node);
            }
            return;
        }
        if let Err(held) = self.admit(gate, node, verb) {
            self.hold_back(node, earlier, held);
            return;
        }
        self.transition(node, verb);
        pass.changed.push(node);
        self.touch(node);
        if let Some(slot) = self.slot_mut(node)
            && let Some(decision) = &mut slot.decision
        {
            decision.revision = slot.revision;
        }
        if self.mutated(Mutation::DispatchTwice) && verb.operation().is_some() {
            self.transition(node, verb);
        }
    }

    /// One driver transition or dispatch. Legal: the plan was checked.
    fn transition(&mut self, node: NodeId, verb: Verb) {
        let now = self.now;
        let kind = verb.operation();
        if let Some(kind) = kind {
            return self.dispatch(node, kind);
        }
        let early = self.mutated(Mutation::DestroyedTooEarly);
        let forget = self.mutated(Mutation::ForgetAmbiguous);
        let keeps_intent = self.mutated(Mutation::KeepIntent);
        let drops_pending = self.mutated(Mutation::DeleteForgetsPending);
        let keeps_count = self.mutated(Mutation::ReadyKeepsFailures);
        let replace = self.mutated(Mutation::ReplaceBeforeCleanUp);
        match verb {
            Verb::Insert | Verb::Restart => self.begin_attempt(node),
            Verb::BeginDelete if replace && self.state.slot(node).is_some_and(|slot| slot.desired.is_some()) => {
                self.begin_attempt(node);
            }
            Verb::Reap if self.mutated(Mutation::ReapNothing) => {}
            Verb::BeginDelete if self.mutated(Mutation::ChangeInPlace) => {
                if let Some(slot) = self.slot_mut(node)
                    && let (Some(desired), Some(held)) = (slot.desired, &mut slot.node)
                {
                    held.template = desired.template;
                }
            }
            Verb::Reap => {
                if let Some(slot) = self.slot_mut(node) {
                    slot.node = None;
                    slot.decision = None;
                    slot.down = false;
                }
            }
            Verb::BeginDelete => {
                let counts = !self.mutated(Mutation::ShareNotCounted);
                if let Some(slot) = self.slot_mut(node)
                    && let Some(held) = &mut slot.node
                {
                    slot.down |= counts && may_hold(held);
                    held.begin_delete(now);
                    if keeps_intent {
                        held.intent = decider::Intent::Active;
                    }
                    if drops_pending {
                        held.pending = None;
                    }
                    if forget {
                        held.retry.ambiguous = None;
                    }
                    if early {
                        held.stage = Stage::Destroyed;
                    }
                }
            }
            Verb::MarkDestroyed => {
                if let Some(held) = self.node_mut(node) {
                    held.stage = Stage::Destroyed;
                    held.endpoint = None;
                    held.retry.next_effect_at = None;
                    held.retry.probe_at = None;
                    held.retry.ambiguous = None;
                }
            }
            Verb::ConvergenceObserved => {
                if let Some(slot) = self.slot_mut(node)
                    && let Some(held) = &mut slot.node
                {
                    slot.down = false;
                    held.stage = Stage::Dormant;
                    held.progress = decider::Progress::Converged;
                    held.last_error = None;
                    let failures = if keeps_count { held.retry.failures.max(1) } else { 0 };
                    held.retry = crate::state::Retry { failures, ..Default::default() };
                }
            }
            Verb::Hold
            | Verb::CreateLease
            | Verb::LookupEndpoint
            | Verb::StartBootstrap
            | Verb::CancelBootstrap
            | Verb::DestroyLease => {}
        }
    }
}
