//! Operator commands (SPEC 10): what a person orders, what it would do, and why it is refused.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::guard::Guard;
use crate::io::LeaseId;
use crate::pause::Only;
use crate::policy::Policy;
use crate::shape::{ClusterShape, ShapeError};

/// What an operator orders. In JSON tagged by `do`, such as `{"do": "scale", "group": "web", "count": 3}`.
// A shape is the largest of them; there are few of any.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Put another shape in force, and other settings if there are any.
    Apply {
        /// The shape; its generation is one above the one in force, unless its content is the same.
        shape: ClusterShape,
        /// The settings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<Policy>,
        /// The generation that the caller believes to be in force; 0 before the first shape. Refused if it is not.
        base_generation: u64,
    },
    /// Another count for a group.
    Scale {
        /// The group.
        group: String,
        /// How many slots.
        count: u32,
    },
    /// One more slot for a group.
    AddNode {
        /// The group.
        group: String,
    },
    /// End what these slots hold and keep their records: each gets a new attempt.
    Kill {
        /// The slots' names.
        nodes: Vec<String>,
    },
    /// End what these slots hold and forget them: their groups' counts fall, their indices are never used again.
    Destroy {
        /// The slots' names.
        #[serde(default)]
        nodes: Vec<String>,
        /// Groups, with all their slots.
        #[serde(default)]
        groups: Vec<String>,
    },
    /// Hold effects back.
    Pause {
        /// The group; `None` for the whole run.
        #[serde(default)]
        group: Option<String>,
        /// Which effects.
        only: Only,
    },
    /// Let go on what was held back: with `Only::All` and no group, whatever is paused; with it and a group, all that is
    /// paused for that group; else that effect in exactly that scope.
    Resume {
        /// The group; `None` for the whole run.
        #[serde(default)]
        group: Option<String>,
        /// Which effects.
        only: Only,
    },
    /// Let the slot that an orphan's label names hold it.
    AdoptOrphan {
        /// The backend.
        provider: String,
        /// The orphan.
        lease: LeaseId,
    },
    /// Destroy an orphan.
    DestroyOrphan {
        /// The backend.
        provider: String,
        /// The orphan.
        lease: LeaseId,
    },
}

impl Command {
    /// Its name, as in JSON.
    pub const fn label(&self) -> &'static str {
        match self {
            Command::Apply { .. } => "apply",
            Command::Scale { .. } => "scale",
            Command::AddNode { .. } => "add-node",
            Command::Kill { .. } => "kill",
            Command::Destroy { .. } => "destroy",
            Command::Pause { .. } => "pause",
            Command::Resume { .. } => "resume",
            Command::AdoptOrphan { .. } => "adopt-orphan",
            Command::DestroyOrphan { .. } => "destroy-orphan",
        }
    }
}

/// In one line, for people.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())?;
        match self {
            Command::Apply { shape, base_generation, .. } => {
                write!(f, " generation {} on {base_generation}", shape.generation)
            }
            Command::Scale { group, count } => write!(f, " {group} {count}"),
            Command::AddNode { group } => write!(f, " {group}"),
            Command::Kill { nodes } => write!(f, " {}", nodes.join(" ")),
            Command::Destroy { nodes, groups } => {
                nodes.iter().try_for_each(|name| write!(f, " {name}"))?;
                groups.iter().try_for_each(|name| write!(f, " group {name}"))
            }
            Command::Pause { group, only } | Command::Resume { group, only } => {
                group.iter().try_for_each(|group| write!(f, " {group}"))?;
                write!(f, " {}", only.label())
            }
            Command::AdoptOrphan { provider, lease } | Command::DestroyOrphan { provider, lease } => {
                write!(f, " {provider} {lease}")
            }
        }
    }
}

/// What a command would do, or did, by the names of slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consequences {
    /// The generation in force afterwards.
    pub generation: u64,
    /// Slots that are to get a node.
    #[serde(default)]
    pub creates: Vec<String>,
    /// Slots whose node ends for good, or the reference of an orphan.
    #[serde(default)]
    pub destroys: Vec<String>,
    /// Slots whose node ends and is followed by another.
    #[serde(default)]
    pub replaces: Vec<String>,
    /// How many desired slots are left as they are.
    pub keeps: u32,
    /// What else a person should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The guard that refuses it, where it was only asked about ([`Driver::foresee`](crate::driver::Driver::foresee)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond: Option<String>,
}

/// Why a command is refused, whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// It names nothing.
    #[error("{command}: names nothing")]
    Empty {
        /// Which command.
        command: &'static str,
    },
    /// There is no shape to change.
    #[error("there is no shape in force yet: apply one first")]
    NoShape,
    /// No such group.
    #[error("there is no group {group:?}; there are: {known}")]
    UnknownGroup {
        /// The name.
        group: String,
        /// Those that exist.
        known: String,
    },
    /// No slot of that name was ever seen.
    #[error("there is no node {node:?}")]
    UnknownNode {
        /// The name.
        node: String,
    },
    /// The slot is not in the shape.
    #[error("{node} is not desired: {standing}")]
    NotDesired {
        /// The slot.
        node: String,
        /// What there is of it.
        standing: String,
    },
    /// The slot holds nothing that could end.
    #[error("{node} holds nothing to kill: it is {stage}")]
    NothingToKill {
        /// The slot.
        node: String,
        /// Its stage.
        stage: &'static str,
    },
    /// A kill could not be carried out: it would leave what it is to end running, and failed.
    #[error("{node} cannot be killed now: {pause}")]
    Paused {
        /// The slot.
        node: String,
        /// What holds destroys, and what ends that.
        pause: String,
    },
    /// Nothing of that kind is paused in that scope.
    #[error("nothing to resume for {scope} ({only}); {there}", only = only.label())]
    NotPaused {
        /// `the whole run`, or the group.
        scope: String,
        /// Which effects.
        only: Only,
        /// What is paused.
        there: String,
    },
    /// No such orphan.
    #[error("{provider} has no orphan {lease:?}")]
    UnknownOrphan {
        /// The backend.
        provider: String,
        /// The reference.
        lease: LeaseId,
    },
    /// The orphan cannot be taken over, or not destroyed.
    #[error("the orphan {lease} ({key}) cannot be {what}: {why}")]
    OrphanRefused {
        /// The reference.
        lease: LeaseId,
        /// Its label.
        key: String,
        /// `adopted` or `destroyed`.
        what: &'static str,
        /// What stands against it.
        why: String,
    },
    /// The caller looked at another generation than the one in force.
    #[error("it is based on generation {base}, and generation {in_force} is in force: look again")]
    WrongBase {
        /// What the caller says.
        base: u64,
        /// In force.
        in_force: u64,
    },
    /// The shape's generation is not the one after the one in force.
    #[error("the shape has generation {found}; after {in_force} comes {expected}")]
    WrongGeneration {
        /// In force.
        in_force: u64,
        /// The next one.
        expected: u64,
        /// What the shape says.
        found: u64,
    },
    /// Numbers are used up: generations, attempt ids, or a group's indices.
    #[error("{what} are exhausted: {value} is past the last one")]
    Exhausted {
        /// Which numbers.
        what: &'static str,
        /// What would be needed.
        value: u64,
    },
    /// The shape that would follow is refused.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// By itself it is more than a guard allows (a share counts in per cent of the group).
    #[error(
        "the guard {guard} allows {limit}{of}, and this would be {would_be}",
        guard = guard.label(), of = group.as_deref().map(|group| format!(" per cent of {group}")).unwrap_or_default()
    )]
    BeyondGuard {
        /// Which guard.
        guard: Guard,
        /// What it allows.
        limit: u32,
        /// What it would be.
        would_be: u32,
        /// The group, for a share.
        group: Option<String>,
    },
}

impl CommandError {
    /// The guard that refuses it; `None` for any other reason.
    pub fn guard(&self) -> Option<Guard> {
        match self {
            CommandError::BeyondGuard { guard, .. } => Some(*guard),
            _ => None,
        }
    }

    /// A short name of the error, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            CommandError::Empty { .. } => "names-nothing",
            CommandError::NoShape => "no-shape",
            CommandError::UnknownGroup { .. } => "unknown-group",
            CommandError::UnknownNode { .. } => "unknown-node",
            CommandError::NotDesired { .. } => "not-desired",
            CommandError::NothingToKill { .. } => "nothing-to-kill",
            CommandError::Paused { .. } => "paused",
            CommandError::NotPaused { .. } => "not-paused",
            CommandError::UnknownOrphan { .. } => "unknown-orphan",
            CommandError::OrphanRefused { .. } => "orphan-refused",
            CommandError::WrongBase { .. } => "wrong-base-generation",
            CommandError::WrongGeneration { .. } => "wrong-generation",
            CommandError::Exhausted { .. } => "exhausted",
            CommandError::Shape(_) => "shape-refused",
            CommandError::BeyondGuard { .. } => "beyond-guard",
        }
    }
}
