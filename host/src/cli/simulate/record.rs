//! `homeostat simulate --journal`.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sim::{Outcome, RecordError, Which};

use super::super::{Failure, InputError, Terminal};
use super::{Bench, refused};

fn wrong(path: &Path, message: String) -> Failure {
    InputError { message, file: Some(path.display().to_string()), ..InputError::default() }.into()
}

fn taken(path: &Path) -> Failure {
    wrong(path, "it exists; a simulated journal needs a new file".into())
}

/// Before anything is simulated: whether a journal could be written there.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    // Also a link that leads nowhere is in the way.
    if path.symlink_metadata().is_ok() {
        return Err(taken(path));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match folder.is_dir() {
        true => Ok(()),
        false => Err(wrong(path, format!("there is no folder {}", folder.display()))),
    }
}

/// Before anything is simulated: whether a trace could be written there.
pub(super) fn check_trace(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (path.is_dir(), folder.is_dir()) {
        (true, _) => Err(wrong(path, "a folder; the trace of a violation goes to a file".into())),
        (_, false) => Err(wrong(path, format!("there is no folder {}", folder.display()))),
        _ => Ok(()),
    }
}

/// Runs one run and writes its journal.
pub(super) fn write(path: &Path, bench: &Bench, which: Which, terminal: &Terminal) -> Result<Outcome, Failure> {
    let description =
        bench.component.as_ref().map_or_else(::decider::describe, |component| component.description().clone());
    let recorded = sim::record(&bench.setup, which, &description, &mut *bench.decide());
    let (outcome, journal) = recorded.map_err(|error| match error {
        RecordError::Setup(error) => refused(error),
        RecordError::Write(error) => Failure::Failed(error.into()),
    })?;
    // For its owner only, as every journal.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = made.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => taken(path),
        _ => wrong(path, error.to_string()),
    })?;
    file.write_all(&journal).map_err(|error| anyhow::anyhow!("writing {}: {error}", path.display()))?;
    let shown = path.display();
    terminal.warn(&format!("its journal is in {shown}: `homeostat step {shown}` walks it, `replay` decides it again"));
    Ok(outcome)
}
