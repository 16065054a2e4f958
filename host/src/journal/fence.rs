//! The fence of attempt ids: `attempts.json` in the state directory says, for each run, which ids may have been given out
//! (S3) and how often the host was started. Each change is a new file, made durable, then renamed over the old one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use engine::record::Record;
use serde::{Deserialize, Serialize};

use super::{Journal, JournalError, StateDir};

/// The schema of `attempts.json`.
pub const SCHEMA: u64 = 1;
const FILE: &str = "attempts.json";
/// A fence is a few lines; what is larger is not one.
const MAX_BYTES: u64 = 16 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fences {
    schema: u64,
    runs: BTreeMap<String, Fence>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fence {
    /// Ids below may have been given out.
    next_attempt: u64,
    /// Starts of the host so far, this one included.
    starts: u64,
}

/// Only the schema, to tell a newer file from a damaged one.
#[derive(Deserialize)]
struct Versioned {
    schema: u64,
}

/// Keeps the fence of attempt ids; other records are not kept. Holds the state directory.
#[derive(Debug)]
pub struct FileFence {
    dir: StateDir,
    run: String,
    fences: Fences,
    next_attempt: u64,
    starts_before: u64,
    /// Appended and not durable yet.
    dirty: bool,
}

impl FileFence {
    /// Reads the fence of a run and counts this start, durably. A missing file is a fresh start; a damaged or newer one is
    /// refused.
    pub fn open(dir: StateDir, run: &str) -> Result<Self, JournalError> {
        let path = dir.path().join(FILE);
        let mut fences = read(&path)?;
        let fence = fences.runs.entry(run.to_owned()).or_insert(Fence { next_attempt: 1, starts: 0 });
        let (next_attempt, starts_before) = (fence.next_attempt, fence.starts);
        if next_attempt == 0 || starts_before == u64::MAX {
            return Err(JournalError::Corrupt { path, reason: format!("run {run:?}: {fence:?}") });
        }
        fence.starts += 1;
        let mut fence = FileFence { dir, run: run.to_owned(), fences, next_attempt, starts_before, dirty: true };
        fence.sync()?;
        Ok(fence)
    }

    fn write(&self) -> Result<(), JournalError> {
        let (dir, path) = (self.dir.path(), self.dir.path().join(FILE));
        let fresh = dir.join(format!("{FILE}.new"));
        let io = |doing, path: &PathBuf| {
            let path = path.clone();
            move |error| JournalError::Io { doing, path, error }
        };
        let mut bytes =
            serde_json::to_vec_pretty(&self.fences).map_err(io::Error::from).map_err(io("write", &fresh))?;
        bytes.push(b'\n');
        let mut file = File::create(&fresh).map_err(io("make", &fresh))?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(io("write", &fresh))?;
        std::fs::rename(&fresh, &path).map_err(io("replace", &path))?;
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(io("sync", &dir.to_path_buf()))
    }
}

fn read(path: &PathBuf) -> Result<Fences, JournalError> {
    let io = |error| JournalError::Io { doing: "read", path: path.clone(), error };
    let corrupt = |reason: String| JournalError::Corrupt { path: path.clone(), reason };
    let size = match std::fs::metadata(path) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Fences { schema: SCHEMA, runs: BTreeMap::new() });
        }
        Err(error) => return Err(io(error)),
    };
    if size > MAX_BYTES {
        return Err(corrupt(format!("{size} bytes are too many")));
    }
    let bytes = std::fs::read(path).map_err(io)?;
    let Versioned { schema } = serde_json::from_slice(&bytes).map_err(|error| corrupt(error.to_string()))?;
    if schema > SCHEMA {
        return Err(JournalError::Newer { path: path.clone(), found: schema, known: SCHEMA });
    }
    if schema != SCHEMA {
        return Err(corrupt(format!("schema {schema} never existed")));
    }
    serde_json::from_slice(&bytes).map_err(|error| corrupt(error.to_string()))
}

impl Journal for FileFence {
    fn append(&mut self, record: &Record) -> Result<(), JournalError> {
        match record {
            Record::AttemptsReserved { below } => {
                if let Some(fence) = self.fences.runs.get_mut(&self.run)
                    && below.0 > fence.next_attempt
                {
                    fence.next_attempt = below.0;
                    self.dirty = true;
                }
            }
            Record::Pending(_) => {}
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        if self.dirty {
            self.write()?;
            self.dirty = false;
        }
        Ok(())
    }

    fn next_attempt(&self) -> u64 {
        self.next_attempt
    }

    fn starts_before(&self) -> u64 {
        self.starts_before
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use engine::id::AttemptId;

    use super::*;

    fn open(dir: &tempfile::TempDir, run: &str) -> Result<FileFence, JournalError> {
        FileFence::open(StateDir::open(dir.path()).unwrap(), run)
    }

    #[test]
    fn ids_and_starts_rise_for_each_run_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut fence = open(&dir, "demo").unwrap();
        assert_eq!((fence.next_attempt(), fence.starts_before()), (1, 0));
        fence.append(&Record::AttemptsReserved { below: AttemptId(1_025) }).unwrap();
        fence.sync().unwrap();
        drop(fence);
        let fence = open(&dir, "other").unwrap();
        assert_eq!((fence.next_attempt(), fence.starts_before()), (1, 0));
        drop(fence);
        let mut fence = open(&dir, "demo").unwrap();
        assert_eq!((fence.next_attempt(), fence.starts_before()), (1_025, 1));
        fence.append(&Record::AttemptsReserved { below: AttemptId(7) }).unwrap(); // never back
        fence.sync().unwrap();
        drop(fence);
        let fence = open(&dir, "demo").unwrap();
        assert_eq!((fence.next_attempt(), fence.starts_before()), (1_025, 2));
        assert!(!dir.path().join("attempts.json.new").exists());
    }

    #[test]
    fn what_is_damaged_or_newer_is_refused_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        for (bytes, newer) in [
            ("", false),
            ("{", false),
            (r#"{"schema": 0, "runs": {}}"#, false),
            (r#"{"schema": 1, "runs": {}, "more": 1}"#, false),
            (r#"{"schema": 1, "runs": {"demo": {"next_attempt": -1, "starts": 1}}}"#, false),
            (r#"{"schema": 1, "runs": {"demo": {"next_attempt": 0, "starts": 1}}}"#, false),
            (r#"{"schema": 2, "format": "unheard of"}"#, true),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let error = open(&dir, "demo").unwrap_err();
            let right = match &error {
                JournalError::Newer { found: 2, known: 1, .. } => newer,
                JournalError::Corrupt { .. } => !newer,
                _ => false,
            };
            assert!(right && error.to_string().contains("attempts.json"), "{bytes}: {error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), bytes);
        }
    }
}
