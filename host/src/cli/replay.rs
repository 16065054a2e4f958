//! `homeostat replay`.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use ::decider::{Plan, Snapshot, Stage};
use ::journal::{Against, Contrast, Difference, Entry, Replay, ReplayError, Tendency, replay};
use ::step::text::counted;
use clap::{Args, ValueHint};
use engine::io::DeciderFailure;
use serde::Serialize;

use super::journal::{open_whole, unreadable};
use super::table::Table;
use super::{ExitCode, Failure, InputError, LimitArgs, Terminal, decider};
use crate::journal::KeptJournal;
use crate::registry::Registry;
use crate::sandbox::{self, Limits, LoadedDecider, Sandbox};

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The journal: a file, or a run's state directory.
    #[arg(value_hint = ValueHint::AnyPath)]
    pub journal: PathBuf,
    /// Ask this decider instead of the recorded one; `built-in` is the built-in decider.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub decider: Option<PathBuf>,
    /// What the decider may use.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Who is asked.
struct Judge {
    other: Option<LoadedDecider>,
    built_in: OnceCell<Result<LoadedDecider, Failure>>,
    /// What the state directory keeps, where it is one.
    registry: Option<Registry>,
    /// What was found there.
    kept: BTreeMap<String, Option<LoadedDecider>>,
    /// The first recorded decider that is not at hand.
    missing: Option<String>,
}

impl Judge {
    fn ask(&mut self, digest: &str, snapshot: &Snapshot) -> Result<Plan, DeciderFailure> {
        if let Some(other) = &self.other {
            return other.decide(snapshot);
        }
        if let Some(digest) = digest.strip_suffix(sim::OTHER) {
            // Simulated swaps bring one that numbers its rules the other way round.
            let mut plan = self.ask(digest, snapshot)?;
            sim::renumber(&mut plan, ::decider::ladder::RULES.len());
            return Ok(plan);
        }
        if digest == "native" {
            return Ok(::decider::reconcile(snapshot));
        }
        if digest == sandbox::digest(sandbox::BUILT_IN)
            && let Ok(built_in) = self.built_in.get_or_init(|| decider::load(None, &Limits::default()))
        {
            return built_in.decide(snapshot);
        }
        if let Some(registry) = &self.registry {
            let kept = self.kept.entry(digest.to_owned()).or_insert_with(|| registry.load(digest).ok());
            if let Some(kept) = kept {
                return kept.decide(snapshot);
            }
        }
        self.missing.get_or_insert_with(|| digest.to_owned());
        Err(DeciderFailure { decider: digest.into(), class: "missing".into(), detail: "not at hand".into() })
    }
}

pub(super) fn run(args: &ReplayArgs, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let path = &args.journal;
    // Cheap to refuse, before a component is compiled; and who recorded it.
    let first = open_whole(path)?.next_line().map_err(|error| unreadable(path, &error))?;
    let recorded = match first.map(|line| line.entry) {
        Some(Entry::Start(start)) => start.decider,
        _ => return Err(anyhow::anyhow!("{}: no start", path.display()).into()),
    };
    let other = match &args.decider {
        Some(file) => Some(decider::load((file.as_os_str() != "built-in").then_some(file), &args.limits.limits()?)?),
        None => None,
    };
    let against = other.as_ref().map_or(Against::Recorded, |other| Against::Other(other.identity()));
    let recorded = format!("{} {} ({})", recorded.name, recorded.version, recorded.digest);
    let asked = other.as_ref().map(|other| {
        let description = other.description();
        format!("{} {} ({})", description.name, description.version, other.digest())
    });
    let registry = match KeptJournal::folder(path) {
        Some(state) => {
            let sandbox = Sandbox::new(args.limits.limits()?).map_err(anyhow::Error::from)?;
            Some(Registry::look(&state, sandbox))
        }
        None => None,
    };
    let mut judge = Judge { other, built_in: OnceCell::new(), registry, kept: BTreeMap::new(), missing: None };
    let replayed = replay(&mut open_whole(path)?, &against, |digest, snapshot| judge.ask(digest, snapshot));
    if let Some(Err(failure)) = judge.built_in.take() {
        return Err(failure);
    }
    if let Some(digest) = judge.missing {
        let message = format!(
            "it was decided by {digest}, which is not at hand: give its component with --decider, or compare with the built-in \
             one: --decider built-in"
        );
        return Err(InputError { message, file: Some(path.display().to_string()), ..InputError::default() }.into());
    }
    let found = match replayed {
        Ok(found) => found,
        Err(ReplayError::Read(error)) => return Err(unreadable(path, &error)),
        Err(ReplayError::Engine { seq, mismatch }) => {
            let words = format!("record {seq}: {mismatch}");
            return engine_differs(args, &words, terminal);
        }
    };
    if found.torn_bytes > 0 {
        terminal.warn(&format!("the last {} bytes are a record that is not finished; left out", found.torn_bytes));
    }
    let report = Report { file: path.display().to_string(), recorded, asked, found };
    match terminal.is_json() {
        true => terminal.print_json(&report.json())?,
        false => terminal.print(&report.text(terminal))?,
    }
    Ok(if report.found.contrast.is_same() { ExitCode::Ok } else { ExitCode::Diverged })
}

/// The decider is not even asked: this program's engine folds the history to something else.
fn engine_differs(args: &ReplayArgs, words: &str, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let file = args.journal.display().to_string();
    match terminal.is_json() {
        true => terminal.print_json(&serde_json::json!({
            "schema": "homeostat.replay/v1", "file": file, "same": false, "engine": words,
        }))?,
        false => terminal.print(&format!(
            "{file}: the engine of this program does not follow it\n{words}\nAnother version of the engine wrote it, or no host did."
        ))?,
    }
    Ok(ExitCode::Diverged)
}

struct Report {
    file: String,
    recorded: String,
    asked: Option<String>,
    found: Replay,
}

#[derive(Serialize)]
struct Replayed<'a> {
    schema: &'static str,
    file: &'a str,
    same: bool,
    recorded_decider: &'a str,
    asked_decider: &'a str,
    records: u64,
    runs: u64,
    inputs: u64,
    dispatches: u64,
    passes: u64,
    differing_passes: u64,
    decisions: u64,
    differing_decisions: u64,
    unrepeatable_failures: u64,
    simulated_answers: u64,
    recorded: Totals,
    asked: Totals,
    groups: Vec<GroupJson>,
    /// At most the first thousand.
    differences: Vec<DifferenceJson<'a>>,
}

#[derive(Serialize)]
struct Totals {
    creates: u64,
    destroys: u64,
    others: u64,
    holds: u64,
    failures: u64,
}

#[derive(Serialize)]
struct GroupJson {
    recorded: String,
    asked: String,
    direction: &'static str,
    count: u64,
    nodes: u64,
    first_record: u64,
}

#[derive(Serialize)]
struct DifferenceJson<'a> {
    record: u64,
    at_ms: u64,
    call: u64,
    asked_ms: u64,
    node: Option<&'a str>,
    attempt: Option<u64>,
    stage: Option<&'static str>,
    fields: Vec<FieldJson<'a>>,
}

#[derive(Serialize)]
struct FieldJson<'a> {
    field: &'static str,
    recorded: &'a str,
    asked: &'a str,
}

fn totals(tendency: &Tendency) -> Totals {
    let Tendency { creates, destroys, others, holds, failures } = *tendency;
    Totals { creates, destroys, others, holds, failures }
}

fn stage(difference: &Difference) -> Option<&'static str> {
    difference.node.map(|node| Stage::from_code(node.stage).map_or("?", Stage::label))
}

impl Report {
    fn asked(&self) -> &str {
        self.asked.as_deref().unwrap_or(&self.recorded)
    }

    fn json(&self) -> Replayed<'_> {
        let contrast = &self.found.contrast;
        let groups = contrast.groups().into_iter().map(|group| GroupJson {
            recorded: group.recorded,
            asked: group.other,
            direction: group.leaning.label(),
            count: group.decisions,
            nodes: group.slots,
            first_record: group.first_seq,
        });
        let differences = contrast.differences.iter().map(|one| DifferenceJson {
            record: one.seq,
            at_ms: one.at_ms,
            call: one.call,
            asked_ms: one.asked_ms,
            node: one.name.as_deref(),
            attempt: one.node.map(|node| node.attempt),
            stage: stage(one),
            fields: one
                .fields
                .iter()
                .map(|field| FieldJson { field: field.field, recorded: &field.recorded, asked: &field.other })
                .collect(),
        });
        Replayed {
            schema: "homeostat.replay/v1",
            file: &self.file,
            same: contrast.is_same(),
            recorded_decider: &self.recorded,
            asked_decider: self.asked(),
            records: self.found.records,
            runs: self.found.starts,
            inputs: self.found.inputs,
            dispatches: self.found.dispatches,
            passes: contrast.passes,
            differing_passes: contrast.differing_passes,
            decisions: contrast.decisions,
            differing_decisions: contrast.differing_decisions,
            unrepeatable_failures: contrast.unrepeatable,
            simulated_answers: self.found.simulated_answers,
            recorded: totals(&contrast.recorded),
            asked: totals(&contrast.other),
            groups: groups.collect(),
            differences: differences.collect(),
        }
    }

    fn text(&self, terminal: &Terminal) -> String {
        let Report { file, found, .. } = self;
        let contrast = &found.contrast;
        let mut text = match contrast.is_same() {
            true => format!(
                "{file}: the same: {}, {}, {}\n",
                passes(contrast.passes),
                counted(contrast.decisions, "decision"),
                dispatches(found.dispatches)
            ),
            false => format!(
                "{file}: {} of {} differ{}\n",
                contrast.differing_passes,
                passes(contrast.passes),
                match contrast.decisions {
                    0 => ", and no decision is there to be compared".into(),
                    all => format!(", {} of {}", contrast.differing_decisions, counted(all, "decision")),
                }
            ),
        };
        text.push_str(&format!("recorded  {}\n", self.recorded));
        if self.asked.is_some() {
            text.push_str(&format!("asked     {}\n", self.asked()));
        }
        if found.simulated_answers > 0 {
            let what = passes(found.simulated_answers);
            text.push_str(&format!("{what} answered by a simulated fault in the decider's place; not compared\n"));
        }
        if contrast.unrepeatable > 0 {
            let what = passes(contrast.unrepeatable);
            text.push_str(&format!("{what} failed for want of time or room on that machine; not compared\n"));
        }
        if let Some(first) = contrast.differences.first() {
            text.push_str(&differing(first, contrast, terminal));
        }
        text
    }
}

fn differing(first: &Difference, contrast: &Contrast, terminal: &Terminal) -> String {
    let whose = match (&first.name, first.node) {
        (Some(name), Some(node)) => {
            format!("{name} a{} in stage {}", node.attempt, stage(first).unwrap_or("?"))
        }
        (None, Some(node)) => format!("node {}", node.node),
        (_, None) => "the pass as a whole".into(),
    };
    let mut fields = Table::new(&["field", "recorded", "asked"]);
    for field in &first.fields {
        fields.push([field.field.into(), field.recorded.clone(), field.other.clone()]);
    }
    let mut groups = Table::new(&["recorded", "asked", "times", "nodes", "first in record", "direction"]);
    for group in contrast.groups() {
        groups.push([
            group.recorded,
            group.other,
            group.decisions.to_string(),
            if group.slots == 0 { "-".into() } else { group.slots.to_string() },
            group.first_seq.to_string(),
            group.leaning.label().into(),
        ]);
    }
    let mut all = Table::new(&["in all", "creates", "destroys", "other steps", "holds", "failed passes"]);
    for (name, t) in [("recorded", contrast.recorded), ("asked", contrast.other)] {
        let numbers = [t.creates, t.destroys, t.others, t.holds, t.failures];
        all.push([name.to_owned()].into_iter().chain(numbers.iter().map(u64::to_string)));
    }
    let style = terminal.style();
    format!(
        "\nfirst: record {}, call {}, now {} ms: {whose}\n{}\nall, by what was recorded\n{}\n{}",
        first.seq,
        first.call,
        first.asked_ms,
        fields.render(&style),
        groups.render(&style),
        all.render(&style)
    )
}

fn passes(number: u64) -> String {
    if number == 1 { "1 pass".into() } else { format!("{number} passes") }
}

fn dispatches(number: u64) -> String {
    if number == 1 { "1 dispatch".into() } else { format!("{number} dispatches") }
}
