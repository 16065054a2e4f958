//! Listings (SPEC 5, 7): what is ours and retired is reaped, what was never authorised is an orphan, what is not ours is
//! left alone. Absence proves nothing (S14).

use std::collections::BTreeSet;
use std::sync::Arc;

use decider::Stage;

use crate::driver::{Driver, DriverError, EPOCH_STRIDE};
use crate::folding::Folding;
use crate::id::{AttemptId, ExternalKey, OperationId};
use crate::io::{Done, Fault, Listing, Notice, Operation, Output, Request, Resource};
use crate::ledger::{self, LedgerEvent, Status, Step};
use crate::mutation::Mutation;
use crate::schedule::{after, backoff_ms};
use crate::shape::{Boot, Join, Probe, Template};
use crate::state::{Authorised, ManagedNode, Pending, Reap};

/// How long to wait before asking the executor again about a reap.
const ASK_AGAIN_MS: u64 = 5_000;

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
                .keys()
                .filter(|(of, lease)| of == provider && !present.contains(lease))
                .cloned()
                .collect();
            for key in gone {
                self.state.orphans.remove(&key);
                self.notice(Notice::OrphanGone { provider: key.0, lease: key.1 });
            }
        }
    }

    fn orphan(&mut self, provider: &str, resource: &Resource, key: &ExternalKey) {
        let known = self.state.orphans.insert((provider.into(), resource.lease.clone()), key.clone());
        if known.is_none() {
            self.notice(Notice::Orphan { provider: provider.into(), lease: resource.lease.clone(), key: key.clone() });
        }
    }

    fn reap(&mut self, provider: &str, resource: &Resource, key: &ExternalKey) {
        if self.state.reaps.contains_key(&key.attempt) {
            return;
        }
        let reap = Reap {
            provider: provider.into(),
            lease: resource.lease.clone(),
            key: key.clone(),
            pending: None,
            failures: 0,
            next_effect_at: None,
        };
        self.state.reaps.insert(key.attempt, reap);
        self.notice(Notice::Reaping { provider: provider.into(), lease: resource.lease.clone(), key: key.clone() });
    }

    /// Dispatches the reaps that are due, and asks about those whose deadline passed.
    pub(crate) fn fire_reaps(&mut self) {
        let due: Vec<AttemptId> =
            self.state.reaps.iter().filter(|(_, reap)| self.reap_is_due(reap)).map(|(id, _)| *id).collect();
        for attempt in due {
            let now = self.now;
            if let Some(pending) = self.state.reaps.get_mut(&attempt).and_then(|reap| reap.pending.as_mut()) {
                if let Step::To(status) = ledger::step(pending.status, LedgerEvent::DeadlinePassed) {
                    pending.status = status;
                }
                pending.deadline_ms = after(now, ASK_AGAIN_MS);
                self.outputs.push_back(Output::Ask(pending.operation.id));
                continue;
            }
            let id = self.next_operation(attempt);
            let deadline_ms = after(now, self.policy.deadlines.destroy_lease_ms.max(1));
            if let Some(reap) = self.state.reaps.get_mut(&attempt) {
                let operation = Operation {
                    id,
                    key: reap.key.clone(),
                    provider: reap.provider.clone(),
                    request: Request::DestroyLease { lease: reap.lease.clone() },
                    deadline_ms,
                };
                reap.pending =
                    Some(Pending { operation: operation.clone(), sent_ms: now, status: Status::Running, deadline_ms });
                self.submits.push(operation);
            }
        }
    }

    fn reap_is_due(&self, reap: &Reap) -> bool {
        match &reap.pending {
            Some(pending) => pending.deadline_ms <= self.now,
            None => reap.next_effect_at.is_none_or(|at| at <= self.now),
        }
    }

    /// A reap's destroy ended.
    pub(crate) fn fold_reaped(&mut self, id: OperationId, result: Result<Done, Fault>) {
        let Some(reap) = self.state.reaps.get_mut(&id.attempt) else { return };
        reap.pending = None;
        let retry_after = match result {
            Ok(_) => {
                self.state.reaps.remove(&id.attempt);
                return;
            }
            Err(Fault::Retryable { retry_after_ms, .. }) => retry_after_ms,
            Err(Fault::Permanent { .. }) => Some(self.policy.backoff_cap_ms),
            Err(Fault::NotReady { .. } | Fault::Ambiguous { .. }) => None,
        };
        reap.failures = reap.failures.saturating_add(1);
        let ours = after(self.now, backoff_ms(&self.policy, id.attempt, reap.failures).max(1));
        reap.next_effect_at = Some(ours.max(retry_after.map_or(0, |wait| after(self.now, wait))));
    }

    /// The id of an attempt's next operation (S3).
    pub(crate) fn next_operation(&mut self, attempt: AttemptId) -> OperationId {
        let epoch = if self.mutated(Mutation::IgnoreEpoch) { 0 } else { self.epoch };
        let first = epoch.saturating_mul(EPOCH_STRIDE).max(1);
        let node = crate::id::NodeId(u32::MAX);
        let known = self.state.attempts.entry(attempt).or_insert(Authorised { node, next_sequence: first });
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
fn unknown_template(provider: &str) -> Template {
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
