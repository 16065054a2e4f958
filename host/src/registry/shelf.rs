//! Where the bytes of components are kept: a file for each in the state directory, or memory.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::RegistryError;
use crate::sandbox::digest;

/// The folder in the state directory.
const FOLDER: &str = "deciders";
const ENDING: &str = ".wasm";
const PREFIX: &str = "sha256:";

/// Keeps components by their digest. What comes out of it has that digest.
#[derive(Debug)]
pub(crate) enum Shelf {
    /// `deciders/<digest>.wasm`.
    Folder(PathBuf),
    /// As long as the process lives.
    Memory(Mutex<BTreeMap<String, Arc<[u8]>>>),
}

impl Shelf {
    /// In a state directory.
    pub fn in_state(state: &Path) -> Result<Self, RegistryError> {
        let folder = state.join(FOLDER);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| io("make", &folder, error))?;
        Ok(Shelf::Folder(folder))
    }

    /// In a state directory, as it is.
    pub fn of_state(state: &Path) -> Self {
        Shelf::Folder(state.join(FOLDER))
    }

    pub fn in_memory() -> Self {
        Shelf::Memory(Mutex::default())
    }

    /// Where the bytes of a digest are, for people.
    fn path(folder: &Path, digest: &str) -> PathBuf {
        folder.join(format!("{}{ENDING}", digest.strip_prefix(PREFIX).unwrap_or(digest)))
    }

    /// Keeps bytes, durably; answers their digest.
    pub fn put(&self, bytes: &[u8]) -> Result<String, RegistryError> {
        let digest = digest(bytes);
        match self {
            Shelf::Memory(kept) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.entry(digest.clone()).or_insert_with(|| bytes.into());
            }
            Shelf::Folder(folder) => {
                let path = Self::path(folder, &digest);
                // One that is there and sound need not be written again.
                if !matches!(read(&path, bytes.len() as u64), Ok(Some(known)) if known == bytes) {
                    write(folder, &path, bytes)?;
                }
            }
        }
        Ok(digest)
    }

    /// The bytes of a digest, which have that digest.
    pub fn get(&self, wanted: &str, limit: u64) -> Result<Arc<[u8]>, RegistryError> {
        let missing = |place: String| RegistryError::Missing { digest: wanted.into(), place };
        match self {
            Shelf::Memory(kept) => {
                let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.get(wanted).cloned().ok_or_else(|| missing("memory".into()))
            }
            Shelf::Folder(folder) => {
                let path = Self::path(folder, wanted);
                let bytes = read(&path, limit)?.ok_or_else(|| missing(path.display().to_string()))?;
                let found = digest(&bytes);
                if found != wanted {
                    return Err(RegistryError::Corrupt { path, wanted: wanted.into(), found });
                }
                Ok(bytes.into())
            }
        }
    }

    /// Drops all that `keeps` does not name, and what was left half written.
    pub fn collect(&self, keeps: impl Fn(&str) -> bool) -> Result<(), RegistryError> {
        match self {
            Shelf::Memory(kept) => {
                kept.lock().unwrap_or_else(PoisonError::into_inner).retain(|digest, _| keeps(digest));
                Ok(())
            }
            Shelf::Folder(folder) => {
                for found in std::fs::read_dir(folder).map_err(|error| io("list", folder, error))? {
                    let found = found.map_err(|error| io("list", folder, error))?;
                    let name = found.file_name();
                    let name = name.to_string_lossy();
                    // What somebody else put there is left alone.
                    let Some(digits) = name.strip_suffix(ENDING) else { continue };
                    let is_ours = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                    let is_torn = digits.starts_with('.');
                    if is_torn || (is_ours && !keeps(&format!("{PREFIX}{digits}"))) {
                        let path = found.path();
                        match std::fs::remove_file(&path) {
                            Err(error) if error.kind() != ErrorKind::NotFound => {
                                return Err(io("remove", &path, error));
                            }
                            _ => {}
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

fn io(doing: &'static str, path: &Path, error: std::io::Error) -> RegistryError {
    RegistryError::Io { doing, path: path.into(), error }
}

/// At most one byte more than the limit; `None` where there is no file.
fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
    // Whoever opens a pipe waits for its other end.
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(io("open", path, std::io::Error::other("it is no file"))),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io("open", path, error)),
    }
    let file = File::open(path).map_err(|error| io("open", path, error))?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| io("read", path, error))?;
    Ok(Some(bytes))
}

/// Whole or not at all: a temporary file, made durable, then named.
fn write(folder: &Path, path: &Path, bytes: &[u8]) -> Result<(), RegistryError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Two writers of one digest do not disturb each other.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let torn = folder.join(format!(".{}-{}-{name}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let written = || -> std::io::Result<()> {
        let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&torn);
        let mut file = opened?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&torn, path)?;
        File::open(folder)?.sync_all()
    };
    written().map_err(|error| {
        // What does not fit must not lie there, too.
        let _ = std::fs::remove_file(&torn);
        io("write", path, error)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_was_put_there_comes_out_or_is_refused_by_name() {
        let state = tempfile::tempdir().unwrap();
        let shelf = Shelf::in_state(state.path()).unwrap();
        let digest = shelf.put(b"component").unwrap();
        assert_eq!(&*shelf.get(&digest, 100).unwrap(), b"component");
        let path = state.path().join("deciders").join(format!("{}.wasm", &digest[7..]));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // A flipped byte is found, and the same bytes put there again mend it.
        std::fs::write(&path, b"component?").unwrap();
        let refused = shelf.get(&digest, 100).unwrap_err();
        assert!(matches!(&refused, RegistryError::Corrupt { path: named, .. } if *named == path), "{refused}");
        assert_eq!(shelf.put(b"component").unwrap(), digest);
        assert_eq!(&*shelf.get(&digest, 100).unwrap(), b"component");
        // One that waits for ever is no file.
        std::fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        assert!(shelf.get(&digest, 100).unwrap_err().to_string().contains("it is no file"));
        shelf.put(b"component").unwrap();
        assert_eq!(&*shelf.get(&digest, 100).unwrap(), b"component");
        std::fs::remove_file(&path).unwrap();
        assert!(shelf.get(&digest, 100).unwrap_err().to_string().contains(path.to_str().unwrap()));
    }

    #[test]
    fn what_is_not_kept_goes_and_what_is_not_ours_stays() {
        let state = tempfile::tempdir().unwrap();
        let shelf = Shelf::in_state(state.path()).unwrap();
        let (one, two) = (shelf.put(b"one").unwrap(), shelf.put(b"two").unwrap());
        let folder = state.path().join("deciders");
        std::fs::write(folder.join(".9-torn.wasm"), b"t").unwrap();
        std::fs::write(folder.join("notes.txt"), b"n").unwrap();
        shelf.collect(|digest| digest == one).unwrap();
        assert!(shelf.get(&one, 100).is_ok() && shelf.get(&two, 100).is_err());
        assert!(folder.join("notes.txt").exists() && !folder.join(".9-torn.wasm").exists());
    }
}
