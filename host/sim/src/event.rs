//! What can be due in a run, and which part of the run it is.

use decider::Plan;
use engine::id::{AttemptId, Millis, OperationId};
use engine::io::{DeciderFailure, Done, Fault, Observation, Operation};

use crate::calls::Mode;

/// What happens at an instant.
pub(crate) enum Event {
    /// A call takes effect.
    Perform { operation: Box<Operation>, mode: Mode, sent: Millis, host: u64 },
    /// A result arrives.
    Complete { id: OperationId, result: Result<Done, Fault>, host: u64 },
    /// A session reports.
    Report { number: u64, attempt: AttemptId, observation: Observation },
    /// A backend is listed.
    List { provider: usize },
    /// Something happens by itself.
    Incident,
    /// The decider answers.
    Answer { call: u64, result: Result<Plan, DeciderFailure>, host: u64 },
    /// The address of a resource changes.
    MoveEndpoint { lease: String },
    /// The host is started again.
    Restart,
}

/// Which part of the run this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Faults and edits.
    Faulty,
    /// None any more: it must settle by these bounds.
    Settling { by_ms: Millis, by_step: u64 },
    /// It has settled and must stay so.
    Quiet { until_ms: Millis },
}
