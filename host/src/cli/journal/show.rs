//! `homeostat journal show`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use ::journal::{Answer, Entry, Line, RecordedInput, Walk};
use clap::{Args, ValueHint};
use decider::{DecisionRow, HoldKind, Plan, Rule, Verb};
use engine::id::AttemptId;
use engine::io::{Done, Listing, Observation, OperationStatus};
use serde::Serialize;

use super::super::validate::counted;
use super::super::{Failure, Terminal};
use super::text::{short, since, time_of_day};
use super::{open, unreadable};
use crate::fleet::{cut, escape};
use crate::view::lasting;

/// Arguments of `journal show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The journal.
    #[arg(value_hint = ValueHint::FilePath)]
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
    let mut show = Show { walk: Some(Walk::new()), node: args.node.as_deref(), ..Show::default() };
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
            seen += u64::from(!matches!(line.entry, Entry::Start(_) | Entry::End));
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

#[derive(Default)]
struct Show<'a> {
    /// Gives the names; `None` once the engine could not follow.
    walk: Option<Walk>,
    node: Option<&'a str>,
    rules: Vec<Rule>,
    started_ms: u64,
    shown_ms: Option<u64>,
    /// The last hold that was shown of the one node.
    held: Option<(u8, u8, u64)>,
}

impl Show<'_> {
    fn follow(&mut self, line: &Line) -> Result<(), ::journal::Mismatch> {
        let followed = match &mut self.walk {
            Some(walk) => walk.follow(line).map(drop),
            None => Ok(()),
        };
        match &line.entry {
            Entry::Start(start) => {
                // A new driver, a new chance.
                if self.walk.is_none() {
                    let mut walk = Walk::new();
                    self.walk = walk.follow(line).is_ok().then_some(walk);
                }
                self.rules.clone_from(&start.decider.rules);
                (self.started_ms, self.shown_ms) = (line.at_ms, None);
            }
            Entry::Input { of: RecordedInput::DeciderChanged(identity), .. } => self.rules.clone_from(&identity.rules),
            _ => {}
        }
        if followed.is_err() {
            self.walk = None;
        }
        followed
    }

    fn slot(&self, node: u32) -> String {
        let driver = self.walk.as_ref().and_then(Walk::driver);
        let slot = driver.and_then(|driver| driver.state().slots.get(node as usize));
        slot.map_or_else(|| format!("#{node}"), |slot| slot.name.clone())
    }

    fn slot_of(&self, attempt: AttemptId) -> Option<String> {
        let state = self.walk.as_ref()?.driver()?.state();
        Some(state.slot(state.attempts.get(&attempt)?.node)?.name.clone())
    }

    /// `web-0 a3`, or `a3`.
    fn who(&self, attempt: AttemptId) -> String {
        self.slot_of(attempt).map_or_else(|| attempt.to_string(), |slot| format!("{slot} {attempt}"))
    }

    /// Whether it is about the one node that is asked for.
    fn concerns(&self, line: &Line) -> bool {
        let Some(node) = self.node else { return true };
        let listed = |listing: &Listing| {
            listing.resources.iter().any(|resource| resource.key.as_ref().is_some_and(|key| key.slot == node))
        };
        let of = |attempt: AttemptId| self.slot_of(attempt).is_some_and(|slot| slot == node);
        match &line.entry {
            Entry::Start(_) | Entry::End | Entry::Pass { .. } => true,
            Entry::Dispatch { key, .. } => key.slot == node,
            Entry::Reserved { .. } => false,
            Entry::Input { of: input, .. } => match input {
                RecordedInput::Desired(shape) => shape
                    .groups
                    .iter()
                    .any(|group| node.strip_prefix(group.id.as_str()).is_some_and(|rest| rest.starts_with('-'))),
                RecordedInput::Completed { id, .. } | RecordedInput::Answered { id, .. } => of(id.attempt),
                RecordedInput::Observed { attempt, .. } => of(*attempt),
                RecordedInput::Listed { listing, .. } | RecordedInput::Adopt { listing, .. } => listed(listing),
                RecordedInput::DeciderChanged(_) | RecordedInput::Restarted => true,
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
            node: self.slot(row.node),
            attempt: row.attempt,
            rule: self.rule(row.rule),
            verb: verb(row.verb),
            hold: HoldKind::from_code(row.hold).map(HoldKind::label),
            until_ms: (row.until > 0).then_some(row.until),
        }
    }

    fn rule(&self, index: u8) -> String {
        self.rules.get(usize::from(index)).map_or_else(|| format!("rule #{index}"), |rule| rule.id.clone())
    }

    /// One record; empty when there is nothing to say.
    fn text(&mut self, line: &Line) -> String {
        let words = match &line.entry {
            Entry::Start(start) => {
                let decider = &start.decider;
                format!(
                    "start of run {} at {} by {}; decider {} {} ({}); attempts from {}",
                    start.run,
                    time_of_day(line.at_ms),
                    start.written_by,
                    decider.name,
                    decider.version,
                    short(&decider.digest),
                    AttemptId(start.next_attempt)
                )
            }
            Entry::Input { of, error } => format!("{}{}", self.input(of), failed(error.as_deref())),
            Entry::Pass { call, answer, snapshot, error, .. } => {
                let stale = if snapshot.is_none() { ", to no call in flight" } else { "" };
                let decided = match answer {
                    Answer::Plan(plan) => self.plan(plan, line.at_ms),
                    Answer::Failure(failure) => Some(format!("no plan: {}: {}", failure.class, failure.detail)),
                };
                match decided {
                    Some(decided) => format!("pass {call}{stale}: {decided}{}", failed(error.as_deref())),
                    None => return String::new(),
                }
            }
            Entry::Dispatch { id, kind, key, provider } => {
                format!("-> {id} {} for {} at {provider}", kind.label(), key.slot)
            }
            Entry::Reserved { below } => format!("attempts below {below} are reserved"),
            Entry::End => "end".into(),
        };
        let since = since(self.started_ms, line.at_ms);
        // The same instant is shown once.
        let time = if self.shown_ms == Some(line.at_ms) { String::new() } else { since };
        self.shown_ms = Some(line.at_ms);
        format!("{:>6} {time:>10}  {}", line.seq, escape(&cut(&words, 600)))
    }

    fn input(&self, input: &RecordedInput) -> String {
        match input {
            RecordedInput::Desired(shape) => {
                let groups = shape.groups.iter().map(|group| format!("{}={}", group.id, group.count));
                let groups = groups.collect::<Vec<_>>().join(" ");
                let groups = if groups.is_empty() { "nothing".into() } else { groups };
                format!("desired, generation {}: {groups}", shape.generation)
            }
            RecordedInput::Completed { id, result } => {
                let result = match result {
                    Ok(Done::Leased { lease, adopted }) => format!("leased {lease}{}", found(*adopted)),
                    Ok(Done::Absent) => "absent from a complete listing".into(),
                    Ok(Done::Found { endpoint }) => format!("at {endpoint}"),
                    Ok(Done::Started { session, adopted }) => format!("started {session}{}", found(*adopted)),
                    Ok(Done::Cancelled) => "cancelled".into(),
                    Ok(Done::Destroyed) => "destroyed".into(),
                    Err(fault) => format!("failed: {fault}"),
                };
                format!("{} operation {id}: {result}", self.who(id.attempt))
            }
            RecordedInput::Answered { id, status } => {
                let status = match status {
                    OperationStatus::Completed => "its result is on its way",
                    OperationStatus::Ambiguous => "given up; it may have happened",
                };
                format!("{} operation {id}: {status}", self.who(id.attempt))
            }
            RecordedInput::Observed { attempt, observation } => {
                let observed = match observation {
                    Observation::Progress(progress) => format!("progress: {}", progress.label()),
                    Observation::Output(line) => format!("says {line:?}"),
                    Observation::Joined => "joined".into(),
                    Observation::Failed { progress, reason, permanent } => {
                        let good = if *permanent { ", for good" } else { "" };
                        format!("{}{good}: {reason}", progress.label())
                    }
                    Observation::Closed { exit } => {
                        format!("closed: {}", exit.as_deref().unwrap_or("nothing is known of its end"))
                    }
                };
                format!("{} {observed}", self.who(*attempt))
            }
            RecordedInput::Listed { provider, listing } => format!("listing of {provider}: {}", resources(listing)),
            RecordedInput::Adopt { provider, listing } => format!("adopted from {provider}: {}", resources(listing)),
            RecordedInput::PolicyChanged(_) => "the settings changed".into(),
            RecordedInput::DeciderChanged(identity) => format!("another decider: {}", short(&identity.digest)),
            RecordedInput::Restarted => "the host started again".into(),
            RecordedInput::Tick => "tick".into(),
            RecordedInput::Resync => "resync".into(),
        }
    }

    /// What was decided; of one node also why it holds, when that changed. `None`: nothing to show.
    fn plan(&mut self, plan: &Plan, now_ms: u64) -> Option<String> {
        if let Some(node) = self.node {
            let row = plan.decisions.rows().find(|row| self.slot(row.node) == node)?;
            let (rule, a) = (self.rule(row.rule), AttemptId(row.attempt));
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
            return Some(format!("{rule} {a} holds: {what}{until}"));
        }
        let mut acted: BTreeMap<(u8, u8), Vec<String>> = BTreeMap::new();
        let mut holds = 0;
        for row in plan.decisions.rows() {
            match row.verb == Verb::Hold.code() {
                true => holds += 1,
                false => acted.entry((row.rule, row.verb)).or_default().push(self.slot(row.node)),
            }
        }
        let mut words = Vec::new();
        for ((rule, code), nodes) in acted {
            let mut one = format!("{} {} {}", self.rule(rule), verb(code), nodes[..nodes.len().min(8)].join(" "));
            if nodes.len() > 8 {
                let _ = write!(one, " and {} more", nodes.len() - 8);
            }
            words.push(one);
        }
        if holds > 0 {
            words.push(format!("{} {}", counted(holds, "node"), if holds == 1 { "holds" } else { "hold" }));
        }
        Some(if words.is_empty() { "nobody to decide about".into() } else { words.join("; ") })
    }
}

fn verb(code: u8) -> &'static str {
    Verb::from_code(code).map_or("?", Verb::label)
}

fn found(adopted: bool) -> &'static str {
    if adopted { ", which was there" } else { "" }
}

fn failed(error: Option<&str>) -> String {
    error.map(|words| format!(" (refused: {words})")).unwrap_or_default()
}

fn resources(listing: &Listing) -> String {
    let complete = if listing.complete { "complete" } else { "incomplete" };
    format!("{}, {complete}", counted(listing.resources.len() as u64, "resource"))
}
