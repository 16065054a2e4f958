//! A list of commands, done one after the other: what a person types, and what a test does.

use std::io::{BufRead, Seek, Write};

use journal::ReadError;

use crate::command::CommandError;
use crate::session::{Answer, Session, StepError};

/// Why a script did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// A command is none, or names what there is not.
    #[error("line {line}: {error}")]
    Command {
        /// Its line, from 1.
        line: usize,
        /// What is wrong.
        error: CommandError,
    },
    /// The script has something else than text.
    #[error("line {line}: not text")]
    NotText {
        /// The line, from 1.
        line: usize,
    },
    /// No command is so long.
    #[error("line {line}: longer than {MAX_LINE_BYTES} bytes")]
    TooLong {
        /// The line, from 1.
        line: usize,
    },
    /// The script cannot be read, or the pages cannot be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The journal cannot be read any more.
    #[error(transparent)]
    Read(ReadError),
}

/// The longest line of a script, in bytes.
const MAX_LINE_BYTES: u64 = 4_096;

/// Does the commands of a script. Writes each one behind a `>`, and then what came of it.
///
/// # Errors
///
/// The first line that could not be done. What was before it is written.
pub fn run<R: BufRead + Seek>(
    session: &mut Session<R>,
    script: impl BufRead,
    mut out: impl Write,
) -> Result<(), ScriptError> {
    out.write_all(session.opening().as_bytes())?;
    let mut script = script;
    for line in 1.. {
        let mut bytes = Vec::new();
        if std::io::Read::take(&mut script, MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() as u64 == MAX_LINE_BYTES && !bytes.ends_with(b"\n") {
            return Err(ScriptError::TooLong { line });
        }
        let text = String::from_utf8(bytes).map_err(|_| ScriptError::NotText { line })?;
        let command = text.trim();
        if command.is_empty() || command.starts_with('#') {
            continue;
        }
        let answer = session.execute(command).map_err(|error| match error {
            StepError::Command(error) => ScriptError::Command { line, error },
            StepError::Read(error) => ScriptError::Read(error),
        })?;
        let Answer::Page(page) = answer else { break };
        write!(out, "\n> {command}\n{page}")?;
    }
    Ok(out.flush()?)
}
