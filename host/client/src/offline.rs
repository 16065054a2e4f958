//! What can be looked at where no daemon answers: the state directory, who holds it, and whether its database can be read.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use api::wire::{Check, Diagnosis, Verdict};
use store::{Secret, SqliteReader, StoreError};

use crate::error::ClientError;
use crate::place::{DaemonArgs, state_base};

/// With less no daemon starts.
const NO_SPACE_BYTES: u64 = 4 << 20;
/// With less it is said that room should be made.
const LITTLE_SPACE_BYTES: u64 = 1 << 30;

/// The daemon does not answer, for this reason; the rest is looked at without it.
pub(crate) fn diagnose(daemon: &DaemonArgs, error: &ClientError) -> Diagnosis {
    let mut checks = Vec::new();
    let mut add = |name: &str, verdict, text: String, remedy: String| {
        checks.push(Check { name: name.into(), verdict, text, remedy });
    };
    // This is the look at its state that the hint recommends.
    let remedy = error.remedy().unwrap_or_default();
    let remedy = remedy.split_once("; `homeostat doctor").map_or(remedy.as_str(), |(start, _)| start);
    add("daemon", Verdict::Bad, error.to_string(), remedy.to_owned());
    match daemon.run_folder() {
        Err(error) => {
            let base = state_base(daemon.state.as_deref()).map(|base| base.display().to_string()).unwrap_or_default();
            let remedy = error.remedy().unwrap_or_default();
            add("state directory", Verdict::Bad, format!("{base}: {error}"), remedy);
        }
        Ok((folder, _)) => {
            checks.push(directory(&folder));
            checks.push(lock(&folder));
            checks.push(key(&folder));
            checks.push(database(&folder));
            checks.push(Check {
                name: "decider, backends, clock".into(),
                verdict: Verdict::Warning,
                text: "not looked at: only a daemon that runs can say".into(),
                remedy: String::new(),
            });
        }
    }
    Diagnosis { schema: "homeostat.diagnosis/v1".into(), checks }
}

fn check(name: &str, found: Result<(Verdict, String, &str), StoreError>) -> Check {
    let (verdict, text, remedy) = match found {
        Ok((verdict, text, remedy)) => (verdict, text, remedy.to_owned()),
        Err(error) => {
            // The store's errors end with what to do.
            let text = error.to_string();
            match text.split_once("; ") {
                Some((what, remedy)) => (Verdict::Bad, what.to_owned(), remedy.to_owned()),
                None => (Verdict::Bad, text, "docs/store.md says what to do".into()),
            }
        }
    };
    Check { name: name.into(), verdict, text, remedy }
}

fn directory(folder: &Path) -> Check {
    let at = folder.display();
    check(
        "state directory",
        Ok(match std::fs::metadata(folder) {
            Err(error) => (Verdict::Bad, format!("{at}: {error}"), "give the right one with --state and --run"),
            Ok(found) if !found.is_dir() => {
                (Verdict::Bad, format!("{at} is no directory"), "give the right one with --state")
            }
            Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => (
                Verdict::Bad,
                format!(
                    "{at} belongs to user {}, and this runs as user {}",
                    found.uid(),
                    rustix::process::geteuid().as_raw()
                ),
                "run as its owner",
            ),
            Ok(found) if found.mode() & 0o022 != 0 => (
                Verdict::Bad,
                format!("{at} can be written by others (mode {:04o})", found.mode() & 0o7777),
                "chmod 700",
            ),
            Ok(found) => room(folder, format!("{at} (mode {:04o})", found.mode() & 0o7777)),
        }),
    )
}

/// Whether a daemon could write there.
fn room(folder: &Path, at: String) -> (Verdict, String, &'static str) {
    let disk = match rustix::fs::statvfs(folder) {
        Ok(disk) => disk,
        Err(error) => return (Verdict::Warning, format!("{at}: {error}"), "look at the file system"),
    };
    if disk.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
        return (Verdict::Bad, format!("{at}: its file system is read-only"), "mount it for writing");
    }
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let text = format!("{at}, {} MiB free", free >> 20);
    match free {
        0..NO_SPACE_BYTES => (Verdict::Bad, text, "make room: on a full disk no daemon starts"),
        NO_SPACE_BYTES..LITTLE_SPACE_BYTES => {
            (Verdict::Warning, text, "make room: on a full disk the daemon stops (the nodes go on)")
        }
        LITTLE_SPACE_BYTES.. => (Verdict::Ok, text, ""),
    }
}

/// Whether a process holds the directory. What is taken to find out is given back at once; a daemon that starts waits that long.
fn lock(folder: &Path) -> Check {
    let path = folder.join("lock");
    let found = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            (Verdict::Ok, "nobody ever held it".to_owned(), "")
        }
        Err(error) => (Verdict::Bad, format!("{}: {error}", path.display()), "run as the owner of the state directory"),
        Ok(file) => match file.try_lock_shared() {
            Ok(()) => (Verdict::Ok, "no process holds the state directory".to_owned(), ""),
            Err(TryLockError::WouldBlock) => {
                let holder = std::fs::read_to_string(&path).unwrap_or_default();
                let holder = holder.trim();
                let process = if holder.is_empty() { "a process" } else { &format!("process {holder}") };
                (
                    Verdict::Warning,
                    format!("{process} holds the state directory, and does not answer at its socket"),
                    "it may be starting, ending or hanging: look at its messages before anything else is done",
                )
            }
            Err(TryLockError::Error(error)) => {
                (Verdict::Bad, format!("{}: {error}", path.display()), "does the file system know locks?")
            }
        },
    };
    check("lock", Ok(found))
}

fn key(folder: &Path) -> Check {
    check("key", Secret::look(folder).map(|_| (Verdict::Ok, "it is there, and its owner's alone".to_owned(), "")))
}

fn database(folder: &Path) -> Check {
    let looked = SqliteReader::open(folder).and_then(|mut reader| {
        reader.verify()?;
        let (first, next) = (reader.first().next_seq, reader.head().next_seq);
        let text = match next.checked_sub(first) {
            Some(0) | None => "it is whole, and has no records yet".to_owned(),
            Some(records) => format!("it is whole: {records} records, {first} to {}", next - 1),
        };
        Ok((Verdict::Ok, text, ""))
    });
    check("store", looked)
}
