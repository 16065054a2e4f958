//! The fleet as it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decider::DeciderStatus;
use super::swap::Swap;

/// The whole fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// `homeostat.status/v1`.
    pub schema: String,
    /// The run.
    pub run: String,
    /// Where the list of changes stands: watch from here.
    pub revision: String,
    /// The generation in force.
    pub generation: u64,
    /// The last generation evaluated whole.
    pub observed_generation: u64,
    /// Whether the fleet has the declared shape (SPEC 8).
    pub converged: bool,
    /// Why it has not, in a line, and what a person can do, if anything; empty when converged.
    pub reason: String,
    /// The instant of this list.
    pub now_ms: u64,
    /// When the daemon was started.
    pub started_ms: u64,
    /// The daemon's version.
    pub version: String,
    /// Where it listens besides its socket, such as `http://127.0.0.1:7700`.
    #[serde(default)]
    pub listens: Vec<String>,
    /// The decider in force.
    pub decider: DeciderStatus,
    /// Swaps and shadows that go on, and the last that ended: newest first, at most 12.
    #[serde(default)]
    pub swaps: Vec<Swap>,
    /// The groups, in the order of the declaration; those that are not desired any more come last.
    pub groups: Vec<GroupStatus>,
    /// Desired slots and nodes, in the order of groups and indices.
    pub nodes: Vec<Node>,
    /// What bears the run's name and was never authorised.
    pub orphans: Vec<Orphan>,
    /// What retired attempts left and is being removed.
    pub reaping: Vec<Reaping>,
    /// What is held, by whom.
    pub pauses: Vec<Pause>,
    /// The fleet file, while it cannot be taken over; none when it was.
    #[serde(default)]
    pub refused_file: Option<RefusedFile>,
}

/// A fleet file that cannot be taken over: what was taken over before stays in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedFile {
    /// Where it is.
    pub file: String,
    /// What is wrong with it, in a line.
    pub reason: String,
    /// Since when.
    pub since_ms: u64,
}

/// A group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupStatus {
    /// Its id.
    pub group: String,
    /// Slots that are desired.
    pub desired: u32,
    /// Desired ones that are ready.
    pub ready: u32,
    /// Nodes that failed, or are held because something failed.
    pub failing: u32,
    /// Nodes that are being taken down.
    pub deleting: u32,
}

/// A slot and what holds it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// The slot's name.
    pub node: String,
    /// Its group.
    pub group: String,
    /// Its index.
    pub index: u32,
    /// Whether the slot is desired.
    pub desired: bool,
    /// The attempt that holds it; none when vacant.
    pub attempt: Option<u64>,
    /// Where it stands on the ladder, such as `endpoint-known`.
    pub stage: String,
    /// Whether it is being taken down.
    pub deleting: bool,
    /// Whether it is ready.
    pub ready: bool,
    /// Where it can be reached.
    pub endpoint: Option<String>,
    /// The bootstrap's progress.
    pub progress: String,
    /// Failures in a row.
    pub failures: u32,
    /// The last decision's rule, such as `R15`.
    pub rule: Option<String>,
    /// What it waits for; empty when for nothing.
    pub waits_for: String,
    /// Until when at the latest: the next retry, or the deadline.
    pub until_ms: Option<u64>,
    /// What went wrong last.
    pub error: Option<String>,
    /// Who holds it and what ends that: a pause or a guard.
    pub held: Option<String>,
}

/// Something that bears the run's name and was never authorised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Orphan {
    /// The backend that holds it.
    pub provider: String,
    /// The backend's reference.
    pub lease: String,
    /// The slot that its label names.
    pub node: String,
    /// The attempt that its label names.
    pub attempt: u64,
    /// When it was first seen.
    pub seen_ms: u64,
    /// Whether a person asked to destroy it and that is under way.
    pub destroying: bool,
}

/// A resource of a retired attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reaping {
    /// The backend that holds it.
    pub provider: String,
    /// The backend's reference.
    pub lease: String,
    /// The slot it was for.
    pub node: String,
    /// The attempt.
    pub attempt: u64,
    /// Failures in a row.
    pub failures: u32,
    /// The next try.
    pub next_at_ms: Option<u64>,
}

/// Effects that are held until a person resumes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    /// The group; none when all of the run.
    pub group: Option<String>,
    /// `create`, `destroy` or `all`.
    pub only: String,
    /// `operator`, or the guard's name.
    pub by: String,
    /// Since when.
    pub since_ms: u64,
    /// Why, in a line.
    pub reason: String,
    /// The command that ends it.
    pub resume: String,
}
