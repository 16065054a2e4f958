//! What happens at an instant, in which part of a run, by which clock.

use decider::Plan;
use engine::command::Command;
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
    /// Orders that follow on others.
    Orders(Vec<Command>),
    /// A person comes to resume what is paused.
    Person,
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

/// The host's clock, as the driver sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostClock {
    pub skew_ms: i64,
    pub stands: Option<(Millis, Millis)>,
}

impl HostClock {
    /// What it shows.
    pub fn shows(&self, now: Millis) -> Millis {
        match self.stands {
            Some((at, until)) if now < until => at,
            _ => now.saturating_add_signed(self.skew_ms),
        }
    }

    /// When it will show an instant.
    pub fn when(&self, at: Millis, now: Millis) -> Millis {
        if at <= self.shows(now) {
            return now;
        }
        let when = at.saturating_add_signed(-self.skew_ms);
        self.stands.map_or(when, |(_, until)| when.max(until)).max(now)
    }
}

/// What of an attempt the world remembers, over all starts of the host: in which memory of the host it began.
pub(crate) struct Known {
    pub slot: String,
    pub memory: u64,
    pub last_sequence: u64,
}
