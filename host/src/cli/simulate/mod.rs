//! `homeostat simulate`: the production engine and a decider against a simulated world, on the user's own fleet file.

mod record;
mod report;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use sim::{
    Campaign, Decide, Failing, Outcome, Progress, Rates, Setup, SetupError, Tally, Which, replay, run_seed, shrink,
};

use super::{ExitCode, Failure, InputError, LimitArgs, Terminal, decider, interrupt, providers};
use crate::fleet::Fleet;
use crate::sandbox::LoadedDecider;

/// When the faults of a seed stop, unless `--until` says otherwise.
const UNTIL: Duration = Duration::from_secs(2 * 60 * 60);
/// The largest file of rates or choices, in bytes.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Arguments of `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// The fleet file. Nothing of it is made; what its providers do is simulated.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// How many seeds to run.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, conflicts_with_all = ["seed", "replay"])]
    pub seeds: u64,
    /// Run this seed alone, and say what happens in it.
    #[arg(long, value_name = "SEED", conflicts_with = "replay")]
    pub seed: Option<u64>,
    /// Run the choices of a trace file that an earlier violation left.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub replay: Option<PathBuf>,
    /// A decider to simulate: a component, in the sandbox, with a fresh instance for each plan.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub decider: Option<PathBuf>,
    /// What the decider may use.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Ask the built-in component in the sandbox instead of the same ladder natively, which is faster.
    #[arg(long, conflicts_with = "decider")]
    pub component: bool,
    /// A TOML file of fault rates, each in a thousand opportunities, such as `crash = 200`; 0 switches a fault off.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub faults: Option<PathBuf>,
    /// The faults of a seed stop before this much simulated time is over.
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = super::duration)]
    pub until: Duration,
    /// Threads [default: one a core]. The result does not depend on it.
    #[arg(long, value_name = "COUNT")]
    pub jobs: Option<usize>,
    /// How long a violation is shrunk at most.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = super::duration)]
    pub shrink: Duration,
    /// Where the shrunk trace of a violation is written.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "violation.txt")]
    pub trace: PathBuf,
    /// Where the journal is written of the run of `--seed` or `--replay`, or of the shrunk run of a violation; a new file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub journal: Option<PathBuf>,
}

/// What is simulated, and who decides.
pub(super) struct Bench {
    setup: Setup,
    component: Option<Arc<LoadedDecider>>,
}

impl Bench {
    fn decide(&self) -> Box<Decide<'static>> {
        match &self.component {
            None => Box::new(|snapshot| Ok(::decider::reconcile(snapshot))),
            Some(component) => {
                let component = Arc::clone(component);
                Box::new(move |snapshot| component.decide(snapshot))
            }
        }
    }
}

pub(super) fn run(args: &SimulateArgs, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let wrong = |message: &str| Failure::from(InputError { message: message.into(), ..InputError::default() });
    if args.seeds == 0 {
        return Err(wrong("--seeds 0: zero seeds test nothing"));
    }
    if args.jobs == Some(0) {
        return Err(wrong("--jobs 0: no thread does nothing"));
    }
    if let Some(path) = &args.journal {
        record::check(path)?;
    }
    if args.replay.is_none() {
        record::check_trace(&args.trace)?;
    }
    let bench = bench(args)?;
    if let Some(path) = &args.replay {
        let outcome = traced(args, &bench, Which::Choices(recorded(path)?), terminal)?;
        return report::one(None, &outcome, terminal);
    }
    if let Some(seed) = args.seed {
        let outcome = traced(args, &bench, Which::Seed(seed), terminal)?;
        let code = report::one(Some(seed), &outcome, terminal)?;
        if outcome.violation.is_some() {
            violated(args, &bench, &Failing { seed, outcome }, terminal)?;
        }
        return Ok(code);
    }
    let began = Instant::now();
    let (tally, failing) = campaign(args, &bench, terminal)?;
    let rules: Vec<String> = bench.setup.identity.rules.iter().map(|rule| rule.id.clone()).collect();
    match failing {
        None => {
            report::clean(&tally, &rules, began.elapsed(), terminal)?;
            if args.journal.is_some() {
                terminal.warn("nothing was broken, so no journal was written: --seed SEED writes the one of that seed");
            }
            Ok(ExitCode::Ok)
        }
        Some(failing) => {
            violated(args, &bench, &failing, terminal)?;
            Ok(ExitCode::Failed)
        }
    }
}

/// One run, with its trace, and with its journal where one is asked for.
fn traced(args: &SimulateArgs, bench: &Bench, which: Which, terminal: &Terminal) -> Result<Outcome, Failure> {
    match (&args.journal, which) {
        (Some(path), which) => record::write(path, bench, which, terminal),
        (None, Which::Seed(seed)) => run_seed(&bench.setup, seed, &mut *bench.decide(), true).map_err(refused),
        (None, Which::Choices(choices)) => replay(&bench.setup, choices, &mut *bench.decide(), true).map_err(refused),
    }
}

fn bench(args: &SimulateArgs) -> Result<Bench, Failure> {
    let fleet = Fleet::load(&args.file, &providers())?;
    let mut setup = Setup::new(fleet.shape, fleet.policy);
    setup.until_ms = u64::try_from(args.until.as_millis()).unwrap_or(u64::MAX);
    if let Some(path) = &args.faults {
        setup.rates = rates(path)?;
    }
    let component = match args.decider.is_some() || args.component {
        false => None,
        true => Some(Arc::new(decider::load(args.decider.as_deref(), &args.limits.limits()?)?)),
    };
    if let Some(component) = &component {
        setup.identity = component.identity();
    }
    if args.decider.is_some() {
        // Somebody else's decider is asked again more often: whether it keeps its contract is what is to be learnt.
        setup.scrutiny = 4;
    }
    Ok(Bench { setup, component })
}

fn refused(error: SetupError) -> Failure {
    InputError { message: error.to_string(), ..InputError::default() }.into()
}

fn text(path: &Path) -> Result<String, Failure> {
    let wrong =
        |message: String| InputError { message, file: Some(path.display().to_string()), ..InputError::default() };
    let length = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
    if length > MAX_FILE_BYTES {
        return Err(wrong(format!("{length} bytes are more than {MAX_FILE_BYTES}")).into());
    }
    Ok(std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?)
}

fn rates(path: &Path) -> Result<Rates, Failure> {
    let text = text(path)?;
    toml::from_str(&text).map_err(|error| {
        let place = error.span().map(|span| crate::fleet::position(&text, span.start));
        let (line, column) = place.unzip();
        let (message, file) = (error.message().to_owned(), Some(path.display().to_string()));
        InputError { message, file, line, column, ..InputError::default() }.into()
    })
}

/// The choices of a trace file.
fn recorded(path: &Path) -> Result<Vec<u32>, Failure> {
    let text = text(path)?;
    let wrong = |message: String| {
        Failure::from(InputError { message, file: Some(path.display().to_string()), ..InputError::default() })
    };
    let Some(list) = text.lines().find_map(|line| line.strip_prefix(report::CHOICES)) else {
        return Err(wrong(format!("there is no line {:?}", report::CHOICES)));
    };
    let parse = |word: &str| word.parse::<u32>().map_err(|_| wrong(format!("{word:?} is no choice")));
    list.split_whitespace().map(parse).collect()
}

fn campaign(args: &SimulateArgs, bench: &Bench, terminal: &Terminal) -> Result<(Tally, Option<Failing>), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let campaign =
        Campaign { setup: bench.setup.clone(), first: 0, seeds: args.seeds, jobs: args.jobs.unwrap_or(cores).min(256) };
    let bar = Arc::new(Bar::new(args.seeds, terminal));
    // Of a large fleet the first seed may take a while.
    if bar.live {
        bar.draw(Progress::default());
    }
    let shown = Arc::clone(&bar);
    interrupt::leave(ExitCode::Interrupted, move || shown.interrupted())?;
    let ran = campaign.run(&|| bench.decide(), &|progress| bar.show(progress)).map_err(refused);
    bar.clear();
    ran
}

/// Shrinks a violation, writes its trace, and says how to see it again.
fn violated(args: &SimulateArgs, bench: &Bench, failing: &Failing, terminal: &Terminal) -> Result<(), Failure> {
    let Some(violation) = &failing.outcome.violation else { return Ok(()) };
    let began = Instant::now();
    let mut more = || began.elapsed() < args.shrink;
    let choices = &failing.outcome.choices;
    let live = std::io::stderr().is_terminal() && !terminal.is_json();
    if live {
        eprint!("seed {} breaks {}; shrinking it ...", failing.seed, violation.id);
    }
    let shrunk = shrink(&bench.setup, choices, violation.id, &mut *bench.decide(), &mut more).map_err(refused);
    if live {
        eprint!("\r\x1b[2K");
    }
    let shrunk = shrunk?;
    let commands = report::Commands::new(args, failing.seed);
    let written = std::fs::write(&args.trace, report::trace_file(failing, &shrunk, &commands));
    // What was found is not lost with the file.
    report::violation(failing, &shrunk, &commands, args, terminal)?;
    written.map_err(|error| anyhow::anyhow!("writing {}: {error}", args.trace.display()))?;
    match &args.journal {
        // That of the seed as it is was asked for, and is written.
        Some(path) if args.seed.is_none() => {
            record::write(path, bench, Which::Choices(shrunk.choices), terminal).map(drop)
        }
        _ => Ok(()),
    }
}

/// The progress, on standard error: a bar where somebody looks at it, now and then a line where nobody does.
struct Bar {
    seeds: u64,
    silent: bool,
    live: bool,
    began: Instant,
    shown: Mutex<Instant>,
    done: AtomicU64,
}

impl Bar {
    fn new(seeds: u64, terminal: &Terminal) -> Self {
        let live = std::io::stderr().is_terminal();
        let now = Instant::now();
        Bar { seeds, silent: terminal.is_json(), live, began: now, shown: Mutex::new(now), done: AtomicU64::new(0) }
    }

    fn show(&self, progress: Progress) {
        self.done.store(progress.seeds, Ordering::Relaxed);
        let pause = Duration::from_millis(if self.live { 100 } else { 10_000 });
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if self.silent || shown.elapsed() < pause {
            return;
        }
        *shown = Instant::now();
        drop(shown);
        self.draw(progress);
    }

    fn draw(&self, progress: Progress) {
        if self.silent {
            return;
        }
        let line = report::progress_line(progress, self.seeds, self.began.elapsed());
        let mut err = std::io::stderr().lock();
        let _ = match self.live {
            true => write!(err, "\r\x1b[2K{line}").and_then(|()| err.flush()),
            false => writeln!(err, "{line}"),
        };
    }

    fn interrupted(&self) {
        eprintln!("interrupted: {} of {} seeds were done", self.done.load(Ordering::Relaxed), self.seeds);
    }

    fn clear(&self) {
        if self.live && !self.silent {
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r\x1b[2K").and_then(|()| err.flush());
        }
    }
}
