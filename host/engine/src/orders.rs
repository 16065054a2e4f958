//! S9 as far as shapes and orders go, and what a pause and a guard promise: judged from one step.

use std::collections::BTreeSet;

use crate::command::Command;
use crate::guard::Guard;
use crate::invariants::{Changed, Found, broken, nodes, submits};
use crate::io::{Input, Operation, Request};
use crate::pause::{By, Effect, Held, HeldBy, Pause, group_of};
use crate::shape::slot_name;
use crate::state::{ClusterState, Reap};

pub(crate) fn judge(step: &Changed<'_>, found: &mut Found) {
    slots(step, found);
    retired(step, found);
    paused(step, found);
    admitted(step, found);
}

/// S9: a group has the lowest of the indices that were never destroyed, so that a scale-down takes the highest.
fn slots(step: &Changed<'_>, found: &mut Found) {
    let (Input::Desired(_) | Input::Command(_), Some(shape)) = (step.input, &step.after.desired) else { return };
    for group in &shape.groups {
        for index in step.after.indices(&group.id, group.count) {
            let name = slot_name(&group.id, index);
            let slot = step.after.names.get(&name).and_then(|node| step.after.slot(*node));
            if slot.and_then(|slot| slot.desired).is_none_or(|desired| desired.surge) {
                broken(found, "S9", format!("{name} is in the shape and not desired"));
            }
        }
    }
    let regular = |slot: &&crate::state::Slot| slot.desired.is_some_and(|desired| !desired.surge);
    let total = step.after.slots.iter().filter(regular).count() as u64;
    if total != shape.slots() {
        broken(found, "S9", format!("{total} slots are desired; the shape has {}", shape.slots()));
    }
}

/// S9: an index is retired by an order that names it, for good, and nobody else loses a place by that order.
fn retired(step: &Changed<'_>, found: &mut Found) {
    let (before, after) = (step.before, step.after);
    let none = BTreeSet::new();
    let ordered = |slot: &crate::state::Slot| match step.input {
        Input::Command(Command::Destroy { nodes, groups }) => {
            nodes.contains(&slot.name) || groups.contains(&slot.group)
        }
        _ => false,
    };
    if before.retired != after.retired {
        for (group, indices) in &before.retired {
            if !indices.is_subset(after.retired.get(group).unwrap_or(&none)) {
                broken(found, "S9", format!("indices of {group} that were destroyed for good came back"));
            }
        }
        for (group, indices) in &after.retired {
            for index in indices.difference(before.retired.get(group).unwrap_or(&none)) {
                let slot = after.slots.iter().find(|slot| slot.group == *group && slot.index == *index);
                if !slot.is_some_and(ordered) {
                    broken(found, "S9", format!("{group}-{index} was retired and nobody ordered that"));
                }
            }
        }
    }
    if matches!(step.input, Input::Command(Command::Destroy { .. })) {
        for slot in &after.slots {
            let earlier = before.names.get(&slot.name).and_then(|node| before.slot(*node)?.desired);
            if earlier.is_some_and(|earlier| !earlier.surge) && slot.desired.is_none() && !ordered(slot) {
                broken(found, "S9", format!("{} lost its place by an order that does not name it", slot.name));
            }
        }
    }
}

/// What an operation does outside, as far as it shows.
fn effect(before: &ClusterState, after: &ClusterState, operation: &Operation) -> Effect {
    let holder = after.holder(operation.id.attempt).and_then(|node| after.slot(node)?.node.as_ref());
    let deleting = holder.is_none_or(|node| node.intent == decider::Intent::Deleting);
    match &operation.request {
        // A sweep's own destroy: what was counted has begun.
        Request::DestroyLease { lease } if holder.is_none_or(|node| node.lease.as_ref() != Some(lease)) => {
            let is = |reap: &&Reap| reap.lease == *lease && reap.key.attempt == operation.id.attempt;
            let orphans = before.orphans.values().filter_map(|orphan| orphan.destroying.as_deref());
            before.reaps.values().chain(orphans).find(is).map_or(Effect::Destroy, Reap::effect)
        }
        Request::CancelBootstrap { .. } | Request::DestroyLease { .. } => Effect::CleanUp,
        Request::CreateLease(_) | Request::StartBootstrap { .. } if deleting => Effect::CleanUp,
        Request::CreateLease(_) => Effect::Create,
        Request::SettleCreate(_) | Request::LookupEndpoint { .. } | Request::StartBootstrap { .. } => Effect::Other,
    }
}

/// While effects are paused none of them leaves, and no deletion or attempt begins.
fn paused(step: &Changed<'_>, found: &mut Found) {
    // What was paused before and still is.
    let pauses = || step.before.pauses.iter().filter(|pause| step.after.pauses.contains(pause));
    if pauses().next().is_none() {
        return;
    }
    let held = |group: &str, effect: Effect| pauses().any(|pause| pause.holds(group, effect));
    for operation in submits(step) {
        if held(group_of(&operation.key.slot), effect(step.before, step.after, operation)) {
            broken(found, "SPEC 10", format!("{} left while that is paused", operation.id));
        }
    }
    for (slot, before, after) in nodes(step) {
        let deleting = |node: Option<&crate::state::ManagedNode>| {
            node.is_some_and(|node| node.intent == decider::Intent::Deleting)
        };
        if !deleting(before) && deleting(after) && held(&slot.group, Effect::Destroy) {
            broken(found, "SPEC 10", format!("the deletion of {} began while that is paused", slot.name));
        }
        let adopts = matches!(step.input, Input::Adopt { .. } | Input::Command(Command::AdoptOrphan { .. }));
        let another = after.is_some() && before.map(|node| node.attempt) != after.map(|node| node.attempt);
        if another && !adopts && held(&slot.group, Effect::Create) {
            broken(found, "SPEC 10", format!("{} got an attempt while creates are paused", slot.name));
        }
    }
}

/// A guard's count is never above its limit, nobody but a person ends its pause, and what it let through ends.
fn admitted(step: &Changed<'_>, found: &mut Found) {
    for slot in &step.after.slots {
        if let Some(Held {
            effect: Effect::CleanUp,
            by: HeldBy::Pause(Pause { by: By::Guard { guard, .. }, .. }),
            ..
        }) = &slot.held
        {
            broken(
                found,
                "SPEC 10",
                format!("the guard {} holds the clean-up of {}, which has begun", guard.label(), slot.name),
            );
        }
    }
    let kept = |guard: Guard| {
        let by = |pause: &Pause| matches!(pause.by, By::Guard { guard: of, .. } if of == guard);
        let before = step.before.pauses.iter().filter(|pause| by(pause)).count();
        before <= step.after.pauses.iter().filter(|pause| by(pause)).count()
    };
    let resumed = matches!(step.input, Input::Command(Command::Resume { .. }));
    for guard in [Guard::DestroysPerMinute, Guard::CreatesPerHour, Guard::DestroyedShare] {
        if !resumed && !kept(guard) {
            broken(found, "SPEC 10", format!("the pause of the guard {} ended and nobody resumed", guard.label()));
        }
    }
}
