//! `homeostat check`: every interleaving of a small scope, with the production engine.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum, ValueHint};
use engine::io::DeciderIdentity;
use model::{Check, CheckError, Decide, Kind, Memo, Outcome, Progress, Scope, Verdict, Weaken, report};
use serde::Serialize;

use super::{ExitCode, Failure, InputError, LimitArgs, Terminal, decider, interrupt};

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Slots of the fleet, 1 to 4 [default: 2]. Without `--nodes` and `--faults`: two slots without a fault, and one slot
    /// with two.
    #[arg(long, value_name = "COUNT")]
    pub nodes: Option<u32>,
    /// Faults in one execution, at most [default: 1]. One more multiplies the states by twenty or more.
    #[arg(long, value_name = "COUNT")]
    pub faults: Option<u8>,
    /// What the provider promises [default: both, one after the other].
    #[arg(long, value_enum, value_name = "PROMISE")]
    pub promise: Option<Promise>,
    /// Threads [default: one a core]. The result does not depend on it.
    #[arg(long, value_name = "COUNT")]
    pub jobs: Option<usize>,
    /// Distinct states, at most, in one search; about 100 bytes of memory each.
    #[arg(long, value_name = "COUNT", default_value_t = 50_000_000)]
    pub max_states: u64,
    /// A decider to check: a component, in the sandbox. Each snapshot is decided once.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub decider: Option<PathBuf>,
    /// What the decider may use.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Weaken a rule on purpose, to see what it is good for.
    #[arg(long, value_enum, value_name = "RULE")]
    pub weaken: Option<Rule>,
}

/// What the provider promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Promise {
    /// A create under a taken key returns the same resource
    Keyed,
    /// A lost create may still take effect within a window
    Windowed,
}

/// A rule that can be weakened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// A windowed create in doubt is looked for once and made anew when it is absent
    WindowedSettle,
    /// The provider is never listed: what appears for a retired attempt is not found
    Sweep,
}

#[derive(Serialize)]
struct Json<'a> {
    schema: &'static str,
    decider: &'a str,
    searches: Vec<Search<'a>>,
}

#[derive(Serialize)]
struct Search<'a> {
    promise: String,
    nodes: u32,
    faults: u8,
    verdict: &'static str,
    property: Option<&'a str>,
    what: Option<&'a str>,
    path: &'a [String],
    never_settle: u64,
    states: u64,
    transitions: u64,
    depth: u32,
    waiting: u64,
    settled: u64,
    driver_forms: u64,
    driver_steps: u64,
    elapsed_ms: u64,
    states_per_second: f64,
    rules_never_reached: Vec<&'a str>,
    covered: Vec<String>,
    not_covered: &'static [&'static str],
}

pub(super) fn run(args: &CheckArgs, terminal: &Terminal) -> Result<ExitCode, Failure> {
    if args.jobs == Some(0) {
        return Err(wrong("--jobs 0: no thread does nothing".into()));
    }
    let limits = args.limits.limits()?;
    let component = args.decider.as_deref().map(|path| decider::load(Some(path), &limits)).transpose()?;
    let identity = match &component {
        None => DeciderIdentity::native(),
        Some(loaded) => loaded.identity(),
    };
    let asked = |snapshot: &::decider::Snapshot| match &component {
        None => Ok(::decider::reconcile(snapshot)),
        Some(loaded) => loaded.decide(snapshot),
    };
    let memo = Memo::new(&asked);
    let remembered = |snapshot: &::decider::Snapshot| memo.decide(snapshot);
    // Asking the ladder natively is faster than remembering what it said.
    let decide: &Decide<'_> = if component.is_some() { &remembered } else { &asked };
    let kinds = match args.promise {
        None => Kind::ALL.to_vec(),
        Some(Promise::Keyed) => vec![Kind::Keyed],
        Some(Promise::Windowed) => vec![Kind::Windowed],
    };
    let weaken = args.weaken.map(|rule| match rule {
        Rule::WindowedSettle => Weaken::WindowedSettle,
        Rule::Sweep => Weaken::Sweep,
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let states = Arc::new(AtomicU64::new(0));
    let reached = Arc::clone(&states);
    interrupt::leave(ExitCode::Interrupted, move || {
        eprintln!("interrupted: this search had reached {} states", reached.load(Ordering::Relaxed));
    })?;
    let mut done: Vec<(Scope, Outcome, Duration)> = Vec::new();
    let sizes = match (args.nodes, args.faults) {
        (None, None) => vec![(2, 0), (1, 2)],
        (nodes, faults) => vec![(nodes.unwrap_or(2), faults.unwrap_or(1))],
    };
    for (kind, (nodes, faults)) in kinds.into_iter().flat_map(|kind| sizes.iter().map(move |size| (kind, *size))) {
        let scope = Scope { nodes, faults, kind, weaken, ..Scope::default() };
        let (jobs, most, exact) = (args.jobs.unwrap_or(cores).min(256), args.max_states, component.is_some());
        let check = Check { scope, identity: identity.clone(), decide, exact, jobs, most, mutation: None };
        let bar = Bar::new(&scope, terminal);
        let outcome = check.run(&mut |progress| {
            states.store(progress.states, Ordering::Relaxed);
            bar.show(progress);
        });
        bar.clear();
        let outcome = outcome.map_err(refused)?;
        let elapsed = bar.began.elapsed();
        if !terminal.is_json() {
            print(&scope, &outcome, elapsed, terminal)?;
        }
        done.push((scope, outcome, elapsed));
    }
    if terminal.is_json() {
        let searches = done.iter().map(|(scope, outcome, elapsed)| search(scope, outcome, *elapsed)).collect();
        terminal.print_json(&Json { schema: "homeostat.check/v1", decider: &identity.digest, searches })?;
    } else {
        let not = report::NOT_COVERED.iter().map(|what| format!("  - {what}\n")).collect::<String>();
        terminal.print(&format!("not covered (`homeostat simulate` draws most of it at random):\n{not}"))?;
    }
    let is = |wanted: fn(&Verdict) -> bool| done.iter().any(|(_, outcome, _)| wanted(&outcome.verdict));
    Ok(match () {
        () if is(|verdict| matches!(verdict, Verdict::Broken(_))) => ExitCode::Failed,
        () if is(|verdict| matches!(verdict, Verdict::Unfinished(_))) => ExitCode::Timeout,
        () => ExitCode::Ok,
    })
}

fn wrong(message: String) -> Failure {
    InputError { message, ..InputError::default() }.into()
}

fn refused(error: CheckError) -> Failure {
    match error {
        CheckError::Walk(_) => Failure::Failed(error.into()),
        CheckError::Nodes { .. } | CheckError::Driver(_) => wrong(error.to_string()),
    }
}

fn print(scope: &Scope, outcome: &Outcome, elapsed: Duration, terminal: &Terminal) -> Result<(), Failure> {
    let bold = terminal.style().bold();
    let mut text = format!("{}\n", bold.apply_to(report::title(scope)));
    for line in report::covered(scope) {
        text.push_str(&format!("  - {line}\n"));
    }
    text.push_str(&report::numbers(outcome, elapsed.as_secs_f64()));
    text.push('\n');
    let verdict = report::verdict(scope, outcome);
    let style = match outcome.verdict {
        Verdict::Holds => terminal.style(),
        Verdict::Unfinished(_) => terminal.style().yellow(),
        Verdict::Broken(_) => terminal.style().red(),
    };
    let (first, rest) = verdict.split_once('\n').unwrap_or((&verdict, ""));
    text.push_str(&format!("{}\n{rest}", style.apply_to(first)));
    terminal.print(&text)?;
    terminal.print("")
}

fn search<'a>(scope: &Scope, outcome: &'a Outcome, elapsed: Duration) -> Search<'a> {
    let broken = match &outcome.verdict {
        Verdict::Broken(broken) => Some(broken),
        Verdict::Holds | Verdict::Unfinished(_) => None,
    };
    Search {
        promise: scope.kind.to_string(),
        nodes: scope.nodes,
        faults: scope.faults,
        verdict: match outcome.verdict {
            Verdict::Holds => "holds",
            Verdict::Unfinished(_) => "unfinished",
            Verdict::Broken(_) => "broken",
        },
        property: broken.map(|broken| broken.violation.id),
        what: broken.map(|broken| broken.violation.what.as_str()),
        path: broken.map_or(&[], |broken| &broken.path),
        never_settle: broken.map_or(0, |broken| broken.never_settle),
        states: outcome.progress.states,
        transitions: outcome.progress.transitions,
        depth: outcome.progress.depth,
        waiting: outcome.progress.waiting,
        settled: outcome.settled,
        driver_forms: outcome.forms,
        driver_steps: outcome.computed,
        elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        states_per_second: outcome.progress.states as f64 / elapsed.as_secs_f64().max(0.001),
        rules_never_reached: report::never_reached(outcome),
        covered: report::covered(scope),
        not_covered: report::NOT_COVERED,
    }
}

/// The progress, on standard error, where somebody looks at it.
struct Bar {
    title: String,
    live: bool,
    began: Instant,
}

impl Bar {
    fn new(scope: &Scope, terminal: &Terminal) -> Self {
        let live = std::io::stderr().is_terminal() && !terminal.is_json();
        Bar { title: report::title(scope), live, began: Instant::now() }
    }

    fn show(&self, progress: Progress) {
        if !self.live {
            return;
        }
        let rate = progress.states as f64 / self.began.elapsed().as_secs_f64().max(0.001);
        let Progress { states, waiting, depth, .. } = progress;
        let mut err = std::io::stderr().lock();
        let title = &self.title;
        let _ = write!(err, "\r\x1b[2K{title}: {states} states, {waiting} waiting, depth {depth}, {rate:.0} states/s")
            .and_then(|()| err.flush());
    }

    fn clear(&self) {
        if self.live {
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r\x1b[2K").and_then(|()| err.flush());
        }
    }
}
