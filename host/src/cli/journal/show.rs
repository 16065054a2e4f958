//! `homeostat journal show`.

use std::path::PathBuf;

use ::journal::{Answer, Entry, Line, RecordedInput};
use ::step::text::{lasting, since};
use ::step::{Trail, verb};
use clap::{Args, ValueHint};
use decider::{DecisionRow, HoldKind, Plan, Verb};
use engine::id::AttemptId;
use engine::io::Listing;
use serde::Serialize;

use super::super::{Failure, Terminal};
use super::{open, unreadable};
use crate::fleet::{cut, escape};

/// Arguments of `journal show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The journal: a file, or a run's state directory.
    #[arg(value_hint = ValueHint::AnyPath)]
    pub file: PathBuf,
    /// Only what is about this node, over all of its attempts.
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
    /// From this record on.
    #[arg(long, value_name = "RECORD", default_value_t = 0, hide_default_value = true)]
    pub from: u64,
}

#[derive(Serialize)]
struct Shown<'a> {
    schema: &'static str,
    record: u64,
    at_ms: u64,
    hash: String,
    #[serde(flatten)]
    entry: &'a Entry,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    decisions: Vec<Decided>,
}

#[derive(Serialize)]
struct Decided {
    node: String,
    attempt: u64,
    rule: String,
    verb: &'static str,
    hold: Option<&'static str>,
    until_ms: Option<u64>,
}

pub(super) fn run(args: &ShowArgs, terminal: &Terminal) -> Result<(), Failure> {
    let mut reader = open(&args.file)?;
    let mut show = Show { node: args.node.as_deref(), ..Show::default() };
    let mut lost = None;
    let mut seen = 0;
    while let Some(line) = reader.next_line().map_err(|error| unreadable(&args.file, &error))? {
        if let Err(mismatch) = show.follow(&line) {
            lost.get_or_insert((line.seq, mismatch));
        }
        if line.seq < args.from || !show.concerns(&line) {
            continue;
        }
        let text = match terminal.is_json() {
            true => serde_json::to_string(&show.json(&line)).map_err(anyhow::Error::from)?,
            false => show.text(&line),
        };
        if !text.is_empty() {
            seen += u64::from(!is_about_all(&line.entry));
            terminal.print(&text)?;
        }
    }
    if let Some((seq, mismatch)) = lost {
        terminal.warn(&format!("record {seq}: {mismatch}; from there on nodes are shown by number"));
    }
    if reader.torn_bytes() > 0 {
        terminal.warn(&format!("the last {} bytes are a record that is not finished", reader.torn_bytes()));
    }
    match &args.node {
        Some(node) if seen == 0 => {
            Err(anyhow::anyhow!("{}: nothing about a node {node:?}", args.file.display()).into())
        }
        _ => Ok(()),
    }
}

/// What is shown whichever node is asked for.
fn is_about_all(entry: &Entry) -> bool {
    match entry {
        Entry::Start(_) | Entry::End | Entry::Swap(_) | Entry::Pass { answer: Answer::Failure(_), .. } => true,
        Entry::Input { of, .. } => matches!(of, RecordedInput::Restarted | RecordedInput::DeciderChanged(_)),
        _ => false,
    }
}

#[derive(Default)]
struct Show<'a> {
    /// Gives the names, as far as the engine can follow.
    trail: Trail,
    node: Option<&'a str>,
    shown_ms: Option<u64>,
    /// The last hold that was shown of the one node.
    held: Option<(u8, u8, u64)>,
}

impl Show<'_> {
    fn follow(&mut self, line: &Line) -> Result<(), ::journal::Mismatch> {
        if matches!(line.entry, Entry::Start(_)) {
            self.shown_ms = None;
        }
        self.trail.follow(line).map(drop)
    }

    /// Whether it is about the one node that is asked for.
    fn concerns(&self, line: &Line) -> bool {
        let Some(node) = self.node else { return true };
        let listed = |listing: &Listing| {
            listing.resources.iter().any(|resource| resource.key.as_ref().is_some_and(|key| key.slot == node))
        };
        let of = |attempt: AttemptId| self.trail.words().slot_of(attempt).is_some_and(|slot| slot == node);
        match &line.entry {
            Entry::Pass { answer: Answer::Plan(plan), .. } => {
                plan.decisions.rows().any(|row| self.trail.words().slot(row.node) == node)
            }
            Entry::Start(_) | Entry::End | Entry::Swap(_) | Entry::Pass { .. } => true,
            Entry::Dispatch { key, .. } => key.slot == node,
            Entry::Reserved { .. } | Entry::Order { .. } => false,
            Entry::Input { of: input, .. } => match input {
                RecordedInput::Desired(shape) => shape
                    .groups
                    .iter()
                    .any(|group| node.strip_prefix(group.id.as_str()).is_some_and(|rest| rest.starts_with('-'))),
                RecordedInput::Completed { id, .. } | RecordedInput::Answered { id, .. } => of(id.attempt),
                RecordedInput::Observed { attempt, .. } => of(*attempt),
                RecordedInput::Listed { listing, .. }
                | RecordedInput::Adopt { listing, .. }
                | RecordedInput::Surveyed { listing, .. } => listed(listing),
                RecordedInput::DeciderChanged(_) | RecordedInput::Restarted | RecordedInput::Command(_) => true,
                RecordedInput::PolicyChanged(_) | RecordedInput::Tick | RecordedInput::Resync => false,
            },
        }
    }

    fn json<'b>(&self, line: &'b Line) -> Shown<'b> {
        let decisions = match &line.entry {
            Entry::Pass { answer: Answer::Plan(plan), .. } => {
                plan.decisions.rows().map(|row| self.decided(&row)).collect()
            }
            _ => Vec::new(),
        };
        let wanted = |decided: &Decided| self.node.is_none_or(|node| decided.node == node);
        Shown {
            schema: "homeostat.journal-record/v1",
            record: line.seq,
            at_ms: line.at_ms,
            hash: line.hash.to_string(),
            entry: &line.entry,
            decisions: decisions.into_iter().filter(wanted).collect(),
        }
    }

    fn decided(&self, row: &DecisionRow) -> Decided {
        Decided {
            node: self.trail.words().slot(row.node),
            attempt: row.attempt,
            rule: self.trail.words().rule(row.rule),
            verb: verb(row.verb),
            hold: HoldKind::from_code(row.hold).map(HoldKind::label),
            until_ms: (row.until > 0).then_some(row.until),
        }
    }

    /// One record; empty when there is nothing to say.
    fn text(&mut self, line: &Line) -> String {
        let words = match (&line.entry, self.node) {
            (Entry::Pass { answer: Answer::Plan(plan), .. }, Some(node)) => match self.plan(plan, node, line.at_ms) {
                Some(decided) => self.trail.words().pass(&line.entry, &decided),
                None => return String::new(),
            },
            (entry, _) => self.trail.words().record(entry, line.at_ms),
        };
        let since = since(self.trail.started_ms(), line.at_ms);
        // The same instant is shown once.
        let time = if self.shown_ms == Some(line.at_ms) { String::new() } else { since };
        self.shown_ms = Some(line.at_ms);
        format!("{:>6} {time:>10}  {}", line.seq, escape(&cut(&words, 600)))
    }

    /// What was decided about one node, and why it holds, when that changed. `None`: nothing to show.
    fn plan(&mut self, plan: &Plan, node: &str, now_ms: u64) -> Option<String> {
        let words = self.trail.words();
        let row = plan.decisions.rows().find(|row| words.slot(row.node) == node)?;
        let (rule, a) = (words.rule(row.rule), AttemptId(row.attempt));
        if row.verb != Verb::Hold.code() {
            self.held = None;
            return Some(format!("{rule} {} {a}", verb(row.verb)));
        }
        let held = Some((row.rule, row.hold, row.until));
        if held == std::mem::replace(&mut self.held, held) {
            return None;
        }
        let what = HoldKind::from_code(row.hold).map_or("?", HoldKind::label);
        let until = match row.until.checked_sub(now_ms) {
            Some(left) if row.until > 0 => format!(", for {} at most", lasting(left)),
            _ => String::new(),
        };
        Some(format!("{rule} {a} holds: {what}{until}"))
    }
}
