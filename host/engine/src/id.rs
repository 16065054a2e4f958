//! Identity (SPEC 3): what names a slot, an attempt, an operation and a provider's resource.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Milliseconds of the host's clock. Time enters the engine only as data.
pub type Millis = u64;

/// The host's dense number of a slot; stable for the driver's life, never given to another slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

/// One incarnation of a slot: monotonic per run, never reused (S3). 0 is never given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptId(pub u64);

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a{}", self.0)
    }
}

/// One dispatched effect: its attempt and a sequence number within it (SPEC 3). Unique for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OperationId {
    /// The attempt it works for.
    pub attempt: AttemptId,
    /// Its number within the attempt, from 1; from `epoch * 1_000_000` for attempts of an earlier start of the host.
    pub sequence: u64,
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.attempt, self.sequence)
    }
}

/// What a backend keys and labels its resources with: run, slot and attempt (SPEC 3). Written `run/slot/attempt`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalKey {
    /// The run's id.
    pub run: String,
    /// The slot's name, `{group}-{index}`.
    pub slot: String,
    /// The attempt.
    pub attempt: AttemptId,
}

impl fmt::Display for ExternalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.run, self.slot, self.attempt.0)
    }
}
