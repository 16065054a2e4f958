//! What happens, and what happened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decider::DeciderStatus;
use super::status::{Node, Orphan, Pause, RefusedFile};
use super::swap::Swap;

/// One change, as `watch` sends it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// `homeostat.event/v1`.
    pub schema: String,
    /// Where the list of changes stands after it. Opaque; belongs to one start of the daemon.
    pub revision: String,
    /// When.
    pub at_ms: u64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "of")]
pub enum What {
    /// A node: all of it, as it is now.
    Node(Box<Node>),
    /// A slot is not desired any more and nothing is left of it.
    Gone {
        /// Its name.
        node: String,
    },
    /// Another generation is in force.
    Generation {
        /// Which.
        generation: u64,
    },
    /// The fleet has the shape of this generation.
    Converged {
        /// Which.
        generation: u64,
    },
    /// An orphan was found.
    Orphan(Orphan),
    /// An orphan is gone, or no orphan any more.
    OrphanGone {
        /// The backend.
        provider: String,
        /// The backend's reference.
        lease: String,
    },
    /// Something is held from now on.
    Paused(Pause),
    /// Something is not held any more.
    Resumed {
        /// The group; none when all of the run.
        group: Option<String>,
        /// `create`, `destroy` or `all`.
        only: String,
    },
    /// The fleet file cannot be taken over: what was taken over before stays in force.
    FileRefused(RefusedFile),
    /// The fleet file, which could not be taken over before, was.
    FileTaken {
        /// Where it is.
        file: String,
    },
    /// A command was carried out.
    Command {
        /// Its id.
        id: String,
        /// In words.
        text: String,
    },
    /// Another decider is in force, or something about it changed: all of it, as it is now.
    Decider(Box<DeciderStatus>),
    /// A swap or a shadow went on: all of it, as it is now. What it found one by one is asked for by its id.
    Swap(Box<Swap>),
    /// Something people should know, in words.
    Notice {
        /// How bad: `info`, `warning` or `error`.
        level: String,
        /// In words.
        text: String,
    },
}

/// A page of history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// `homeostat.history/v1`.
    pub schema: String,
    /// The node; none for all of the fleet.
    pub node: Option<String>,
    /// Oldest first.
    pub items: Vec<HistoryItem>,
    /// There is older history: ask again with `before` set to the first item's `seq`.
    pub more: bool,
    /// Older history was dropped: the journal begins at this record.
    pub first_kept_seq: u64,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryItem {
    /// The journal's record.
    pub seq: u64,
    /// When.
    pub at_ms: u64,
    /// The node.
    pub node: Option<String>,
    /// The attempt.
    pub attempt: Option<u64>,
    /// What: `decision`, `dispatch`, `result`, `observation`, `command`, `shape`, `listing`, `restart`, `settings`, `swap` or `decider`;
    /// `warning` or `error` for what was said of the fleet as a whole since the daemon started.
    pub kind: String,
    /// In words.
    pub text: String,
    /// The id of the command, where an operator's command is what happened.
    #[serde(default)]
    pub command: Option<String>,
}

/// What history is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HistoryQuery {
    /// Of this node; else of all of the fleet.
    pub node: Option<String>,
    /// Only before this record.
    pub before: Option<u64>,
    /// At most so many items, 1 to 1,000; 100 unless told.
    pub limit: Option<usize>,
}

/// What a node wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Logs {
    /// `homeostat.logs/v1`.
    pub schema: String,
    /// The node.
    pub node: String,
    /// The attempt.
    pub attempt: Option<u64>,
    /// The attempt is gone, and this is what is kept of the end of its output.
    #[serde(default)]
    pub is_gone: bool,
    /// Oldest first.
    pub lines: Vec<LogLine>,
    /// Where to go on: ask again with `after`.
    pub next: u64,
}

/// A line of output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// Its place in the output that is kept; rises.
    pub at: u64,
    /// When it was written, where that is known.
    pub at_ms: Option<u64>,
    /// The line, without its break; bytes that are no text are replaced.
    pub text: String,
}

/// What output is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogsQuery {
    /// Of this node; the path says it.
    #[serde(skip)]
    #[schemars(skip)]
    pub node: String,
    /// Only after this place.
    pub after: Option<u64>,
    /// At most so many lines, the last ones, 1 to 10,000; 200 unless told.
    pub lines: Option<usize>,
    /// Of the last attempt that is gone, also where another one holds the node.
    pub previous: Option<bool>,
}

/// What was decided lately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decisions {
    /// `homeostat.decisions/v1`.
    pub schema: String,
    /// Newest first. Holds are left out unless the rule changed.
    pub decisions: Vec<Decided>,
}

/// A decision about a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decided {
    /// Rises; unique within one start of the daemon.
    pub number: u64,
    /// When.
    pub at_ms: u64,
    /// The node.
    pub node: String,
    /// The attempt that held it afterwards.
    pub attempt: Option<u64>,
    /// The rule's id.
    pub rule: String,
    /// The rule's sentence.
    pub reason: String,
    /// `hold`, or the action.
    pub verb: String,
    /// For a hold, at the latest until when.
    pub until_ms: Option<u64>,
    /// The facts it rests on, as name and value.
    pub facts: Vec<(String, String)>,
    /// What it changed in the node's state.
    pub changes: Vec<FieldChange>,
}

/// A field of the state that changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldChange {
    /// Its name.
    pub field: String,
    /// Before.
    pub from: String,
    /// After.
    pub to: String,
}
