//! `homeostat daemon`: keeps a fleet, and what it knows of it, across its own stops, crashes and restarts (SPEC 10).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{Args, ValueHint};
use sd_notify::NotifyState;
use store::{Secret, SqliteStore, StateDir};
use tokio::signal::unix::{SignalKind, signal};

use super::up::{Follow, Screen, Signals, adopt_edit, raise_open_files, state_dir};
use super::{ExitCode, Failure, Terminal};
use crate::backends::process::{ProcessBackend, ProcessConfig};
use crate::decide::SandboxedDecider;
use crate::fleet::Fleet;
use crate::runtime::{Host, HostError, HostHandle, Shutdown};

/// Arguments of `daemon`.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// The fleet file. It is watched; SIGHUP reads it at once.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Where its state lives, in a folder for each run [default: $XDG_STATE_HOME/homeostat].
    #[arg(long, value_name = "DIR", env = "HOMEOSTAT_STATE", value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    /// A decider to use instead of the built-in one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub decider: Option<PathBuf>,
}

/// Runs the daemon until it is told to stop. The fleet goes on without it.
pub fn run(args: &DaemonArgs, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let fleet = Fleet::load(&args.file, &super::providers())?;
    let decider = SandboxedDecider::start(Arc::new(super::decider::load(args.decider.as_deref())?))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(daemon(args, terminal, &fleet, decider));
    // A call that hangs must not keep the program.
    runtime.shutdown_timeout(Duration::from_millis(200));
    ended
}

async fn daemon(
    args: &DaemonArgs,
    terminal: &Terminal,
    fleet: &Fleet,
    decider: SandboxedDecider,
) -> Result<ExitCode, Failure> {
    // First of all, so that no signal finds the default.
    let mut stops = Signals::without_hang_up()?;
    let mut reload = signal(SignalKind::hangup())?;
    let exe = std::env::current_exe().context("finding this program")?;
    let dir = state_dir(args.state.as_deref())?.join(&fleet.shape.run);
    let store = open(&dir)?;
    let config = ProcessConfig { open_files: raise_open_files(), ..ProcessConfig::new(&dir, exe) };
    let backend = Arc::new(ProcessBackend::open(config).map_err(|error| anyhow!(error))?);

    let mut follow = Follow::start(&args.file, fleet);
    let mut shape = fleet.shape.clone();
    shape.generation = follow.generation();
    let builder = Host::builder(&fleet.shape.run)
        .shared_backend("process", backend.clone())
        .decider(decider)
        .policy(fleet.policy)
        .store(store);
    let builder = match fleet.generation {
        Some(_) => builder.shape(shape),
        None => builder.shape_to_number(shape),
    };
    let host = match builder.start().await {
        Ok(host) => host,
        Err(HostError::Shape(error)) => return Err(Failure::Fleet(fleet.refuse(&args.file, &error))),
        Err(error) => return Err(anyhow!(error).into()),
    };
    follow.continue_at(host.view().generation);
    let mut screen = Screen::new(terminal, &host);
    screen.note(&format!("{}: generation {}", args.file.display(), follow.generation()));
    tell(&[NotifyState::Ready, NotifyState::Status("keeping the fleet")]);

    // Half of what systemd allows; without systemd it never comes.
    let pulse = sd_notify::watchdog_enabled().map_or(Duration::MAX, |allowed| allowed / 2);
    let why = loop {
        tokio::select! {
            name = stops.next() => break Ok(name),
            ended = host.wait_ended() => {
                let words = ended.err().map_or_else(|| "it ended by itself".to_string(), |error| error.to_string());
                break Err(anyhow!(words));
            }
            _ = reload.recv() => {
                let now = NotifyState::monotonic_usec_now().unwrap_or(NotifyState::MonotonicUsec(0));
                tell(&[NotifyState::Reloading, now]);
                screen.note("hung up: reading the fleet file again");
                follow.look_now();
                tell(&[NotifyState::Ready]);
            }
            edit = follow.next() => adopt_edit(&host, &mut follow, edit, &mut screen).await,
            () = tokio::time::sleep(pulse) => if answers(&host).await { tell(&[NotifyState::Watchdog]) },
            () = screen.next() => {}
        }
    };
    tell(&[NotifyState::Stopping]);
    let ended = match why {
        Ok(name) => {
            screen.note(&format!("{name}: the fleet goes on without the daemon"));
            host.shutdown(Shutdown::Keep).await.map(|_| ExitCode::Ok).map_err(|error| anyhow!(error))
        }
        Err(error) => Err(error),
    };
    screen.close();
    let _ = tokio::time::timeout(Duration::from_secs(5), backend.shutdown()).await;
    Ok(ended?)
}

/// The state directory, its database and its key; nothing is made anew where something is missing or damaged.
fn open(dir: &Path) -> Result<SqliteStore, Failure> {
    let opened = || -> Result<SqliteStore, store::StoreError> {
        let held = StateDir::open(dir)?;
        let mut store = SqliteStore::open(&held)?;
        Secret::open(&held, &mut store)?;
        Ok(store)
    };
    Ok(opened().map_err(|error| anyhow!(error))?)
}

/// Whether the loop still turns: a host that hangs must not say that it lives.
async fn answers(host: &HostHandle) -> bool {
    tokio::time::timeout(Duration::from_secs(5), host.ping()).await.is_ok_and(|answer| answer.is_ok())
}

/// Tells systemd, where it listens.
fn tell(state: &[NotifyState<'_>]) {
    // Nobody listening is no error.
    let _ = sd_notify::notify(state);
}
