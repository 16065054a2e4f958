//! Compiled code on disk, so that a decider that was admitted before is not compiled again (SPEC 9, 11).
//!
//! wasmtime runs what it is given as compiled code, flipped bits included. So an entry is run only when it carries the tag of
//! this host's key over all that decides whether it fits: the component's digest, the engine's version and settings, and every
//! byte of the code. Whatever else is found is a miss: the component is compiled, and the entry replaced. No fault of the
//! cache is a fault of the load.
#![allow(unsafe_code)]

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use hmac::{Hmac, KeyInit, Mac};
use rustix::fs::OFlags;
use serde::Serialize;
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

/// What an entry starts with; the number changes when the layout does.
const MAGIC: &[u8; 16] = b"homeostat-code/1";
const TAG_BYTES: usize = 32;
const SUFFIX: &str = ".code";
/// What a file is called until it is whole.
const FRESH: &str = "fresh-";
const HEAD_BYTES: usize = MAGIC.len() + TAG_BYTES;

/// A folder of compiled code that only the holder of a key can have written.
pub struct Cache {
    folder: PathBuf,
    key: [u8; 32],
    limit_bytes: u64,
    hits: AtomicU64,
    misses: AtomicU64,
    refused: AtomicU64,
    made: AtomicU64,
    trouble: Mutex<Option<String>>,
}

/// What became of a cache since it was opened, and what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CacheUse {
    /// Loads that found their code.
    pub hits: u64,
    /// Loads that had to compile.
    pub misses: u64,
    /// Of the misses, those that found something that was not to be run: damaged, or somebody else's.
    pub refused: u64,
    /// Files in the folder.
    pub entries: u64,
    /// Their size in bytes.
    pub size_bytes: u64,
    /// What went wrong last, if anything did. Loads do not fail for it.
    pub trouble: Option<String>,
}

impl Cache {
    /// How large a cache grows when nothing else is said.
    pub const DEFAULT_BYTES: u64 = 256 << 20;

    /// A cache in this folder, which is made when there is none, for its owner only. The key has to be secret, and this host's
    /// own: who has it can make the host run any code. A folder that cannot be used is a cache that never hits.
    pub fn open(folder: impl Into<PathBuf>, key: [u8; 32]) -> Cache {
        let cache = Cache {
            folder: folder.into(),
            key,
            limit_bytes: Cache::DEFAULT_BYTES,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            made: AtomicU64::new(0),
            trouble: Mutex::new(None),
        };
        if let Err(error) = cache.prepare() {
            cache.note(&cache.folder, &error);
        }
        cache
    }

    /// The same, growing to so many bytes at most. The entries that were not used for longest make room.
    pub fn with_limit(mut self, bytes: u64) -> Cache {
        self.limit_bytes = bytes;
        self
    }

    fn prepare(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let found = std::fs::metadata(&self.folder)?;
        if found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 != 0 {
            std::fs::set_permissions(&self.folder, std::fs::Permissions::from_mode(0o700))?;
        }
        Ok(())
    }

    /// The code of this component for this engine, if it is there and ours. The digest is [`super::digest`]'s.
    pub(super) fn get(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let component = self.find(engine, digest);
        match component {
            Some(_) => self.hits.fetch_add(1, Ordering::Relaxed),
            None => self.misses.fetch_add(1, Ordering::Relaxed),
        };
        component
    }

    fn find(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let fits = fingerprint(engine);
        let path = self.path(&fits, digest)?;
        let refuse = |why: &dyn fmt::Display| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            self.note(&path, why);
            None
        };
        let entry = match self.read(&path) {
            Ok(entry) => entry,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return refuse(&error),
        };
        let Some((head, code)) = entry.split_at_checked(HEAD_BYTES) else { return refuse(&"it is cut short") };
        let (magic, tag) = head.split_at(MAGIC.len());
        if magic != MAGIC || self.mac(&fits, digest, code).verify_slice(tag).is_err() {
            return refuse(&"it is damaged, or was written with another key");
        }
        // SAFETY: the bytes are in memory of our own, and carry a tag that only this host's key makes, over this digest, this
        // engine's version and settings, and all of the code: they are what `Component::serialize` gave to `put` for such an
        // engine, unchanged.
        match unsafe { Component::deserialize(engine, code) } {
            Ok(component) => Some(component),
            Err(error) => refuse(&error),
        }
    }

    /// Reads a regular file whole; nothing is followed, waited for, or read beyond the limit.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if found.len() > self.limit_bytes {
            return Err(io::Error::other("it is larger than the cache may be"));
        }
        let mut entry = Vec::new();
        (&file).take(self.limit_bytes).read_to_end(&mut entry)?;
        // When it was used last; only the choice of what makes room depends on it.
        let _ = file.set_modified(SystemTime::now());
        Ok(entry)
    }

    /// Keeps the code of a component that was admitted.
    pub(super) fn put(&self, engine: &Engine, digest: &str, component: &Component) {
        let fits = fingerprint(engine);
        let Some(path) = self.path(&fits, digest) else { return };
        let written = component.serialize().map_err(|error| io::Error::other(format!("{error:#}")));
        if let Err(error) = written.and_then(|code| self.write(&path, &self.mac(&fits, digest, &code), &code)) {
            self.note(&path, &error);
        }
    }

    fn write(&self, path: &Path, mac: &Hmac<Sha256>, code: &[u8]) -> io::Result<()> {
        let size = (HEAD_BYTES + code.len()) as u64;
        if size > self.limit_bytes {
            return Err(io::Error::other(format!("{size} bytes of code; {} is the cache's limit", self.limit_bytes)));
        }
        self.prepare()?;
        self.make_room(size);
        let count = self.made.fetch_add(1, Ordering::Relaxed);
        let fresh = self.folder.join(format!("{FRESH}{}-{count}{SUFFIX}", std::process::id()));
        let written = (|| {
            let _ = std::fs::remove_file(&fresh);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
            file.write_all(MAGIC)?;
            file.write_all(&mac.clone().finalize().into_bytes())?;
            file.write_all(code)?;
            file.sync_all()?;
            std::fs::rename(&fresh, path)?;
            File::open(&self.folder)?.sync_all()
        })();
        if written.is_err() {
            let _ = std::fs::remove_file(&fresh);
        }
        written
    }

    /// Removes what was not used for longest until there is room for so many bytes.
    fn make_room(&self, wanted: u64) {
        let mut files = self.files();
        files.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
        let mut total: u64 = files.iter().map(|file| file.size_bytes).sum();
        for file in files {
            if total.saturating_add(wanted) <= self.limit_bytes {
                return;
            }
            if std::fs::remove_file(&file.path).is_ok() {
                total -= file.size_bytes;
            }
        }
    }

    /// Removes the code of all components but these, and what other engines left; returns how many files went. Digests are
    /// as [`super::LoadedDecider::digest`] gives them.
    pub(super) fn collect(&self, engine: &Engine, keep: &[&str]) -> usize {
        let fits = fingerprint(engine);
        let keep: Vec<PathBuf> = keep.iter().filter_map(|digest| self.path(&fits, digest)).collect();
        let unused = self.files().into_iter().filter(|file| !keep.contains(&file.path));
        unused.filter(|file| std::fs::remove_file(&file.path).is_ok()).count()
    }

    /// What became of it so far.
    pub fn usage(&self) -> CacheUse {
        let files = self.files();
        CacheUse {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            entries: files.len() as u64,
            size_bytes: files.iter().map(|file| file.size_bytes).sum(),
            trouble: self.trouble.lock().ok().and_then(|trouble| trouble.clone()),
        }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What a cache has written; other files that may lie there are none of its business.
    fn files(&self) -> Vec<Kept> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let kept = |entry: std::fs::DirEntry| {
            entry.file_name().to_str().filter(|name| is_own(name))?;
            let found = entry.metadata().ok().filter(|found| !found.is_dir())?;
            let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            Some(Kept { path: entry.path(), size_bytes: found.len(), used })
        };
        entries.flatten().filter_map(kept).collect()
    }

    /// Where the code of a component is kept; a digest that is none has no place.
    fn path(&self, fits: &[u8; 32], digest: &str) -> Option<PathBuf> {
        let digits = digest.strip_prefix("sha256:")?;
        let name = format!("{digits}-{}{SUFFIX}", hex(&fits[..8]));
        is_own(&name).then(|| self.folder.join(name))
    }

    fn mac(&self, fits: &[u8; 32], digest: &str, code: &[u8]) -> Hmac<Sha256> {
        let mut block = [0; 64];
        block[..self.key.len()].copy_from_slice(&self.key);
        let mut mac = <Hmac<Sha256> as KeyInit>::new(&block.into());
        for part in [MAGIC.as_slice(), fits, digest.as_bytes(), code] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }

    fn note(&self, path: &Path, why: &dyn fmt::Display) {
        if let Ok(mut trouble) = self.trouble.lock() {
            *trouble = Some(format!("{}: {why}", path.display()));
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Cache").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// A file of the cache.
struct Kept {
    path: PathBuf,
    size_bytes: u64,
    used: SystemTime,
}

/// Whether a cache gives such a name: 64 digits of the component and 16 of the engine, or a file that is not whole yet.
fn is_own(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(SUFFIX) else { return false };
    let digits = |text: &str, count| text.len() == count && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    stem.starts_with(FRESH)
        || stem.split_once('-').is_some_and(|(component, engine)| digits(component, 64) && digits(engine, 16))
}

/// What code has to be made for to run in this engine: wasmtime's exact version and all settings that the code depends on, the
/// processor's features among them. The host's version too, so that a release never runs the code of another.
fn fingerprint(engine: &Engine) -> [u8; 32] {
    let mut hash = Digester(Sha256::new());
    env!("CARGO_PKG_VERSION").hash(&mut hash);
    engine.precompile_compatibility_hash().hash(&mut hash);
    hash.0.finalize().into()
}

/// Feeds all that is hashed into a digest: the standard hashers have 64 bits, which can be made to collide.
struct Digester(Sha256);

impl Hasher for Digester {
    fn finish(&self) -> u64 {
        let hash: [u8; 32] = self.0.clone().finalize().into();
        hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}

/// Hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests;
