//! `homeostat plan`: what `up` would do, without touching anything.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ::step::text::counted;
use clap::{Args, ValueHint};
use decider::Verb;
use engine::guard::Guard;
use engine::policy::Guards;
use engine::shape::{Probe, Template, slot_name};
use serde::Serialize;

use super::forecast::{Step, forecast};
use super::table::Table;
use super::{Failure, LimitArgs, Terminal, providers};
use crate::fleet::{Fleet, cut, escape};

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The fleet file.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// A decider to use instead of the built-in one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub decider: Option<PathBuf>,
    /// What the decider may use.
    #[command(flatten)]
    pub limits: LimitArgs,
}

#[derive(Serialize)]
struct Plan<'a> {
    schema: &'static str,
    run: &'a str,
    generation: Option<u64>,
    templates: Vec<PlanTemplate<'a>>,
    slots: Vec<PlanSlot<'a>>,
    decider: &'a str,
    rounds: Vec<Vec<PlanStep<'a>>>,
    settled: bool,
    /// What the file's guards hold of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held: Vec<String>,
}

#[derive(Serialize)]
struct PlanStep<'a> {
    node: String,
    rule: &'a str,
    verb: &'static str,
}

#[derive(Serialize)]
struct PlanTemplate<'a> {
    id: String,
    #[serde(flatten)]
    template: &'a Template,
}

#[derive(Serialize)]
struct PlanSlot<'a> {
    node: String,
    group: &'a str,
    index: u32,
    template: String,
}

pub(super) fn run(args: &PlanArgs, terminal: &Terminal) -> Result<(), Failure> {
    let fleet = Fleet::load(&args.file, &providers())?;
    let shape = &fleet.shape;
    let (templates, of_group) = intern(&fleet);
    let decider = super::decider::load(args.decider.as_deref(), &args.limits.limits()?)?;
    let forecast = forecast(shape, &fleet.policy, &decider)?;
    if terminal.is_json() {
        let slots = shape.groups.iter().zip(&of_group).flat_map(|(group, template)| {
            (0..group.count).map(move |index| PlanSlot {
                node: slot_name(&group.id, index),
                group: &group.id,
                index,
                template: name(*template),
            })
        });
        return terminal.print_json(&Plan {
            schema: "homeostat.plan/v1",
            run: &shape.run,
            generation: fleet.generation,
            templates: templates
                .iter()
                .enumerate()
                .map(|(at, template)| PlanTemplate { id: name(at), template })
                .collect(),
            slots: slots.collect(),
            decider: decider.digest(),
            rounds: forecast.rounds.iter().map(|round| round.iter().map(step).collect()).collect(),
            settled: forecast.settled,
            held: beyond(shape.slots(), &fleet.policy.guards),
        });
    }
    let style = terminal.style();
    let heading = |text: &str| format!("\n{}\n", style.clone().bold().apply_to(text));
    let mut text = format!(
        "run {}: {}, {}\n",
        style.clone().bold().apply_to(&shape.run),
        counted(shape.groups.len() as u64, "group"),
        counted(shape.slots(), "node")
    );
    if !templates.is_empty() {
        text.push_str(&heading("templates"));
        text.push_str(&templates_table(&templates).render(&style));
        text.push_str(&heading("slots"));
        let mut table = Table::new(&["slots", "count", "template", "role"]);
        for (group, template) in shape.groups.iter().zip(&of_group) {
            let role = escape(&cut(&group.template.role, 30));
            table.push([slots(&group.id, 0, group.count), group.count.to_string(), name(*template), role]);
        }
        text.push_str(&table.render(&style));
    }
    if !forecast.rounds.is_empty() {
        text.push_str(&heading("steps"));
        text.push_str(&steps_table(&forecast.rounds).render(&style));
    }
    text.push_str(if forecast.settled && forecast.rounds.is_empty() {
        "\nnothing to do\n"
    } else if forecast.settled {
        "\nthen settled: every node is ready\n"
    } else {
        "\nnot settled: this decider does not come to rest\n"
    });
    for held in beyond(shape.slots(), &fleet.policy.guards) {
        text.push_str(&held);
        text.push('\n');
    }
    terminal.print(&text)
}

/// What the guards hold of a fleet that is made from nothing.
fn beyond(slots: u64, guards: &Guards) -> Vec<String> {
    let over = |guard: Guard, limit: Option<u32>, then: &str| {
        let limit = limit.filter(|limit| slots > u64::from(*limit))?;
        Some(format!("guard {}: {limit} of {slots} nodes; {then}", guard.label()))
    };
    let waits = over(Guard::LiveResources, guards.live_resources, "the others wait for room");
    let trips = over(Guard::CreatesPerHour, guards.creates_per_hour, "then creates are paused until somebody resumes");
    waits.into_iter().chain(trips).collect()
}

fn step(step: &Step) -> PlanStep<'_> {
    PlanStep { node: slot_name(&step.slot.0, step.slot.1), rule: &step.rule, verb: step.verb.label() }
}

/// A group, a first index and a count.
type Range<'a> = (&'a str, u32, u32);

/// One line for each round, rule and verb, with the slots it is for.
fn steps_table(rounds: &[Vec<Step>]) -> Table {
    let mut table = Table::new(&["round", "rule", "action", "slots"]);
    for (at, round) in rounds.iter().enumerate() {
        let mut lines: Vec<(&str, Verb, Vec<Range<'_>>)> = Vec::new();
        for Step { slot: (group, index), rule, verb } in round {
            let line = match lines.iter_mut().find(|line| line.0 == rule && line.1 == *verb) {
                Some(line) => line,
                None => {
                    lines.push((rule, *verb, Vec::new()));
                    let last = lines.len() - 1;
                    &mut lines[last]
                }
            };
            match line.2.last_mut() {
                Some((last, first, count)) if last == group && *first + *count == *index => *count += 1,
                _ => line.2.push((group, *index, 1)),
            }
        }
        for (rule, verb, ranges) in lines {
            let ranges = ranges.iter().map(|(group, first, count)| slots(group, *first, *count)).collect::<Vec<_>>();
            table.push([(at + 1).to_string(), rule.to_owned(), verb.label().to_owned(), cut(&ranges.join(", "), 120)]);
        }
    }
    table
}

/// Equal templates once, and the index of each group's.
fn intern(fleet: &Fleet) -> (Vec<Arc<Template>>, Vec<usize>) {
    let mut templates: Vec<Arc<Template>> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut of_group = Vec::new();
    for group in &fleet.shape.groups {
        let key = serde_json::to_string(&group.template).unwrap_or_default();
        let at = *known.entry(key).or_insert_with(|| {
            templates.push(Arc::clone(&group.template));
            templates.len() - 1
        });
        of_group.push(at);
    }
    (templates, of_group)
}

fn name(template: usize) -> String {
    format!("t{template}")
}

/// `web-0`, or `web-0 … web-2`, or nothing.
fn slots(group: &str, first: u32, count: u32) -> String {
    match count {
        0 => "none".into(),
        1 => slot_name(group, first),
        many => format!("{} … {}", slot_name(group, first), slot_name(group, first + many - 1)),
    }
}

fn templates_table(templates: &[Arc<Template>]) -> Table {
    let mut table = Table::new(&["template", "provider", "ready when", "command"]);
    for (at, template) in templates.iter().enumerate() {
        let probe = match &template.join.probe {
            Probe::Http(url) => format!("GET {url}"),
            Probe::Tcp(address) => format!("TCP {address}"),
            Probe::Exec(command) => format!("exec {}", words(command)),
            Probe::Stdout(expression) => format!("stdout has /{expression}/"),
        };
        let command = words(&template.boot.command);
        let short = |text: String| escape(&cut(&text, 60));
        table.push([name(at), template.provider.clone(), short(probe), short(command)]);
    }
    table
}

/// A command as one would type it.
fn words(command: &[String]) -> String {
    let plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./:={}@%+,".contains(c));
    let words = command
        .iter()
        .map(|word| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) });
    words.collect::<Vec<_>>().join(" ")
}
