//! Follows the fleet file: it is watched, read again when it changes, and checked whole before anybody acts on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecursiveMode, Watcher};
use tokio::sync::mpsc;

use crate::fleet::{Fleet, FleetError};

/// Editors write in several steps; what is read after this pause is what they meant.
const SETTLE: Duration = Duration::from_millis(100);
/// How often a file that changes all the time is read again before it is taken as it is.
const STEADY_TRIES: u32 = 50;
/// Looks without being told, in case the watch misses something (another file system, a replaced folder).
const LOOK: Duration = Duration::from_secs(2);

/// What a look at the file brought.
pub(in crate::cli) enum Edit {
    /// The file cannot be taken over.
    Refused(FleetError),
    /// Another fleet.
    Fleet(Box<Fleet>),
}

/// The fleet file.
pub(in crate::cli) struct Follow {
    path: PathBuf,
    edits: mpsc::Receiver<Edit>,
    poke: mpsc::Sender<()>,
}

impl Follow {
    /// Watches the file from now on, in a task of its own.
    pub fn start(path: &Path, read: Result<&Fleet, &FleetError>) -> Follow {
        let (sender, changes) = mpsc::channel(1);
        let poke = sender.clone();
        let watcher = watch_file(path, sender);
        let (edit, edits) = mpsc::channel(1);
        let look = Look { path: path.to_path_buf(), changes, _watcher: watcher, seen: Seen::of(read) };
        tokio::spawn(look.run(edit));
        Follow { path: path.to_path_buf(), edits, poke }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at the file now.
    pub fn look_now(&self) {
        // One waiting look is enough.
        let _ = self.poke.try_send(());
    }

    /// The next edit.
    pub async fn next(&mut self) -> Edit {
        match self.edits.recv().await {
            Some(edit) => edit,
            None => std::future::pending().await,
        }
    }
}

/// Says whenever something changes where the file is. Watches are few on some machines: without one, it has to be looked at every
/// now and then.
pub(in crate::cli) fn watch_file(path: &Path, changed: mpsc::Sender<()>) -> Option<notify::RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |_| {
        // One waiting change says it all.
        let _ = changed.try_send(());
    })
    .ok()?;
    // The folder, because editors replace the file; and the folder of what a link points to.
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let target = path.canonicalize().ok().and_then(|path| path.parent().map(Path::to_path_buf));
    for folder in [Some(folder), target].into_iter().flatten() {
        let _ = watcher.watch(&folder, RecursiveMode::NonRecursive);
    }
    Some(watcher)
}

/// What the file last looked like.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Text(Arc<str>),
    Error(String),
}

impl Seen {
    fn of(read: Result<&Fleet, &FleetError>) -> Self {
        match read {
            Ok(fleet) => Seen::Text(fleet.source.clone()),
            Err(FleetError::Content(error)) => Seen::Text(error.source.clone()),
            Err(error) => Seen::Error(error.to_string()),
        }
    }
}

struct Look {
    path: PathBuf,
    changes: mpsc::Receiver<()>,
    // Held for its thread.
    _watcher: Option<notify::RecommendedWatcher>,
    seen: Seen,
}

impl Look {
    async fn run(mut self, edits: mpsc::Sender<Edit>) {
        loop {
            let changed = tokio::time::timeout(LOOK, async {
                match self.changes.recv().await {
                    Some(()) => (),
                    None => std::future::pending().await,
                }
            });
            if changed.await.is_ok() {
                tokio::time::sleep(SETTLE).await;
                while self.changes.try_recv().is_ok() {}
            }
            if let Some(edit) = self.look().await
                && edits.send(edit).await.is_err()
            {
                return;
            }
        }
    }

    /// Reads the file; `None` when it is as it was. What cannot be taken over is said once for each content.
    async fn look(&mut self) -> Option<Edit> {
        let mut read = self.read();
        // Half of a file may be a fleet by itself, with fewer groups: only what stays as it is counts.
        for _ in 0..STEADY_TRIES {
            if read.0 == self.seen {
                return None;
            }
            tokio::time::sleep(SETTLE).await;
            let before = std::mem::replace(&mut read, self.read());
            if read.0 == before.0 {
                break;
            }
        }
        self.seen = read.0;
        Some(match read.1 {
            Ok(fleet) => Edit::Fleet(Box::new(fleet)),
            Err(error) => Edit::Refused(error),
        })
    }

    fn read(&self) -> (Seen, Result<Fleet, FleetError>) {
        let loaded = Fleet::load(&self.path, &crate::cli::providers());
        (Seen::of(loaded.as_ref()), loaded)
    }
}
