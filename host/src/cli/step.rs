//! `homeostat step`.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Seek, Write};
use std::path::{Path, PathBuf};

use ::step::{Answer, ScriptError, Session, StepError};
use anyhow::Context;
use clap::{Args, ValueHint};
use rustix::fs::{MemfdFlags, memfd_create};

use super::journal::{incomplete, open_kept, unreadable};
use super::{ExitCode, Failure, InputError, Terminal, interrupt};
use crate::fleet::{escape, open_regular};

/// Arguments of `step`.
#[derive(Debug, Args)]
pub struct StepArgs {
    /// The journal: a file, or a run's state directory.
    #[arg(value_hint = ValueHint::AnyPath)]
    pub journal: PathBuf,
    /// Do the commands of this file, one a line; `-` is standard input.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub script: Option<PathBuf>,
    /// Look at this node from the beginning.
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
}

type Walk = Session<BufReader<File>>;

/// A journal is read in some seconds for each of so many bytes; where somebody looks at it, that is said.
const LARGE: u64 = 16 << 20;

/// The line that stands while a large journal is opened.
struct Opening(bool);

impl Opening {
    fn of(path: &Path) -> Opening {
        let bytes = path.metadata().map_or(0, |about| about.len());
        let shown = bytes >= LARGE && std::io::stderr().is_terminal();
        if shown {
            let path = escape(&path.display().to_string());
            eprint!("reading and checking {path}, {} MiB ...", bytes >> 20);
        }
        Opening(shown)
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if self.0 {
            eprint!("\r\x1b[2K");
        }
    }
}

/// A journal file; of a state directory, a copy that only this process sees: it is read to and fro.
fn open(path: &Path) -> Result<File, Failure> {
    let Some(mut kept) = open_kept(path)? else { return Ok(open_regular(path).map_err(InputError::from)?) };
    if kept.first().next_seq > 0 {
        return Err(incomplete(path, kept.first().next_seq));
    }
    let mut copied = || -> std::io::Result<File> {
        let mut copy = File::from(memfd_create("journal", MemfdFlags::CLOEXEC)?);
        std::io::copy(&mut kept, &mut copy)?;
        copy.rewind()?;
        Ok(copy)
    };
    Ok(copied().with_context(|| path.display().to_string())?)
}

pub(super) fn run(args: &StepArgs, terminal: &Terminal) -> Result<(), Failure> {
    let path = &args.journal;
    if terminal.is_json() {
        let message = "step is for people; for machines there is `journal show -o json`".into();
        return Err(InputError { message, ..InputError::default() }.into());
    }
    // A script that is not there is said before a long journal is read.
    let script = match &args.script {
        Some(file) if file.as_os_str() != "-" => Some(open_regular(file).map_err(InputError::from)?),
        _ => None,
    };
    let file = BufReader::with_capacity(1 << 16, open(path)?);
    let opening = Opening::of(path);
    let session = Session::open(file, terminal.out_color).map_err(|error| unreadable(path, &error));
    drop(opening);
    let mut session = session?;
    if session.torn_bytes() > 0 {
        terminal.warn(&format!("the last {} bytes are a record that is not finished", session.torn_bytes()));
    }
    if let Some(node) = &args.node {
        session.look_at(node).map_err(|error| wrong(path, None, &error.to_string()))?;
    }
    let stdin = std::io::stdin();
    match (script, &args.script) {
        (Some(script), Some(name)) => scripted(&mut session, BufReader::new(script), path, name),
        (None, None) if stdin.is_terminal() => talk(&mut session, path),
        _ => scripted(&mut session, stdin.lock(), path, Path::new("standard input")),
    }
}

fn scripted(session: &mut Walk, script: impl BufRead, journal: &Path, name: &Path) -> Result<(), Failure> {
    ::step::run(session, script, std::io::stdout().lock()).map_err(|error| match error {
        ScriptError::Command { line, .. } | ScriptError::NotText { line } | ScriptError::TooLong { line } => {
            // The place stands before it.
            let (message, place) = (error.to_string(), format!("line {line}: "));
            wrong(name, Some(line), message.strip_prefix(&place).unwrap_or(&message))
        }
        ScriptError::Io(error) => error.into(),
        ScriptError::Read(error) => unreadable(journal, &error),
    })
}

fn wrong(file: &Path, line: Option<usize>, message: &str) -> Failure {
    let file = Some(file.display().to_string());
    InputError { message: message.to_owned(), file, line, ..InputError::default() }.into()
}

/// With a person: a prompt, a line, a page. The terminal itself edits the line.
fn talk(session: &mut Walk, journal: &Path) -> Result<(), Failure> {
    // Also in the middle of a search: there is nothing to put in order.
    interrupt::leave(ExitCode::Ok, || ())?;
    let mut out = std::io::stdout();
    writeln!(out, "{}\n`help` lists the commands.", session.opening())?;
    let mut last = String::new();
    loop {
        write!(out, "\n{}", session.prompt())?;
        out.flush()?;
        let mut bytes = Vec::new();
        if std::io::stdin().lock().read_until(b'\n', &mut bytes)? == 0 {
            writeln!(out)?;
            return Ok(());
        }
        let typed = String::from_utf8_lossy(&bytes);
        let line = if typed.trim().is_empty() { last.clone() } else { typed.trim().to_owned() };
        match session.execute(&line) {
            Ok(Answer::Quit) => return Ok(()),
            Ok(Answer::Page(page)) => {
                out.write_all(page.as_bytes())?;
                last = line;
            }
            Err(StepError::Command(error)) => writeln!(out, "{}", escape(&error.to_string()))?,
            Err(StepError::Read(error)) => return Err(unreadable(journal, &error)),
        }
    }
}
