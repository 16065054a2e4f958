//! What a swap found, stage by stage, and what a wish accepts.

use std::fmt;
use std::time::Duration;

use engine::id::Millis;
use journal::{Direction, Divergence};
use serde::Serialize;

use crate::registry::{Entry, FailedLimit, Outcome};

/// What a swap is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To put the candidate in force.
    Swap,
    /// Only to compare.
    Shadow,
    /// To put the previous one in force again.
    Rollback,
}

/// How a candidate is judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Terms {
    /// So much history is decided again; `None`: none.
    pub replay: Option<Duration>,
    /// So long it is asked beside the one in force; zero: until it was asked once; `None`: not at all.
    pub shadow: Option<Duration>,
    /// So long it is watched after the switch; `None`: not at all.
    pub watch: Option<Duration>,
    /// So many more failed nodes than at the switch roll back while it is watched.
    pub watch_failed: Option<FailedLimit>,
    /// What is accepted that would be refused.
    pub accept: Vec<Accept>,
}

/// What was compared in a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// Snapshots that both answered: equal, different, or failed by one of them.
    pub passes: u64,
    /// Of these, those with equal plans.
    pub equal: u64,
    /// Of these, those in which the candidate failed: a trap, a limit, an invalid plan.
    pub failed: u64,
    /// Passes that were not shown to the candidate, because it was still busy with an earlier one.
    pub skipped: u64,
    /// Decisions compared.
    pub decisions: u64,
    /// Of these, those that differ.
    pub differing_decisions: u64,
    /// Passes in which both failed.
    pub not_judged: u64,
    /// The instant of the first snapshot.
    pub from_ms: Option<Millis>,
    /// That of the last.
    pub to_ms: Option<Millis>,
    /// The differences, by kind; what weighs most first.
    pub divergences: Vec<Divergence>,
    /// Kinds that are counted and not shown.
    pub more_kinds: u64,
}

/// A stage of a swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Loaded, and refused where it could reach the world.
    Check,
    /// Judged by history.
    Replay,
    /// Asked beside the one in force.
    Shadow,
    /// Put in force, between two passes.
    Switch,
    /// Watched.
    Watch,
}

impl Stage {
    /// Its name.
    pub fn label(self) -> &'static str {
        match self {
            Stage::Check => "check",
            Stage::Replay => "replay",
            Stage::Shadow => "shadow",
            Stage::Switch => "switch",
            Stage::Watch => "watch",
        }
    }
}

/// How far a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageStatus {
    /// Its turn has not come.
    Waiting,
    /// It is under way.
    Running,
    /// Nothing speaks against going on.
    Passed,
    /// It was not asked for.
    Skipped,
    /// It refuses the candidate.
    Refused,
    /// It could not be carried out; of a watch, the candidate failed.
    Failed,
    /// Something else ended the swap.
    Cancelled,
}

/// A stage, and what it found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageReport {
    /// Which.
    pub stage: Stage,
    /// How far.
    pub status: StageStatus,
    /// When it began.
    pub began_ms: Option<Millis>,
    /// When it ended.
    pub ended_ms: Option<Millis>,
    /// When it ends if nothing comes between.
    pub until_ms: Option<Millis>,
    /// What it found, in words.
    pub text: String,
    /// What was compared, where something was.
    pub compared: Option<Compared>,
}

/// A swap, or a shadow, as it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SwapReport {
    /// The revision of the wish.
    pub revision: u64,
    /// Its name: the command's id, where there is one.
    pub id: String,
    /// What it is judged by.
    pub terms: Terms,
    /// What it is for.
    pub purpose: Purpose,
    /// The candidate; before it is loaded only its digest is known.
    pub candidate: Entry,
    /// The one that was in force.
    pub active: Entry,
    /// When it was wished.
    pub asked_ms: Millis,
    /// When nothing of it went on any more.
    pub ended_ms: Option<Millis>,
    /// The stages, in order.
    pub stages: Vec<StageReport>,
    /// What came of it so far; `None` while nothing did.
    pub outcome: Option<Outcome>,
    /// That, or what it is at, in words.
    pub text: String,
    /// Why it was refused.
    pub refusal: Option<Refusal>,
    /// For so many microseconds no pass could start because it was put in force, its commit included.
    pub switch_gap_us: Option<u64>,
}

impl SwapReport {
    /// Whether nothing more comes.
    pub fn is_over(&self) -> bool {
        self.outcome.is_some_and(|outcome| outcome != Outcome::Watching)
    }

    pub(super) fn stage_mut(&mut self, stage: Stage) -> Option<&mut StageReport> {
        self.stages.iter_mut().find(|report| report.stage == stage)
    }

    /// A stage, if the wish has it.
    pub fn stage(&self, stage: Stage) -> Option<&StageReport> {
        self.stages.iter().find(|report| report.stage == stage)
    }
}

/// A difference, or a doubt, that a wish accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Accept {
    /// It may destroy what the one in force would not.
    Destroys,
    /// It may create what the one in force would not. It is never refused for that.
    Creates,
    /// It may fail where the one in force does not.
    Failures,
    /// History need not be able to judge.
    History,
    /// It may have been quarantined.
    Quarantine,
    /// It may differ where the one in force cites the first rule and it cites the second.
    Rules(String, String),
    /// Each of these but [`Accept::Quarantine`].
    All,
}

impl fmt::Display for Accept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accept::Destroys => f.write_str("destroys"),
            Accept::Creates => f.write_str("creates"),
            Accept::Failures => f.write_str("failures"),
            Accept::History => f.write_str("history"),
            Accept::Quarantine => f.write_str("quarantine"),
            Accept::All => f.write_str("all"),
            Accept::Rules(from, to) => write!(f, "{from}->{to}"),
        }
    }
}

impl Accept {
    /// Whether one of these accepts a difference.
    pub fn covers(accepted: &[Accept], divergence: &Divergence) -> bool {
        accepted.iter().any(|accept| match accept {
            Accept::All => true,
            Accept::Destroys => divergence.direction == Direction::MoreDestroys,
            Accept::Creates => divergence.direction == Direction::MoreCreates,
            Accept::Failures => divergence.direction == Direction::MoreFailures,
            Accept::Rules(from, to) => *from == divergence.active.rule && *to == divergence.candidate.rule,
            Accept::History | Accept::Quarantine => false,
        })
    }

    /// Whether a difference refuses a candidate unless it is accepted.
    pub fn is_needed(divergence: &Divergence) -> bool {
        matches!(divergence.direction, Direction::MoreDestroys | Direction::MoreFailures)
    }
}

/// Why a candidate was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// By which stage.
    pub stage: Stage,
    /// What kind of reason.
    pub reason: Reason,
    /// In words.
    pub text: String,
    /// What would have to be accepted, all of it; empty where nothing helps.
    pub accept: Vec<Accept>,
}

/// Why a candidate was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It is no decider.
    Component,
    /// It speaks another contract.
    Contract,
    /// It was rolled back before.
    Quarantined,
    /// Another one is pinned.
    Pinned,
    /// History cannot judge it.
    History,
    /// It would destroy more.
    Divergence,
    /// It fails.
    Failing,
}

impl Reason {
    /// Its name.
    pub fn label(self) -> &'static str {
        match self {
            Reason::Component => "component",
            Reason::Contract => "contract",
            Reason::Quarantined => "quarantined",
            Reason::Pinned => "pinned",
            Reason::History => "history",
            Reason::Divergence => "divergence",
            Reason::Failing => "failing",
        }
    }
}

/// What speaks against a candidate after this was compared; `None` when nothing does that is not accepted.
pub(super) fn objection(stage: Stage, compared: &Compared, accepted: &[Accept]) -> Option<Refusal> {
    let needed = |one: &&Divergence| Accept::is_needed(one) && !Accept::covers(accepted, one);
    let refused: Vec<&Divergence> = compared.divergences.iter().filter(needed).collect();
    let of = |direction| refused.iter().filter(move |one| one.direction == direction).copied();
    let mut accept = Vec::new();
    let mut texts = Vec::new();
    if let Some(worst) = of(Direction::MoreDestroys).next() {
        let count: u64 = of(Direction::MoreDestroys).map(|one| one.decisions).sum();
        let Divergence { first, .. } = worst;
        let node = first.name.clone().or_else(|| first.node.map(|node| format!("node {node}"))).unwrap_or_default();
        texts.push(format!(
            "it would destroy what the decider in force would not, in {}; first {node}: {} {} instead of {} {}",
            step::text::counted(count, "decision"),
            worst.candidate.rule,
            worst.candidate.verb,
            worst.active.rule,
            worst.active.verb,
        ));
        accept.push(Accept::Destroys);
    }
    if let Some(worst) = of(Direction::MoreFailures).next() {
        let (class, detail) = (&worst.candidate.verb, &worst.first.candidate.reason);
        texts.push(format!("it fails in {} of {} passes: {class}: {detail}", compared.failed, compared.passes));
        accept.push(Accept::Failures);
    }
    let reason = if accept.contains(&Accept::Destroys) { Reason::Divergence } else { Reason::Failing };
    (!accept.is_empty()).then(|| Refusal { stage, reason, text: texts.join("; and "), accept })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use journal::{Cited, Example, Reasoned};

    use super::*;

    #[test]
    fn only_more_destruction_and_failures_are_refused() {
        let first = Example {
            at_ms: 1,
            seq: None,
            node: Some(4),
            name: None,
            attempt: None,
            facts: Vec::new(),
            active: Reasoned::default(),
            candidate: Reasoned { reason: "no fuel".into(), ..Reasoned::default() },
        };
        let one = |direction| Divergence {
            active: Cited { rule: "R11".into(), verb: "hold".into() },
            candidate: Cited { rule: "R4".into(), verb: "begin-delete".into() },
            direction,
            decisions: 2,
            slots: 1,
            first: first.clone(),
        };
        let mut found = Compared { passes: 5, failed: 1, ..Compared::default() };
        for direction in [
            Direction::FewerDestroys,
            Direction::FewerFailures,
            Direction::MoreCreates,
            Direction::FewerCreates,
            Direction::OtherAction,
            Direction::OtherWait,
            Direction::OtherRuleOnly,
        ] {
            found.divergences.push(one(direction));
        }
        let against = |found: &Compared, accepted: &[Accept]| objection(Stage::Shadow, found, accepted);
        assert_eq!(against(&found, &[]), None);
        found.divergences.insert(0, one(Direction::MoreDestroys));
        let refused = against(&found, &[Accept::Creates, Accept::History, Accept::Quarantine]).unwrap();
        assert!(refused.text.contains("node 4: R4 begin-delete instead of R11 hold"), "{}", refused.text);
        assert_eq!((refused.reason, &refused.accept[..]), (Reason::Divergence, &[Accept::Destroys][..]));
        for accepted in [Accept::Destroys, Accept::All, Accept::Rules("R11".into(), "R4".into())] {
            assert_eq!(against(&found, &[accepted]), None);
        }
        assert!(against(&found, &[Accept::Rules("R4".into(), "R11".into())]).is_some());
        let failing = Cited { rule: String::new(), verb: "out-of-fuel".into() };
        found.divergences.insert(0, Divergence { candidate: failing, ..one(Direction::MoreFailures) });
        let refused = against(&found, &[Accept::Destroys]).unwrap();
        assert_eq!(refused.text, "it fails in 1 of 5 passes: out-of-fuel: no fuel");
        assert_eq!((refused.reason, &refused.accept[..]), (Reason::Failing, &[Accept::Failures][..]));
        assert_eq!(against(&found, &[]).unwrap().accept, [Accept::Destroys, Accept::Failures]);
        assert_eq!(against(&found, &[Accept::All]), None);
    }
}
