//! Looks into a database that another connection, or another process, writes.

use std::path::{Path, PathBuf};

use journal::{Chain, Damage};
use rusqlite::Connection;

use super::rows::{self, Place};
use super::witness::Witness;
use super::{FILE, row_error, schema};
use crate::command::Command;
use crate::error::StoreError;
use crate::fault::sqlite;
use crate::records::{RecordSource, records};
use crate::secret;
use crate::store::Saved;

/// What one page of lines may have, its last line apart.
pub(super) const PAGE_BYTES: usize = 1 << 20;

/// Reads a database as it stood when this was opened or refreshed, without its lock: for exports and questions beside a host
/// that runs. While it is open the log cannot be emptied, so it should not be kept for long without
/// [`refresh`](SqliteReader::refresh).
#[derive(Debug)]
pub struct SqliteReader {
    db: Connection,
    path: PathBuf,
    place: Place,
}

impl SqliteReader {
    /// Opens the database in this directory.
    ///
    /// # Errors
    ///
    /// It is not there, or not one; or the system refuses.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(FILE);
        schema::recognise(&path, false)?;
        let db = schema::open_to_read(&path)?;
        let place = begin(&db, &path)?;
        Ok(SqliteReader { db, path, place })
    }

    /// Goes on to what is durable now.
    ///
    /// # Errors
    ///
    /// Damage, or the system refuses.
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        self.db.execute_batch("COMMIT").map_err(|error| sqlite("read", &self.path, error))?;
        self.place = begin(&self.db, &self.path)?;
        Ok(())
    }

    /// Where the journal stood before the oldest kept record.
    pub fn first(&self) -> Chain {
        self.place.first
    }

    /// Where it stands.
    pub fn head(&self) -> Chain {
        self.place.head
    }

    /// The newest checkpoint of the driver.
    ///
    /// # Errors
    ///
    /// Damage, or the system refuses.
    pub fn snapshot(&self) -> Result<Option<Saved>, StoreError> {
        let found = rows::snapshot(&self.db).map_err(|error| row_error("read", &self.path, error))?;
        Ok(found.map(|(at, bytes)| Saved { at_seq: at.next_seq, bytes }))
    }

    /// Where the journal stood before a kept record, or stands after the last one.
    ///
    /// # Errors
    ///
    /// It is not kept.
    pub fn chain_at(&self, seq: u64) -> Result<Chain, StoreError> {
        let Place { first, head, .. } = self.place;
        if seq < first.next_seq || seq > head.next_seq {
            return Err(StoreError::OutOfRange { seq, first: first.next_seq, end: head.next_seq });
        }
        if seq == head.next_seq {
            return Ok(head);
        }
        match rows::line(&self.db, seq).map_err(|error| row_error("read", &self.path, error))? {
            Some(line) => Ok(line.before()),
            None => Err(self.damaged(Damage::Missing { expected: seq, found: seq + 1 })),
        }
    }

    /// Looks at everything that a start looks at, and at the indices: each page, each row, the whole chain, what the file
    /// `head` saw, and whose key it is. Takes as long as reading the file; nothing is changed.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn verify(&mut self) -> Result<(), StoreError> {
        // It is written after each commit: what it says now, the database says from here on.
        let folder = self.path.parent().unwrap_or(Path::new("")).to_path_buf();
        let seen = Witness::read(&folder)?;
        self.refresh()?;
        schema::check_pages(&self.db, &self.path, true)?;
        let read = |error| row_error("read", &self.path, error);
        let Place { first, head, .. } = self.place;
        let expected = head.next_seq.checked_sub(1).filter(|last| *last >= first.next_seq);
        if rows::bounds(&self.db).map_err(read)? != expected.map(|last| (first.next_seq, last)) {
            let reason =
                format!("it has other records than {} to {}, which it says it has", first.next_seq, head.next_seq);
            return Err(StoreError::Corrupt { path: self.path.clone(), reason });
        }
        rows::snapshot(&self.db).map_err(read)?;
        rows::each_command(&self.db, drop).map_err(read)?;
        rows::check_values(&self.db).map_err(read)?;
        if let Some(known) = rows::value(&self.db, secret::FINGERPRINT).map_err(read)? {
            secret::Secret::look(&folder)?.belongs(&folder, &known)?;
        }
        if let Some(seen) = seen {
            seen.check(self.place, &self.path, |seq| SqliteReader::chain_at(&*self, seq))?;
        }
        let mut records = records(self, first.next_seq)?;
        while records.next_line()?.is_some() {}
        Ok(())
    }

    /// The command of this id.
    ///
    /// # Errors
    ///
    /// Damage, or the system refuses.
    pub fn command(&self, id: &str) -> Result<Option<Command>, StoreError> {
        rows::command(&self.db, id).map_err(|error| row_error("read", &self.path, error))
    }
}

/// From here on nothing that others write is seen.
fn begin(db: &Connection, path: &Path) -> Result<Place, StoreError> {
    db.execute_batch("BEGIN").map_err(|error| sqlite("read", path, error))?;
    Place::read(db).map_err(|error| row_error("read", path, error))
}

impl RecordSource for SqliteReader {
    fn durable(&self) -> Chain {
        self.place.head
    }

    fn chain_at(&mut self, seq: u64) -> Result<Chain, StoreError> {
        SqliteReader::chain_at(self, seq)
    }

    fn page(&mut self, from_seq: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        rows::page(&self.db, from_seq, PAGE_BYTES).map_err(|error| row_error("read", &self.path, error))
    }

    fn damaged(&self, damage: Damage) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), damage }
    }
}
