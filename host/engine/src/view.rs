//! The state as people see it: where each node is, why, what it waits for and until when.

use std::fmt;

use decider::{HoldKind, Intent, Stage};
use serde::Serialize;

use crate::driver::Driver;
use crate::id::{AttemptId, Millis};
use crate::io::DeciderFailure;
use crate::pause::{By, Held, HeldBy};
use crate::state::{Decision, ManagedNode, Retry, Slot};

/// The whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct View {
    /// The run's id.
    pub run: String,
    /// The generation in force.
    pub generation: u64,
    /// The last generation evaluated whole.
    pub observed_generation: u64,
    /// Whether the fleet has the declared shape (SPEC 8).
    pub converged: bool,
    /// The instant of this view.
    pub now_ms: Millis,
    /// Desired slots and nodes, in the order of groups and indices.
    pub nodes: Vec<NodeView>,
    /// Resources of retired attempts being reaped.
    pub reaping: Vec<ReapView>,
    /// Resources that bear our run but no attempt we authorised.
    pub orphans: Vec<OrphanView>,
    /// What is paused.
    pub pauses: Vec<PauseView>,
}

/// The clean-up of a retired attempt's resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReapView {
    /// The backend.
    pub provider: String,
    /// Its reference.
    pub lease: String,
    /// The slot that its label names.
    pub node: String,
    /// The attempt that its label names.
    pub attempt: u64,
    /// Failures in a row.
    pub failures: u32,
    /// When its destroy is tried next; `None` while one is on its way.
    pub next_at_ms: Option<Millis>,
}

/// What bears our run but no attempt we authorised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OrphanView {
    /// The backend.
    pub provider: String,
    /// Its reference.
    pub lease: String,
    /// The slot that its label names.
    pub node: String,
    /// The attempt that its label names.
    pub attempt: u64,
    /// When a listing showed it first.
    pub seen_ms: Millis,
    /// Whether its destruction was ordered.
    pub destroying: bool,
}

/// Effects that are held until a person resumes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PauseView {
    /// The group; `None` for the whole run.
    pub scope: Option<String>,
    /// Which effects: `all`, `create` or `destroy`.
    pub only: &'static str,
    /// `operator`, or the guard's name.
    pub by: &'static str,
    /// Since when.
    pub since_ms: Millis,
    /// All of it in one line, with the command that ends it.
    pub words: String,
}

impl fmt::Display for ReapView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({}/{})", self.provider, self.lease, self.node, AttemptId(self.attempt))
    }
}

impl fmt::Display for OrphanView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({}/{})", self.provider, self.lease, self.node, AttemptId(self.attempt))?;
        if self.destroying { f.write_str(", being destroyed") } else { Ok(()) }
    }
}

/// One slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeView {
    /// The slot's name.
    pub node: String,
    /// Its group.
    pub group: String,
    /// Its index.
    pub index: u32,
    /// Whether the slot is desired.
    pub desired: bool,
    /// Whether it is a surge slot: beyond the group's count, there for a rollout.
    pub surge: bool,
    /// The attempt that holds it; `None` when vacant.
    pub attempt: Option<u64>,
    /// The stage's name.
    pub stage: &'static str,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it is ready.
    pub ready: bool,
    /// Its endpoint.
    pub endpoint: Option<String>,
    /// The bootstrap's progress.
    pub progress: &'static str,
    /// Failures in a row.
    pub failures: u32,
    /// The last decision's rule.
    pub rule: Option<String>,
    /// What it waits for.
    pub waits_for: String,
    /// Whether it waits because the decider fails for it (SPEC 9).
    pub decider_fails: bool,
    /// Until when at the latest.
    pub until_ms: Option<Millis>,
    /// What went wrong last: why the attempt failed, or an operation's error.
    pub error: Option<String>,
    /// What was decided and is not carried out: who holds it, and what ends that.
    pub held: Option<String>,
    /// Since when it is held.
    pub held_since_ms: Option<Millis>,
    /// The kind of operation on its way.
    pub pending: Option<&'static str>,
    /// When the next operation or attempt may begin, where that is still to come.
    pub next_at_ms: Option<Millis>,
}

impl Driver {
    /// Converged for the generation in force (SPEC 8).
    pub fn is_converged(&self) -> bool {
        let evaluated =
            self.state().desired.as_ref().is_some_and(|shape| shape.generation == self.state().observed_generation);
        evaluated && self.state().slots.iter().all(settled)
    }

    /// One slot as people see it; `None` where there is none of that name, or nothing is wanted or left of it.
    pub fn node_view(&self, slot: &str) -> Option<NodeView> {
        let slot = self.state.slot(*self.state.names.get(slot)?)?;
        (slot.desired.is_some() || slot.node.is_some())
            .then(|| node_view(slot, self.reported.as_ref(), self.pass_retry_at, self.now_ms()))
    }

    /// The state as people see it.
    pub fn view(&self) -> View {
        let state = self.state();
        let failing = self.reported.as_ref();
        let mut nodes: Vec<(u32, NodeView)> = state
            .slots
            .iter()
            .filter(|slot| slot.desired.is_some() || slot.node.is_some())
            .map(|slot| {
                (
                    slot.desired.map_or(u32::MAX, |desired| desired.group),
                    node_view(slot, failing, self.pass_retry_at, self.now_ms()),
                )
            })
            .collect();
        nodes.sort_by(|(a, x), (b, y)| (a, &x.group, x.index).cmp(&(b, &y.group, y.index)));
        View {
            run: state.run.clone(),
            generation: state.desired.as_ref().map_or(0, |shape| shape.generation),
            observed_generation: state.observed_generation,
            converged: self.is_converged(),
            now_ms: self.now_ms(),
            nodes: nodes.into_iter().map(|(_, view)| view).collect(),
            reaping: state
                .reaps
                .values()
                .map(|reap| ReapView {
                    provider: reap.provider.clone(),
                    lease: reap.lease.clone(),
                    node: reap.key.slot.clone(),
                    attempt: reap.key.attempt.0,
                    failures: reap.failures,
                    next_at_ms: reap.next_effect_at.filter(|_| reap.pending.is_none()),
                })
                .collect(),
            orphans: state
                .orphans
                .iter()
                .map(|((provider, lease), orphan)| OrphanView {
                    provider: provider.clone(),
                    lease: lease.clone(),
                    node: orphan.key.slot.clone(),
                    attempt: orphan.key.attempt.0,
                    seen_ms: orphan.seen_ms,
                    destroying: orphan.destroying.is_some(),
                })
                .collect(),
            pauses: state
                .pauses
                .iter()
                .map(|pause| PauseView {
                    scope: pause.scope.clone(),
                    only: pause.only.label(),
                    by: match pause.by {
                        By::Operator => "operator",
                        By::Guard { guard, .. } => guard.label(),
                        By::Start { .. } => "start",
                    },
                    since_ms: pause.since_ms,
                    words: pause.to_string(),
                })
                .collect(),
        }
    }
}

fn settled(slot: &Slot) -> bool {
    match (&slot.desired, &slot.node) {
        (None, None) => true,
        (Some(desired), Some(node)) => {
            !desired.surge
                && node.template == desired.template
                && node.stage.is_ready()
                && node.intent == Intent::Active
                && node.pending.is_none()
                && slot.quarantine.is_none()
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn node_view(slot: &Slot, failing: Option<&DeciderFailure>, retry_at: Option<Millis>, now: Millis) -> NodeView {
    let node = slot.node.as_ref();
    let quarantine = slot.quarantine.as_ref();
    let failing =
        quarantine.map(|held| (&held.failure, Some(held.retry_at))).or(failing.map(|failure| (failure, retry_at)));
    let (waits_for, until_ms) = match failing {
        Some((failure, retry_at)) => {
            let (class, detail) = (&failure.class, &failure.detail);
            (format!("a decider that does not fail for it ({class}: {detail})"), retry_at)
        }
        None => waits(slot),
    };
    let held = standing(slot).and(slot.held.as_ref()).filter(|_| failing.is_none());
    let next = node.and_then(|node| match node.stage {
        Stage::Destroyed => node.retry.restart_at,
        _ => node.retry.next_effect_at.max(node.retry.probe_at),
    });
    let failure = node.and_then(|node| node.failure.as_ref()).map(|failure| failure.reason.clone());
    NodeView {
        node: slot.name.clone(),
        group: slot.group.clone(),
        index: slot.index,
        desired: slot.desired.is_some(),
        surge: slot.desired.is_some_and(|desired| desired.surge),
        attempt: node.map(|node| node.attempt.0),
        stage: node.map_or(Stage::Vacant, |node| node.stage).label(),
        deleting: node.is_some_and(|node| node.intent == Intent::Deleting),
        ready: node.is_some_and(|node| node.stage.is_ready() && node.intent == Intent::Active),
        endpoint: node.and_then(|node| node.endpoint.clone()),
        progress: node.map_or("none", |node| node.progress.label()),
        failures: node.map_or(0, |node| node.retry.failures),
        rule: standing(slot).filter(|_| failing.is_none()).map(|decision| decision.rule.to_string()),
        waits_for,
        decider_fails: failing.is_some(),
        until_ms,
        error: failure.or_else(|| node.and_then(|node| node.last_error.clone())),
        held: held.map(ToString::to_string),
        held_since_ms: held.map(|held| held.since_ms),
        pending: node.and_then(|node| node.pending.as_ref()).map(|sent| sent.operation.request.kind().label()),
        next_at_ms: next.filter(|at| *at > now),
    }
}

/// The last decision, if nothing about the slot has changed since.
fn standing(slot: &Slot) -> Option<&Decision> {
    slot.decision.as_ref().filter(|decision| decision.revision == slot.revision)
}

/// What a slot waits for, in words, and until when.
fn waits(slot: &Slot) -> (String, Option<Millis>) {
    if let Some(held) = standing(slot).and(slot.held.as_ref()) {
        return (held_words(held), None);
    }
    let Some(node) = &slot.node else { return ("a decision".into(), None) };
    if let Some(pending) = &node.pending {
        return (pending.operation.request.kind().label().into(), Some(pending.deadline_ms));
    }
    let decision = standing(slot);
    let Some(hold) = decision.and_then(|decision| decision.hold) else {
        // Stored when it was folded, so it is known before the decider says so.
        let due = match node.stage {
            Stage::Destroyed if slot.desired.is_some() => node.retry.restart_at,
            _ if decision.is_none() && node.intent == Intent::Active => node.retry.next_effect_at,
            _ => None,
        };
        return match (due, decision) {
            (Some(due), _) => (instant(node.stage, &node.retry), Some(due)),
            (None, Some(decision)) => (decision.verb.label().into(), None),
            (None, None) => ("a decision".into(), None),
        };
    };
    let until_ms = decision.and_then(|decision| decision.until_ms);
    match hold {
        HoldKind::Steady => (String::new(), None),
        HoldKind::Observation => (observation(node), until_ms),
        HoldKind::Person => (decision.map(|decision| person(&decision.rule)).unwrap_or_default(), None),
        HoldKind::Budget => ("others of its group to be ready (rollout.max-unavailable)".into(), until_ms),
        HoldKind::Circuit => ("fewer of its group to fail (rollout.max-failing)".into(), until_ms),
        HoldKind::Result => ("a result".into(), until_ms),
        HoldKind::Instant => (instant(node.stage, &node.retry), until_ms),
    }
}

fn held_words(held: &Held) -> String {
    match &held.by {
        HeldBy::Pause(pause) => format!("a person ({pause})"),
        HeldBy::LiveResources { .. } => format!("a resource to go ({held})"),
        HeldBy::Twin => "another resource with its label to go".into(),
        HeldBy::Rollout { .. } => format!("a person ({held})"),
    }
}

fn observation(node: &ManagedNode) -> String {
    match node.progress {
        decider::Progress::Join => "the join probe".into(),
        decider::Progress::None => "the bootstrap's first report".into(),
        progress => format!("the bootstrap ({})", progress.label()),
    }
}

fn instant(stage: Stage, retry: &Retry) -> String {
    if stage == Stage::Destroyed {
        return "backoff before the next attempt".into();
    }
    match retry.ambiguous.as_ref().map(|doubt| doubt.kind) {
        Some(kind) => format!("settling a {} whose outcome is unknown", kind.label()),
        None if retry.provider_wait.is_some() && retry.provider_wait == retry.next_effect_at => {
            "the wait the provider asked for".into()
        }
        None if retry.next_effect_at.is_some() => "backoff".into(),
        // A policy of one's own, such as a maintenance window; the ladder lets no ready node wait for an instant.
        None if stage.is_ready() => "an instant that its rule names".into(),
        None => "an endpoint".into(),
    }
}

/// The ladder's rule for facts that contradict each other.
pub(crate) const CONTRADICTION: &str = "R17";

/// What a person is to look at: the ladder's rule for it, or one of another policy.
fn person(rule: &str) -> String {
    match rule {
        CONTRADICTION => "a person: its facts contradict each other".into(),
        rule => format!("a person ({rule})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_policy_waits_for_is_not_mistaken_for_the_ladders() {
        let retry = Retry::default();
        assert_eq!(instant(Stage::LeaseCreated, &retry), "an endpoint");
        assert_eq!(instant(Stage::Dormant, &retry), "an instant that its rule names");
        assert_eq!(instant(Stage::Dormant, &Retry { next_effect_at: Some(1), ..retry }), "backoff");
        assert_eq!(person("R17"), "a person: its facts contradict each other");
        assert_eq!(person("W1"), "a person (W1)");
    }
}
