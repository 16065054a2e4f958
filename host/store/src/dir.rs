//! The state directory and its lock: one host at a time.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::StoreError;
use crate::fault::io;

const LOCK: &str = "lock";
/// How long a directory that is in use is waited for: a child that a killed host had just forked holds the lock until it
/// runs its program.
const WAIT: Duration = Duration::from_millis(500);

/// A state directory that this process holds until this and its clones are dropped.
#[derive(Clone, Debug)]
pub struct StateDir {
    path: PathBuf,
    /// The lock goes with the open file, so it never outlives the process.
    _lock: Arc<File>,
}

impl StateDir {
    /// Makes the directory if need be, for its owner only, and takes it.
    ///
    /// # Errors
    ///
    /// Another process holds it, somebody else could write in it, or the system refuses.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|error| io("make", &path, error))?;
        let found = std::fs::metadata(&path).map_err(|error| io("look at", &path, error))?;
        check_owner(&path, &found)?;
        if found.mode() & 0o022 != 0 {
            let fault = format!("can be written by others (mode {:04o})", found.mode() & 0o7777);
            return Err(StoreError::Unsafe { path, fault, remedy: "make it its owner's alone: chmod 700" });
        }
        let at = path.join(LOCK);
        // Not truncated on opening: until it is ours it says whose it is.
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&at);
        let mut file = opened.map_err(|error| io("open", &at, error))?;
        let began = Instant::now();
        let locked = loop {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) if began.elapsed() < WAIT => std::thread::sleep(WAIT / 20),
                other => break other,
            }
        };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let read = file.take(32).read_to_string(&mut holder);
                let known = read.is_ok() && !holder.trim().is_empty();
                let holder = if known { holder.trim().into() } else { "unknown".into() };
                return Err(StoreError::Locked { path, holder });
            }
            Err(TryLockError::Error(error)) => return Err(io("lock", &at, error)),
        }
        let written =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(|error| io("write", &at, error))?;
        Ok(StateDir { path, _lock: Arc::new(file) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the names in it durable.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        File::open(&self.path).and_then(|dir| dir.sync_all()).map_err(|error| io("sync", &self.path, error))
    }
}

/// What another user owns is not ours to rely on, nor, as root, to leave behind with files that its owner cannot read.
pub(crate) fn check_owner(path: &Path, found: &std::fs::Metadata) -> Result<(), StoreError> {
    let (owner, own) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner == own {
        return Ok(());
    }
    let fault = format!("belongs to user {owner}, and this process runs as user {own}");
    Err(StoreError::Unsafe {
        path: path.into(),
        fault,
        remedy: "run this as its owner (`runuser -u USER -- homeostat …`); giving it to another user would lock its daemon out",
    })
}

/// Whether there is something of this name, whatever it is.
pub(crate) fn is_there(path: &Path) -> Result<bool, StoreError> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io("look at", path, error)),
    }
}

/// A regular file of this user that nobody else can write, and, where it is secret, nobody else can read.
pub(crate) fn check_file(path: &Path, forbidden: u32) -> Result<std::fs::Metadata, StoreError> {
    let found = std::fs::symlink_metadata(path).map_err(|error| io("look at", path, error))?;
    let unsafe_file = |fault: String, remedy| StoreError::Unsafe { path: path.into(), fault, remedy };
    if !found.is_file() {
        return Err(unsafe_file("is not a regular file".into(), "put the file itself there"));
    }
    check_owner(path, &found)?;
    if found.mode() & forbidden != 0 {
        let fault = format!("is open to others (mode {:04o})", found.mode() & 0o7777);
        return Err(unsafe_file(fault, "make it its owner's alone: chmod 600"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_in_use_names_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        let held = StateDir::open(dir.path().join("deep/er")).unwrap();
        assert_eq!(std::fs::metadata(held.path()).unwrap().mode() & 0o777, 0o700);
        let error = StateDir::open(held.path()).unwrap_err();
        let StoreError::Locked { holder, .. } = &error else { panic!("{error}") };
        assert_eq!(*holder, std::process::id().to_string());
        let path = held.path().to_owned();
        let clone = held.clone();
        drop(held);
        assert!(StateDir::open(&path).is_err());
        drop(clone);
        assert!(StateDir::open(path).is_ok());
    }

    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for (mode, is_fine) in [(0o700, true), (0o755, true), (0o770, false), (0o1777, false)] {
            std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(mode)).unwrap();
            match StateDir::open(dir.path()) {
                Ok(_) => assert!(is_fine, "{mode:o}"),
                Err(StoreError::Unsafe { .. }) => assert!(!is_fine, "{mode:o}"),
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn what_belongs_to_somebody_else_is_refused() {
        let found = std::fs::metadata(".").unwrap();
        assert!(check_owner(Path::new("."), &found).is_ok());
        if !rustix::process::geteuid().is_root() {
            println!("skipped the rest: only root can give a directory away");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(dir.path(), Some(12_345), None).unwrap();
        let error = StateDir::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("belongs to user 12345") && error.contains("runs as user 0"), "{error}");
    }

    #[test]
    fn what_is_no_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "precious").unwrap();
        assert!(StateDir::open(&file).is_err());
        assert!(StateDir::open(file.join("below")).is_err());
        assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    }
}
