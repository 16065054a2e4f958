//! The invariants of SPEC 13, a function each, by id. Shared by tests, simulator and `homeostat verify`.
//!
//! S1–S10, S14 and S15 are judged from one step of the driver: the state before and after one input, and the outputs.
//! S8's count of live resources, S11, S12 and S13 need more than a step and have functions of their own.

use std::collections::{BTreeMap, BTreeSet};

use decider::{DecisionRow, HoldKind, Intent, OperationKind, Plan, Snapshot, Stage, Verb};

use crate::command::Command;
use crate::id::{AttemptId, ExternalKey, NodeId, OperationId};
use crate::io::{Done, Fault, Input, Observation, OperationStatus, Output, Request, Resource};
use crate::record::Record;
use crate::state::{ClusterState, ManagedNode, Reap, Slot};

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its id, such as `S6`.
    pub id: &'static str,
    /// What was seen.
    pub what: String,
}

/// One step of the driver.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The state before.
    pub before: &'a ClusterState,
    /// What was folded.
    pub input: &'a Input,
    /// What came out, in order.
    pub outputs: &'a [Output],
    /// The state after.
    pub after: &'a ClusterState,
}

/// A step, and which slots it may have changed.
pub(crate) struct Changed<'a> {
    pub before: &'a ClusterState,
    pub input: &'a Input,
    pub outputs: &'a [Output],
    pub after: &'a ClusterState,
    /// Indices of slots; those that are not here are as they were.
    pub touched: &'a [usize],
}

/// All invariants that one step can show to be broken.
pub fn check_step(step: &Step<'_>) -> Vec<Violation> {
    let touched: Vec<usize> = (0..step.after.slots.len()).collect();
    let Step { before, input, outputs, after } = *step;
    check_changed(&Changed { before, input, outputs, after, touched: &touched })
}

pub(crate) fn check_changed(step: &Changed<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for check in [s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s14, s15, crate::rows::judge, crate::budget::judge] {
        check(step, &mut found);
    }
    found
}

pub(crate) type Found = Vec<Violation>;

pub(crate) fn broken(found: &mut Found, id: &'static str, what: String) {
    found.push(Violation { id, what });
}

pub(crate) fn submits<'a>(step: &Changed<'a>) -> impl Iterator<Item = &'a crate::io::Operation> {
    step.outputs.iter().filter_map(|output| match output {
        Output::Submit(operation) => Some(operation),
        _ => None,
    })
}

/// Each slot with the node it held before and the one it holds after.
pub(crate) fn nodes<'a>(
    step: &Changed<'a>,
) -> impl Iterator<Item = (&'a Slot, Option<&'a ManagedNode>, Option<&'a ManagedNode>)> {
    let before = step.before;
    step.touched.iter().filter_map(|at| Some((*at, step.after.slots.get(*at)?))).map(move |(at, slot)| {
        let earlier = before.slots.get(at).and_then(|slot| slot.node.as_ref());
        (slot, earlier, slot.node.as_ref())
    })
}

/// The same attempt before and after.
pub(crate) fn kept<'a>(step: &Changed<'a>) -> impl Iterator<Item = (&'a Slot, &'a ManagedNode, &'a ManagedNode)> {
    nodes(step).filter_map(|(slot, before, after)| {
        let (before, after) = (before?, after?);
        (before.attempt == after.attempt).then_some((slot, before, after))
    })
}

/// S1: no effect without a pending record made before it.
fn s1(step: &Changed<'_>, found: &mut Found) {
    let mut recorded = BTreeSet::new();
    for output in step.outputs {
        match output {
            Output::Record(Record::Pending(operation)) => {
                recorded.insert(operation.id);
            }
            Output::Submit(operation) if !recorded.contains(&operation.id) => {
                broken(found, "S1", format!("{} left before its record", operation.id));
            }
            _ => {}
        }
    }
    for operation in submits(step) {
        let held = step.after.holder(operation.id.attempt).and_then(|node| step.after.slot(node)?.node.as_ref());
        let pending = held.and_then(|node| node.pending.as_ref()).map(|pending| pending.operation.id);
        let reap = step.after.reaps.get(&operation.id.attempt).and_then(|reap| reap.pending.as_ref());
        let reaped = reap.map(|pending| pending.operation.id);
        let swept = ordered(step.after, operation).and_then(|reap| reap.pending.as_ref());
        let swept = swept.map(|pending| pending.operation.id);
        if ![pending, reaped, swept].contains(&Some(operation.id)) {
            broken(found, "S1", format!("{} is in flight and the state does not show it", operation.id));
        }
    }
}

/// The order to destroy the very orphan that an operation is about.
fn ordered<'a>(state: &'a ClusterState, operation: &crate::io::Operation) -> Option<&'a Reap> {
    let Request::DestroyLease { lease } = &operation.request else { return None };
    let orphan = state.orphans.get(&(operation.provider.clone(), lease.clone()))?;
    orphan.destroying.as_deref().filter(|reap| reap.lease == *lease && reap.key == operation.key)
}

/// S2: at most one pending operation a node; at most one running an attempt.
fn s2(step: &Changed<'_>, found: &mut Found) {
    let mut out = BTreeMap::new();
    for operation in submits(step) {
        if let Some(other) = out.insert(operation.id.attempt, operation.id) {
            broken(found, "S2", format!("{other} and {} left together", operation.id));
        }
        let before = step.before.holder(operation.id.attempt).and_then(|node| step.before.slot(node)?.node.as_ref());
        if let Some(pending) = before.and_then(|node| node.pending.as_ref()) {
            let ended = match step.input {
                Input::Completed { id, .. } | Input::Answered { id, .. } => *id == pending.operation.id,
                // No call of the earlier start is waited for any more.
                Input::Restarted => true,
                _ => false,
            };
            if !ended {
                broken(found, "S2", format!("{} left while {} is pending", operation.id, pending.operation.id));
            }
        }
    }
}

/// S3: attempt and operation ids are never reused.
fn s3(step: &Changed<'_>, found: &mut Found) {
    if step.after.next_attempt < step.before.next_attempt {
        broken(found, "S3", format!("the next attempt went back to {}", step.after.next_attempt));
    }
    let adopting = matches!(step.input, Input::Adopt { .. });
    let mut fresh = BTreeSet::new();
    for (slot, before, after) in nodes(step) {
        let Some(after) = after else { continue };
        if before.is_some_and(|before| before.attempt == after.attempt) || adopting {
            continue;
        }
        // A label that nobody ever authorised gives its attempt to the slot it names, once.
        let adopted = matches!(step.input, Input::Command(Command::AdoptOrphan { .. }))
            && !step.before.attempts.contains_key(&after.attempt);
        if (after.attempt.0 < step.before.next_attempt && !adopted) || !fresh.insert(after.attempt) {
            broken(found, "S3", format!("{} got attempt {} a second time", slot.name, after.attempt));
        }
    }
    for operation in submits(step) {
        let used = step.before.attempts.get(&operation.id.attempt).map_or(0, |known| known.next_sequence);
        if operation.id.sequence < used {
            broken(found, "S3", format!("operation id {} is reused", operation.id));
        }
    }
}

/// S4: nothing from a superseded attempt changes a later one.
fn s4(step: &Changed<'_>, found: &mut Found) {
    let attempt = match step.input {
        Input::Completed { id, .. } | Input::Answered { id, .. } => id.attempt,
        Input::Observed { attempt, .. } => *attempt,
        _ => return,
    };
    if step.before.holder(attempt).is_some() {
        return;
    }
    for (slot, before, after) in kept(step) {
        let facts =
            |node: &ManagedNode| (node.lease.clone(), node.endpoint.clone(), node.session.clone(), node.progress);
        if facts(before) != facts(after) {
            broken(found, "S4", format!("{attempt} changed the facts of {}, held by {}", slot.name, after.attempt));
        }
    }
}

/// S5: a destroyed node holds no lease, session or pending operation.
fn s5(step: &Changed<'_>, found: &mut Found) {
    for (slot, _, node) in nodes(step) {
        let Some(node) = node.filter(|node| node.stage == Stage::Destroyed) else { continue };
        if node.lease.is_some() || node.session.is_some() || node.pending.is_some() {
            broken(found, "S5", format!("{} is destroyed and still holds something", slot.name));
        }
    }
}

pub(crate) fn completes(
    input: &Input,
    attempt: AttemptId,
    before: &ManagedNode,
) -> Option<(OperationKind, Result<Done, Fault>)> {
    let pending = before.pending.as_ref()?;
    let kind = pending.operation.request.kind();
    match input {
        Input::Completed { id, result } if id.attempt == attempt && *id == pending.operation.id => {
            Some((kind, result.clone()))
        }
        Input::Answered { id, status: OperationStatus::Ambiguous } if *id == pending.operation.id => {
            Some((kind, Err(Fault::Ambiguous { reason: String::new() })))
        }
        Input::Restarted => Some((kind, Err(Fault::Ambiguous { reason: String::new() }))),
        _ => None,
    }
}

/// S6: failed clean-up keeps every live fact; nothing is forgotten while it may exist.
fn s6(step: &Changed<'_>, found: &mut Found) {
    for (slot, before, after) in nodes(step) {
        let Some(before) = before else { continue };
        if step.after.reaps.contains_key(&before.attempt) {
            continue;
        }
        let same = after.filter(|after| after.attempt == before.attempt);
        let ended = completes(step.input, before.attempt, before);
        let destroyed = matches!(ended, Some((OperationKind::DestroyLease, Ok(Done::Destroyed))));
        if before.lease.is_some() && same.is_none_or(|node| node.lease.is_none()) && !destroyed {
            broken(found, "S6", format!("the lease of {} {} was forgotten", slot.name, before.attempt));
        }
        let cancelled = destroyed || matches!(ended, Some((OperationKind::CancelBootstrap, Ok(Done::Cancelled))));
        let closed = matches!(step.input, Input::Observed { attempt, observation: Observation::Closed { .. } } if *attempt == before.attempt);
        if before.session.is_some() && same.is_none_or(|node| node.session.is_none()) && !cancelled && !closed {
            broken(found, "S6", format!("the session of {} {} was forgotten", slot.name, before.attempt));
        }
    }
}

/// S7: an ambiguous create is adopted before anything destructive.
fn s7(step: &Changed<'_>, found: &mut Found) {
    for operation in submits(step) {
        let destructive = matches!(operation.request, Request::CancelBootstrap { .. } | Request::DestroyLease { .. });
        let held = step.after.holder(operation.id.attempt).and_then(|node| step.after.slot(node)?.node.as_ref());
        if destructive && held.is_some_and(|node| node.doubt().is_some()) {
            broken(found, "S7", format!("{} destroys while a create is in doubt", operation.id));
        }
    }
    for (slot, before, after) in nodes(step) {
        let Some(before) = before else { continue };
        let Some(kind) = before.doubt() else { continue };
        let same = after.filter(|after| after.attempt == before.attempt);
        if same.is_some_and(|after| after.doubt() == Some(kind)) {
            continue;
        }
        let ended = completes(step.input, before.attempt, before);
        // The lease is destroyed instead, and with it what runs on it.
        let given_up = kind == OperationKind::StartBootstrap
            && before.lease.is_some()
            && before
                .retry
                .ambiguous
                .as_ref()
                .is_some_and(|doubt| doubt.absences + 1 >= crate::folding::ADOPTION_TRIES)
            && ended.as_ref().is_some_and(|(done, result)| *done == kind && result.is_err());
        let settled = given_up
            || matches!(&ended, Some((done, Ok(_) | Err(Fault::Permanent { .. } | Fault::Ambiguous { .. }))) if *done == kind);
        if !settled {
            broken(found, "S7", format!("the doubt about a {} of {} was forgotten", kind.label(), slot.name));
        }
    }
}

/// S8, as far as the state shows it: a replacement starts only after its predecessor is cleaned up.
fn s8(step: &Changed<'_>, found: &mut Found) {
    if matches!(step.input, Input::Adopt { .. }) {
        return;
    }
    for (slot, before, after) in nodes(step) {
        let (Some(before), Some(after)) = (before, after) else { continue };
        if before.attempt == after.attempt {
            continue;
        }
        if before.stage != Stage::Destroyed {
            let stage = before.stage.label();
            broken(
                found,
                "S8",
                format!("{} {} replaced {} in stage {stage}", slot.name, after.attempt, before.attempt),
            );
        }
    }
}

/// S8, as the world shows it: at most one live resource per external key, and per slot, retired attempts being reaped apart.
pub fn check_resources(live: &[Resource]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut keys: BTreeMap<&ExternalKey, usize> = BTreeMap::new();
    for key in live.iter().filter_map(|resource| resource.key.as_ref()) {
        *keys.entry(key).or_default() += 1;
    }
    for (key, count) in keys.into_iter().filter(|(_, count)| *count > 1) {
        broken(&mut found, "S8", format!("{count} live resources bear {key}"));
    }
    found
}

/// S9: scale-down removes only the highest indices; no desired, healthy, undrifted node is ever destroyed.
fn s9(step: &Changed<'_>, found: &mut Found) {
    crate::orders::judge(step, found);
    for (slot, before, after) in kept(step) {
        let begins = before.intent == Intent::Active && after.intent == Intent::Deleting;
        let reason = slot.desired.is_none_or(|desired| desired.template != before.template) || after.failure.is_some();
        if begins && !reason {
            broken(
                found,
                "S9",
                format!("{} {} is desired, healthy and undrifted, and is being destroyed", slot.name, after.attempt),
            );
        }
    }
}

/// S10: the observed generation never goes back; changed content at the same generation is refused.
fn s10(step: &Changed<'_>, found: &mut Found) {
    if step.after.observed_generation < step.before.observed_generation {
        broken(found, "S10", format!("the observed generation went back to {}", step.after.observed_generation));
    }
    if let (Some(before), Some(after)) = (&step.before.desired, &step.after.desired) {
        let risen = after.generation > before.generation;
        if after.generation < before.generation || (!risen && before.groups != after.groups) {
            broken(found, "S10", format!("generation {} replaced {}", after.generation, before.generation));
        }
    }
}

/// S14: nothing is created, destroyed or called gone because a listing lacks it.
fn s14(step: &Changed<'_>, found: &mut Found) {
    let (Input::Listed { provider, listing } | Input::Surveyed { provider, listing }) = step.input else { return };
    for (slot, before, after) in nodes(step) {
        let facts = |node: Option<&ManagedNode>| {
            node.map(|node| (node.lease.clone(), node.endpoint.clone(), node.session.clone()))
        };
        if facts(before) != facts(after) {
            broken(found, "S14", format!("a listing changed the facts of {}", slot.name));
        }
    }
    let gone =
        step.before.orphans.keys().filter(|(of, _)| of == provider).any(|key| !step.after.orphans.contains_key(key));
    if gone && !listing.complete {
        broken(found, "S14", "an incomplete listing ended an orphan".into());
    }
}

/// S15: a destroy names a provider reference whose label matches run, node and attempt.
fn s15(step: &Changed<'_>, found: &mut Found) {
    for operation in submits(step) {
        let key = &operation.key;
        if ordered(step.after, operation).is_some() && key.run == step.after.run {
            continue;
        }
        if key.run != step.after.run
            || key.attempt != operation.id.attempt
            || !step.after.authorised(&key.slot, key.attempt)
        {
            broken(found, "S15", format!("{} is about {key}, which is not ours", operation.id));
            continue;
        }
        let Request::DestroyLease { lease } = &operation.request else { continue };
        let holder = step.after.holder(key.attempt).and_then(|node| step.after.slot(node)?.node.as_ref());
        let held = holder.and_then(|node| node.lease.as_ref()) == Some(lease);
        let reap = step.after.reaps.get(&key.attempt).is_some_and(|reap| reap.lease == *lease && reap.key == *key);
        if !held && !reap {
            broken(found, "S15", format!("{} destroys {lease}, which no label ties to {key}", operation.id));
        }
    }
}

/// S11: a settled cluster's pass is a no-op: between two settled moments nothing was submitted and no fact changed.
pub fn check_settled(before: &ClusterState, after: &ClusterState, outputs: &[Output]) -> Vec<Violation> {
    let mut found = Vec::new();
    for output in outputs {
        if let Output::Submit(operation) = output {
            broken(&mut found, "S11", format!("{} left a settled cluster", operation.id));
        }
    }
    for (old, new) in before.slots.iter().zip(&after.slots) {
        if old.node != new.node || old.revision != new.revision {
            broken(&mut found, "S11", format!("a pass changed {}, which was settled", new.name));
        }
    }
    found
}

/// S11: the same snapshot gives the same plan, byte for byte, whoever computes it.
pub fn check_same_plan(one: &Plan, other: &Plan) -> Vec<Violation> {
    let mut found = Vec::new();
    if one != other {
        let at = one.decisions.rows().zip(other.decisions.rows()).position(|(a, b)| a != b);
        broken(&mut found, "S11", format!("two plans for one snapshot differ, first at decision {at:?}"));
    }
    found
}

/// A decision in words.
fn worded(decision: Option<DecisionRow>) -> String {
    let Some(row) = decision else { return "no decision".into() };
    match HoldKind::from_code(row.hold) {
        Some(kind) if row.verb == Verb::Hold.code() => format!("a hold until {} (rule {})", kind.label(), row.rule),
        _ => format!("{} (rule {})", Verb::from_code(row.verb).map_or("an unknown verb", Verb::label), row.rule),
    }
}

/// S12: deciding each node alone gives the whole plan's decision for it.
pub fn check_subset(
    whole: &Snapshot,
    plan: &Plan,
    mut alone: impl FnMut(NodeId) -> Snapshot,
    mut decide: impl FnMut(&Snapshot) -> Plan,
) -> Vec<Violation> {
    let mut found = Vec::new();
    for (at, node) in whole.nodes.node.iter().enumerate() {
        let decided = decide(&alone(NodeId(*node))).decisions.row(0);
        if decided != plan.decisions.row(at) {
            let (with, alone) = (worded(plan.decisions.row(at)), worded(decided));
            broken(&mut found, "S12", format!("node {node} gets {with}, and alone, without the others, {alone}"));
        }
    }
    found
}

/// S13: two orders of the same independent inputs settle in the same place. Ids differ with the order; where each slot
/// stands, and with which template, must not.
pub fn check_same_place(one: &ClusterState, other: &ClusterState) -> Vec<Violation> {
    let place = |state: &ClusterState| -> BTreeMap<String, Option<(Stage, Intent, String)>> {
        let standing = |slot: &Slot| {
            let node = slot.node.as_ref()?;
            let template = state.templates.get(node.template.0 as usize).map(|template| format!("{template:?}"));
            Some((node.stage, node.intent, template.unwrap_or_default()))
        };
        let used = state.slots.iter().filter(|slot| slot.desired.is_some() || slot.node.is_some());
        used.map(|slot| (slot.name.clone(), standing(slot))).collect()
    };
    let mut found = Vec::new();
    let (one, other) = (place(one), place(other));
    for (name, standing) in &one {
        if other.get(name) != Some(standing) {
            broken(&mut found, "S13", format!("{name} settles differently: {standing:?} and {:?}", other.get(name)));
        }
    }
    found
}

/// The operation ids in some outputs, in order: for tests that compare runs.
pub fn submitted(outputs: &[Output]) -> Vec<OperationId> {
    outputs
        .iter()
        .filter_map(|output| if let Output::Submit(operation) = output { Some(operation.id) } else { None })
        .collect()
}
