//! Observed state (SPEC 3): what the driver, and nobody else, writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use decider::{Intent, OperationKind, Progress, Stage, Verb};
use serde::{Deserialize, Serialize};

use crate::guard::Windows;
use crate::id::{AttemptId, ExternalKey, Millis, NodeId, OperationId};
use crate::io::{CreateRequest, DeciderFailure, Endpoint, LeaseId, Observation, Operation, SessionId};
use crate::ledger::Status;
use crate::pause::{Held, Pause};
use crate::shape::{ClusterShape, Template};

/// The highest index of a slot. Beyond it a group's indices are exhausted (SPEC 10).
pub const MAX_INDEX: u32 = 9_999_999;

/// Index of an interned template. Equal content has equal index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TemplateId(pub u32);

/// All that is known of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterState {
    /// The run's id; fixed for the driver's life.
    pub run: String,
    /// The shape in force; `None` until the first one arrives. Without one there are no passes.
    pub desired: Option<Arc<ClusterShape>>,
    /// The last generation a whole pass has evaluated.
    pub observed_generation: u64,
    /// The next attempt id to give out (S3).
    pub next_attempt: u64,
    /// Attempt ids below this one may be given out; made durable before they are.
    pub reserved_below: u64,
    /// Attempts below this one were given out by earlier starts of the host.
    pub inherited_below: u64,
    /// Every slot ever seen, by [`NodeId`].
    pub slots: Vec<Slot>,
    /// Slot names to numbers.
    #[serde(skip)]
    pub names: Arc<BTreeMap<String, NodeId>>,
    /// Every template in use or once used, interned.
    pub templates: Vec<Arc<Template>>,
    /// Canonical bytes of a template to its index.
    #[serde(skip)]
    pub template_index: Arc<BTreeMap<String, TemplateId>>,
    /// The attempts this host knows to have been authorised: whose, and its next operation's number. The oldest are forgotten.
    pub attempts: BTreeMap<AttemptId, Authorised>,
    /// No forgotten attempt had an operation of this number or above.
    #[serde(default, skip_serializing_if = "nothing_forgotten")]
    pub forgotten_sequence: u64,
    /// Resources of retired attempts that are being reaped, by attempt.
    pub reaps: BTreeMap<AttemptId, Reap>,
    /// What bears our run but no attempt we ever authorised, by provider and its reference.
    #[serde(with = "crate::checkpoint::pairs")]
    pub orphans: BTreeMap<(String, LeaseId), Orphan>,
    /// Indices that an operator destroyed, by group: never a slot again (SPEC 10). They outlive shapes and the group's absence.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retired: BTreeMap<String, BTreeSet<u32>>,
    /// What is paused, in the order in which it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
    /// The decider in force is shown budgets, pauses and surge slots; follows from which it is.
    #[serde(skip)]
    pub sees_rollouts: bool,
    /// What the guards have counted.
    #[serde(default, skip_serializing_if = "Windows::is_empty")]
    pub windows: Windows,
}

fn nothing_forgotten(sequence: &u64) -> bool {
    *sequence == 0
}

/// What bears our run but no attempt we ever authorised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "KeptOrphan")]
pub struct Orphan {
    /// Its label.
    pub key: ExternalKey,
    /// What it was made from, where the backend keeps that.
    pub template: Option<Arc<Template>>,
    /// When a listing showed it first.
    pub seen_ms: Millis,
    /// An operator ordered its destruction.
    pub destroying: Option<Box<Reap>>,
}

/// An orphan as it is kept; earlier versions kept its label alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum KeptOrphan {
    Label(ExternalKey),
    Whole { key: ExternalKey, template: Option<Arc<Template>>, seen_ms: Millis, destroying: Option<Box<Reap>> },
}

impl From<KeptOrphan> for Orphan {
    fn from(kept: KeptOrphan) -> Self {
        match kept {
            KeptOrphan::Label(key) => Orphan { key, template: None, seen_ms: 0, destroying: None },
            KeptOrphan::Whole { key, template, seen_ms, destroying } => Orphan { key, template, seen_ms, destroying },
        }
    }
}

/// An attempt that was authorised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorised {
    /// The slot it was for.
    pub node: NodeId,
    /// The number of its next operation.
    pub next_sequence: u64,
}

/// A place in the shape, and what holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slot {
    /// `{group}-{index}`.
    pub name: String,
    /// The group's id.
    pub group: String,
    /// The index in the group.
    pub index: u32,
    /// What is desired of it; `None` when it is not.
    pub desired: Option<DesiredSlot>,
    /// What holds it.
    pub node: Option<ManagedNode>,
    /// Rises with every change of the two above.
    pub revision: u64,
    /// The last decision about it.
    pub decision: Option<Decision>,
    /// The decider fails for it (SPEC 9).
    pub quarantine: Option<Quarantine>,
    /// When its next deadline is armed.
    pub armed: Option<Millis>,
    /// Its last decision was not carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// Its resource was given up, and it is not ready again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub down: bool,
}

impl Slot {
    /// One that nothing holds and that is not desired.
    pub(crate) fn vacant(name: String, group: String, index: u32) -> Slot {
        Slot {
            name,
            group,
            index,
            desired: None,
            node: None,
            revision: 0,
            decision: None,
            quarantine: None,
            armed: None,
            held: None,
            down: false,
        }
    }
}

/// What is desired of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredSlot {
    /// Index in the shape's groups.
    pub group: u32,
    /// The template its node should have.
    pub template: TemplateId,
    /// The slot is beyond the group's count: there for a rollout.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surge: bool,
}

/// One attempt and its facts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManagedNode {
    /// Which attempt.
    pub attempt: AttemptId,
    /// What is wanted of it.
    pub intent: Intent,
    /// What it is made from; never changes.
    pub template: TemplateId,
    /// How far it is.
    pub stage: Stage,
    /// The live lease.
    pub lease: Option<LeaseId>,
    /// The known endpoint.
    pub endpoint: Option<Endpoint>,
    /// The live bootstrap session.
    pub session: Option<SessionId>,
    /// The bootstrap's last progress.
    pub progress: Progress,
    /// Why and when the attempt failed.
    pub failure: Option<Failure>,
    /// The last thing that went wrong with an operation, for people.
    pub last_error: Option<String>,
    /// The operation in flight (S2: at most one).
    pub pending: Option<Pending>,
    /// Retry state.
    pub retry: Retry,
    /// When the stage is given up.
    pub stage_deadline: Option<Millis>,
    /// How far progress can extend that.
    pub stage_deadline_max: Option<Millis>,
    /// Observations that arrived before the start of their bootstrap was known to have succeeded.
    pub early: Vec<Observation>,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// When.
    pub at_ms: Millis,
    /// The words of who noticed.
    pub reason: String,
    /// Trying again cannot help.
    pub permanent: bool,
}

/// The operation in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pending {
    /// What was dispatched.
    pub operation: Operation,
    /// When.
    pub sent_ms: Millis,
    /// Where it stands.
    pub status: Status,
    /// When its deadline passes next, or the executor is asked again.
    pub deadline_ms: Millis,
}

/// Retry state. All instants are absolute, computed when the observation was folded (SPEC 6).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Failures in a row, inherited by a replacement, reset when ready.
    pub failures: u32,
    /// No operation before.
    pub next_effect_at: Option<Millis>,
    /// The part of that wait that the provider asked for: it also holds clean-up back.
    pub provider_wait: Option<Millis>,
    /// No look at the endpoint before.
    pub probe_at: Option<Millis>,
    /// No new attempt before.
    pub restart_at: Option<Millis>,
    /// An operation that may or may not have happened.
    pub ambiguous: Option<Ambiguous>,
}

/// An operation that may or may not have happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ambiguous {
    /// Which.
    pub id: OperationId,
    /// Its kind.
    pub kind: OperationKind,
    /// Since when that is so.
    pub since_ms: Millis,
    /// When it was last looked for (a create, windowed backends).
    pub looked_ms: Millis,
    /// How much of the window has passed, a bounded part of it from each look to the next: a clock that jumps ahead is no
    /// time that has passed for the provider.
    pub waited_ms: u64,
    /// Complete listings in a row, since then, without its label (a create, windowed backends); or tries in a row to adopt
    /// it that did not work (a bootstrap, deleting).
    pub absences: u32,
    /// The exact request, so that a retry sends the same bytes; only for a create.
    pub request: Option<Arc<CreateRequest>>,
}

/// The clean-up of a retired attempt's resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reap {
    /// Where.
    pub provider: String,
    /// What.
    pub lease: LeaseId,
    /// Its label.
    pub key: ExternalKey,
    /// The operation in flight.
    pub pending: Option<Pending>,
    /// Failures in a row.
    pub failures: u32,
    /// No operation before.
    pub next_effect_at: Option<Millis>,
    /// The guard of destroys has counted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
}

/// What was decided about a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The rule's id.
    pub rule: Arc<str>,
    /// What to do.
    pub verb: Verb,
    /// For a hold, what ends it.
    pub hold: Option<decider::HoldKind>,
    /// The instant that ends the hold at the latest.
    pub until_ms: Option<Millis>,
    /// When it was decided.
    pub at_ms: Millis,
    /// The slot's revision that came of it; once the slot has a later one, this decision explains nothing any more.
    pub revision: u64,
}

/// A slot for which the decider fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    /// The slot's revision when it did.
    pub revision: u64,
    /// How.
    pub failure: DeciderFailure,
    /// When it is tried again, if nothing changes before.
    pub retry_at: Millis,
    /// How often in a row.
    pub tries: u32,
}

impl ManagedNode {
    /// A fresh attempt.
    pub fn fresh(attempt: AttemptId, template: TemplateId, failures: u32) -> Self {
        ManagedNode {
            attempt,
            intent: Intent::Active,
            template,
            stage: Stage::New,
            lease: None,
            endpoint: None,
            session: None,
            progress: Progress::None,
            failure: None,
            last_error: None,
            pending: None,
            retry: Retry { failures, ..Retry::default() },
            stage_deadline: None,
            stage_deadline_max: None,
            early: Vec::new(),
        }
    }

    /// Whether what happens to it may still move it up the ladder.
    pub fn climbs(&self) -> bool {
        self.intent == Intent::Active && !matches!(self.stage, Stage::Failed | Stage::Destroyed)
    }

    /// The kind of the ambiguous operation that has to be settled before anything destructive (S7).
    pub fn doubt(&self) -> Option<OperationKind> {
        let kind = self.retry.ambiguous.as_ref()?.kind;
        matches!(kind, OperationKind::CreateLease | OperationKind::StartBootstrap).then_some(kind)
    }

    /// The code of the pending operation; 0 when none.
    pub(crate) fn pending_code(&self) -> u8 {
        match &self.pending {
            Some(pending) if in_flight(Some(pending)) => pending.operation.request.kind().code(),
            _ => 0,
        }
    }

    /// Begins the clean-up: a wait that only held the climb back ends, one the provider asked for does not.
    pub(crate) fn begin_delete(&mut self, now: Millis) {
        self.intent = Intent::Deleting;
        self.stage_deadline = None;
        self.stage_deadline_max = None;
        self.retry.probe_at = None;
        if self.doubt().is_none() {
            self.retry.next_effect_at = self.retry.provider_wait.filter(|at| *at > now);
        }
    }
}

impl Slot {
    /// Its facts in words, for a report about a contradiction.
    pub(crate) fn facts_text(&self) -> String {
        let Some(node) = &self.node else { return "no node".into() };
        format!(
            "{} stage {} intent {} lease {:?} endpoint {:?} session {:?} doubt {:?}",
            node.attempt,
            node.stage.label(),
            node.intent.label(),
            node.lease,
            node.endpoint,
            node.session,
            node.retry.ambiguous.as_ref().map(|doubt| doubt.kind.label()),
        )
    }
}

/// Whether an operation is on its way.
pub(crate) fn in_flight(pending: Option<&Pending>) -> bool {
    pending.is_some_and(|pending| matches!(pending.status, Status::Pending | Status::Running | Status::Asked))
}

impl ClusterState {
    /// The slot of a number.
    pub fn slot(&self, node: NodeId) -> Option<&Slot> {
        self.slots.get(node.0 as usize)
    }

    /// The slot that an attempt holds now; `None` for a retired or unknown attempt.
    pub fn holder(&self, attempt: AttemptId) -> Option<NodeId> {
        let node = self.attempts.get(&attempt)?.node;
        let held = self.slot(node)?.node.as_ref()?;
        (held.attempt == attempt).then_some(node)
    }

    /// The indices that a group's slots have, lowest first: those that were never retired.
    pub fn indices(&self, group: &str, count: u32) -> impl Iterator<Item = u32> {
        let retired = self.retired.get(group);
        let free = move |index: &u32| retired.is_none_or(|retired| !retired.contains(index));
        (0..=MAX_INDEX).filter(free).take(count as usize)
    }

    /// How many indices a group can still have.
    pub fn free_indices(&self, group: &str) -> u64 {
        let retired = self.retired.get(group).map_or(0, |retired| retired.len() as u64);
        (u64::from(MAX_INDEX) + 1).saturating_sub(retired)
    }

    /// The external key of a slot's attempt.
    pub fn key(&self, slot: &str, attempt: AttemptId) -> ExternalKey {
        ExternalKey { run: self.run.clone(), slot: slot.into(), attempt }
    }

    /// Whether an attempt was ever authorised for a slot of that name.
    pub fn authorised(&self, slot: &str, attempt: AttemptId) -> bool {
        let owner = self.attempts.get(&attempt).and_then(|known| self.slot(known.node));
        match owner {
            Some(owner) => owner.name == slot,
            None => attempt.0 > 0 && attempt.0 < self.inherited_below,
        }
    }
}
