//! Inputs as they are recorded: all of [`engine::io::Input`] but decisions, which are passes.

use engine::command::Command;
use engine::id::{AttemptId, OperationId};
use engine::io::{DeciderIdentity, Done, Fault, Input, Listing, Observation, OperationStatus};
use engine::policy::Policy;
use engine::shape::ClusterShape;
use serde::{Deserialize, Serialize};

/// An input of the driver other than a decision.
// Few records are shapes or settings; boxing them would only make them harder to match.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedInput {
    /// A new desired shape.
    Desired(ClusterShape),
    /// An operation ended.
    Completed {
        /// Which.
        id: OperationId,
        /// How.
        result: Result<Done, Fault>,
    },
    /// The executor's answer about an operation whose deadline passed.
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
        #[serde(with = "crate::listing")]
        listing: Listing,
    },
    /// What a backend holds is taken over at the start.
    Adopt {
        /// Which backend.
        provider: String,
        /// What it holds.
        #[serde(with = "crate::listing")]
        listing: Listing,
    },
    /// What a backend holds at the start, compared with what the state knows.
    Surveyed {
        /// Which backend.
        provider: String,
        /// What it holds.
        #[serde(with = "crate::listing")]
        listing: Listing,
    },
    /// The operator's settings changed.
    PolicyChanged(Policy),
    /// An operator's order.
    Command(Command),
    /// Another decider is in force.
    DeciderChanged(DeciderIdentity),
    /// The host started again, with what was durable.
    Restarted,
    /// Time passed.
    Tick,
    /// The periodic safety net.
    Resync,
}

impl RecordedInput {
    /// Its name in the file.
    pub fn label(&self) -> &'static str {
        match self {
            RecordedInput::Desired(_) => "desired",
            RecordedInput::Completed { .. } => "completed",
            RecordedInput::Answered { .. } => "answered",
            RecordedInput::Observed { .. } => "observed",
            RecordedInput::Listed { .. } => "listed",
            RecordedInput::Adopt { .. } => "adopt",
            RecordedInput::Surveyed { .. } => "surveyed",
            RecordedInput::PolicyChanged(_) => "policy-changed",
            RecordedInput::Command(_) => "command",
            RecordedInput::DeciderChanged(_) => "decider-changed",
            RecordedInput::Tick => "tick",
            RecordedInput::Restarted => "restarted",
            RecordedInput::Resync => "resync",
        }
    }
}

impl From<RecordedInput> for Input {
    fn from(input: RecordedInput) -> Self {
        match input {
            RecordedInput::Desired(shape) => Input::Desired(shape),
            RecordedInput::Completed { id, result } => Input::Completed { id, result },
            RecordedInput::Answered { id, status } => Input::Answered { id, status },
            RecordedInput::Observed { attempt, observation } => Input::Observed { attempt, observation },
            RecordedInput::Listed { provider, listing } => Input::Listed { provider, listing },
            RecordedInput::Adopt { provider, listing } => Input::Adopt { provider, listing },
            RecordedInput::Surveyed { provider, listing } => Input::Surveyed { provider, listing },
            RecordedInput::PolicyChanged(policy) => Input::PolicyChanged(policy),
            RecordedInput::Command(command) => Input::Command(command),
            RecordedInput::DeciderChanged(identity) => Input::DeciderChanged(identity),
            RecordedInput::Tick => Input::Tick,
            RecordedInput::Restarted => Input::Restarted,
            RecordedInput::Resync => Input::Resync,
        }
    }
}
