//! Swaps on the wire: the wire stays as it is when the library changes.

use api::wire::{
    Direction, Divergence, DivergenceExample, ExampleDecision, Report, StageName, StageState, Step, Swap, SwapDetail,
    SwapKind, SwapRefusal, SwapStage, SwapVerdict, Tally,
};
use journal::Reasoned;

use super::convert;
use super::deciders::{known, reference};
use crate::registry::{Document, Outcome, Wished};
use crate::swap::{Accept, Compared, Purpose, Stage, StageReport, StageStatus, SwapReport};

/// How a swap came out; none while it is being judged.
pub(super) fn verdict(outcome: Outcome) -> Option<SwapVerdict> {
    Some(match outcome {
        Outcome::Watching | Outcome::Switched => SwapVerdict::Switched,
        Outcome::RolledBack => SwapVerdict::RolledBack,
        Outcome::Refused => SwapVerdict::Refused,
        Outcome::Superseded => SwapVerdict::Superseded,
        // A shadow ends when somebody says so.
        Outcome::Cancelled | Outcome::Shadowed => SwapVerdict::Cancelled,
        Outcome::Failed | Outcome::Interrupted => SwapVerdict::Failed,
    })
}

/// One of this start.
pub(super) fn swap(report: &SwapReport) -> Swap {
    Swap {
        id: report.id.clone(),
        kind: match report.purpose {
            Purpose::Swap => SwapKind::Swap,
            Purpose::Shadow => SwapKind::Shadow,
            Purpose::Rollback => SwapKind::Rollback,
        },
        revision: report.revision,
        decider: reference(&report.candidate),
        from: reference(&report.active),
        asked_ms: report.asked_ms,
        ended_ms: report.ended_ms,
        verdict: report.outcome.and_then(verdict),
        text: report.text.clone(),
        stages: report.stages.iter().map(stage).collect(),
    }
}

/// One of an earlier start: what it found is in the journal.
pub(super) fn remembered(wished: &Wished, document: &Document) -> Swap {
    Swap {
        id: wished.by.clone().unwrap_or_else(|| format!("wish-{}", wished.revision)),
        revision: wished.revision,
        decider: known(document, &wished.digest),
        asked_ms: wished.at_ms,
        ended_ms: wished.ended_ms.filter(|_| wished.outcome != Some(Outcome::Watching)),
        verdict: wished.outcome.and_then(verdict),
        text: wished.text.clone(),
        ..Swap::default()
    }
}

/// With all that it found.
pub(super) fn detail(report: &SwapReport) -> SwapDetail {
    let found = report.stages.iter().filter_map(|stage| Some((stage, stage.compared.as_ref()?)));
    SwapDetail {
        schema: "homeostat.swap/v1".into(),
        now_ms: 0,
        swap: swap(report),
        terms: convert::swap_terms(&report.terms),
        reports: found.map(|(stage, compared)| self::report(stage.stage, compared, &report.terms.accept)).collect(),
        refusal: report.refusal.as_ref().map(|refusal| SwapRefusal {
            stage: stage_name(refusal.stage),
            reason: refusal.reason.label().into(),
            text: refusal.text.clone(),
            accept: refusal.accept.iter().map(convert::accepted).collect(),
        }),
    }
}

fn stage(report: &StageReport) -> SwapStage {
    SwapStage {
        stage: stage_name(report.stage),
        state: match report.status {
            StageStatus::Waiting => StageState::Waiting,
            StageStatus::Running => StageState::Running,
            StageStatus::Passed => StageState::Passed,
            StageStatus::Skipped => StageState::Skipped,
            StageStatus::Refused => StageState::Refused,
            StageStatus::Failed => StageState::Failed,
            StageStatus::Cancelled => StageState::Cancelled,
        },
        started_ms: report.began_ms,
        ended_ms: report.ended_ms,
        until_ms: report.until_ms,
        text: report.text.clone(),
        tally: report.compared.as_ref().map(tally),
    }
}

fn stage_name(stage: Stage) -> StageName {
    match stage {
        Stage::Check => StageName::Check,
        Stage::Replay => StageName::Replay,
        Stage::Shadow => StageName::Shadow,
        Stage::Switch => StageName::Switch,
        Stage::Watch => StageName::Watch,
    }
}

fn tally(compared: &Compared) -> Tally {
    Tally {
        passes: compared.passes,
        equal: compared.equal,
        differing: compared.passes.saturating_sub(compared.equal + compared.failed),
        failed: compared.failed,
        skipped: compared.skipped,
        decisions: compared.decisions,
        differing_decisions: compared.differing_decisions,
    }
}

fn report(stage: Stage, compared: &Compared, accepted: &[Accept]) -> Report {
    Report {
        stage: stage_name(stage),
        tally: tally(compared),
        from_ms: compared.from_ms,
        to_ms: compared.to_ms,
        divergences: compared.divergences.iter().map(|one| divergence(one, accepted)).collect(),
        more: compared.more_kinds,
    }
}

fn divergence(one: &journal::Divergence, accepted: &[Accept]) -> Divergence {
    let step = |of: &journal::Cited| Step { rule: of.rule.clone(), verb: of.verb.clone() };
    let (needed, covered) = (Accept::is_needed(one), Accept::covers(accepted, one));
    Divergence {
        active: step(&one.active),
        candidate: step(&one.candidate),
        direction: direction(one.direction),
        decisions: one.decisions,
        nodes: one.slots,
        refused: needed && !covered,
        accepted: needed && covered,
        example: Some(DivergenceExample {
            at_ms: one.first.at_ms,
            seq: one.first.seq,
            node: one.first.name.clone().or_else(|| one.first.node.map(|node| format!("node {node}"))),
            attempt: one.first.attempt.filter(|attempt| *attempt != 0),
            active: decision(&one.first.active),
            candidate: decision(&one.first.candidate),
            facts: one.first.facts.clone(),
        }),
    }
}

fn direction(direction: journal::Direction) -> Direction {
    use journal::Direction as Of;
    match direction {
        Of::MoreFailures => Direction::MoreFailures,
        Of::MoreDestroys => Direction::MoreDestroys,
        Of::FewerDestroys => Direction::FewerDestroys,
        Of::MoreCreates => Direction::MoreCreates,
        Of::FewerCreates => Direction::FewerCreates,
        Of::FewerFailures => Direction::FewerFailures,
        Of::OtherAction => Direction::OtherAction,
        Of::OtherWait => Direction::OtherWait,
        Of::OtherRuleOnly => Direction::OtherRuleOnly,
    }
}

fn decision(of: &Reasoned) -> ExampleDecision {
    ExampleDecision {
        step: Step { rule: of.rule.clone(), verb: of.verb.clone() },
        reason: of.reason.clone(),
        waits_for: of.waits_for.clone(),
        until_ms: of.until_ms,
    }
}
