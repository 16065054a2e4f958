//! One node, closely.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::HistoryItem;
use super::status::Node;

/// All that is known of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeDetail {
    /// `homeostat.node/v1`.
    pub schema: String,
    /// What the list says of it.
    #[serde(flatten)]
    pub node: Node,
    /// The instant of this answer.
    pub now_ms: u64,
    /// The backend.
    pub provider: Option<String>,
    /// The live lease.
    pub lease: Option<String>,
    /// The live bootstrap session.
    pub session: Option<String>,
    /// What backends label its resources with, such as `demo/web-0/3`.
    pub key: Option<String>,
    /// The operation on its way.
    pub operation: Option<Operation>,
    /// The operation whose outcome is unknown.
    pub doubt: Option<Operation>,
    /// When the stage is given up.
    pub stage_deadline_ms: Option<u64>,
    /// No operation before.
    pub next_effect_ms: Option<u64>,
    /// No look at the endpoint before.
    pub probe_ms: Option<u64>,
    /// No new attempt before.
    pub restart_ms: Option<u64>,
    /// What its attempt is made from. Values of the environment and contents of files are not shown.
    pub template: Option<TemplateView>,
    /// Whether that differs from what is desired.
    pub drifted: bool,
    /// What happened to it last, oldest first.
    pub recent: Vec<HistoryItem>,
}

/// An operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// Its id, such as `a3.2`.
    pub id: String,
    /// Its kind, such as `create-lease`.
    pub kind: String,
    /// When it was dispatched, or since when its outcome is unknown.
    pub since_ms: u64,
    /// When it is asked about.
    pub deadline_ms: Option<u64>,
}

/// A template, without what may be secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateView {
    /// The backend.
    pub provider: String,
    /// What to boot from.
    pub image: Option<String>,
    /// What the node is for.
    pub role: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Names of the environment's variables.
    pub env: Vec<String>,
    /// Paths of the files that are written first.
    pub files: Vec<String>,
    /// The join probe, in words.
    pub join: String,
    /// The provider's settings, as text.
    pub settings: BTreeMap<String, String>,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
}

/// Why a node is where it is (SPEC 12).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// `homeostat.explanation/v1`.
    pub schema: String,
    /// The node.
    pub node: String,
    /// The attempt that holds it.
    pub attempt: Option<u64>,
    /// The instant of this answer.
    pub now_ms: u64,
    /// One line: why it is where it is, what it waits for, until when, and what a person can do.
    pub summary: String,
    /// The rule that decided last; none while a decision is outstanding.
    pub rule: Option<RuleRow>,
    /// When it decided.
    pub decided_ms: Option<u64>,
    /// What was decided: `hold`, or the action.
    pub verb: Option<String>,
    /// The facts that the decision rests on, in the order of the table's columns; `true` in `matters` where the row asks for it.
    pub facts: Vec<Fact>,
    /// What ends the wait, in words; empty when it does not wait.
    pub ends: String,
    /// At the latest when.
    pub until_ms: Option<u64>,
    /// What a person can do, if anything: a command or a sentence.
    pub next_step: String,
}

/// A row of the decider's table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleRow {
    /// Its id, such as `R15`.
    pub id: String,
    /// Its sentence.
    pub reason: String,
    /// Its conditions, in words, such as `intent = active`.
    pub when: Vec<String>,
}

/// A fact about a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether the rule's row asks for it.
    pub matters: bool,
}
