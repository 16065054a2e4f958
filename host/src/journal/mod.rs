//! What has to outlive the host (SPEC 5, S1, S3): the fence of attempt ids, and, where it is asked for, the whole history
//! (SPEC 12).

mod durable;
mod fence;
mod file;
mod history;
mod kept;

use std::io;
use std::path::PathBuf;

use engine::record::Record;

pub use durable::Durable;
pub use fence::{FileFence, SCHEMA};
pub(crate) use file::lock;
pub use file::{Continued, JournalFile};
pub(crate) use history::History;
pub use kept::KeptJournal;
pub use store::StateDir;

/// Keeps records. An error is fatal for the host: what was announced may not be durable.
pub trait Journal: Send {
    /// Takes a record. It need not be durable yet.
    fn append(&mut self, record: &Record) -> Result<(), JournalError>;

    /// Makes durable all that was appended. Called before the first effect that it announces leaves.
    fn sync(&mut self) -> Result<(), JournalError>;

    /// The first attempt id that no earlier start can have given out; at least 1.
    fn next_attempt(&self) -> u64;

    /// How often the host was started before with this run.
    fn starts_before(&self) -> u64;
}

/// Why state cannot be kept or read. Nothing is ever overwritten because of it.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system refuses.
    #[error("cannot {doing} {}: {error}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Its words.
        error: io::Error,
    },
    /// The file is not what the host wrote.
    #[error("{} is damaged: {reason}; restore it from a copy, or move it away when nothing of its runs is left", path.display())]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A newer host wrote it.
    #[error("{} has schema {found}; this host knows {known}: use the newer host", path.display())]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its schema.
        found: u64,
        /// The newest known one.
        known: u64,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// What the store holds cannot be taken over, or nothing can be kept in it.
    #[error(transparent)]
    Keep(#[from] store::KeepError),
    /// The store belongs to another run.
    #[error("the state is that of the run {found:?}, not of {expected:?}: name another directory")]
    OtherStore {
        /// Its run.
        found: String,
        /// The host's run.
        expected: String,
    },
    /// A journal file cannot be continued.
    #[error("{}: {error}; look at it with `homeostat journal verify`, or name another file", path.display())]
    History {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        error: ::journal::ReadError,
    },
    /// A journal file belongs to another run.
    #[error("{} is the journal of the run {found:?}, not of {expected:?}: name another file", path.display())]
    OtherRun {
        /// Which file.
        path: PathBuf,
        /// Its run.
        found: String,
        /// The host's run.
        expected: String,
    },
    /// A journal file has another history than the state.
    #[error(
        "{} is no copy of the state's journal, or lacks a beginning that the state has dropped; name another file",
        path.display()
    )]
    OtherHistory {
        /// Which file.
        path: PathBuf,
    },
    /// A journal is a regular file.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// What was named.
        path: PathBuf,
    },
    /// Another process writes the journal file.
    #[error("{} is being written by another process", path.display())]
    InUse {
        /// Which file.
        path: PathBuf,
    },
    /// A record could not be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: ::journal::WriteError,
    },
}

/// Keeps records in memory only: for tests, and for hosts whose backends die with them.
#[derive(Clone, Debug, Default)]
pub struct MemoryJournal {
    /// What was appended, in order.
    pub records: Vec<Record>,
}

impl Journal for MemoryJournal {
    fn append(&mut self, record: &Record) -> Result<(), JournalError> {
        // Operations are not asked for again; only the fence matters within one life.
        if matches!(record, Record::AttemptsReserved { .. }) {
            self.records.push(record.clone());
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        Ok(())
    }

    fn next_attempt(&self) -> u64 {
        1
    }

    fn starts_before(&self) -> u64 {
        0
    }
}
