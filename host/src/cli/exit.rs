//! How the program ends.

use std::ffi::OsString;
use std::fmt;

use client::{Class, ClientError};

use crate::fleet::FleetError;

/// The exit codes. The one place; `--help` and `docs/cli.md` repeat them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ExitCode {
    /// It worked.
    Ok = 0,
    /// It failed.
    Failed = 1,
    /// The command line or an input file is wrong. Nothing was started or changed.
    Usage = 2,
    /// Not in time (`up --until-converged --timeout`, a command's `--wait`), or not within a limit (`check --max-states`).
    Timeout = 3,
    /// The daemon could not be reached, did not let us in, or did not answer.
    Unreachable = 4,
    /// A guard refused a command.
    Guarded = 5,
    /// Two things differ: a replay decided something else than what was recorded, or `diff` found a difference.
    Diverged = 6,
    /// ^C ended it before it was done.
    Interrupted = 130,
}

/// The exit codes as `--help` shows them.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  it worked
  1  it failed
  2  the command line or an input file is wrong; nothing was started or changed
  3  not in time, or not finished within a limit
  4  the daemon could not be reached, did not let us in, or did not answer
  5  a guard refused the command, or a decider was judged and refused
  6  a replay decided something else than what was recorded, or `diff` found a difference
  130  ^C ended a simulation, a check, a test or a wait before it was done";

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        std::process::ExitCode::from(code as u8)
    }
}

/// Whether a command line that is wrong asks for JSON nonetheless: whoever reads that cannot read anything else.
pub(super) fn asks_for_json(args: &[OsString]) -> bool {
    let mut args = args.iter().skip(1).map(|arg| arg.to_string_lossy()).take_while(|arg| arg != "--");
    while let Some(arg) = args.next() {
        let value = match &*arg {
            "-o" | "--output" => args.next().unwrap_or_default(),
            arg => match arg.strip_prefix("--output=").or_else(|| arg.strip_prefix("-o=")).or(arg.strip_prefix("-o")) {
                Some(value) => value.to_owned().into(),
                None => continue,
            },
        };
        return value == "json";
    }
    false
}

/// What is wrong with the command line, in a line.
pub(super) fn usage(error: &clap::Error) -> Box<InputError> {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let said: Vec<&str> =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information")).collect();
    let message = said.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message).to_owned();
    Box::new(InputError { message, ..InputError::default() })
}

/// Why a verb did not work.
#[derive(Debug)]
pub enum Failure {
    /// The fleet file is refused.
    Fleet(FleetError),
    /// Another input is wrong.
    Input(Box<InputError>),
    /// The daemon, or the way to it.
    Client(Box<ClientError>),
    /// It failed.
    Failed(anyhow::Error),
    /// Whoever read the output has gone. Not an error.
    Closed,
}

/// Why an input other than the fleet file is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputError {
    /// What is wrong, without the file.
    pub message: String,
    /// The file.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column, from 1.
    pub column: Option<usize>,
    /// The field.
    pub field: Option<String>,
    /// The value.
    pub value: Option<String>,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
                if let Some(column) = self.column {
                    write!(f, "{column}:")?;
                }
            }
            write!(f, " ")?;
        }
        f.write_str(&self.message)
    }
}

impl Failure {
    /// How the program ends because of it.
    pub fn code(&self) -> ExitCode {
        match self {
            Failure::Fleet(_) | Failure::Input(_) => ExitCode::Usage,
            Failure::Client(error) => match error.class() {
                Class::Failed => ExitCode::Failed,
                Class::Usage => ExitCode::Usage,
                Class::Timeout => ExitCode::Timeout,
                Class::Unreachable => ExitCode::Unreachable,
                Class::Guard => ExitCode::Guarded,
            },
            Failure::Failed(_) => ExitCode::Failed,
            Failure::Closed => ExitCode::Ok,
        }
    }
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        Failure::Fleet(error)
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Failure::Input(Box::new(error))
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        if error.is_closed_pipe() { Failure::Closed } else { Failure::Client(Box::new(error)) }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Failed(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::Failed(error.into()),
        }
    }
}
