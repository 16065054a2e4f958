//! The operator's settings: backoff, intervals, deadlines, limits (SPEC 6). All lengths of time are milliseconds.

use decider::OperationKind;
use serde::{Deserialize, Serialize};

use crate::shape::ShapeLimits;

/// The settings of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// First delay after a failure.
    pub backoff_initial_ms: u64,
    /// Longest delay after a failure.
    pub backoff_cap_ms: u64,
    /// Part of a delay, 0 to 100 per cent, that is taken off at most; drawn deterministically from the attempt id.
    pub backoff_jitter_percent: u8,
    /// Wait between two looks at an endpoint that is not there yet, or for the label of a create to settle.
    pub probe_interval_ms: u64,
    /// How long each kind of operation may take.
    pub deadlines: OperationDeadlines,
    /// How long each stage may take.
    pub stages: StageDeadlines,
    /// How large a shape may be.
    pub limits: ShapeLimits,
    /// What needs a person beyond it.
    #[serde(default, skip_serializing_if = "Guards::is_off")]
    pub guards: Guards,
}

/// How much may be made, kept and destroyed before a person is asked; `None` for no guard ([`crate::guard::Guard`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Guards {
    /// Destroys begun within a minute, of all groups together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destroys_per_minute: Option<u32>,
    /// First creates of attempts within an hour, of all groups together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creates_per_hour: Option<u32>,
    /// Resources that live, or may live, at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_resources: Option<u32>,
    /// The share of a group's slots that may be down at once, 1 to 100; one slot always may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destroyed_share_percent: Option<u8>,
}

impl Guards {
    /// Whether there is no guard.
    pub fn is_off(&self) -> bool {
        *self == Guards::default()
    }
}

/// How long an operation may take before the executor is asked about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationDeadlines {
    /// For `create-lease`.
    pub create_lease_ms: u64,
    /// For `lookup-endpoint`.
    pub lookup_endpoint_ms: u64,
    /// For `start-bootstrap`.
    pub start_bootstrap_ms: u64,
    /// For `cancel-bootstrap`.
    pub cancel_bootstrap_ms: u64,
    /// For `destroy-lease`.
    pub destroy_lease_ms: u64,
}

/// How long an attempt may stay in a stage. A slot's next attempt gets longer: `(1 + failures)` times, up to `growth_cap` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageDeadlines {
    /// From the lease to an endpoint.
    pub endpoint_ms: u64,
    /// From one sign of progress of a bootstrap to the next.
    pub bootstrap_ms: u64,
    /// From a bootstrap's start until it joined, however much progress it reports.
    pub join_ms: u64,
    /// The most by which repeated failures lengthen the three above.
    pub growth_cap: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            backoff_initial_ms: 1_000,
            backoff_cap_ms: 60_000,
            backoff_jitter_percent: 0,
            probe_interval_ms: 1_000,
            deadlines: OperationDeadlines {
                create_lease_ms: 60_000,
                lookup_endpoint_ms: 15_000,
                start_bootstrap_ms: 30_000,
                cancel_bootstrap_ms: 30_000,
                destroy_lease_ms: 60_000,
            },
            stages: StageDeadlines { endpoint_ms: 120_000, bootstrap_ms: 60_000, join_ms: 300_000, growth_cap: 8 },
            limits: ShapeLimits::default(),
            guards: Guards::default(),
        }
    }
}

impl OperationDeadlines {
    /// The time allowed for a kind of operation.
    pub fn of(&self, kind: OperationKind) -> u64 {
        match kind {
            OperationKind::CreateLease => self.create_lease_ms,
            OperationKind::LookupEndpoint => self.lookup_endpoint_ms,
            OperationKind::StartBootstrap => self.start_bootstrap_ms,
            OperationKind::CancelBootstrap => self.cancel_bootstrap_ms,
            OperationKind::DestroyLease => self.destroy_lease_ms,
        }
    }
}
