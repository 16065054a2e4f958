//! What an operator does about an orphan (SPEC 10): adopts it for the slot its label names, or has it destroyed.

use std::sync::Arc;

use decider::Stage;

use crate::command::CommandError;
use crate::driver::{Driver, EPOCH_STRIDE};
use crate::folding::Folding;
use crate::guard::Guard;
use crate::id::{AttemptId, NodeId};
use crate::io::{LeaseId, Output};
use crate::order::Order;
use crate::pause::{Effect, group_of};
use crate::record::Record;
use crate::state::{ManagedNode, Orphan, Reap, Slot};
use crate::sweep::unknown_template;

/// The highest attempt id that is taken over from a label: ids above it are not to be used up by a label that lies.
pub(crate) const MAX_ADOPTED: u64 = u64::MAX / 4;

impl Driver {
    fn orphaned(&self, provider: &str, lease: &str) -> Result<&Orphan, CommandError> {
        let found = self.state.orphans.get(&(provider.to_string(), lease.to_string()));
        found.ok_or_else(|| CommandError::UnknownOrphan { provider: provider.into(), lease: lease.into() })
    }

    /// The slot that holds this very resource.
    fn lease_holder(&self, provider: &str, lease: &str) -> Option<&Slot> {
        self.state.slots.iter().find(|slot| {
            slot.node.as_ref().is_some_and(|node| {
                let template = self.state.templates.get(node.template.0 as usize);
                node.lease.as_deref() == Some(lease) && template.is_some_and(|known| known.provider == provider)
            })
        })
    }

    pub(crate) fn order_adopt(&self, provider: &str, lease: &str) -> Result<Order, CommandError> {
        let orphan = self.orphaned(provider, lease)?;
        let name = &orphan.key.slot;
        let refused = |why: String| CommandError::OrphanRefused {
            lease: lease.into(),
            key: orphan.key.to_string(),
            what: "adopted",
            why,
        };
        if orphan.destroying.is_some() {
            return Err(refused("it is being destroyed".into()));
        }
        let slot = self.state.names.get(name).and_then(|node| Some((*node, self.state.slot(*node)?)));
        let Some((node, slot)) = slot.filter(|(_, slot)| slot.desired.is_some()) else {
            return Err(refused(format!("{name} is no slot of the shape in force")));
        };
        if let Some(held) = slot.node.as_ref().filter(|held| held.stage != Stage::Destroyed) {
            return Err(refused(format!("{name} is held by {} ({})", held.attempt, held.stage.label())));
        }
        let attempt = orphan.key.attempt;
        if attempt.0 == 0 || attempt.0 > MAX_ADOPTED {
            return Err(CommandError::Exhausted { what: "attempt ids", value: attempt.0 });
        }
        let known = self.state.attempts.get(&attempt).filter(|known| known.node != NodeId(u32::MAX));
        if let Some(other) = known.filter(|known| known.node != node).and_then(|known| self.state.slot(known.node)) {
            return Err(refused(format!("{attempt} is an attempt of {}", other.name)));
        }
        if let Some(holder) = self.lease_holder(provider, lease) {
            return Err(refused(format!("{} holds it", holder.name)));
        }
        let wanted = slot.desired.and_then(|desired| self.state.templates.get(desired.template.0 as usize));
        let note = match &orphan.template {
            None => Some("what it was made from is not known, so it will be replaced"),
            Some(template) if Some(template) != wanted => {
                Some("it was made from something else, so it will be replaced")
            }
            Some(_) => None,
        };
        let mut consequences = self.untouched(note.map(Into::into));
        if note.is_some() {
            consequences.replaces.push(name.clone());
            consequences.keeps = consequences.keeps.saturating_sub(1);
        }
        Ok(Order::plain(consequences))
    }

    pub(crate) fn adopt_orphan(&mut self, provider: String, lease: LeaseId) {
        let Some(orphan) = self.state.orphans.remove(&(provider.clone(), lease.clone())) else { return };
        let Some(node) = self.state.names.get(&orphan.key.slot).copied() else { return };
        let attempt = orphan.key.attempt;
        self.pass_over(attempt);
        let first = self.epoch.saturating_mul(EPOCH_STRIDE).max(1);
        self.attempt_mut(attempt, first).node = node;
        let template = orphan.template.unwrap_or_else(|| Arc::new(unknown_template(&provider)));
        let template = self.intern(&template);
        let failures = self.node_mut(node).map_or(0, |held| held.retry.failures);
        let mut held = ManagedNode::fresh(attempt, template, failures);
        held.lease = Some(lease);
        held.stage = Stage::LeaseCreated;
        let folding = Folding { policy: &self.policy, now: self.now, settles: None, mutation: self.mutation };
        folding.enter(&mut held, self.policy.stages.endpoint_ms, None);
        if let Some(slot) = self.slot_mut(node) {
            slot.node = Some(held);
        }
        self.touch(node);
    }

    pub(crate) fn order_destroy_orphan(&self, provider: &str, lease: &str) -> Result<Order, CommandError> {
        let orphan = self.orphaned(provider, lease)?;
        if let Some(holder) = self.lease_holder(provider, lease) {
            return Err(CommandError::OrphanRefused {
                lease: lease.into(),
                key: orphan.key.to_string(),
                what: "destroyed",
                why: format!("{} holds it", holder.name),
            });
        }
        let guard = Guard::DestroysPerMinute;
        if let Some(limit) = self.policy.guards.destroys_per_minute.filter(|limit| *limit == 0) {
            return Err(CommandError::BeyondGuard { guard, limit, would_be: 1, group: None });
        }
        let note = match (&orphan.destroying, self.pause_on(group_of(&orphan.key.slot), Effect::Destroy)) {
            (Some(_), _) => Some("it is being destroyed already".into()),
            (None, Some(pause)) => Some(pause.to_string()),
            (None, None) => None,
        };
        let mut consequences = self.untouched(note);
        consequences.destroys.push(lease.into());
        Ok(Order::plain(consequences))
    }

    pub(crate) fn destroy_orphan(&mut self, provider: String, lease: LeaseId) {
        let Some(orphan) = self.state.orphans.get_mut(&(provider.clone(), lease.clone())) else { return };
        if orphan.destroying.is_none() {
            orphan.destroying = Some(Box::new(Reap::new(&provider, &lease, &orphan.key)));
            let attempt = orphan.key.attempt;
            // A later attempt must not have operations, or a key, that this one has had.
            if attempt.0 <= MAX_ADOPTED {
                self.pass_over(attempt);
            }
        }
    }

    /// No attempt up to this one is given out from now on; durable before anything is done under it (S3).
    pub(crate) fn pass_over(&mut self, attempt: AttemptId) {
        self.state.next_attempt = self.state.next_attempt.max(attempt.0.saturating_add(1));
        if self.state.next_attempt > self.state.reserved_below {
            self.state.reserved_below = self.state.next_attempt;
            let below = AttemptId(self.state.reserved_below);
            self.outputs.push_back(Output::Record(Record::AttemptsReserved { below }));
        }
    }
}
