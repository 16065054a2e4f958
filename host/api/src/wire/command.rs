//! What an operator asks for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A command (SPEC 10).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "do", deny_unknown_fields)]
pub enum Command {
    /// Gives the fleet another shape: whole, or not at all.
    Apply {
        /// The shape, as the engine keeps it; its generation is `base_generation` + 1.
        #[schemars(with = "serde_json::Value")]
        shape: engine::shape::ClusterShape,
        /// The operator's settings with it; those in force stay otherwise.
        #[serde(default)]
        #[schemars(with = "Option<serde_json::Value>")]
        policy: Option<engine::policy::Policy>,
        /// The generation that the person saw; refused when another one is in force.
        base_generation: u64,
    },
    /// Sets how many nodes a group has; the highest go first.
    Scale {
        /// Which group.
        group: String,
        /// How many.
        count: u32,
    },
    /// One node more.
    AddNode {
        /// In which group.
        group: String,
    },
    /// Ends the resource of each node. Its record stays, and the fleet replaces it.
    Kill {
        /// Which.
        nodes: Vec<String>,
    },
    /// Ends the resource of each node and forgets it: its group has one less, and its name is never used again.
    Destroy {
        /// Which nodes.
        #[serde(default)]
        nodes: Vec<String>,
        /// Whole groups.
        #[serde(default)]
        groups: Vec<String>,
    },
    /// Holds effects.
    Pause {
        /// Only in this group.
        #[serde(default)]
        group: Option<String>,
        /// Only some.
        #[serde(default)]
        only: Only,
    },
    /// Lets them go on.
    Resume {
        /// Only in this group.
        #[serde(default)]
        group: Option<String>,
        /// Only some.
        #[serde(default)]
        only: Only,
    },
    /// Takes an orphan as the node that its label names.
    AdoptOrphan {
        /// The backend that holds it.
        provider: String,
        /// The backend's reference.
        lease: String,
    },
    /// Ends an orphan.
    DestroyOrphan {
        /// The backend that holds it.
        provider: String,
        /// The backend's reference.
        lease: String,
    },
}

/// Which effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Only {
    /// All of them.
    #[default]
    All,
    /// Those that make something.
    Create,
    /// Those that end something.
    Destroy,
}

/// What would a command do?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// Which command.
    pub command: Command,
}

/// What it would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// `homeostat.consequences/v1`.
    pub schema: String,
    /// The generation in force, to be repeated as `base_generation` or `expect_generation`.
    pub base_generation: u64,
    /// What it would do.
    #[serde(flatten)]
    pub consequences: Consequences,
    /// For `apply`: the fields that differ from what is in force.
    #[serde(default)]
    pub differences: Vec<Difference>,
    /// The guard that would refuse the command, in words; none where it would be carried out.
    #[serde(default)]
    pub beyond: Option<String>,
}

/// A field of the shape or the settings that would change. Values of the environment and contents of files are not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Its path, such as `group web: boot.command[2]`.
    pub field: String,
    /// In force; none where there is nothing, or both are not shown.
    pub from: Option<String>,
    /// Wanted; none where there is to be nothing, or both are not shown.
    pub to: Option<String>,
}

/// A command, to be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandRequest {
    /// Names it for ever: the same again acts once and gives the first result. 1 to 64 letters, digits, `-` and `_`; a ULID
    /// unless the caller has a reason. Never empty.
    pub id: String,
    /// Refused unless this generation is in force.
    #[serde(default)]
    pub expect_generation: Option<u64>,
    /// What to do.
    pub command: Command,
}

/// How it ended. It is durable, and effects follow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandResult {
    /// `homeostat.command/v1`.
    pub schema: String,
    /// Its id.
    pub id: String,
    /// The id was used before: this is what was answered then, and nothing was done now.
    pub replayed: bool,
    /// When it was taken.
    pub at_ms: u64,
    /// What it does.
    #[serde(flatten)]
    pub consequences: Consequences,
}

/// What a command does, by the nodes' names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Consequences {
    /// In a line.
    pub text: String,
    /// The generation in force afterwards.
    pub generation: u64,
    /// Whether the shape changes.
    pub changes: bool,
    /// Slots that are filled.
    pub creates: Vec<String>,
    /// Nodes that go for good.
    pub destroys: Vec<String>,
    /// Nodes that are replaced.
    pub replaces: Vec<String>,
    /// Nodes that stay as they are.
    pub keeps: u32,
}
