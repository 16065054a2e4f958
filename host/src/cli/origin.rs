//! Where a fleet to be kept comes from: its file, or, while that cannot be read, the state of the run that the file declared
//! before.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use super::Failure;
use crate::fleet::{Fleet, FleetError};

/// Says in a run's state directory which file declared it last.
const POINTER: &str = "fleet-file";
/// No path is longer, in bytes.
const PATH_MAX_BYTES: u64 = 4_096;

/// Where a fleet comes from.
#[derive(Debug)]
pub(super) enum Origin {
    /// From its file.
    File(Box<Fleet>),
    /// From the state of this run: the file cannot be read, for this reason.
    State { run: String, why: FleetError },
}

impl Origin {
    /// Reads the file. Where that fails, the run that it declared last is gone on with, if the state directories know one.
    pub fn load(file: &Path, state: &Path) -> Result<Self, Failure> {
        let why = match Fleet::load(file, &super::providers()) {
            Ok(fleet) => return Ok(Origin::File(Box::new(fleet))),
            Err(why) => why,
        };
        let mut runs = runs_of(state, file)?;
        match (runs.pop(), runs.is_empty()) {
            (Some(run), true) => Ok(Origin::State { run, why }),
            (Some(last), false) => {
                runs.push(last);
                let (file, runs) = (file.display(), runs.join(", "));
                Err(anyhow!(
                    "{why}; {file} declared several runs ({runs}), so none can be gone on with until it is mended"
                )
                .into())
            }
            (None, _) => Err(why.into()),
        }
    }

    /// The run.
    pub fn run(&self) -> &str {
        match self {
            Origin::File(fleet) => &fleet.shape.run,
            Origin::State { run, .. } => run,
        }
    }

    /// What the file declares, where it can be read.
    pub fn fleet(&self) -> Option<&Fleet> {
        match self {
            Origin::File(fleet) => Some(fleet),
            Origin::State { .. } => None,
        }
    }
}

/// Writes down which file declares the run of this state directory.
pub(super) fn remember(dir: &Path, file: &Path) -> io::Result<()> {
    let file = std::path::absolute(file)?;
    let at = dir.join(POINTER);
    if read(&at)?.as_deref() == Some(&file) {
        return Ok(());
    }
    let new = dir.join(format!(".{POINTER}.new"));
    let mut out = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    out.write_all(file.as_os_str().as_bytes())?;
    out.sync_all()?;
    fs::rename(&new, &at)?;
    fs::File::open(dir)?.sync_all()
}

/// The runs that this file declared last, sorted.
fn runs_of(state: &Path, file: &Path) -> io::Result<Vec<String>> {
    let file = std::path::absolute(file)?;
    let entries = match fs::read_dir(state) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut runs = Vec::new();
    for entry in entries {
        let entry = entry?;
        // What is not ours to read is no state that we could go on with.
        if read(&entry.path().join(POINTER)).is_ok_and(|found| found.as_deref() == Some(&file))
            && let Ok(run) = entry.file_name().into_string()
        {
            runs.push(run);
        }
    }
    runs.sort();
    Ok(runs)
}

/// What a pointer says; `None` where there is none.
fn read(pointer: &Path) -> io::Result<Option<PathBuf>> {
    let mut bytes = Vec::new();
    match fs::File::open(pointer) {
        Ok(found) => found.take(PATH_MAX_BYTES).read_to_end(&mut bytes)?,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    Ok(Some(std::ffi::OsString::from_vec(bytes).into()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_broken_file_is_gone_on_with_where_one_run_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let (state, file) = (dir.path().join("state"), dir.path().join("fleet.toml"));
        let load = || Origin::load(&file, &state);
        assert!(matches!(load(), Err(Failure::Fleet(_))), "no state at all");
        for run in ["web", "other"] {
            fs::create_dir_all(state.join(run)).unwrap();
        }
        fs::write(state.join("a-file"), "").unwrap();
        remember(&state.join("other"), &dir.path().join("other.toml")).unwrap();
        assert!(matches!(load(), Err(Failure::Fleet(_))), "none of this file");
        remember(&state.join("web"), &file).unwrap();
        remember(&state.join("web"), &file).unwrap();
        let Origin::State { run, why } = load().unwrap() else { panic!("it was read") };
        assert!(run == "web" && why.to_string().contains("fleet.toml"), "{why}");
        fs::write(&file, "run = 7").unwrap();
        assert!(matches!(load(), Ok(Origin::State { .. })));
        remember(&state.join("other"), &file).unwrap();
        let Err(Failure::Failed(error)) = load() else { panic!("which?") };
        assert!(error.to_string().contains("(other, web)"), "{error}");
    }
}
