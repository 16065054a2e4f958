//! `homeostat journal`.

mod cut;
mod show;
mod verify;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use ::journal::{ReadError, Reader};
use clap::{Subcommand, ValueHint};

use super::{ExitCode, Failure, InputError, Terminal};
use crate::fleet::open_regular;
use crate::journal::{JournalError, KeptJournal};

/// What can be done with a journal.
#[derive(Debug, Subcommand)]
pub enum JournalVerb {
    /// Show what happened, record by record
    Show(show::ShowArgs),
    /// Check that nothing was changed, removed or torn off (1 if something was)
    Verify {
        /// The journal: a file, or a run's state directory.
        #[arg(value_hint = ValueHint::AnyPath)]
        file: PathBuf,
    },
    /// Cut a torn tail back to the last whole record
    Cut(cut::CutArgs),
}

pub(super) fn run(verb: &JournalVerb, terminal: &Terminal) -> Result<ExitCode, Failure> {
    match verb {
        JournalVerb::Show(args) => show::run(args, terminal).map(|()| ExitCode::Ok),
        JournalVerb::Verify { file } => verify::run(file, terminal),
        JournalVerb::Cut(args) => cut::run(args, terminal).map(|()| ExitCode::Ok),
    }
}

/// A journal of either kind.
pub(super) type AnyReader = Reader<Box<dyn BufRead>>;

/// Opens a journal: a regular file, or what a state directory keeps, also while a daemon writes it. Of the latter the oldest
/// records may have been dropped; the chain is checked from there on.
pub(super) fn open(path: &Path) -> Result<AnyReader, Failure> {
    if let Some(kept) = open_kept(path)? {
        let first = kept.first();
        return Ok(Reader::resume(Box::new(kept), first, 0));
    }
    open_file(path)
}

/// Opens a journal that is a file of its own.
pub(super) fn open_file(path: &Path) -> Result<AnyReader, Failure> {
    let file = open_regular(path).map_err(InputError::from)?;
    Ok(Reader::new(Box::new(BufReader::with_capacity(1 << 16, file))))
}

/// As [`open`], for what needs the story from its beginning.
pub(super) fn open_whole(path: &Path) -> Result<AnyReader, Failure> {
    let reader = open(path)?;
    match reader.chain().next_seq {
        0 => Ok(reader),
        first => Err(incomplete(path, first)),
    }
}

/// The journal of a state directory, where the path is one.
pub(super) fn open_kept(path: &Path) -> Result<Option<KeptJournal>, Failure> {
    let Some(folder) = KeptJournal::folder(path) else { return Ok(None) };
    let opened = KeptJournal::open(&folder).map_err(|error| InputError {
        message: format!("{error} (a run's state directory holds a state.db)"),
        file: Some(path.display().to_string()),
        ..InputError::default()
    })?;
    Ok(Some(opened))
}

/// The records that it begins with were dropped.
pub(super) fn incomplete(path: &Path, first: u64) -> Failure {
    let message = format!("its records before {first} were dropped, and this needs all of them");
    Failure::from(InputError { message, file: Some(path.display().to_string()), ..InputError::default() })
}

/// What is no journal is a wrong input; what was one and is damaged has failed.
pub(super) fn unreadable(path: &Path, error: &ReadError) -> Failure {
    match error {
        ReadError::Empty | ReadError::NotAJournal { .. } | ReadError::Newer { .. } => Failure::from(InputError {
            message: error.to_string(),
            file: Some(path.display().to_string()),
            ..InputError::default()
        }),
        ReadError::Io(_) | ReadError::Damaged { .. } => Failure::Failed(anyhow::anyhow!("{}: {error}", path.display())),
    }
}

/// A journal that `up` cannot write: nothing was started.
pub(super) fn unusable(error: JournalError) -> Failure {
    Failure::from(InputError { message: error.to_string(), ..InputError::default() })
}
