//! What can go wrong with kept state: each by name, with the file, and with what a person can do.

use std::io;
use std::path::PathBuf;

use journal::{Chain, Damage};

use crate::point::Point;

/// Why state cannot be kept or read. Nothing is ever overwritten, or begun anew, because of it (SPEC 10).
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
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
    /// Another process holds the state directory.
    #[error("{} is in use by process {holder}; stop it, or choose another state directory", path.display())]
    Locked {
        /// Which directory.
        path: PathBuf,
        /// The other process's id, or `unknown`.
        holder: String,
    },
    /// Another process has the database open for writing.
    #[error("{} is locked by another process; close what has it open", path.display())]
    Busy {
        /// Which file.
        path: PathBuf,
    },
    /// Somebody else could have written it.
    #[error("{} {fault}; {remedy}", path.display())]
    Unsafe {
        /// Which file or directory.
        path: PathBuf,
        /// What is wrong with it.
        fault: String,
        /// What to do.
        remedy: &'static str,
    },
    /// No space is left.
    #[error("{} cannot grow: no space is left on its file system; make room, then start again", path.display())]
    Full {
        /// Which file.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error("{} is read-only; state has to be written before anything is done", path.display())]
    ReadOnly {
        /// Which file.
        path: PathBuf,
    },
    /// It cannot be opened.
    #[error("cannot open {}: {reason}; look at its owner and mode", path.display())]
    Denied {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It is some other file.
    #[error("{} is not a state database ({found}); choose another state directory, or move the file away", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// A newer program wrote it.
    #[error("{} has schema {found}; this program knows {known}: use the newer program", path.display())]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest known one.
        known: u32,
    },
    /// It is not what was written.
    #[error("{} is damaged: {reason}; restore it from a copy ({RESTORE})", path.display())]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A record is not what was written.
    #[error("{} is damaged: {damage}; restore it from a copy ({RESTORE})", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with the journal.
        damage: Damage,
    },
    /// The database is gone, and there was one.
    #[error("{} is missing, and {} is there: state was lost; restore it from a copy ({RESTORE})", path.display(), trace.display())]
    Missing {
        /// Which file.
        path: PathBuf,
        /// What shows that there was one.
        trace: PathBuf,
    },
    /// There is state where there should be none.
    #[error("{} is there: state is put only where there is none; choose another state directory", path.display())]
    Occupied {
        /// Which file.
        path: PathBuf,
    },
    /// The database is older than what was acknowledged.
    #[error(
        "{} ends at record {found}, and {} says that {acknowledged} were durable: records were lost, or an older copy \
         was put back; put the newer one back, or remove {} to go on from the older one ({RESTORE})",
        path.display(), witness.display(), witness.display()
    )]
    Behind {
        /// Which file.
        path: PathBuf,
        /// The file that knows better.
        witness: PathBuf,
        /// Records in the database, dropped ones included.
        found: u64,
        /// Records that were acknowledged.
        acknowledged: u64,
    },
    /// An earlier step failed, so what is durable is not known.
    #[error("the store failed before ({why}); nothing more is kept until it is opened again")]
    Poisoned {
        /// The earlier error.
        why: String,
    },
    /// A line does not follow the one before it.
    #[error("record {} does not follow record {}", found.next_seq, expected.next_seq)]
    NotNext {
        /// What it has to follow.
        expected: Chain,
        /// What it follows.
        found: Chain,
    },
    /// A record cannot be kept.
    #[error(transparent)]
    Write(#[from] journal::WriteError),
    /// A record is asked for that is not kept, or a snapshot for a place that is not.
    #[error("record {seq} is not kept: {first} to {end} are")]
    OutOfRange {
        /// Which.
        seq: u64,
        /// The oldest kept record.
        first: u64,
        /// The number that the next record will have.
        end: u64,
    },
    /// A value is too large to be kept.
    #[error("{what} has {bytes} bytes; {most} is the most")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// A command needs a name.
    #[error("a command id is empty")]
    EmptyCommandId,
    /// A result belongs to a command.
    #[error("there is no command {id:?}")]
    UnknownCommand {
        /// Which.
        id: String,
    },
    /// A result is given once.
    #[error("the command {id:?} has a result already")]
    CommandEnded {
        /// Which.
        id: String,
    },
    /// A test asked for it.
    #[error("failed at {at}, as asked")]
    Injected {
        /// Where.
        at: Point,
    },
}

const RESTORE: &str = "docs/store.md says how";
