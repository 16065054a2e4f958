//! What the interface asks of whoever keeps the fleet.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::broadcast;

use crate::wire::{
    Change, CommandRequest, CommandResult, DeciderDetail, DeciderName, DeciderRequest, DeciderResult, Deciders,
    Decisions, Diagnosis, Explanation, Export, History, HistoryQuery, Logs, LogsQuery, NodeDetail, Plan, PlanRequest,
    Status, SwapDetail, Swaps, Uploaded,
};

/// Whoever keeps the fleet. Reads are cheap, or bounded and off the loop; nothing here may wait for a slow reader.
#[async_trait]
pub trait Control: Send + Sync + 'static {
    /// The fleet as it is now: the last one that was published. It costs a clone of a pointer.
    fn status(&self) -> Arc<Status>;

    /// What changes from now on, each with its revision. A change is remembered ([`Control::changes_after`]) before it is sent,
    /// and sent before a list has it ([`Control::status`]), so that nothing falls between a list and what follows. A reader that
    /// falls behind is told so by the channel and has to list again.
    fn changes(&self) -> broadcast::Receiver<Arc<Change>>;

    /// Changes after a revision, oldest first; `None` when they are not all remembered (another start of the daemon, or too
    /// long ago), so that the reader has to list again. The revision of the newest list is always known.
    fn changes_after(&self, revision: &str) -> Option<Vec<Arc<Change>>>;

    /// All that is known of a node.
    async fn node(&self, name: &str) -> Result<NodeDetail, Refusal>;

    /// Why a node is where it is, and what ends that.
    async fn explain(&self, name: &str) -> Result<Explanation, Refusal>;

    /// What happened to a node, across attempts, or to the fleet.
    async fn history(&self, query: HistoryQuery) -> Result<History, Refusal>;

    /// What a node wrote, the last lines.
    async fn logs(&self, query: LogsQuery) -> Result<Logs, Refusal>;

    /// What was decided lately: newest first.
    async fn decisions(&self, limit: usize) -> Result<Decisions, Refusal>;

    /// What a command would do. Nothing changes.
    async fn plan(&self, request: PlanRequest) -> Result<Plan, Refusal>;

    /// Does what is asked, once for each id: it is durable before anything leaves (SPEC 10).
    async fn command(&self, request: CommandRequest) -> Result<CommandResult, Refusal>;

    /// What is known, to be put somewhere else.
    async fn export(&self) -> Result<Export, Refusal>;

    /// Whether everything is as it should be.
    async fn diagnose(&self) -> Result<Diagnosis, Refusal>;

    /// The metrics, in the text format of Prometheus.
    async fn metrics(&self) -> Result<String, Refusal>;

    /// Takes a component in, checks it, and keeps it under its digest. The same bytes again change nothing. What is no
    /// decider is [`Refusal::Invalid`].
    async fn upload(&self, _component: Bytes) -> Result<Uploaded, Refusal> {
        Err(no_registry())
    }

    /// The deciders that are kept.
    async fn deciders(&self) -> Result<Deciders, Refusal> {
        Err(no_registry())
    }

    /// All that is known of a decider.
    async fn decider(&self, _name: DeciderName) -> Result<DeciderDetail, Refusal> {
        Err(no_registry())
    }

    /// Does what is asked about deciders, once for each id. A swap is only begun: it goes on by itself.
    async fn decider_command(&self, _request: DeciderRequest) -> Result<DeciderResult, Refusal> {
        Err(no_registry())
    }

    /// Swaps and shadows, newest first: at most so many.
    async fn swaps(&self, _limit: usize) -> Result<Swaps, Refusal> {
        Err(no_registry())
    }

    /// A swap or a shadow, with all that it found.
    async fn swap(&self, _id: &str) -> Result<SwapDetail, Refusal> {
        Err(no_registry())
    }
}

/// Whoever has one decider for good implements nothing more.
fn no_registry() -> Refusal {
    Refusal::Conflict("the decider of this fleet cannot be swapped while it runs".into())
}

/// Why something is not answered or not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is nothing of that name (404).
    #[error("{0}")]
    NotFound(String),
    /// What is asked makes no sense (422).
    #[error("{0}")]
    Invalid(String),
    /// It does not fit what is in force, such as another generation, or the id was used for another command (409).
    #[error("{0}")]
    Conflict(String),
    /// A guard refuses (403, kind `guard`).
    #[error("{0}")]
    Guard(String),
    /// Not now: the daemon is starting, ending or failed (503).
    #[error("{0}")]
    Unavailable(String),
    /// It should have worked (500).
    #[error("{0}")]
    Failed(String),
}
