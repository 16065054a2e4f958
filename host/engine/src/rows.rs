//! The rows of SPEC 2, 6 and 7 that one step can show to be broken: what is kept, what is counted, what waits.

use decider::{OperationKind, Stage};

use crate::invariants::{Changed, Found, broken, completes, kept, nodes, submits};
use crate::io::{Fault, Input, Observation, Request};
use crate::state::ManagedNode;

pub(crate) fn judge(step: &Changed<'_>, found: &mut Found) {
    for (slot, before, after) in kept(step) {
        let name = &slot.name;
        if before.template != after.template {
            broken(found, "SPEC 2", format!("the template of {name} {} changed in place", after.attempt));
        }
        failed(step.input, name, before, after, found);
        climbed(name, before, after, found);
        if let Some((kind, Err(fault))) = completes(step.input, before.attempt, before) {
            outcome(name, kind, &fault, (before, after), found);
        }
        if let Input::Observed { attempt, observation: Observation::Closed { exit } } = step.input
            && *attempt == before.attempt
            && before.climbs()
            && before.stage.is_ready()
        {
            let died = after.stage == Stage::Failed;
            match exit {
                Some(exit) if !died => broken(found, "SPEC 6", format!("{name} is ready though it died: {exit}")),
                None if died => broken(found, "S14", format!("{name} is taken for dead without evidence")),
                _ => {}
            }
        }
    }
    for (slot, before, after) in nodes(step) {
        let (Some(before), Some(after)) = (before, after) else { continue };
        if before.attempt != after.attempt
            && after.retry.failures != before.retry.failures
            && !matches!(step.input, Input::Adopt { .. })
        {
            let (one, other) = (before.retry.failures, after.retry.failures);
            broken(
                found,
                "SPEC 6",
                format!("{} had {one} failures in a row and its replacement has {other}", slot.name),
            );
        }
    }
    for operation in submits(step) {
        let (Request::CreateLease(request) | Request::SettleCreate(request)) = &operation.request else { continue };
        let before = step.before.holder(operation.id.attempt).and_then(|node| step.before.slot(node)?.node.as_ref());
        let first = before.and_then(|node| node.retry.ambiguous.as_ref()?.request.as_ref());
        if first.is_some_and(|first| first != request) {
            broken(found, "SPEC 7", format!("{} does not send what the create in doubt sent", operation.id));
        }
    }
}

/// An attempt that failed is counted and its restart waits.
fn failed(input: &Input, name: &str, before: &ManagedNode, after: &ManagedNode, found: &mut Found) {
    if before.stage != Stage::Failed && after.stage == Stage::Failed {
        if after.retry.restart_at.is_none() {
            broken(found, "SPEC 6", format!("{name} failed and its restart does not back off"));
        }
        let counted = after.retry.failures > before.retry.failures || after.retry.failures == u32::MAX;
        if !counted && !crate::order::kills(input, name) {
            broken(found, "SPEC 6", format!("{name} failed and the failure is not counted"));
        }
    }
}

/// A failed attempt does not come back; stages that have a deadline get one; ready resets the count.
fn climbed(name: &str, before: &ManagedNode, after: &ManagedNode, found: &mut Found) {
    if before.stage == after.stage {
        return;
    }
    if before.stage == Stage::Failed && after.stage != Stage::Destroyed {
        broken(found, "SPEC 6", format!("{name} had failed and is in stage {}", after.stage.label()));
    }
    let timed = matches!(after.stage, Stage::LeaseCreated | Stage::BootstrapRunning);
    if timed && after.climbs() && after.stage_deadline.is_none() {
        broken(found, "L4", format!("{name} is in stage {} without a deadline", after.stage.label()));
    }
    if after.stage.is_ready() && after.retry.failures != 0 {
        broken(found, "SPEC 6", format!("{name} is ready and has {} failures in a row", after.retry.failures));
    }
}

/// What a fault of each kind must leave behind.
fn outcome(
    name: &str,
    kind: OperationKind,
    fault: &Fault,
    (before, after): (&ManagedNode, &ManagedNode),
    found: &mut Found,
) {
    let counted = after.retry.failures > before.retry.failures || after.retry.failures == u32::MAX;
    let label = kind.label();
    match fault {
        // The stage's deadline may have passed at the same instant.
        Fault::NotReady { .. } if kind == OperationKind::LookupEndpoint && after.stage != Stage::Failed => {
            if after.retry.failures != before.retry.failures {
                broken(found, "SPEC 6", format!("{name}: not ready yet is counted as a failure"));
            }
            if after.retry.probe_at.is_none() {
                broken(found, "SPEC 6", format!("{name} does not wait before it looks again"));
            }
        }
        Fault::NotReady { .. } => {}
        Fault::Retryable { retry_after_ms, .. } => {
            if !counted || (after.stage != Stage::Failed && after.retry.next_effect_at.is_none()) {
                broken(found, "SPEC 6", format!("{name}: a {label} failed and does not back off"));
            }
            if retry_after_ms.is_some() && after.stage != Stage::Failed && after.retry.provider_wait.is_none() {
                broken(found, "SPEC 6", format!("{name}: the provider says wait after a {label}, and nobody waits"));
            }
        }
        Fault::Permanent { .. } => {
            let cleaning = matches!(kind, OperationKind::CancelBootstrap | OperationKind::DestroyLease);
            if before.climbs() && !cleaning && after.stage != Stage::Failed {
                broken(found, "SPEC 6", format!("{name}: a {label} was refused for good and the attempt goes on"));
            }
        }
        Fault::Ambiguous { .. } => {
            let given_up = kind == OperationKind::StartBootstrap && !before.climbs();
            if after.retry.ambiguous.is_none() && !given_up {
                broken(found, "S7", format!("{name}: nobody knows whether a {label} happened, and nobody will ask"));
            }
        }
    }
}
