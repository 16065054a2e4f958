//! What can be looked at where no daemon answers: the state directory, who holds it, and whether its database can be read.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use api::wire::{Check, Diagnosis, Verdict};
use store::{Secret, SqliteReader, StoreError};

use crate::error::ClientError;
use crate::place::{DaemonArgs, state_base};

/// The daemon does not answer, for this reason; the rest is looked at without it.
pub(crate) fn diagnose(daemon: &DaemonArgs, error: &ClientError) -> Diagnosis {
    let mut checks = Vec::new();
    let mut add = |name: &str, verdict, text: String, remedy: String| {
        checks.push(Check { name: name.into(), verdict, text, remedy });
    };
    add("daemon", Verdict::Bad, error.to_string(), error.remedy().unwrap_or_default());
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
            Ok(found) => (Verdict::Ok, format!("{at} (mode {:04o})", found.mode() & 0o7777), ""),
        }),
    )
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
    let looked = SqliteReader::open(folder).map(|reader| {
        let (first, next) = (reader.first().next_seq, reader.head().next_seq);
        let text = match next.checked_sub(first) {
            Some(0) | None => "it can be read, and has no records yet".to_owned(),
            Some(records) => format!("it can be read: {records} records, {first} to {}", next - 1),
        };
        (Verdict::Ok, text, "")
    });
    check("store", looked)
}
