//! Which decider a fleet that is kept begins with, and the file that it is taken from again when that changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, ValueHint};
use store::Secret;
use tokio::sync::mpsc;

use super::up::watch_file;
use super::{Failure, InputError, LimitArgs};
use crate::registry::{Entry, Ready, Registry};
use crate::runtime::{Candidate, HostHandle, Wish};
use crate::sandbox::{Cache, LoadedDecider, Sandbox, digest};
use crate::swap::{Stage, SwapReport, Terms};

/// Compilers write in several steps; what is read after this pause is what they meant.
const SETTLE: Duration = Duration::from_millis(50);
/// Looks without being told, in case the watch misses something.
const LOOK: Duration = Duration::from_secs(2);
/// How long a decider from a watched file is watched itself.
const WATCHED: Duration = Duration::from_secs(600);
/// Differences that are listed.
const LISTED: usize = 12;

/// Which decider.
#[derive(Debug, Args)]
pub struct DeciderArgs {
    /// A decider to use instead of the built-in one. Where the state has taken the same file over before, what was swapped to
    /// since stands; `built-in` is the built-in one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub decider: Option<PathBuf>,
    /// Swap to the decider's file whenever that changes, if it would not destroy more than the one in force.
    #[arg(long, requires = "decider")]
    pub watch: bool,
    /// What the decider may use.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// What was asked for, loaded and checked; nothing else is touched yet.
pub(super) struct Appointed {
    sandbox: Sandbox,
    declared: Option<Declared>,
}

struct Declared {
    /// `None`: the built-in one.
    bytes: Option<Vec<u8>>,
    loaded: LoadedDecider,
}

impl Appointed {
    /// Loads the file, where one is named: cheap to refuse before anything is made.
    pub fn load(args: &DeciderArgs) -> Result<Self, Failure> {
        let sandbox = Sandbox::new(args.limits.limits()?).map_err(|error| anyhow!(error))?;
        let declared = match &args.decider {
            None => None,
            Some(file) if file.as_os_str() == "built-in" => {
                let loaded = sandbox.built_in().map_err(|error| anyhow!(error))?;
                Some(Declared { bytes: None, loaded })
            }
            Some(file) => {
                let bytes = read(file, &sandbox)?;
                let loaded = sandbox.load(&bytes).map_err(|error| InputError {
                    message: format!("not a decider ({}): {error}", error.class()),
                    file: Some(file.display().to_string()),
                    ..InputError::default()
                })?;
                Some(Declared { bytes: Some(bytes), loaded })
            }
        };
        Ok(Appointed { sandbox, declared })
    }

    /// The registry in a state directory, the built-in decider, and the declared one.
    pub fn settle(self, dir: &Path, secret: &Secret) -> Result<(Registry, Ready, Option<Ready>), Failure> {
        let cache = Cache::open(dir.join("compiled"), secret.key("compiled deciders"));
        let registry = Registry::in_state(dir, self.sandbox.cached(cache)).map_err(|error| anyhow!(error))?;
        let built_in = registry.ready(&Registry::built_in()).map_err(|error| anyhow!(error))?;
        let declared = match self.declared {
            None => None,
            Some(Declared { bytes, loaded }) => {
                Some(registry.keep(bytes.as_deref(), loaded).map_err(|error| anyhow!(error))?)
            }
        };
        Ok((registry, built_in, declared))
    }
}

fn read(file: &Path, sandbox: &Sandbox) -> Result<Vec<u8>, Failure> {
    let bytes = crate::fleet::read_bytes(file, sandbox.limits().component_bytes).map_err(InputError::from)?;
    Ok(bytes)
}

/// Follows the decider's file.
pub(super) struct FollowDecider {
    path: PathBuf,
    found: mpsc::Receiver<Arc<[u8]>>,
}

impl FollowDecider {
    /// From now on, in a task of its own, where that is wished.
    pub fn start(args: &DeciderArgs, registry: &Registry) -> Option<Self> {
        let path = args.decider.clone().filter(|file| args.watch && file.as_os_str() != "built-in")?;
        let (poke, changes) = mpsc::channel(1);
        let watcher = watch_file(&path, poke);
        let (sender, found) = mpsc::channel(1);
        let limit = registry.sandbox().limits().component_bytes;
        let seen = crate::fleet::read_bytes(&path, limit).ok().map(|bytes| digest(&bytes));
        tokio::spawn(look(path.clone(), limit, seen, changes, watcher, sender));
        Some(FollowDecider { path, found })
    }

    /// What is in the file now, when that changed.
    pub async fn next(follow: &mut Option<Self>) -> (PathBuf, Arc<[u8]>) {
        let Some(follow) = follow else { return std::future::pending().await };
        match follow.found.recv().await {
            Some(bytes) => (follow.path.clone(), bytes),
            None => std::future::pending().await,
        }
    }
}

async fn look(
    path: PathBuf,
    limit: u64,
    mut seen: Option<String>,
    mut changes: mpsc::Receiver<()>,
    // Held for its thread.
    _watcher: Option<notify::RecommendedWatcher>,
    sender: mpsc::Sender<Arc<[u8]>>,
) {
    loop {
        // Without a watch there is nobody to tell.
        let changed = async {
            match changes.recv().await {
                Some(()) => (),
                None => std::future::pending().await,
            }
        };
        if tokio::time::timeout(LOOK, changed).await.is_ok() {
            tokio::time::sleep(SETTLE).await;
            while changes.try_recv().is_ok() {}
        }
        let Ok(bytes) = crate::fleet::read_bytes(&path, limit) else { continue };
        let now = digest(&bytes);
        if seen.as_ref() == Some(&now) || bytes.is_empty() {
            continue;
        }
        // Half of a file is none: only what stays as it is counts.
        tokio::time::sleep(SETTLE).await;
        if crate::fleet::read_bytes(&path, limit).ok().as_ref() != Some(&bytes) {
            continue;
        }
        seen = Some(now);
        if sender.send(bytes.into()).await.is_err() {
            return;
        }
    }
}

/// Judges what the file holds now, and puts it in force unless something speaks against it; says what was found.
pub(super) async fn take_over(host: HostHandle, path: PathBuf, bytes: Arc<[u8]>) -> Vec<String> {
    let began = tokio::time::Instant::now();
    let terms = Terms { shadow: Some(Duration::ZERO), watch: Some(WATCHED), ..Terms::default() };
    let wish = Wish { terms, declares: true, ..Wish::swap(Candidate::Component(bytes)) };
    let file = path.display();
    let taken = match host.swap(wish).await {
        Ok(taken) => taken,
        Err(error) => return vec![format!("{file}: {error}")],
    };
    match (taken.outcome, taken.job) {
        (Err(refused), _) => vec![format!("{file}: not taken over: {}", refused.text)],
        (Ok(_), None) => Vec::new(),
        (Ok(_), Some(job)) => {
            let report = job.decided().await;
            let mut lines = found(&report);
            let Entry { digest, .. } = &report.candidate;
            let digest = step::text::short(digest);
            // What could not be loaded has told no name.
            let candidate = match report.candidate.name.is_empty() {
                true => digest,
                false => format!("{} ({digest})", report.candidate.title()),
            };
            let (text, ms) = (&report.text, began.elapsed().as_millis());
            lines.push(format!("{file}: {candidate}: {text}, after {ms} ms"));
            lines
        }
    }
}

/// What the shadow found, a line for each kind of difference.
fn found(report: &SwapReport) -> Vec<String> {
    let Some(shadow) = report.stage(Stage::Shadow) else { return Vec::new() };
    let Some(compared) = &shadow.compared else { return Vec::new() };
    let mut lines = vec![format!("shadow: {}", shadow.text)];
    for one in compared.divergences.iter().take(LISTED) {
        let whose = one.first.name.as_ref().map(|name| format!(", first {name}")).unwrap_or_default();
        let often = match (one.slots, one.decisions) {
            // Of a pass that has no plan no node can be told.
            (0, 1) => "1 pass".to_owned(),
            (0, passes) => format!("{passes} passes"),
            (slots, decisions) => {
                format!("{} of {}", step::text::counted(decisions, "decision"), step::text::counted(slots, "node"))
            }
        };
        let [was, is] = [&one.active, &one.candidate].map(|told| format!("{} {}", told.rule, told.verb));
        lines.push(format!("  {}: {} -> {}, {often}{whose}", one.direction.label(), was.trim(), is.trim()));
    }
    lines
}
