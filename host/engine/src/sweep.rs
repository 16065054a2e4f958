//! Listings (SPEC 5, 7): what is ours and retired is reaped, what was never authorised is an orphan, what is not ours is
//! left alone. Absence proves nothing (S14).

use std::collections::BTreeSet;
use std::sync::Arc;

use decider::Stage;

use crate::driver::{Driver, DriverError, EPOCH_STRIDE};
use crate::folding::Folding;
use crate::id::{AttemptId, ExternalKey, Millis, OperationId};
use crate::io::{Done, Fault, LeaseId, Listing, Notice, Operation, Output, Request, Resource};
use crate::ledger::{self, LedgerEvent, Status, Step};
use crate::mutation::Mutation;
use crate::pause::{Effect, group_of};
use crate::schedule::{after, backoff_ms};
use crate::shape::{Boot, Join, Probe, Template};
use crate::state::{Authorised, ManagedNode, Orphan, Pending, Reap};

/// How long to wait before asking the executor again about a reap.
const ASK_AGAIN_MS: u64 = 5_000;

/// What is swept: the resource of a retired attempt, or an orphan whose destruction was ordered.
#[derive(Clone, Debug)]
pub(crate) enum Sweep {
    Retired(AttemptId),
    Orphan((String, LeaseId)),
}

impl Reap {
    /// A destroy that is to be dispatched.
    pub(crate) fn new(provider: &str, lease: &str, key: &ExternalKey) -> Self {
        Reap {
            provider: provider.into(),
            lease: lease.into(),
            key: key.clone(),
            pending: None,
            failures: 0,
            next_effect_at: None,
            counted: false,
        }
    }

    /// What its next destroy is to pauses: the first one begins something, those after it end what has begun.
    pub(crate) fn effect(&self) -> Effect {
        if self.counted { Effect::CleanUp } else { Effect::Destroy }
    }
}

impl Driver {
    /// A periodic listing.
    pub(crate) fn fold_listed(&mut self, provider: &str, listing: &Listing) {
        if self.mutated(Mutation::BelieveAbsence) {
            self.believe_absence(provider, listing);
        }
        let mut present = BTreeSet::new();
        for resource in &listing.resources {
            present.insert(resource.lease.clone());
            let Some(key) = &resource.key else { continue };
            if key.run != self.state.run && !self.mutated(Mutation::ReapForeign) {
                continue;
            }
            if !self.state.authorised(&key.slot, key.attempt) && !self.mutated(Mutation::ReapForeign) {
                self.orphan(provider, resource, key);
                continue;
            }
            let held = self
                .state
                .names
                .get(&key.slot)
                .and_then(|node| self.state.slot(*node))
                .and_then(|slot| slot.node.as_ref());
            // The key of the attempt that holds the slot, on something that it does not hold: a create that landed late.
            // It may be needed no more than what is held; which of the two, only a person can say.
            let other = held.is_some_and(|node| {
                node.attempt == key.attempt && node.lease.as_ref().is_some_and(|lease| *lease != resource.lease)
            });
            let retired = held.is_none_or(|node| node.attempt != key.attempt || node.stage == Stage::Destroyed);
            if other && !retired {
                self.orphan(provider, resource, key);
                continue;
            }
            let retired = (retired || self.mutated(Mutation::ReapHeld)) && !self.mutated(Mutation::NoReap);
            if retired {
                self.reap(provider, resource, key);
            }
        }
        if listing.complete {
            // Orphan records follow the provider exactly.
            let gone: Vec<_> = self
                .state
                .orphans
                .iter()
                // One that is being destroyed ends with the result of that.
                .filter(|((of, lease), orphan)| {
                    of == provider && !present.contains(lease) && orphan.destroying.is_none()
                })
                .map(|(key, _)| key.clone())
                .collect();
            for key in gone {
                self.state.orphans.remove(&key);
                self.notice(Notice::OrphanGone { provider: key.0, lease: key.1 });
                self.made_room();
            }
        }
    }

    fn orphan(&mut self, provider: &str, resource: &Resource, key: &ExternalKey) {
        let of = (provider.to_string(), resource.lease.clone());
        if let Some(known) = self.state.orphans.get_mut(&of) {
            if known.destroying.is_none() {
                known.key = key.clone();
                known.template = resource.template.clone().or(known.template.take());
            }
            return;
        }
        let (template, seen_ms) = (resource.template.clone(), self.now);
        self.state.orphans.insert(of, Orphan { key: key.clone(), template, seen_ms, destroying: None });
        self.notice(Notice::Orphan { provider: provider.into(), lease: resource.lease.clone(), key: key.clone() });
    }

    fn reap(&mut self, provider: &str, resource: &Resource, key: &ExternalKey) {
        if self.state.reaps.contains_key(&key.attempt) {
            return;
        }
        self.state.reaps.insert(key.attempt, Reap::new(provider, &resource.lease, key));
        self.notice(Notice::Reaping { provider: provider.into(), lease: resource.lease.clone(), key: key.clone() });
    }

    /// Reaps, and destroys of orphans that an operator ordered.
    fn sweeps(&self) -> impl Iterator<Item = (Sweep, &Reap)> {
        let reaps = self.state.reaps.iter().map(|(attempt, reap)| (Sweep::Retired(*attempt), reap));
        let orphans = self.state.orphans.iter();
        let ordered = orphans.filter_map(|(of, orphan)| {
            let reap = orphan.destroying.as_deref()?;
            Some((Sweep::Orphan(of.clone()), reap))
        });
        reaps.chain(ordered)
    }

    pub(crate) fn sweep_mut(&mut self, of: &Sweep) -> Option<&mut Reap> {
        match of {
            Sweep::Retired(attempt) => self.state.reaps.get_mut(attempt),
            Sweep::Orphan(of) => self.state.orphans.get_mut(of)?.destroying.as_deref_mut(),
        }
    }

    /// The sweep whose operation this is.
    pub(crate) fn sweep_of(&self, id: OperationId) -> Option<Sweep> {
        let is = |reap: &&Reap| reap.pending.as_ref().is_some_and(|pending| pending.operation.id == id);
        if self.state.reaps.get(&id.attempt).filter(is).is_some() {
            return Some(Sweep::Retired(id.attempt));
        }
        let mut orphans = self.state.orphans.iter();
        let of = orphans.find(|(_, orphan)| orphan.destroying.as_deref().filter(is).is_some());
        of.map(|(of, _)| Sweep::Orphan(of.clone()))
    }

    /// The sweeps whose operation is on its way.
    pub(crate) fn sweeping(&self) -> Vec<(Sweep, OperationId)> {
        self.sweeps().filter_map(|(of, reap)| Some((of, reap.pending.as_ref()?.operation.id))).collect()
    }

    /// When something about the sweeps is due. What is held has no instant: its end queues it.
    pub(crate) fn sweeps_due(&self) -> impl Iterator<Item = Millis> {
        self.sweeps().filter_map(|(of, reap)| match &reap.pending {
            Some(pending) => Some(pending.deadline_ms),
            None if self.sweep_is_held(&of, reap) => None,
            None => Some(reap.next_effect_at.unwrap_or(self.now)),
        })
    }

    /// Whether a pause holds its destroy, or another operation of its attempt is on its way (S2).
    fn sweep_is_held(&self, of: &Sweep, reap: &Reap) -> bool {
        let attempt = reap.key.attempt;
        let holder = self.state.holder(attempt).and_then(|node| self.state.slot(node)?.node.as_ref());
        let needed = |held: &ManagedNode| held.pending.is_some() || held.lease.as_ref() == Some(&reap.lease);
        (matches!(of, Sweep::Orphan(_)) && holder.is_some_and(needed))
            || self.pause_on(group_of(&reap.key.slot), reap.effect()).is_some()
            || self.twin_pending(attempt)
    }

    /// Dispatches the reaps that are due, and asks about those whose deadline passed.
    pub(crate) fn fire_reaps(&mut self) {
        if self.state.reaps.is_empty() && self.state.orphans.is_empty() {
            return;
        }
        let due = self.sweeps().filter(|(_, reap)| self.sweep_is_due(reap)).map(|(of, _)| of);
        let due: Vec<Sweep> = due.collect();
        for of in due {
            let now = self.now;
            let Some(reap) = self.sweep_mut(&of) else { continue };
            if let Some(pending) = reap.pending.as_mut() {
                if let Step::To(status) = ledger::step(pending.status, LedgerEvent::DeadlinePassed) {
                    pending.status = status;
                }
                pending.deadline_ms = after(now, ASK_AGAIN_MS);
                let id = pending.operation.id;
                self.outputs.push_back(Output::Ask(id));
                continue;
            }
            // The one before it may have tripped a guard, or be of the same attempt.
            let reap = reap.clone();
            if self.sweep_is_held(&of, &reap) || (!reap.counted && self.count_destroy().is_err()) {
                continue;
            }
            let id = self.next_operation(reap.key.attempt);
            let deadline_ms = after(now, self.policy.deadlines.destroy_lease_ms.max(1));
            let operation = Operation {
                id,
                key: reap.key.clone(),
                provider: reap.provider.clone(),
                request: Request::DestroyLease { lease: reap.lease.clone() },
                deadline_ms,
            };
            if let Some(reap) = self.sweep_mut(&of) {
                reap.counted = true;
                reap.pending =
                    Some(Pending { operation: operation.clone(), sent_ms: now, status: Status::Running, deadline_ms });
                self.submits.push(operation);
            }
        }
    }

    fn sweep_is_due(&self, reap: &Reap) -> bool {
        match &reap.pending {
            Some(pending) => pending.deadline_ms <= self.now,
            None => reap.next_effect_at.is_none_or(|at| at <= self.now),
        }
    }

    /// A sweep's destroy ended.
    pub(crate) fn fold_swept(&mut self, of: &Sweep, attempt: AttemptId, result: Result<Done, Fault>) {
        let (now, policy) = (self.now, self.policy);
        let Some(reap) = self.sweep_mut(of) else { return };
        reap.pending = None;
        let retry_after = match result {
            Ok(_) => {
                match of {
                    Sweep::Retired(attempt) => {
                        self.state.reaps.remove(attempt);
                    }
                    Sweep::Orphan(of) => {
                        self.state.orphans.remove(of);
                        self.notice(Notice::OrphanGone { provider: of.0.clone(), lease: of.1.clone() });
                    }
                }
                self.made_room();
                return self.free_twin(attempt);
            }
            Err(Fault::Retryable { retry_after_ms, .. }) => retry_after_ms,
            Err(Fault::Permanent { .. }) => Some(policy.backoff_cap_ms),
            Err(Fault::NotReady { .. } | Fault::Ambiguous { .. }) => None,
        };
        reap.failures = reap.failures.saturating_add(1);
        let ours = after(now, backoff_ms(&policy, attempt, reap.failures).max(1));
        reap.next_effect_at = Some(ours.max(retry_after.map_or(0, |wait| after(now, wait))));
        self.free_twin(attempt);
    }

    /// The holder of an attempt may have waited for an orphan with its label.
    fn free_twin(&mut self, attempt: AttemptId) {
        if self.state.holder(attempt).is_some() {
            self.queued = true;
        }
    }

    /// The id of an attempt's next operation (S3).
    pub(crate) fn next_operation(&mut self, attempt: AttemptId) -> OperationId {
        let epoch = if self.mutated(Mutation::IgnoreEpoch) { 0 } else { self.epoch };
        let first = epoch.saturating_mul(EPOCH_STRIDE).max(1);
        let known = self.attempt_mut(attempt, first);
        let sequence = known.next_sequence;
        known.next_sequence = sequence.saturating_add(1);
        OperationId { attempt, sequence }
    }

    /// At start: the newest attempt of each slot is taken over where it stands, older ones are retired (SPEC 10).
    pub(crate) fn fold_adopt(&mut self, provider: &str, listing: &Listing) -> Result<(), DriverError> {
        if self.state.desired.is_some() {
            return Err(DriverError::LateAdoption { provider: provider.into() });
        }
        if !listing.complete {
            return Err(DriverError::IncompleteAdoption { provider: provider.into() });
        }
        let mut ours: Vec<(&ExternalKey, &Resource)> = listing
            .resources
            .iter()
            .filter_map(|resource| Some((resource.key.as_ref()?, resource)))
            .filter(|(key, _)| key.run == self.state.run && key.attempt.0 > 0)
            .collect();
        ours.sort_by(|(a, x), (b, y)| (a.attempt, &a.slot, &x.lease).cmp(&(b.attempt, &b.slot, &y.lease)));
        let epoch = if self.mutated(Mutation::IgnoreEpoch) { 0 } else { self.epoch };
        let first = epoch.saturating_mul(EPOCH_STRIDE).max(1);
        for (key, resource) in ours {
            // Where earlier starts left a fence, nothing above it was ever authorised: it is an orphan, whatever it says.
            if self.epoch > 0 && key.attempt.0 >= self.fence && !self.mutated(Mutation::AdoptStrangers) {
                self.orphan(provider, resource, key);
                continue;
            }
            let Some((group, index)) =
                key.slot.rsplit_once('-').and_then(|(group, index)| Some((group, index.parse().ok()?)))
            else {
                self.orphan(provider, resource, key);
                continue;
            };
            let node = self.node_id(&key.slot, group, index);
            self.state.attempts.insert(key.attempt, Authorised { node, next_sequence: first });
            self.state.next_attempt = self.state.next_attempt.max(key.attempt.0.saturating_add(1));
            let template = resource.template.clone().unwrap_or_else(|| Arc::new(unknown_template(provider)));
            let template = self.intern(&template);
            let mut held = ManagedNode::fresh(key.attempt, template, 0);
            held.lease = Some(resource.lease.clone());
            if !self.mutated(Mutation::AdoptAsNew) {
                held.stage = Stage::LeaseCreated;
            }
            let folding = Folding { policy: &self.policy, now: self.now, settles: None, mutation: self.mutation };
            folding.enter(&mut held, self.policy.stages.endpoint_ms, None);
            let previous = self.slot_mut(node).and_then(|slot| slot.node.replace(held));
            if let Some(older) = previous {
                let older_key = self.state.key(&key.slot, older.attempt);
                let lease = older.lease.unwrap_or_default();
                self.reap(provider, &Resource { lease, key: None, template: None }, &older_key);
            }
            self.touch(node);
        }
        self.state.inherited_below = self.state.inherited_below.max(self.state.next_attempt);
        if self.mutated(Mutation::ForgetInherited) {
            self.state.inherited_below = 1;
        }
        Ok(())
    }

    /// The mutation for S14: what a listing lacks is taken for gone.
    fn believe_absence(&mut self, provider: &str, listing: &Listing) {
        for at in 0..self.state.slots.len() {
            let of =
                self.state.slots[at].node.as_ref().and_then(|node| self.state.templates.get(node.template.0 as usize));
            if of.is_none_or(|template| template.provider != provider) {
                continue;
            }
            if let Some(node) = self.state.slots[at].node.as_mut() {
                let listed = listing.resources.iter().any(|resource| Some(&resource.lease) == node.lease.as_ref());
                if !listed {
                    node.lease = None;
                }
            }
        }
    }
}

/// The template of a resource that does not say what it was made from: equal to nothing anyone declares, so it drifts.
pub(crate) fn unknown_template(provider: &str) -> Template {
    Template {
        provider: provider.into(),
        settings: Default::default(),
        image: None,
        role: String::new(),
        boot: Boot { command: Vec::new(), env: Default::default(), files: Default::default() },
        join: Join { probe: Probe::Exec(Vec::new()), interval_ms: 0, timeout_ms: 0 },
        labels: Default::default(),
    }
}
