//! What a decider is shown of a group: totals over the whole fleet, and the turns of those that wait for the same.

use std::collections::BTreeMap;

use decider::{Intent, NO_INDEX, Snapshot, Stage, Verb, pauses};

use crate::driver::Driver;
use crate::id::NodeId;
use crate::mutation::Mutation;
use crate::pause::Effect;
use crate::state::Slot;

/// Of some slots, each one's place among those that wait for the same.
pub(crate) struct Turns(Vec<u32>);

impl Turns {
    pub(crate) fn of(&self, node: usize) -> u32 {
        self.0.get(node).copied().unwrap_or(NO_INDEX)
    }
}

/// What a slot waits for, if it may have to wait for its turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Queue {
    /// To be replaced: ready, and its template drifted.
    Replace,
    /// To be tried again: nothing is left of it.
    Restart,
}

/// Ready, active, and its slot desired.
pub(crate) fn is_available(slot: &Slot) -> bool {
    slot.desired.is_some()
        && slot.node.as_ref().is_some_and(|node| node.stage.is_ready() && node.intent == Intent::Active)
}

/// Made from what its slot should have, not available, and it has failed since it was last ready.
pub(crate) fn is_failing(slot: &Slot) -> bool {
    let (Some(desired), Some(node)) = (&slot.desired, &slot.node) else { return false };
    node.template == desired.template && !is_available(slot) && node.retry.failures > 0
}

/// An attempt of it is under way.
fn is_trying(slot: &Slot) -> bool {
    slot.node.as_ref().is_some_and(|node| node.climbs())
}

fn queue(slot: &Slot) -> Option<(Queue, (u64, u64))> {
    let (desired, node) = (slot.desired.as_ref()?, slot.node.as_ref()?);
    if node.stage == Stage::Destroyed {
        return Some((Queue::Restart, (node.retry.restart_at.unwrap_or(0), node.attempt.0)));
    }
    let drifted = node.template != desired.template;
    (drifted && is_available(slot)).then_some((Queue::Replace, (node.attempt.0, 0)))
}

impl Driver {
    /// The totals of each group over the whole fleet, with what is declared for `rollouts` or without.
    pub(crate) fn group_totals(&self, rollouts: bool) -> Vec<decider::Group> {
        let state = &self.state;
        let shape = state.desired.as_ref();
        let mut groups: Vec<decider::Group> = shape
            .iter()
            .flat_map(|shape| &shape.groups)
            .map(|group| decider::Group { name: group.id.clone(), count: group.count, ..Default::default() })
            .collect();
        let by_name: BTreeMap<&str, usize> = shape
            .iter()
            .flat_map(|shape| shape.groups.iter().enumerate())
            .map(|(at, group)| (group.id.as_str(), at))
            .collect();
        for slot in &state.slots {
            let Some(node) = &slot.node else { continue };
            let at = slot
                .desired
                .map(|desired| desired.group as usize)
                .or_else(|| by_name.get(slot.group.as_str()).copied());
            let Some(group) = at.and_then(|at| groups.get_mut(at)) else { continue };
            let deleting = node.intent == Intent::Deleting;
            group.nodes += 1;
            group.ready += u32::from(node.stage.is_ready() && !deleting);
            group.failed += u32::from(node.stage == Stage::Failed);
            group.deleting += u32::from(deleting);
            group.pending += u32::from(node.pending_code() != 0);
            group.available += u32::from(is_available(slot));
            let failing = is_failing(slot);
            group.failing += u32::from(failing);
            group.trying += u32::from(failing && is_trying(slot));
        }
        if rollouts {
            self.rollout_totals(&mut groups);
        }
        groups
    }

    /// What is declared for rollouts, and what is held.
    fn rollout_totals(&self, groups: &mut [decider::Group]) {
        let declared = self.state.desired.iter().flat_map(|shape| &shape.groups);
        for (total, group) in groups.iter_mut().zip(declared) {
            let limits = group.rollout.limits(group.count);
            total.max_unavailable = limits.max_unavailable.filter(|_| !self.mutated(Mutation::BudgetNotShown));
            total.max_surge = limits.max_surge;
            total.max_failing = limits.max_failing;
            if self.mutated(Mutation::FailingNotCounted) {
                total.failing = 0;
            }
            if self.mutated(Mutation::TryingForEver) {
                total.trying = total.trying.max(1);
            }
            let bit = |held: bool, bit: u8| if held { bit } else { 0 };
            total.pauses = bit(self.pause_on(&group.id, Effect::Create).is_some(), pauses::CREATES)
                | bit(self.pause_on(&group.id, Effect::Destroy).is_some(), pauses::DESTROYS)
                | bit(group.rollout.paused && !self.mutated(Mutation::RolloutPauseIgnored), pauses::ROLLOUT);
            total.parameters = group.parameters.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        }
    }

    /// Of the groups of a snapshot, those whose limits are still to be kept by the same totals. What rests on other totals than
    /// there are now is decided again: a node that died meanwhile takes the place in the budget.
    pub(crate) fn fresh(&self, snapshot: &Snapshot) -> Vec<bool> {
        let limited = |group: &decider::Group| group.max_unavailable.is_some() || group.max_failing.is_some();
        if !snapshot.groups.iter().any(limited) {
            return vec![true; snapshot.groups.len()];
        }
        let totals = |group: &decider::Group| (group.available, group.failing, group.trying);
        let now = self.group_totals(self.state.sees_rollouts);
        snapshot.groups.iter().zip(&now).map(|(then, now)| !limited(then) || totals(then) == totals(now)).collect()
    }

    /// The group whose totals a decision may rest on.
    pub(crate) fn rests_on(&self, node: NodeId, verb: Verb) -> Option<usize> {
        let slot = self.state.slot(node)?;
        let (desired, held) = (slot.desired?, slot.node.as_ref()?);
        let rests = match verb {
            Verb::BeginDelete => is_available(slot) && held.template != desired.template,
            Verb::Restart => true,
            _ => false,
        };
        rests.then_some(desired.group as usize)
    }

    /// The turns of all slots: of those that wait to be replaced the lowest attempt first, of those that wait to be tried again
    /// the one whose restart was due first. Without `rollouts` there are none.
    pub(crate) fn turns(&self, rollouts: bool) -> Turns {
        if !rollouts {
            return Turns(Vec::new());
        }
        let mut waiting: Vec<(u32, Queue, (u64, u64), usize)> = Vec::new();
        for (at, slot) in self.state.slots.iter().enumerate() {
            let Some((queue, place)) = queue(slot) else { continue };
            waiting.push((slot.desired.map_or(NO_INDEX, |desired| desired.group), queue, place, at));
        }
        if waiting.is_empty() {
            return Turns(Vec::new());
        }
        waiting.sort_unstable();
        let mut turns = vec![NO_INDEX; self.state.slots.len()];
        let mut next = 0;
        let mut last = None;
        for (group, queue, _, at) in waiting {
            if last != Some((group, queue)) {
                (last, next) = (Some((group, queue)), 0);
            }
            turns[at] = if self.mutated(Mutation::EveryTurnIsFirst) { 0 } else { next };
            next += 1;
        }
        Turns(turns)
    }
}
