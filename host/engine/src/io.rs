//! What goes into the driver and what comes out of it: closed enums, all data (SPEC 5, 7).

use std::sync::Arc;

use decider::{OperationKind, Plan, Progress, Snapshot};
use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::guard::Guard;
use crate::id::{AttemptId, ExternalKey, Millis, OperationId};
use crate::pause::Only;
use crate::policy::Policy;
use crate::record::Record;
use crate::shape::{ClusterShape, Template};

/// What a provider can promise about creates (SPEC 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Promise {
    /// A create under a taken key fails or returns the same resource.
    Keyed,
    /// No such key: a lost create may still materialise.
    Windowed {
        /// For how long after the create was sent.
        window_ms: u64,
        /// How many complete listings in a row must lack the label, the last one after the window.
        listings: u32,
    },
}

/// The exact request of a create. Kept with its operation, so that a retry sends the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateRequest {
    /// What the resource is keyed and labelled with.
    pub key: ExternalKey,
    /// What to make.
    pub template: Arc<Template>,
}

/// A backend's own reference to a resource.
pub type LeaseId = String;
/// Where a resource can be reached, such as `127.0.0.1:20001`.
pub type Endpoint = String;
/// A backend's own reference to a bootstrap session.
pub type SessionId = String;

/// An effect that has been recorded as pending and may now leave (S1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Unique for ever.
    pub id: OperationId,
    /// The resource it is about.
    pub key: ExternalKey,
    /// Which backend performs it.
    pub provider: String,
    /// What to do.
    pub request: Request,
    /// When the driver will ask about it.
    pub deadline_ms: Millis,
}

/// What an operation asks of a backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Adopt the resource with this key, or make it.
    CreateLease(Arc<CreateRequest>),
    /// Look for the label of an ambiguous create; make nothing (windowed backends).
    SettleCreate(Arc<CreateRequest>),
    /// Where is it?
    LookupEndpoint {
        /// The lease.
        lease: LeaseId,
    },
    /// Adopt the running bootstrap, or start it.
    StartBootstrap {
        /// The lease.
        lease: LeaseId,
        /// Its endpoint.
        endpoint: Endpoint,
        /// What to run.
        template: Arc<Template>,
    },
    /// Stop the bootstrap and what it started.
    CancelBootstrap {
        /// The lease.
        lease: LeaseId,
        /// The session.
        session: SessionId,
    },
    /// Give the resource back.
    DestroyLease {
        /// The lease.
        lease: LeaseId,
    },
}

impl Request {
    /// The kind of operation this is.
    pub fn kind(&self) -> OperationKind {
        match self {
            Request::CreateLease(_) | Request::SettleCreate(_) => OperationKind::CreateLease,
            Request::LookupEndpoint { .. } => OperationKind::LookupEndpoint,
            Request::StartBootstrap { .. } => OperationKind::StartBootstrap,
            Request::CancelBootstrap { .. } => OperationKind::CancelBootstrap,
            Request::DestroyLease { .. } => OperationKind::DestroyLease,
        }
    }
}

/// What an operation achieved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// The resource exists.
    Leased {
        /// The provider's reference.
        lease: LeaseId,
        /// It was there already.
        adopted: bool,
    },
    /// A complete listing lacks the label (only for [`Request::SettleCreate`]).
    Absent,
    /// The resource has an address.
    Found {
        /// The address.
        endpoint: Endpoint,
    },
    /// The bootstrap runs; its observations follow.
    Started {
        /// The backend's reference.
        session: SessionId,
        /// It was running already.
        adopted: bool,
    },
    /// The bootstrap is stopped, or was gone.
    Cancelled,
    /// The resource is gone, or was.
    Destroyed,
}

/// How an operation did not succeed (SPEC 7). Reasons are the provider's words, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Fault {
    /// Not there yet; look again. Not a failure.
    #[error("not ready yet: {reason}")]
    NotReady {
        /// What is missing.
        reason: String,
    },
    /// It failed and may work later.
    #[error("{reason}")]
    Retryable {
        /// What happened.
        reason: String,
        /// The provider asked to wait this long.
        retry_after_ms: Option<u64>,
    },
    /// It will never work.
    #[error("refused: {reason}")]
    Permanent {
        /// The provider's words.
        reason: String,
    },
    /// It may or may not have happened.
    #[error("outcome unknown: {reason}")]
    Ambiguous {
        /// Why that is not known.
        reason: String,
    },
}

impl Fault {
    /// It is not there yet: no failure, look again.
    pub fn not_ready(reason: impl Into<String>) -> Self {
        Fault::NotReady { reason: reason.into() }
    }

    /// It may or may not have happened: a time-out after the request was sent, a connection that broke off.
    pub fn ambiguous(reason: impl Into<String>) -> Self {
        Fault::Ambiguous { reason: reason.into() }
    }

    /// A failure that may go away, and not before the provider's wait is over, in milliseconds.
    pub fn retry_after(reason: impl Into<String>, retry_after_ms: u64) -> Self {
        Fault::Retryable { reason: reason.into(), retry_after_ms: Some(retry_after_ms) }
    }

    /// A failure that may go away.
    pub fn retryable(reason: impl Into<String>) -> Self {
        Fault::Retryable { reason: reason.into(), retry_after_ms: None }
    }

    /// A refusal for good.
    pub fn permanent(reason: impl Into<String>) -> Self {
        Fault::Permanent { reason: reason.into() }
    }
}

/// What a bootstrap session reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Observation {
    /// It got this far. Extends the stage's deadline up to its maximum.
    Progress(Progress),
    /// A line of output, for people; one a second at most reaches the driver.
    Output(String),
    /// The join probe held.
    Joined,
    /// It failed.
    Failed {
        /// In which part; one of the five failures.
        progress: Progress,
        /// What happened.
        reason: String,
        /// Trying again cannot help.
        permanent: bool,
    },
    /// The session ended.
    Closed {
        /// Positive evidence of the end, such as an exit status; without it nothing is known to have died (S14).
        exit: Option<String>,
    },
}

/// What a backend holds for a run (SPEC 7). Evidence of presence, never of absence by itself (S14).
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Listing {
    /// The provider says that this is all of it.
    pub complete: bool,
    /// The resources.
    pub resources: Vec<Resource>,
}

/// One resource of a listing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// The provider's reference.
    pub lease: LeaseId,
    /// The label it bears; `None` when it bears none of ours.
    pub key: Option<ExternalKey>,
    /// What it was made from, where the backend keeps that.
    pub template: Option<Arc<Template>>,
}

/// The executor's answer to [`Output::Ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperationStatus {
    /// Its result is on its way.
    Completed,
    /// It was given up; nobody knows whether it happened.
    Ambiguous,
}

/// Which decider is in force, and which rules it may cite.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeciderIdentity {
    /// The digest of its bytes, such as `sha256:…`; `native` for the built-in one outside the sandbox.
    pub digest: String,
    /// Its rules, in the order of the indices in plans.
    pub rules: Vec<decider::Rule>,
    /// The contract's version that it was built for; journals that do not say are of the first.
    #[serde(default = "first_contract", skip_serializing_if = "is_first_contract")]
    pub contract: String,
}

fn first_contract() -> String {
    decider::v1_0::CONTRACT.into()
}

fn is_first_contract(contract: &str) -> bool {
    contract == decider::v1_0::CONTRACT
}

impl DeciderIdentity {
    /// The decider with that digest, as it describes itself.
    pub fn new(digest: impl Into<String>, description: decider::Description) -> Self {
        let decider::Description { rules, contract, .. } = description;
        DeciderIdentity { digest: digest.into(), rules, contract }
    }

    /// The built-in one outside the sandbox.
    pub fn native() -> Self {
        DeciderIdentity::new("native", decider::describe())
    }

    /// Whether it is shown what contract 1.0 lacks: budgets, pauses, surge slots.
    pub fn sees_rollouts(&self) -> bool {
        !decider::v1_0::is_spoken(&self.contract)
    }
}

/// Why a pass has no plan: the sandbox's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeciderFailure {
    /// Which decider, by digest.
    pub decider: String,
    /// A short name of the failure, such as `out-of-fuel`.
    pub class: String,
    /// What happened, with the limit.
    pub detail: String,
}

/// What goes into the driver.
// A plan is the largest and the most frequent one: boxing it would cost every pass an allocation.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// A new desired shape.
    Desired(ClusterShape),
    /// An operation ended.
    Completed {
        /// Which.
        id: OperationId,
        /// How.
        result: Result<Done, Fault>,
    },
    /// The answer to [`Output::Ask`].
    Answered {
        /// Which operation.
        id: OperationId,
        /// What the executor says.
        status: OperationStatus,
    },
    /// A bootstrap session reports.
    Observed {
        /// Whose.
        attempt: AttemptId,
        /// What.
        observation: Observation,
    },
    /// A backend was listed.
    Listed {
        /// Which backend.
        provider: String,
        /// What it holds.
        listing: Listing,
    },
    /// At start, before anything else: what a backend holds for this run is taken over (SPEC 10, restart adopts).
    Adopt {
        /// Which backend.
        provider: String,
        /// A complete listing.
        listing: Listing,
    },
    /// The decider answered [`Output::Decide`].
    Decided {
        /// Which pass, and which call of it.
        call: u64,
        /// Its plan.
        result: Result<Plan, DeciderFailure>,
    },
    /// The operator's settings changed. Deadlines that are already stored stay as they are (SPEC 6).
    PolicyChanged(Policy),
    /// An operator's order (SPEC 10): checked whole, then carried out whole.
    Command(Command),
    /// Another decider is in force: what was held because of the previous one is decided again (SPEC 11).
    DeciderChanged(DeciderIdentity),
    /// What a backend holds when the host starts, with or without its state: the boot join (SPEC 10). Takes no action.
    Surveyed {
        /// Which backend.
        provider: String,
        /// What it holds.
        listing: Listing,
    },
    /// The host starts again, with what was durable: what was on its way may or may not have happened (SPEC 10).
    Restarted,
    /// Time passed: whatever is due fires.
    Tick,
    /// The periodic safety net: a pass, though nothing is known to be due.
    Resync,
}

/// What comes out of the driver, in this order; all of it before the next input.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// To be made durable before any later output of the same batch is acted on.
    Record(Record),
    /// Perform this.
    Submit(Operation),
    /// Its deadline passed: what became of it?
    Ask(OperationId),
    /// Ask the decider; the answer comes back as [`Input::Decided`].
    Decide {
        /// To be repeated in the answer.
        call: u64,
        /// What to decide.
        snapshot: Arc<Snapshot>,
    },
    /// Something people should know.
    Notice(Notice),
}

/// Something people should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// The decider failed for these nodes; they hold until something about them changes (SPEC 9).
    DeciderFailed {
        /// The slots' names; empty when it fails for every snapshot.
        nodes: Vec<String>,
        /// How.
        failure: DeciderFailure,
    },
    /// The decider, after failing, decides again.
    DeciderRecovered,
    /// The facts of a node contradict each other (R17).
    Inconsistent {
        /// The slot's name.
        node: String,
        /// Its facts.
        facts: String,
    },
    /// A policy of one's own lets a node wait for a person; which rule says so.
    AwaitsPerson {
        /// The slot's name.
        node: String,
        /// The rule, as the policy names it.
        rule: String,
        /// Its facts.
        facts: String,
    },
    /// Something bears our run but no attempt we ever authorised.
    Orphan {
        /// Where.
        provider: String,
        /// What.
        lease: LeaseId,
        /// Its label.
        key: ExternalKey,
    },
    /// An orphan is gone.
    OrphanGone {
        /// Where.
        provider: String,
        /// What.
        lease: LeaseId,
    },
    /// A resource of a retired attempt appeared and is being reaped.
    Reaping {
        /// Where.
        provider: String,
        /// What.
        lease: LeaseId,
        /// Its label.
        key: ExternalKey,
    },
    /// Resources of our run were there when the host started, and its state had never heard of them: it is older than they
    /// are, or was lost. Nothing is made until a person has looked.
    StateIsOlder {
        /// How many.
        orphans: u32,
    },
    /// When the host started, a backend did not show the resource of a ready node. Nothing follows from that (S14).
    Missing {
        /// Where.
        provider: String,
        /// The slot's name.
        node: String,
        /// The attempt.
        attempt: AttemptId,
        /// What is not there.
        lease: LeaseId,
    },
    /// An operator paused effects.
    Paused {
        /// The group; `None` for the whole run.
        scope: Option<String>,
        /// Which effects.
        only: Only,
    },
    /// An operator resumed effects.
    Resumed {
        /// The group; `None` for what was paused for the whole run.
        scope: Option<String>,
        /// Which effects.
        only: Only,
    },
    /// A guard was breached: what it guards is paused until a person resumes.
    GuardTripped {
        /// Which.
        guard: Guard,
        /// What it allows.
        limit: u32,
        /// The group, for a guard that looks at one.
        group: Option<String>,
    },
}
