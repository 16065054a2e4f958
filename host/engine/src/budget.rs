//! What budgets and circuits promise (B1, B2) and where surge slots may be (B3), recounted from one step. Rollouts never make
//! more of a group unavailable than its budget allows; nodes that die may.

use std::collections::BTreeMap;

use decider::{Intent, Stage};

use crate::invariants::{Changed, Found, broken, nodes};
use crate::shape::GroupShape;
use crate::state::{ClusterState, ManagedNode, Slot};

/// What began in one step, of one group.
#[derive(Clone, Copy, Debug, Default)]
struct Begun {
    /// Deletions of available nodes because their template changed.
    replaced: u32,
    /// Attempts for slots of which nothing was left, with the template they had.
    retried: u32,
}

pub(crate) fn judge(step: &Changed<'_>, found: &mut Found) {
    let Some(shape) = step.after.desired.as_ref().filter(|_| step.after.sees_rollouts) else { return };
    let limited = |group: &GroupShape| !group.rollout.is_default();
    if !shape.groups.iter().any(limited) {
        return;
    }
    let mut begun: BTreeMap<u32, Begun> = BTreeMap::new();
    for (slot, before, after) in nodes(step) {
        let (Some(desired), Some(before), Some(after)) = (slot.desired, before, after) else { continue };
        let deleted = before.attempt == after.attempt && is_ready(before) && after.intent == Intent::Deleting;
        let of_group = begun.entry(desired.group).or_default();
        of_group.replaced += u32::from(deleted && before.template != desired.template && after.failure.is_none());
        of_group.retried += u32::from(
            before.attempt != after.attempt && before.stage == Stage::Destroyed && before.template == desired.template,
        );
    }
    for (at, begun) in begun {
        let Some(group) = shape.groups.get(at as usize).filter(|group| limited(group)) else { continue };
        judge_group(step, at, group, begun, found);
    }
    surge(step.after, shape.groups.as_slice(), found);
}

fn judge_group(step: &Changed<'_>, at: u32, group: &GroupShape, begun: Begun, found: &mut Found) {
    let limits = group.rollout.limits(group.count);
    let name = &group.id;
    if begun.replaced > 0 {
        let available = count(step.after, at, |slot| slot.node.as_ref().is_some_and(is_ready));
        let least = group.count.saturating_sub(limits.max_unavailable.unwrap_or(u32::MAX));
        if available < least {
            let what = format!("a rollout leaves {available} of {name} available; the budget asks for {least}");
            broken(found, "B1", what);
        }
        if group.rollout.paused {
            broken(found, "B1", format!("a healthy node of {name} is replaced while its rollout is paused"));
        }
    }
    // What failed when that was decided: an attempt that begins with a mended template counts from then on.
    let failing = count(step.before, at, fails);
    if limits.max_failing.is_none_or(|most| failing <= most) {
        return;
    }
    if begun.replaced > 0 {
        broken(found, "B2", format!("a healthy node of {name} is replaced while {failing} fail"));
    }
    let trying = count(step.before, at, |slot| fails(slot) && slot.node.as_ref().is_some_and(ManagedNode::climbs));
    if begun.retried > 0 && begun.retried + trying > 1 {
        let all = begun.retried + trying;
        broken(found, "B2", format!("{all} of {name} are tried at once while {failing} fail"));
    }
}

fn is_ready(node: &ManagedNode) -> bool {
    node.stage.is_ready() && node.intent == Intent::Active
}

fn fails(slot: &Slot) -> bool {
    let (Some(desired), Some(node)) = (&slot.desired, &slot.node) else { return false };
    node.template == desired.template && !is_ready(node) && node.retry.failures > 0
}

fn count(state: &ClusterState, group: u32, counts: impl Fn(&Slot) -> bool) -> u32 {
    let of_group = |slot: &&Slot| slot.desired.is_some_and(|desired| desired.group == group);
    u32::try_from(state.slots.iter().filter(of_group).filter(|slot| counts(slot)).count()).unwrap_or(u32::MAX)
}

/// Surge slots are the next of a group's indices, and no more than it may have.
fn surge(state: &ClusterState, groups: &[GroupShape], found: &mut Found) {
    let used = state.slots.iter().filter(|slot| slot.desired.is_some_and(|desired| desired.surge));
    for slot in used {
        let group = slot.desired.and_then(|desired| groups.get(desired.group as usize));
        let Some(group) = group else { continue };
        let beyond = group.count.saturating_add(group.rollout.limits(group.count).max_surge);
        // A shape that has just come is looked at by the next pass.
        let regular = state.indices(&group.id, group.count).any(|index| index == slot.index);
        if regular || (state.indices(&group.id, beyond).all(|index| index != slot.index) && slot.node.is_none()) {
            broken(found, "B3", format!("{} is no place for a surge node of {}", slot.name, group.id));
        }
    }
}
