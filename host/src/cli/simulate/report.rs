//! What `simulate` writes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use sim::{Failing, FaultKind, Outcome, Progress, Shrunk, Tally};

use super::super::terminal::quoted;
use super::super::{ExitCode, Failure, Terminal};
use super::SimulateArgs;

/// The line of a trace file that holds the choices begins so.
pub(super) const CHOICES: &str = "# choices:";

#[derive(Serialize)]
struct Clean<'a> {
    schema: &'static str,
    seeds: u64,
    violation: Option<()>,
    passes: u64,
    inputs: u64,
    simulated_ms: u64,
    node_ms: u64,
    elapsed_ms: u64,
    passes_per_second: f64,
    faults: BTreeMap<&'static str, u64>,
    rules: BTreeMap<&'a str, BTreeMap<&'static str, u64>>,
    faults_never_injected: Vec<&'static str>,
    rules_never_exercised: Vec<&'a str>,
    not_covered: Vec<&'static str>,
}

#[derive(Serialize)]
struct Violated<'a> {
    schema: &'static str,
    seed: Option<u64>,
    violation: Option<Broken<'a>>,
    events: usize,
    trace: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_file: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reproduce: Vec<&'a str>,
}

#[derive(Serialize)]
struct Broken<'a> {
    property: &'a str,
    what: &'a str,
}

/// How to see a violation again.
pub(super) struct Commands {
    seed: String,
    replay: String,
    test: String,
}

impl Commands {
    pub fn new(args: &SimulateArgs, seed: u64) -> Self {
        let mut common = format!("homeostat simulate {}", quoted(&args.file.display().to_string()));
        if let Some(path) = &args.decider {
            let _ = write!(common, " --decider {}", quoted(&path.display().to_string()));
        }
        if args.component {
            common.push_str(" --component");
        }
        if let Some(path) = &args.faults {
            let _ = write!(common, " --faults {}", quoted(&path.display().to_string()));
        }
        if args.until != super::UNTIL {
            let _ = write!(common, " --until {}ms", args.until.as_millis());
        }
        let trace = quoted(&args.trace.display().to_string());
        let decider = args.decider.as_ref().map(|path| format!(" --decider {}", quoted(&path.display().to_string())));
        let test = format!("homeostat test {trace}{}", decider.unwrap_or_default());
        Commands { test, seed: format!("{common} --seed {seed}"), replay: format!("{common} --replay {trace}") }
    }
}

fn rate(count: u64, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64().max(0.001)
}

fn hours(ms: u64) -> f64 {
    ms as f64 / 3_600_000.0
}

pub(super) fn progress_line(progress: Progress, seeds: u64, elapsed: Duration) -> String {
    const WIDTH: u64 = 24;
    let filled = usize::try_from(progress.seeds * WIDTH / seeds.max(1)).unwrap_or(0);
    let bar: String = (0..WIDTH as usize).map(|at| if at < filled { '#' } else { '.' }).collect();
    format!(
        "[{bar}] {}/{seeds} seeds  {:.0} seeds/s  {:.0} passes/s  {:.0} simulated node-hours/s",
        progress.seeds,
        rate(progress.seeds, elapsed),
        rate(progress.passes, elapsed),
        hours(progress.node_ms) / elapsed.as_secs_f64().max(0.001)
    )
}

/// No violation: what was exercised.
pub(super) fn clean(tally: &Tally, rules: &[String], elapsed: Duration, terminal: &Terminal) -> Result<(), Failure> {
    if terminal.is_json() {
        let named = |row: &[u64]| -> BTreeMap<&'static str, u64> {
            let name = |at: usize| match at.checked_sub(1) {
                None => "none",
                Some(fault) => FaultKind::ALL.get(fault).map_or("?", |fault| fault.label()),
            };
            row.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, count)| (name(at), *count)).collect()
        };
        let silent = tally.rules_not_exercised();
        return terminal.print_json(&Clean {
            schema: "homeostat.simulate/v1",
            seeds: tally.seeds,
            violation: None,
            passes: tally.passes,
            inputs: tally.steps,
            simulated_ms: tally.simulated_ms,
            node_ms: tally.node_ms,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            passes_per_second: rate(tally.passes, elapsed).round(),
            faults: FaultKind::ALL.iter().map(|fault| (fault.label(), tally.faults[*fault as usize])).collect(),
            rules: rules.iter().zip(&tally.rules).map(|(rule, row)| (rule.as_str(), named(row))).collect(),
            faults_never_injected: tally.faults_not_exercised().iter().map(|fault| fault.label()).collect(),
            rules_never_exercised: silent.into_iter().filter_map(|at| rules.get(at)).map(String::as_str).collect(),
            not_covered: sim::NOT_COVERED.iter().map(|(name, _)| *name).collect(),
        });
    }
    terminal.print(&format!(
        "{}{} seeds without a violation in {:.1} s: {:.0} seeds/s, {:.0} passes/s, {:.0} simulated node-hours/s",
        sim::table(tally, rules),
        tally.seeds,
        elapsed.as_secs_f64(),
        rate(tally.seeds, elapsed),
        rate(tally.passes, elapsed),
        hours(tally.node_ms) / elapsed.as_secs_f64().max(0.001)
    ))
}

/// One run, with all that happened in it.
pub(super) fn one(seed: Option<u64>, outcome: &Outcome, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let code = if outcome.violation.is_some() { ExitCode::Failed } else { ExitCode::Ok };
    if terminal.is_json() {
        // A violation of a seed is reported whole, shrunk, afterwards.
        if seed.is_none() || outcome.violation.is_none() {
            terminal.print_json(&json(seed, outcome))?;
        }
        return Ok(code);
    }
    for line in &outcome.trace {
        terminal.print(line)?;
    }
    match (&outcome.violation, seed) {
        (None, _) => terminal.print(&format!("{} events, no violation", outcome.events))?,
        (Some(violation), None) => terminal.print(&format!("{} is broken: {}", violation.id, violation.what))?,
        (Some(_), Some(_)) => {}
    }
    Ok(code)
}

fn json(seed: Option<u64>, outcome: &Outcome) -> Violated<'_> {
    Violated {
        schema: "homeostat.simulate-run/v1",
        seed,
        violation: outcome.violation.as_ref().map(|broken| Broken { property: broken.id, what: &broken.what }),
        events: outcome.events,
        trace: &outcome.trace,
        trace_file: None,
        reproduce: Vec::new(),
    }
}

/// The shrunk run as a scenario of the scenario language, with what it takes to run it again.
pub(super) fn trace_file(failing: &Failing, shrunk: &Shrunk, commands: &Commands) -> String {
    let mut text = String::new();
    if let Some(violation) = &shrunk.outcome.violation {
        let _ = writeln!(text, "# {} is broken: {}", violation.id, violation.what.replace('\n', " "));
    }
    let _ = writeln!(text, "# Seed {}, shrunk to {} events. To see it again:", failing.seed, shrunk.outcome.events);
    let _ = writeln!(text, "#   {}", commands.replay);
    let _ = writeln!(text, "# The whole seed: {}", commands.seed);
    let _ = writeln!(text, "# As a policy test, without the world around it: {}", commands.test);
    let choices: Vec<String> = shrunk.choices.iter().map(u32::to_string).collect();
    let _ = writeln!(text, "{CHOICES} {}\n#", choices.join(" "));
    for line in &shrunk.outcome.trace {
        let _ = writeln!(text, "#   {line}");
    }
    let _ = writeln!(text, "\n{}", shrunk.outcome.scenario);
    text
}

/// A violation: its property, its seed, its shrunk trace, and how to see it again.
pub(super) fn violation(
    failing: &Failing,
    shrunk: &Shrunk,
    commands: &Commands,
    args: &SimulateArgs,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let file = args.trace.display().to_string();
    if terminal.is_json() {
        let trace_file = Some(file);
        let reproduce = vec![commands.seed.as_str(), commands.replay.as_str()];
        return terminal.print_json(&Violated { trace_file, reproduce, ..json(Some(failing.seed), &shrunk.outcome) });
    }
    let Some(violation) = &shrunk.outcome.violation else { return Ok(()) };
    let red = terminal.style().red().bold();
    let mut text = String::new();
    let _ = writeln!(text, "{} {}", red.apply_to(format!("{} is broken:", violation.id)), violation.what);
    if let Some(sentence) = engine::property::sentence(violation.id) {
        let _ = writeln!(text, "{} says: {sentence}", violation.id);
    }
    let _ = writeln!(text, "seed {}, shrunk to {} events:\n", failing.seed, shrunk.outcome.events);
    for line in &shrunk.outcome.trace {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "\nthe trace, as a scenario: {file}");
    let _ = writeln!(text, "to see it again:          {}", commands.replay);
    let _ = write!(text, "the whole seed:           {}", commands.seed);
    terminal.print(&text)
}
