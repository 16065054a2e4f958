//! `homeostat daemon`: keeps a fleet, and what it knows of it, across its own stops, crashes and restarts (SPEC 10).

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, ValueHint};
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};

use super::appoint::{Appointed, DeciderArgs};
use super::keep::{ApiArgs, Kept, Wanted};
use super::origin::Origin;
use super::trace::{self, TraceArgs};
use super::up::{Signals, state_dir};
use super::{ExitCode, Failure, Terminal};
use crate::runtime::{HostHandle, Intervals, Shutdown};

/// Arguments of `daemon`.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// The fleet file. It is watched; SIGHUP reads it at once. While it is missing or broken, the fleet goes on in the shape
    /// that was taken over last.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Where its state lives, in a folder for each run [default: $XDG_STATE_HOME/homeostat].
    #[arg(long, value_name = "DIR", env = "HOMEOSTAT_STATE", value_parser = client::state_dir(), value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    /// Who decides.
    #[command(flatten)]
    pub decider: DeciderArgs,
    /// How the interface can be reached.
    #[command(flatten)]
    pub api: ApiArgs,
    /// What is traced.
    #[command(flatten)]
    pub trace: TraceArgs,
}

/// Runs the daemon until it is told to stop. The fleet goes on without it.
pub fn run(args: &DaemonArgs, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let origin = Origin::load(&args.file, &state_dir(args.state.as_deref())?)?;
    let decider = Appointed::load(&args.decider)?;
    let _traces = trace::start(&args.trace, terminal)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(daemon(args, terminal, &origin, decider));
    // A call that hangs must not keep the program.
    runtime.shutdown_timeout(Duration::from_millis(200));
    ended
}

async fn daemon(
    args: &DaemonArgs,
    terminal: &Terminal,
    origin: &Origin,
    decider: Appointed,
) -> Result<ExitCode, Failure> {
    // First of all, so that no signal finds the default.
    let mut stops = Signals::without_hang_up()?;
    let mut reload = signal(SignalKind::hangup())?;
    let intervals = Intervals::default();
    let wanted = Wanted {
        file: &args.file,
        state: args.state.as_deref(),
        decider: &args.decider,
        api: &args.api,
        copy: None,
        goes_on: true,
        intervals,
    };
    let mut kept = Kept::start(wanted, terminal, origin, decider).await?;
    let host = kept.host.clone();
    for line in kept.describe(&args.file, origin).await.lines() {
        kept.screen.note(line);
    }
    tell(&[NotifyState::Ready, NotifyState::Status(kept.in_a_word())]);

    // Half of what systemd allows; without systemd it never comes.
    let pulse = sd_notify::watchdog_enabled().map_or(Duration::MAX, |allowed| allowed / 2);
    let mut pulses = tokio::time::interval(pulse.max(Duration::from_millis(1)));
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
                kept.screen.note("hung up: reading the fleet file again");
                kept.follow.look_now();
                kept.read_certificates_again();
                tell(&[NotifyState::Ready]);
            }
            edit = kept.follow.next() => {
                kept.adopt_edit(edit).await;
                tell(&[NotifyState::Status(kept.in_a_word())]);
            }
            lines = kept.deciders.next(&kept.host) => lines.iter().for_each(|line| kept.screen.note(line)),
            // Not one that begins anew with every event: a busy fleet must not look like a dead one.
            _ = pulses.tick() => if answers(&host).await { tell(&[NotifyState::Watchdog]) },
            () = kept.screen.next() => {}
        }
    };
    tell(&[NotifyState::Stopping]);
    let ended = match why {
        Ok(name) => {
            kept.screen.note(&format!("{name}: the fleet goes on without the daemon"));
            host.shutdown(Shutdown::Keep).await.map(|_| ExitCode::Ok).map_err(|error| anyhow!(error))
        }
        Err(error) => Err(error),
    };
    kept.close(Duration::from_secs(5)).await;
    Ok(ended?)
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
