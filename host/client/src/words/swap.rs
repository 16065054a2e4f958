//! A swap: its stages as they go, what they found, and what would accept it.

use api::wire::{
    Accept, Direction, Divergence, ExampleDecision, Report, StageName, StageState, Step, Swap, SwapDetail, SwapKind,
    SwapStage, SwapVerdict, Tally,
};
use step::text::{counted, escape, lasting, time_of_day};

use super::decider::{decider_name, extent, passes};
use super::table::{Table, Tint};
use super::text::{Pen, ago, until};

/// What it is, in a word.
pub(crate) fn swap_word(swap: &Swap) -> &'static str {
    match swap.kind {
        SwapKind::Swap => "swap",
        SwapKind::Shadow => "shadow",
        SwapKind::Rollback => "rollback",
    }
}

/// Where it stands, in a line.
pub fn swap_line(swap: &Swap) -> String {
    let candidate = decider_name(&swap.decider);
    let at = swap.stages.iter().find(|stage| stage.state == StageState::Running);
    match (swap.verdict, at) {
        (Some(verdict), Some(stage)) if swap.ended_ms.is_none() => {
            format!("{candidate}: {}, {}: {}", verdict.label(), stage.stage.label(), stage_found(stage))
        }
        (Some(verdict), _) => format!("{candidate}: {}: {}", verdict.label(), swap.text),
        (None, Some(stage)) => format!("{candidate}: {}: {}", stage.stage.label(), stage_found(stage)),
        (None, None) => format!("{candidate}: {}", swap.text),
    }
}

fn stage_found(stage: &SwapStage) -> String {
    match (&stage.tally, stage.text.is_empty()) {
        (Some(tally), true) => tally_words(tally),
        (_, _) => stage.text.clone(),
    }
}

/// What was compared.
pub fn tally_words(tally: &Tally) -> String {
    let mut words = passes(tally.passes);
    match (tally.passes, tally.differing, tally.failed) {
        (0, 0, 0) => {}
        (_, 0, 0) => words.push_str(", all equal"),
        (_, differing, failed) => {
            words.push_str(&format!(", {} equal", tally.equal));
            if differing > 0 {
                let of = counted(tally.differing_decisions, "decision");
                words.push_str(&format!(", {differing} with other plans ({of})"));
            }
            if failed > 0 {
                words.push_str(&format!(", {failed} without a plan"));
            }
        }
    }
    if tally.skipped > 0 {
        words.push_str(&format!("; {} not asked, because it was busy", tally.skipped));
    }
    words
}

/// A stage that began or ended, in a line.
pub fn stage_line(stage: &SwapStage, now_ms: u64) -> String {
    let took = match (stage.started_ms, stage.ended_ms) {
        (Some(from), Some(to)) => format!(" ({})", lasting(to.saturating_sub(from))),
        _ => String::new(),
    };
    let mut found = stage_found(stage);
    if stage.state == StageState::Running {
        found = stage.until_ms.map_or(found, |at| format!("ends {}", until(at, now_ms)));
    }
    let state = match stage.state {
        StageState::Waiting => "waiting",
        StageState::Running => "runs",
        StageState::Passed => "passed",
        StageState::Skipped => "skipped",
        StageState::Refused => "refused",
        StageState::Failed => "failed",
        StageState::Cancelled if stage.started_ms.is_none() => "not reached",
        StageState::Cancelled => "cancelled",
    };
    let colon = if found.is_empty() { "" } else { ": " };
    format!("{:<7} {state}{took}{colon}{found}", stage.stage.label())
}

/// All that is known of one.
pub fn swap(detail: &SwapDetail, pen: &Pen) -> String {
    let of = &detail.swap;
    let mut text = format!("{}  {}\n", pen.bold(swap_word(of)), escape(&of.id));
    pen.field(&mut text, "candidate", &decider_name(&of.decider));
    pen.field(&mut text, "beside", &decider_name(&of.from));
    pen.field(&mut text, "asked for", &time_of_day(of.asked_ms));
    for stage in &of.stages {
        let line = escape(&stage_line(stage, pen.now_ms));
        text.push_str(&format!("  {}\n", tinted(stage.state, &line, pen)));
    }
    if let Some(verdict) = of.verdict {
        pen.field(&mut text, "verdict", &format!("{}: {}", verdict.label(), of.text));
    }
    text.push_str(&reports(&detail.reports, pen));
    text
}

fn tinted(state: StageState, line: &str, pen: &Pen) -> String {
    match state {
        StageState::Passed => pen.green(line),
        StageState::Running => pen.yellow(line),
        StageState::Refused | StageState::Failed => pen.red(line),
        StageState::Waiting | StageState::Skipped | StageState::Cancelled => pen.dim(line),
    }
}

/// Many, a line each.
pub fn swaps(all: &[Swap], pen: &Pen) -> String {
    let mut table = Table::new(&["ID", "ASKED", "WHAT", "CANDIDATE", "VERDICT", "FOUND"]).spare(&[1]);
    for swap in all {
        let tint = match swap.verdict {
            Some(SwapVerdict::Switched) => Tint::Good,
            Some(SwapVerdict::Refused | SwapVerdict::RolledBack | SwapVerdict::Failed) => Tint::Bad,
            Some(SwapVerdict::Cancelled | SwapVerdict::Superseded) => Tint::Dim,
            None => Tint::Busy,
        };
        let at = swap.stages.iter().find(|stage| stage.state == StageState::Running);
        let (verdict, found) = match (swap.verdict, at) {
            (Some(verdict), _) => (verdict.label(), swap.text.clone()),
            (None, Some(stage)) => (stage.stage.label(), stage_found(stage)),
            (None, None) => ("waiting", swap.text.clone()),
        };
        table.push_tinted([
            (swap.id.clone(), None),
            (ago(swap.asked_ms, pen.now_ms), None),
            (swap_word(swap).to_owned(), None),
            (decider_name(&swap.decider), None),
            (verdict.to_owned(), Some(tint)),
            (found, None),
        ]);
    }
    table.render(pen)
}

/// What the stages that compare found.
pub fn reports(all: &[Report], pen: &Pen) -> String {
    let mut text = String::new();
    for report in all {
        text.push_str(&format!("\n{}: {}\n", pen.bold(report.stage.label()), tally_words(&report.tally)));
        text.push_str(&divergences(&report.divergences, report.more, pen));
    }
    text
}

/// Differences by kind, each with its first example.
fn divergences(all: &[Divergence], more: u64, pen: &Pen) -> String {
    let mut text = String::new();
    for divergence in all {
        let sign = if divergence.refused { "!" } else { " " };
        let accepted = if divergence.accepted { ", accepted" } else { "" };
        let line = format!(
            "{sign} {:<15}  {} -> {}  {}{accepted}",
            divergence.direction.label(),
            step(&divergence.active),
            step(&divergence.candidate),
            extent(divergence.decisions, divergence.nodes),
        );
        let line = escape(&line);
        let line = match (divergence.refused, divergence.direction) {
            (true, _) => pen.red(&line),
            (false, Direction::OtherRuleOnly | Direction::OtherWait) => pen.dim(&line),
            (false, _) => pen.yellow(&line),
        };
        text.push_str(&format!("{line}\n"));
        let Some(example) = &divergence.example else { continue };
        let node = match (&example.node, example.attempt) {
            (Some(node), Some(attempt)) => format!(" {node} a{attempt}"),
            (Some(node), None) => format!(" {node}"),
            (None, _) => String::new(),
        };
        let facts: Vec<String> = example.facts.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let facts = if facts.is_empty() { String::new() } else { format!(" [{}]", facts.join(", ")) };
        let first = format!("    first {}{node}{facts}", time_of_day(example.at_ms));
        text.push_str(&format!("{}\n", pen.dim(&escape(&first))));
        for (whose, decision) in [("active", &example.active), ("candidate", &example.candidate)] {
            let line = format!("      {whose:<9}  {}", decision_words(decision));
            text.push_str(&format!("{}\n", pen.dim(&escape(&line))));
        }
    }
    if more > 0 {
        text.push_str(&format!("  and {more} kinds more\n"));
    }
    text
}

fn step(of: &Step) -> String {
    match (of.rule.is_empty(), of.verb.is_empty()) {
        (true, true) => "nothing".into(),
        (true, false) => of.verb.clone(),
        _ => format!("{} {}", of.rule, of.verb),
    }
}

fn decision_words(decision: &ExampleDecision) -> String {
    let mut words = step(&decision.step);
    if !decision.reason.is_empty() {
        words.push_str(&format!(": {}", decision.reason));
    }
    if !decision.waits_for.is_empty() {
        words.push_str(&format!("; waits for {}", decision.waits_for));
    }
    if let Some(at) = decision.until_ms {
        words.push_str(&format!(", until {}", time_of_day(at)));
    }
    words
}

/// Whether the candidate is watched yet, and until when.
fn watched(detail: &SwapDetail) -> String {
    let is_watch = |stage: &&SwapStage| stage.stage == StageName::Watch;
    match detail.swap.stages.iter().find(is_watch).map(|stage| (stage.state, stage.until_ms)) {
        Some((StageState::Running, Some(until))) => format!(", and watched until {}", time_of_day(until)),
        Some((StageState::Running | StageState::Waiting, _)) => {
            format!(", and watched for {}", lasting(detail.terms.watch_ms))
        }
        _ => String::new(),
    }
}

/// How it came out, for the last line, and what a person can do.
pub fn verdict(detail: &SwapDetail) -> String {
    let of = &detail.swap;
    let candidate = decider_name(&of.decider);
    let mut text = match of.verdict {
        Some(SwapVerdict::Switched) => format!("switched: {candidate} is in force{}", watched(detail)),
        Some(SwapVerdict::RolledBack) => {
            format!("rolled back: {}; {} is in force again", of.text, decider_name(&of.from))
        }
        Some(verdict) => format!("{}: {}; {} stays in force", verdict.label(), of.text, decider_name(&of.from)),
        None => format!("goes on: {}", of.text),
    };
    if let Some(refusal) = detail.refusal.as_ref().filter(|refusal| !refusal.accept.is_empty()) {
        let flags: Vec<String> = refusal.accept.iter().map(flag).collect();
        text.push_str(&format!("\nto accept it: {}", flags.join(" ")));
    }
    text
}

/// As a shell takes it, whatever a decider calls its rules.
fn flag(accept: &Accept) -> String {
    format!("--accept-divergence '{}'", accept.to_string().replace('\'', "'\\''"))
}
