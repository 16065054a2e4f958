//! The file `head`: what was acknowledged last, written beside the database after each commit.
//!
//! SQLite cuts its log back at the first byte that does not fit, which is right for what a crash tore, and wrong for what was
//! acknowledged. The witness tells the two apart. It is never ahead of the database, because it is written after the commit; so
//! it needs no sync of its own, and after a loss of power it may be behind.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use journal::{Chain, Hash};

use super::rows::Place;
use crate::dir::{check_file, is_there};
use crate::error::StoreError;
use crate::fault::io;

/// Its name in the state directory.
pub(crate) const FILE: &str = "head";
const FORM: &str = "homeostat/head/1";

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Commits so far.
    pub commits: u64,
    /// Where the journal stood.
    pub head: Chain,
}

impl Seen {
    /// Whether the database stands where it was acknowledged to stand, or went on from there. `chain_at` says where its
    /// journal stood before a record.
    pub fn check(
        self,
        place: Place,
        path: &Path,
        chain_at: impl FnOnce(u64) -> Result<Chain, StoreError>,
    ) -> Result<(), StoreError> {
        let witness = path.with_file_name(FILE);
        if self.commits > place.commits || self.head.next_seq > place.head.next_seq {
            let (found, acknowledged) = (place.head.next_seq, self.head.next_seq);
            return Err(StoreError::Behind { path: path.into(), witness, found, acknowledged });
        }
        let was = match self.commits == place.commits {
            true => Some(place.head),
            false if self.head.next_seq < place.first.next_seq => None,
            false => Some(chain_at(self.head.next_seq)?),
        };
        if was.is_some_and(|was| was != self.head) {
            let reason = format!("its history is another one than {} saw", witness.display());
            return Err(StoreError::Corrupt { path: path.into(), reason });
        }
        Ok(())
    }
}

/// The open file.
#[derive(Debug)]
pub(crate) struct Witness {
    file: File,
    path: PathBuf,
}

impl Witness {
    /// What it said when it was written last; `None` where there is none.
    pub fn read(dir: &Path) -> Result<Option<Seen>, StoreError> {
        let path = dir.join(FILE);
        if !is_there(&path)? {
            return Ok(None);
        }
        check_file(&path, 0o022)?;
        let mut bytes = Vec::new();
        let file = File::open(&path).map_err(|error| io("open", &path, error))?;
        file.take(1_024).read_to_end(&mut bytes).map_err(|error| io("read", &path, error))?;
        let reason =
            "it does not say what was durable; if the database is surely the newest one, remove this file".into();
        parse(&bytes).map(Some).ok_or(StoreError::Corrupt { path, reason })
    }

    /// Opens it for writing.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = opened.map_err(|error| io("open", &path, error))?;
        Ok(Witness { file, path })
    }

    /// Says what is durable now. The text has one length, so that it overwrites what was there.
    pub fn write(&self, seen: Seen) -> Result<(), StoreError> {
        self.file.write_all_at(text(seen).as_bytes(), 0).map_err(|error| io("write", &self.path, error))
    }

    /// Makes durable what it says.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.file.sync_all().map_err(|error| io("sync", &self.path, error))
    }
}

fn text(Seen { commits, head }: Seen) -> String {
    let said = format!("{FORM} commits {commits:020} records {:020} hash {}", head.next_seq, head.last);
    let sum = Hash::of(said.as_bytes());
    format!("{said} sum {sum}\n")
}

fn parse(bytes: &[u8]) -> Option<Seen> {
    let words: Vec<&str> = std::str::from_utf8(bytes).ok()?.split_ascii_whitespace().collect();
    let [_, _, commits, _, records, _, hash, ..] = words[..] else { return None };
    let head = Chain { next_seq: records.parse().ok()?, last: Hash::from_hex(hash.as_bytes())? };
    let seen = Seen { commits: commits.parse().ok()?, head };
    (text(seen).as_bytes() == bytes).then_some(seen)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_byte_counts() {
        let seen = Seen { commits: 7, head: Chain { next_seq: u64::MAX, last: Hash::of(b"x") } };
        let whole = text(seen).into_bytes();
        assert_eq!(parse(&whole), Some(seen));
        assert_eq!(whole.len(), text(Seen { commits: u64::MAX, head: Chain::default() }).len());
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            assert_eq!(parse(&flipped), None, "byte {at}");
            assert_eq!(parse(&whole[..at]), None);
        }
    }
}
