//! The state directory and its lock: one host at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::JournalError;

const LOCK: &str = "lock";
/// How long a directory that is in use is waited for: a child that a killed host had just forked holds the lock until it
/// runs its program.
const WAIT: Duration = Duration::from_millis(500);

/// A state directory that this process holds until this and its clones are dropped.
#[derive(Clone, Debug)]
pub struct StateDir {
    path: PathBuf,
    /// The lock goes with the open file, so it never outlives the process.
    _lock: Arc<File>,
}

impl StateDir {
    /// Makes the directory if need be, and takes it.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let path = path.into();
        let io = |doing, path: &Path, error| JournalError::Io { doing, path: path.into(), error };
        std::fs::create_dir_all(&path).map_err(|error| io("make", &path, error))?;
        let at = path.join(LOCK);
        // Not truncated on opening: until it is ours it says whose it is.
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&at);
        let mut file = opened.map_err(|error| io("open", &at, error))?;
        let began = Instant::now();
        let locked = loop {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) if began.elapsed() < WAIT => std::thread::sleep(WAIT / 20),
                other => break other,
            }
        };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let read = file.take(32).read_to_string(&mut holder);
                let known = read.is_ok() && !holder.trim().is_empty();
                let holder = if known { holder.trim().into() } else { "unknown".into() };
                return Err(JournalError::Locked { path, holder });
            }
            Err(TryLockError::Error(error)) => return Err(io("lock", &at, error)),
        }
        let written =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(|error| io("write", &at, error))?;
        Ok(StateDir { path, _lock: Arc::new(file) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
