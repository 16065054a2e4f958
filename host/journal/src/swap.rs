//! What is recorded of a swap (SPEC 11): each step, and each difference in decisions. None of it is folded; the switch itself is
//! an input (`decider-changed`).

use engine::id::Millis;
use serde::{Deserialize, Serialize};

/// A step of a swap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwapRecord {
    /// The revision of the wish; 0 where nobody asked for it by a wish.
    pub revision: u64,
    /// What happened.
    pub step: SwapStep,
    /// The digest of the decider that it is about.
    pub decider: String,
    /// Its name and version, for people; may be empty.
    pub name: String,
    /// The command that it follows from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What was found, in words.
    pub text: String,
    /// The differences in decisions, by kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub divergences: Vec<Divergence>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwapStep {
    /// Its bytes were kept: it can be asked for by its digest.
    Kept,
    /// Somebody wants it in force.
    Wished,
    /// Somebody wants it asked beside the one in force, without a switch.
    Shadowing,
    /// It was loaded and checked.
    Checked,
    /// It was judged by history.
    Replayed,
    /// It was asked beside the one in force.
    Shadowed,
    /// It is in force.
    Switched,
    /// It was watched to the end, and stays.
    Watched,
    /// It failed while it was watched: the one before is in force again.
    RolledBack,
    /// It is not to come into force again by itself.
    Quarantined,
    /// It was refused.
    Refused,
    /// A newer wish came before it was in force.
    Superseded,
    /// Somebody called it off.
    Cancelled,
    /// It could not be carried out.
    Failed,
    /// It is the only one that may be in force.
    Pinned,
    /// It is not pinned any more.
    Unpinned,
}

impl SwapStep {
    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            SwapStep::Kept => "kept",
            SwapStep::Wished => "wished",
            SwapStep::Shadowing => "shadowing",
            SwapStep::Checked => "checked",
            SwapStep::Replayed => "replayed",
            SwapStep::Shadowed => "shadowed",
            SwapStep::Switched => "switched",
            SwapStep::Watched => "watched",
            SwapStep::RolledBack => "rolled back",
            SwapStep::Quarantined => "quarantined",
            SwapStep::Refused => "refused",
            SwapStep::Superseded => "superseded",
            SwapStep::Cancelled => "cancelled",
            SwapStep::Failed => "failed",
            SwapStep::Pinned => "pinned",
            SwapStep::Unpinned => "unpinned",
        }
    }
}

/// Which way the candidate's decision differs from that of the decider in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// It has no valid plan where the other has one.
    MoreFailures,
    /// It destroys what the other would not.
    MoreDestroys,
    /// It does not destroy what the other would.
    FewerDestroys,
    /// It creates what the other would not.
    MoreCreates,
    /// It does not create what the other would.
    FewerCreates,
    /// It has a valid plan where the other has none.
    FewerFailures,
    /// Another step, which neither creates nor destroys more or less.
    OtherAction,
    /// The same step, with another hold or another wait.
    OtherWait,
    /// The same in all but the rule that is cited.
    OtherRuleOnly,
}

impl Direction {
    /// Its name.
    pub fn label(self) -> &'static str {
        match self {
            Direction::MoreFailures => "more-failures",
            Direction::MoreDestroys => "more-destroys",
            Direction::FewerDestroys => "fewer-destroys",
            Direction::MoreCreates => "more-creates",
            Direction::FewerCreates => "fewer-creates",
            Direction::FewerFailures => "fewer-failures",
            Direction::OtherAction => "other-action",
            Direction::OtherWait => "other-wait",
            Direction::OtherRuleOnly => "other-rule-only",
        }
    }
}

/// A rule and what it does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cited {
    /// The rule's id; empty where there is no decision about a node.
    pub rule: String,
    /// The verb; of a failure its class.
    pub verb: String,
}

/// Differences of one kind: the same rules, the same steps, the same direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Divergence {
    /// What the decider in force does.
    pub active: Cited,
    /// What the candidate does.
    pub candidate: Cited,
    /// Which way that goes.
    pub direction: Direction,
    /// How many decisions; where it is about passes as a whole, passes.
    pub decisions: u64,
    /// Of how many slots; 0 where it is about passes as a whole.
    pub slots: u64,
    /// The first one.
    pub first: Example,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The instant of the snapshot.
    pub at_ms: Millis,
    /// The record of the pass, where it has one.
    pub seq: Option<u64>,
    /// The slot's number; `None` where it is about the pass as a whole.
    pub node: Option<u32>,
    /// The slot's name, where it is known.
    pub name: Option<String>,
    /// The attempt that holds it; 0 when it is vacant.
    pub attempt: Option<u64>,
    /// What both were told of it, as name and value.
    pub facts: Vec<(String, String)>,
    /// What the decider in force decides.
    pub active: Reasoned,
    /// What the candidate decides.
    pub candidate: Reasoned,
}

/// One decision, with its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reasoned {
    /// The rule's id.
    pub rule: String,
    /// The verb; of a failure its class.
    pub verb: String,
    /// The rule's sentence, or the failure in words.
    pub reason: String,
    /// For a hold, what ends it.
    pub waits_for: String,
    /// At the latest when.
    pub until_ms: Option<Millis>,
}
