//! `homeostat up`: brings a fleet up, keeps it, follows its file, and takes it down at the end.

mod follow;
mod screen;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{Args, ValueHint};
use engine::view::View;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{ExitCode, Failure, Terminal};
use crate::backends::process::{ProcessBackend, ProcessConfig};
use crate::decide::SandboxedDecider;
use crate::fleet::Fleet;
use crate::runtime::{Farewell, Host, HostError, HostHandle, Shutdown};
use follow::{Edit, Follow};
use screen::Screen;

/// Arguments of `up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// The fleet file.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Where leases live, in a folder for each run [default: $XDG_STATE_HOME/homeostat].
    #[arg(long, value_name = "DIR", env = "HOMEOSTAT_STATE", value_hint = ValueHint::DirPath)]
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
    /// A decider to use instead of the built-in one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub decider: Option<PathBuf>,
}

/// Runs `up` until it is told to stop.
pub fn run(args: &UpArgs, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let fleet = Fleet::load(&args.file, &super::providers())?;
    let decider = SandboxedDecider::start(Arc::new(super::decider::load(args.decider.as_deref())?))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(up(args, terminal, fleet, decider));
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

async fn up(args: &UpArgs, terminal: &Terminal, fleet: Fleet, decider: SandboxedDecider) -> Result<ExitCode, Failure> {
    // First of all, so that no signal finds the default: a fleet half made.
    let mut signals = Signals::new()?;
    let dir = state_dir(args.state.as_deref())?.join(&fleet.shape.run);
    let exe = std::env::current_exe().context("finding this program")?;
    std::fs::create_dir_all(&dir).with_context(|| format!("state directory {}", dir.display()))?;
    let backend = ProcessBackend::open(ProcessConfig::new(&dir, exe)).map_err(|error| anyhow!(error))?;
    let backend = Arc::new(backend);

    let mut follow = Follow::start(&args.file, &fleet)?;
    let mut shape = fleet.shape.clone();
    shape.generation = follow.generation();
    let builder = Host::builder(&fleet.shape.run)
        .shared_backend("process", backend.clone())
        .decider(decider)
        .policy(fleet.policy)
        .state_dir(&dir)
        .shape(shape);
    let host = builder.start().await.map_err(|error| anyhow!(error))?;

    let mut screen = Screen::new(terminal, &host);
    let stop = keep(args, &host, &mut follow, &mut signals, &mut screen).await;
    let ended = match stop {
        Ok(stop) => end(args, &host, &mut signals, &mut screen, &stop, &backend).await.map(|code| (stop, code)),
        Err(error) => Err(error),
    };
    screen.close();
    backend.shutdown().await;
    let (_, code) = ended?;
    Ok(code)
}

/// Keeps the fleet until there is a reason to stop.
async fn keep(
    args: &UpArgs,
    host: &HostHandle,
    follow: &mut Follow,
    signals: &mut Signals,
    screen: &mut Screen,
) -> Result<Stop, Failure> {
    let deadline = tokio::time::sleep(args.timeout);
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            name = signals.next() => return Ok(Stop::Asked(name)),
            converged = host.wait_converged(), if args.until_converged => {
                converged.map_err(|error| anyhow!(error))?;
                screen.catch_up().await;
                return Ok(Stop::Converged);
            }
            () = &mut deadline, if args.until_converged => return Ok(Stop::TimedOut(host.view())),
            ended = host.wait_ended() => {
                let why = ended.err().map_or_else(|| "it ended by itself".to_string(), |error| error.to_string());
                return Err(anyhow!(why).into());
            }
            edit = follow.next() => adopt_edit(host, follow, edit, screen).await,
            () = screen.next() => {}
        }
    }
}

/// Takes an edit of the file over, whole, or says why not.
async fn adopt_edit(host: &HostHandle, follow: &mut Follow, edit: Edit, screen: &mut Screen) {
    let fleet = match edit {
        Edit::Refused(error) => return screen.refused(&Failure::Fleet(error)),
        Edit::Fleet(fleet) => fleet,
    };
    let mut shape = fleet.shape.clone();
    shape.generation = follow.propose(&fleet);
    let taken = host.update_shape(shape).await;
    match taken {
        Ok(()) => {
            if let Err(error) = host.update_policy(fleet.policy).await {
                return screen.refused(&Failure::Failed(anyhow!(error)));
            }
            follow.accept(&fleet);
            screen.note(&format!("{}: generation {}", follow.path().display(), follow.generation()));
        }
        Err(HostError::Shape(error)) => screen.refused(&Failure::Fleet(fleet.refuse(follow.path(), &error))),
        Err(error) => screen.refused(&Failure::Failed(anyhow!(error))),
    }
}

/// Ends: takes the fleet down, or leaves it, and says what was removed and what is left.
async fn end(
    args: &UpArgs,
    host: &HostHandle,
    signals: &mut Signals,
    screen: &mut Screen,
    stop: &Stop,
    backend: &ProcessBackend,
) -> Result<ExitCode, Failure> {
    match stop {
        Stop::Converged => screen.note("converged"),
        Stop::TimedOut(view) => screen.not_in_time(view, args.timeout),
        Stop::Asked(name) if args.keep => screen.note(&format!("{name}: leaving the fleet as it is")),
        Stop::Asked(name) => screen.note(&format!("{name}: taking the fleet down; once more to leave it as it is")),
    }
    let how = if args.keep { Shutdown::Keep } else { Shutdown::TakeDown };
    let before = host.view();
    let shutdown = host.shutdown(how);
    tokio::pin!(shutdown);
    let mut cut_short = false;
    let farewell: Arc<Farewell> = loop {
        tokio::select! {
            farewell = &mut shutdown => break farewell.map_err(|error| anyhow!(error))?,
            name = signals.next(), if !cut_short && !args.keep => {
                cut_short = true;
                screen.note(&format!("{name}: leaving what is left"));
                let host = host.clone();
                tokio::spawn(async move { host.shutdown(Shutdown::Keep).await });
            }
            () = screen.next() => {}
        }
    };
    screen.catch_up().await;
    screen.farewell(&before, &farewell, &backend.leftovers(), args.keep);
    let clean = args.keep || farewell.is_clean();
    Ok(match stop {
        Stop::TimedOut(_) => ExitCode::Timeout,
        _ if !clean => ExitCode::Failed,
        Stop::Asked(_) if args.until_converged => ExitCode::Failed,
        Stop::Converged | Stop::Asked(_) => ExitCode::Ok,
    })
}

/// The signals that end `up`.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "interrupted",
            _ = self.terminate.recv() => "terminated",
            _ = self.hang_up.recv() => "hung up",
        }
    }
}

/// The state directory: as given, or the XDG one.
fn state_dir(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let dir = match given {
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
