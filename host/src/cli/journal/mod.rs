//! `homeostat journal`.

mod cut;
mod show;
mod verify;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use ::journal::{ReadError, Reader};
use clap::{Subcommand, ValueHint};

use super::{ExitCode, Failure, InputError, Terminal};
use crate::fleet::open_regular;
use crate::journal::JournalError;

/// What can be done with a journal.
#[derive(Debug, Subcommand)]
pub enum JournalVerb {
    /// Show what happened, record by record
    Show(show::ShowArgs),
    /// Check that nothing was changed, removed or torn off (1 if something was)
    Verify {
        /// The journal.
        #[arg(value_hint = ValueHint::FilePath)]
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

/// Opens a journal: a regular file.
pub(super) fn open(path: &Path) -> Result<Reader<BufReader<File>>, Failure> {
    let file = open_regular(path).map_err(InputError::from)?;
    Ok(Reader::new(BufReader::with_capacity(1 << 16, file)))
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
