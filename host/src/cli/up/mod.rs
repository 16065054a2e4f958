//! `homeostat up`: brings a fleet up, keeps it, follows its file, and takes it down at the end.

mod follow;
mod lines;
mod screen;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{Args, ValueHint};
use engine::view::View;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::appoint::{Appointed, DeciderArgs};
use super::keep::{ApiArgs, Kept, Wanted};
use super::origin::Origin;
use super::trace::{self, TraceArgs};
use super::{ExitCode, Failure, Terminal};
use crate::fleet::Fleet;
use crate::journal::JournalFile;
use crate::registry::Registry;
use crate::runtime::{Farewell, Intervals, Shutdown};
pub(super) use follow::{Edit, Follow, watch_file};
pub(super) use screen::Screen;

/// Arguments of `up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// The fleet file.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Where leases live, in a folder for each run [default: $XDG_STATE_HOME/homeostat].
    #[arg(long, value_name = "DIR", env = "HOMEOSTAT_STATE", value_parser = client::state_dir(), value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    /// End as soon as the fleet has converged (0), or when the time is over (3).
    #[arg(long)]
    pub until_converged: bool,
    /// How long `--until-converged` waits.
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "until_converged", value_parser = super::duration)]
    pub timeout: Duration,
    /// Leave the fleet running at the end; the next `up` of the same run adopts it.
    #[arg(long)]
    pub keep: bool,
    /// Who decides.
    #[command(flatten)]
    pub decider: DeciderArgs,
    /// Write a copy of the state's journal to this file, to be replayed; one that exists is continued.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub journal: Option<PathBuf>,
    /// How the interface can be reached.
    #[command(flatten)]
    pub api: ApiArgs,
    /// What is traced.
    #[command(flatten)]
    pub trace: TraceArgs,
}

/// Runs `up` until it is told to stop.
pub fn run(args: &UpArgs, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let fleet = Fleet::load(&args.file, &super::providers())?;
    let decider = Appointed::load(&args.decider)?;
    let copy = match &args.journal {
        Some(path) => Some(JournalFile::open(path, &fleet.shape.run).map_err(super::journal::unusable)?),
        None => None,
    };
    let _traces = trace::start(&args.trace, terminal)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(up(args, terminal, fleet, decider, copy));
    // A call that hangs must not keep the program.
    runtime.shutdown_timeout(Duration::from_millis(200));
    ended
}

/// Why the fleet is not kept any longer.
enum Stop {
    Converged,
    TimedOut(Arc<View>),
    Asked(&'static str),
}

async fn up(
    args: &UpArgs,
    terminal: &Terminal,
    fleet: Fleet,
    decider: Appointed,
    copy: Option<JournalFile>,
) -> Result<ExitCode, Failure> {
    // First of all, so that no signal finds the default: a fleet half made.
    let mut signals = Signals::new()?;
    let continued = copy.as_ref().map(JournalFile::continued).unwrap_or_default();
    let intervals = Intervals { end_limit: END_LIMIT, ..Intervals::default() };
    let wanted = Wanted {
        file: &args.file,
        state: args.state.as_deref(),
        decider: &args.decider,
        api: &args.api,
        copy,
        // What is taken down at the end should be what somebody asked for.
        goes_on: false,
        intervals,
    };
    let origin = Origin::File(Box::new(fleet));
    let mut kept = Kept::start(wanted, terminal, &origin, decider).await?;
    if let Some(path) = args.journal.as_ref().filter(|_| continued.cut_bytes > 0) {
        kept.screen.note(&format!("{}: cut {} bytes of a torn record off", path.display(), continued.cut_bytes));
    }
    let ended = match keep(args, &mut kept, &mut signals).await {
        Ok(stop) => end(args, &mut kept, &mut signals, &stop).await,
        Err(error) => Err(error),
    };
    let hurry = ended.as_ref().is_ok_and(|ended| ended.cut_short);
    let patience = if hurry { HURRY } else { Duration::MAX };
    // What is cut off here was begun in a way that the next `up` can go on with.
    kept.close(patience).await;
    Ok(ended?.code)
}

/// How long operations are waited for that still run when the host ends. The provider's calls are waited for once more
/// after it, unless somebody is in a hurry.
const END_LIMIT: Duration = Duration::from_secs(1);
/// How long the provider's last calls are waited for after a second signal.
const HURRY: Duration = Duration::from_millis(200);

/// How it ended.
struct Ended {
    code: ExitCode,
    /// By a second signal.
    cut_short: bool,
}

/// Keeps the fleet until there is a reason to stop.
async fn keep(args: &UpArgs, kept: &mut Kept, signals: &mut Signals) -> Result<Stop, Failure> {
    let deadline = tokio::time::sleep(args.timeout);
    tokio::pin!(deadline);
    let host = kept.host.clone();
    loop {
        tokio::select! {
            name = signals.next() => return Ok(Stop::Asked(name)),
            converged = host.wait_converged(), if args.until_converged => {
                converged.map_err(|error| anyhow!(error))?;
                kept.screen.catch_up().await;
                return Ok(Stop::Converged);
            }
            () = &mut deadline, if args.until_converged => return Ok(Stop::TimedOut(host.view())),
            ended = host.wait_ended() => {
                let why = ended.err().map_or_else(|| "it ended by itself".to_string(), |error| error.to_string());
                return Err(anyhow!(why).into());
            }
            edit = kept.follow.next() => kept.adopt_edit(edit).await,
            lines = kept.deciders.next(&kept.host) => lines.iter().for_each(|line| kept.screen.note(line)),
            () = kept.screen.next() => {}
        }
    }
}

/// Ends: takes the fleet down, or leaves it, and says what was removed and what is left.
async fn end(args: &UpArgs, kept: &mut Kept, signals: &mut Signals, stop: &Stop) -> Result<Ended, Failure> {
    let Kept { host, screen, backend, registry, .. } = kept;
    match stop {
        Stop::Converged => screen.note("converged"),
        Stop::TimedOut(view) => screen.not_in_time(view, args.timeout),
        Stop::Asked(name) if args.keep => screen.note(&format!("{name}: leaving the fleet as it is")),
        Stop::Asked(name) => screen.note(&format!("{name}: taking the fleet down; once more to leave it as it is")),
    }
    if !args.keep {
        screen.ending();
    }
    let how = if args.keep { Shutdown::Keep } else { Shutdown::TakeDown };
    let before = host.view();
    let shutdown = host.shutdown(how);
    tokio::pin!(shutdown);
    let mut cut_short = false;
    // A decider of the operator's own may fail; what it made has to go all the same.
    let mut own_decider = !args.keep;
    let mut looks = tokio::time::interval(Duration::from_millis(250));
    let farewell: Arc<Farewell> = loop {
        tokio::select! {
            farewell = &mut shutdown => break farewell.map_err(|error| anyhow!(error))?,
            name = signals.next(), if !cut_short && !args.keep => {
                cut_short = true;
                screen.note(&format!("{name}: leaving what is left"));
                let host = host.clone();
                tokio::spawn(async move { host.shutdown(Shutdown::Keep).await });
            }
            _ = looks.tick(), if own_decider => {
                if host.view().nodes.iter().any(|node| node.decider_fails) {
                    own_decider = false;
                    screen.note("the decider fails; the built-in one takes the fleet down");
                    let registry = registry.clone();
                    let built_in = tokio::task::spawn_blocking(move || registry.ready(&Registry::built_in())).await;
                    let built_in = built_in.map_err(anyhow::Error::from)?.map_err(|error| anyhow!(error))?;
                    // It may have ended meanwhile: then there is nothing left to decide.
                    let _ = host.use_decider(built_in.decider).await;
                }
            }
            () = screen.next() => {}
        }
    };
    screen.catch_up().await;
    screen.farewell(&before, &farewell, &backend.leftovers(), args.keep);
    let clean = args.keep || farewell.is_clean();
    if !args.keep && clean {
        backend.forget_output();
    }
    let code = match stop {
        Stop::TimedOut(_) => ExitCode::Timeout,
        _ if !clean => ExitCode::Failed,
        Stop::Asked(_) if args.until_converged => ExitCode::Failed,
        Stop::Converged | Stop::Asked(_) => ExitCode::Ok,
    };
    Ok(Ended { code, cut_short })
}

/// The signals that end `up`.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            // Under `nohup` it stays ignored.
            hang_up: if ignores_hang_up() { None } else { Some(signal(SignalKind::hangup())?) },
        })
    }

    /// For a verb to which a hang-up means something else.
    pub fn without_hang_up() -> std::io::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: None,
        })
    }

    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "interrupted",
            _ = self.terminate.recv() => "terminated",
            _ = receive(&mut self.hang_up) => "hung up",
        }
    }
}

async fn receive(signal: &mut Option<Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    }
}

fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    // SIGHUP is number 1.
    ignored.is_some_and(|ignored| ignored & 1 != 0)
}

/// Lets this program open as many files as the system allows: it has a few for each node. Answers the limit that was, for
/// the nodes to have.
pub(super) fn raise_open_files() -> Option<u64> {
    let was = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: was.maximum, maximum: was.maximum };
    let current = was.current.filter(|_| was.current != was.maximum)?;
    // Where it is refused the limit stays what it was, and a large fleet learns it from its errors.
    setrlimit(Resource::Nofile, raised).ok().map(|()| current)
}

/// The state directory: as given, or the XDG one.
pub(super) fn state_dir(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let dir = match given.filter(|dir| !dir.as_os_str().is_empty()) {
        Some(dir) => dir.to_path_buf(),
        None => {
            let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
            let base = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
            base.ok_or_else(|| anyhow!("neither XDG_STATE_HOME nor HOME says where state may live: give --state"))?
                .join("homeostat")
        }
    };
    Ok(std::path::absolute(&dir).with_context(|| format!("state directory {}", dir.display()))?)
}
