//! A swap on its way, and what it found (SPEC 11).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::accept::{Accept, FailedNodes};
use super::decider::DeciderRef;

/// How a candidate is judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwapTerms {
    /// So much history is decided again, in milliseconds; 0 for none. A day unless told.
    pub replay_ms: u64,
    /// So long it is asked beside the active one, in milliseconds; 0 for not at all. A minute unless told.
    pub shadow_ms: u64,
    /// So long it is watched after the switch, in milliseconds; 0 for not at all. Ten minutes unless told.
    pub watch_ms: u64,
    /// So many more failed nodes than at the switch roll back while it is watched; none unless told.
    pub watch_failed: Option<FailedNodes>,
    /// What is accepted that would be refused.
    pub accept: Vec<Accept>,
}

impl Default for SwapTerms {
    fn default() -> Self {
        let (replay_ms, shadow_ms, watch_ms) = (24 * 3_600_000, 60_000, 600_000);
        SwapTerms { replay_ms, shadow_ms, watch_ms, watch_failed: None, accept: Vec::new() }
    }
}

/// The swaps and shadows that are remembered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Swaps {
    /// `homeostat.swaps/v1`.
    pub schema: String,
    /// When this was answered, by the daemon's clock.
    #[serde(default)]
    pub now_ms: u64,
    /// Newest first.
    pub swaps: Vec<Swap>,
}

/// A swap, or a shadow, without what it found one by one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Swap {
    /// The command's id.
    pub id: String,
    /// What it is for.
    pub kind: SwapKind,
    /// The wish's number.
    pub revision: u64,
    /// The candidate. Of one that could not be loaded only the digest is known.
    pub decider: DeciderRef,
    /// The one in force when it was asked for.
    pub from: DeciderRef,
    /// When it was asked for.
    pub asked_ms: u64,
    /// When nothing of it went on any more: after the watch, if there is one.
    pub ended_ms: Option<u64>,
    /// How it came out; none before the switch.
    pub verdict: Option<SwapVerdict>,
    /// That, or what it is at, in a line.
    pub text: String,
    /// The stages it has, in order.
    pub stages: Vec<SwapStage>,
}

/// What it is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwapKind {
    /// To put the candidate in force.
    #[default]
    Swap,
    /// Only to compare.
    Shadow,
    /// To put the previous one in force again, because somebody asked for it.
    Rollback,
}

/// How a swap came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwapVerdict {
    /// The candidate is in force; while it is watched the swap has not ended.
    Switched,
    /// It was in force, failed while it was watched, and is quarantined.
    RolledBack,
    /// It was judged, and not put in force.
    Refused,
    /// It could not be judged.
    Failed,
    /// Somebody ended it.
    Cancelled,
    /// A newer wish took its place.
    Superseded,
}

impl SwapVerdict {
    /// All.
    pub const ALL: [SwapVerdict; 6] = [
        SwapVerdict::Switched,
        SwapVerdict::RolledBack,
        SwapVerdict::Refused,
        SwapVerdict::Failed,
        SwapVerdict::Cancelled,
        SwapVerdict::Superseded,
    ];

    /// As it is written.
    pub fn label(self) -> &'static str {
        match self {
            SwapVerdict::Switched => "switched",
            SwapVerdict::RolledBack => "rolled-back",
            SwapVerdict::Refused => "refused",
            SwapVerdict::Failed => "failed",
            SwapVerdict::Cancelled => "cancelled",
            SwapVerdict::Superseded => "superseded",
        }
    }
}

/// A part of a swap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwapStage {
    /// Which.
    pub stage: StageName,
    /// How it stands.
    pub state: StageState,
    /// When it began.
    pub started_ms: Option<u64>,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// When it ends if nothing comes between.
    pub until_ms: Option<u64>,
    /// What it found so far, in a line.
    pub text: String,
    /// What was compared, where it compares.
    pub tally: Option<Tally>,
}

/// The parts of a swap, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StageName {
    /// It is loaded and looked at.
    #[default]
    Check,
    /// It decides what was decided before.
    Replay,
    /// It decides beside the active one.
    Shadow,
    /// It is put in force, between two passes.
    Switch,
    /// It is in force, and its failures roll back.
    Watch,
}

impl StageName {
    /// As it is written.
    pub fn label(self) -> &'static str {
        match self {
            StageName::Check => "check",
            StageName::Replay => "replay",
            StageName::Shadow => "shadow",
            StageName::Switch => "switch",
            StageName::Watch => "watch",
        }
    }
}

/// How a part stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StageState {
    /// It has not begun.
    #[default]
    Waiting,
    /// It goes on.
    Running,
    /// It found nothing that speaks against the candidate, or what it found was accepted.
    Passed,
    /// It was not asked for.
    Skipped,
    /// It found what speaks against the candidate.
    Refused,
    /// It could not be done, or, for `watch`, the candidate failed.
    Failed,
    /// Something else ended the swap.
    Cancelled,
}

/// How many passes were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Passes that both decided: `equal` + `differing` + `failed`.
    pub passes: u64,
    /// Of these, with the same plan.
    pub equal: u64,
    /// Of these, with another plan.
    pub differing: u64,
    /// Of these, without a plan of the candidate's.
    pub failed: u64,
    /// Passes that it was not asked about, because it was still busy with one.
    pub skipped: u64,
    /// Decisions compared.
    pub decisions: u64,
    /// Of these, those that differ.
    pub differing_decisions: u64,
}

/// A swap or a shadow, with all that it found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwapDetail {
    /// `homeostat.swap/v1`.
    pub schema: String,
    /// When this was answered, by the daemon's clock.
    #[serde(default)]
    pub now_ms: u64,
    /// What the list says of it.
    #[serde(flatten)]
    pub swap: Swap,
    /// How it is judged.
    pub terms: SwapTerms,
    /// What the stages that compare found.
    pub reports: Vec<Report>,
    /// Why it was refused.
    pub refusal: Option<SwapRefusal>,
}

/// What a stage that compares found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Which stage: `replay` or `shadow`.
    pub stage: StageName,
    /// How many were compared.
    pub tally: Tally,
    /// From when on passes were compared.
    pub from_ms: Option<u64>,
    /// Until when.
    pub to_ms: Option<u64>,
    /// Differences of one kind each: what weighs most first, then the most frequent. At most 200.
    pub divergences: Vec<Divergence>,
    /// So many kinds more are not shown.
    pub more: u64,
}

/// Differences of one kind: the same two rules and steps, the same direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Divergence {
    /// What the active one does.
    pub active: Step,
    /// What the candidate does.
    pub candidate: Step,
    /// Which way that goes.
    pub direction: Direction,
    /// How many decisions; where it is about passes as a whole, passes.
    pub decisions: u64,
    /// Of how many nodes; 0 where it is about passes as a whole.
    pub nodes: u64,
    /// It is refused unless it is accepted.
    pub refused: bool,
    /// It would be refused, and was accepted.
    pub accepted: bool,
    /// The first one.
    pub example: Option<DivergenceExample>,
}

/// A rule and what it does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The rule's id; empty where there is no decision.
    pub rule: String,
    /// `hold`, or the action; of a failure its class, such as `out-of-fuel`.
    pub verb: String,
}

/// Which way a difference goes, seen from the active decider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The candidate fails where the active one has a plan.
    MoreFailures,
    /// It destroys where nothing is destroyed.
    MoreDestroys,
    /// It does not destroy where something is destroyed.
    FewerDestroys,
    /// It creates where nothing is created.
    MoreCreates,
    /// It does not create where something is created.
    FewerCreates,
    /// It has a plan where the active one fails.
    FewerFailures,
    /// Another step, which neither creates nor destroys.
    OtherAction,
    /// It holds too, for something else or until another instant.
    OtherWait,
    /// The same for another reason.
    #[default]
    OtherRuleOnly,
}

impl Direction {
    /// As it is written.
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

/// One difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DivergenceExample {
    /// The instant of the snapshot.
    pub at_ms: u64,
    /// The journal's record of the pass, where it has one.
    pub seq: Option<u64>,
    /// The node; none where it is about the pass as a whole.
    pub node: Option<String>,
    /// Its attempt.
    pub attempt: Option<u64>,
    /// What the active one decided.
    pub active: ExampleDecision,
    /// What the candidate decided.
    pub candidate: ExampleDecision,
    /// The facts that both had, as name and value.
    pub facts: Vec<(String, String)>,
}

/// One decision, in an example.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExampleDecision {
    /// The rule and the step.
    #[serde(flatten)]
    pub step: Step,
    /// The rule's sentence, or the failure in words.
    pub reason: String,
    /// For a hold, what it waits for.
    pub waits_for: String,
    /// For a hold, at the latest until when.
    pub until_ms: Option<u64>,
}

/// Why a candidate was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SwapRefusal {
    /// By which stage.
    pub stage: StageName,
    /// `component`, `contract`, `quarantined`, `pinned`, `history`, `divergence` or `failing`.
    pub reason: String,
    /// In a line.
    pub text: String,
    /// What would have to be accepted, all of it; empty where nothing helps.
    pub accept: Vec<Accept>,
}

/// Which swaps are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwapsQuery {
    /// At most so many, 1 to 100; 20 unless told.
    pub limit: Option<usize>,
}
