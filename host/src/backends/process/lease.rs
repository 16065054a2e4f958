//! A lease: a directory named after slot and attempt, and the marker in it that says whose it is.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::group::ProcessIdent;
use crate::backends::{CreateRequest, ExternalKey, Fault};

/// The marker's schema that this host writes. It reads the one before it too, which had no sum.
pub const SCHEMA: u32 = 2;
const UNSUMMED: u32 = 1;
/// The marker's file name.
pub const MARKER: &str = "lease.json";
/// Where the boot command runs.
pub const WORK: &str = "work";
/// What the boot command writes.
pub const OUTPUT: &str = "output.log";
/// Exists once the join probe held.
pub const JOINED: &str = "joined";
const MARKER_NEW: &str = ".lease.json.new";
const NEW: &str = ".new-";
const TRASH: &str = ".trash-";
/// A larger marker is not ours.
const MARKER_MAX_BYTES: u64 = 64 << 20;

/// What the marker says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marker {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The request that made it, with the key it is labelled with.
    pub request: CreateRequest,
    /// The loopback port, once looked up.
    pub port: Option<u16>,
    /// Whether the boot command was started. An attempt boots once at most.
    pub boot: BootRecord,
    /// SHA-256 over the three above: a process number that flipped would be the death of a node that lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<String>,
}

impl Marker {
    fn summed(&self) -> Result<String, serde_json::Error> {
        let content = serde_json::to_vec(&(&self.request, self.port, &self.boot))?;
        Ok(Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn is_sound(&self) -> bool {
        match &self.sum {
            None => self.schema == UNSUMMED,
            Some(sum) => self.schema == SCHEMA && self.summed().is_ok_and(|found| found == *sum),
        }
    }
}

/// How far the boot command came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum BootRecord {
    /// It was never started.
    Never,
    /// It is about to be, or was and the host ended before it could say so.
    Starting,
    /// It was started as this process.
    Started(ProcessIdent),
}

/// What is found under a lease's name.
#[derive(Debug)]
pub enum Found {
    /// Nothing.
    Absent,
    /// Our name and nothing else: a create that was cut off.
    Unfinished,
    /// A lease.
    Lease(Box<Marker>),
    /// Something that we did not make.
    Foreign(String),
    /// Ours, and not what was written.
    Damaged(String),
    /// It cannot be told.
    Unreadable(String),
}

/// The directory's name for a key; `None` for a key that cannot name one.
pub fn name_of(key: &ExternalKey) -> Option<String> {
    let plain = |text: &str| {
        (1..=80).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    (plain(&key.slot) && plain(&key.run)).then(|| format!("{}.{}", key.slot, key.attempt.0))
}

/// A file-system error in a fault's words.
pub fn fault(doing: &str, path: &Path, error: &io::Error) -> Fault {
    let reason = format!("{doing} {}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Fault::permanent(reason),
        _ => Fault::retryable(reason),
    }
}

/// Looks at what is there.
pub fn find(dir: &Path) -> Found {
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Absent,
        Err(error) => return Found::Unreadable(format!("{}: {error}", dir.display())),
        Ok(meta) if !meta.is_dir() => return Found::Foreign(format!("{} is not a directory", dir.display())),
        Ok(_) => {}
    }
    let path = dir.join(MARKER);
    let text = match read_limited(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return without_marker(dir, "has no marker"),
        Err(error) => return Found::Unreadable(format!("{}: {error}", path.display())),
    };
    #[derive(Deserialize)]
    struct Versioned {
        schema: u32,
    }
    match serde_json::from_slice::<Versioned>(&text) {
        Ok(Versioned { schema: SCHEMA | UNSUMMED }) => {}
        Ok(Versioned { schema }) => {
            return Found::Unreadable(format!("{}: schema {schema}; this host knows {SCHEMA}", path.display()));
        }
        Err(error) if error.is_eof() => return without_marker(dir, "has a marker that is cut off"),
        Err(error) => return Found::Foreign(format!("{}: {error}", path.display())),
    }
    match serde_json::from_slice::<Marker>(&text) {
        Ok(marker) if !marker.is_sound() => {
            Found::Damaged(format!("{} is damaged: it is not what was written", path.display()))
        }
        Ok(marker) if name_of(&marker.request.key).as_deref() == dir.file_name().and_then(|name| name.to_str()) => {
            Found::Lease(Box::new(marker))
        }
        Ok(marker) => Found::Foreign(format!("{} belongs to {}", dir.display(), marker.request.key)),
        Err(error) => Found::Foreign(format!("{}: {error}", path.display())),
    }
}

fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(MARKER_MAX_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// Only what a cut-off create leaves makes a directory ours to complete.
fn without_marker(dir: &Path, what: &str) -> Found {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => return Found::Unreadable(format!("{}: {error}", dir.display())),
    };
    for entry in entries {
        match entry {
            Ok(entry) if entry.file_name() == MARKER || entry.file_name() == MARKER_NEW => {}
            Ok(entry) => {
                let other = entry.file_name();
                return Found::Foreign(format!("{} {what}, but {}", dir.display(), other.to_string_lossy()));
            }
            Err(error) => return Found::Unreadable(format!("{}: {error}", dir.display())),
        }
    }
    Found::Unfinished
}

/// Adopts the directory, or makes it. Answers whether it was there.
pub fn create(leases: &Path, request: &CreateRequest) -> Result<bool, Fault> {
    let name = name_of(&request.key).ok_or_else(|| Fault::permanent(format!("{}: not a key", request.key)))?;
    let dir = leases.join(&name);
    let marker = Marker { schema: SCHEMA, request: request.clone(), port: None, boot: BootRecord::Never, sum: None };
    match find(&dir) {
        Found::Lease(found) if found.request.key == request.key => return Ok(true),
        Found::Lease(found) => {
            return Err(Fault::permanent(format!("{} belongs to {}", dir.display(), found.request.key)));
        }
        Found::Foreign(why) => return Err(Fault::permanent(format!("not ours: {why}"))),
        Found::Damaged(why) | Found::Unreadable(why) => return Err(Fault::retryable(why)),
        Found::Unfinished => {
            write_marker(&dir, &marker).map_err(|error| fault("write the marker of", &dir, &error))?;
        }
        Found::Absent => {
            let new = leases.join(format!("{NEW}{name}"));
            make(&new, &marker)
                .and_then(|()| fs::rename(&new, &dir))
                .and_then(|()| sync_dir(leases))
                .map_err(|error| fault("create", &dir, &error))?;
        }
    }
    Ok(false)
}

/// Under another name first, so that a lease appears whole.
fn make(new: &Path, marker: &Marker) -> io::Result<()> {
    remove_tree(new)?;
    DirBuilder::new().mode(0o700).create(new)?;
    write_marker(new, marker)
}

/// Replaces the marker: whole or not at all, durable when this returns.
pub fn write_marker(dir: &Path, marker: &Marker) -> io::Result<()> {
    let new = dir.join(MARKER_NEW);
    let marker = Marker { schema: SCHEMA, sum: Some(marker.summed()?), ..marker.clone() };
    let text = serde_json::to_vec_pretty(&marker)?;
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(&text)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&new, dir.join(MARKER))?;
    sync_dir(dir)
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Removes a lease's directory, and what an earlier removal left of it. First under another name, so that one that is
/// half removed never looks like a lease.
pub fn remove(leases: &Path, name: &str) -> io::Result<()> {
    let trash = leases.join(format!("{TRASH}{name}"));
    remove_tree(&trash)?;
    match fs::rename(leases.join(name), &trash) {
        Ok(()) => {
            sync_dir(leases)?;
            remove_tree(&trash)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes what cut-off creates and removals left. Such names are ours alone, and no process has ever run under them.
pub fn sweep(leases: &Path) -> io::Result<()> {
    for entry in fs::read_dir(leases)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let ours = [NEW, TRASH].iter().any(|prefix| name.strip_prefix(prefix).is_some_and(is_lease_name));
        if ours && entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    Ok(())
}

fn is_lease_name(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(slot, attempt)| !slot.is_empty() && attempt.parse::<u64>().is_ok())
}

/// The names in the directory, sorted, without those being made or removed.
pub fn names(leases: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(leases)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with(NEW) && !name.starts_with(TRASH) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Removes a directory and all below it; absent is success. Programs leave read-only directories, which would stay.
fn remove_tree(dir: &Path) -> io::Result<()> {
    let attempt = |dir: &Path| match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    match attempt(dir) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(dir);
            attempt(dir)
        }
        other => other,
    }
}

/// Follows no links; what cannot be changed is reported by the removal that follows.
fn make_writable(dir: &Path) {
    let mut pending: Vec<PathBuf> = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        let _ = fs::set_permissions(&dir, fs::Permissions::from_mode(0o700));
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        let below = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        pending.extend(below.map(|entry| entry.path()));
    }
}
