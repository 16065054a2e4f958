//! The steps, as transactions.

use engine::id::Millis;
use journal::{Chain, Damage, EncodedLine, Hash};

use super::reader::PAGE_BYTES;
use super::rows::RowError;
use super::{SCHEMA, SqliteStore, rows};
use crate::command::{self, Begun, Command};
use crate::error::StoreError;
use crate::point::Point;
use crate::store::{Compacted, Loaded, Retention, Saved, Store, check_meta, check_snapshot};

/// Records, and commands, that one compaction drops at most: a few milliseconds.
const DROP: u64 = 4_096;
/// Pages of the file that one compaction gives back at most.
const GIVE_BACK: u32 = 1_024;

impl Store for SqliteStore {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        self.living()?;
        rows::check_values(&self.db).map_err(|error| self.row("read", error))?;
        rows::each_command(&self.db, |_| ()).map_err(|error| self.row("read", error))?;
        let found = rows::snapshot(&self.db).map_err(|error| self.row("read", error))?;
        let mut snapshot = None;
        if let Some((at, bytes)) = found {
            let is_there = (self.place.first.next_seq..=self.place.head.next_seq).contains(&at.next_seq);
            if !is_there || self.chain(at.next_seq)? != at {
                let reason = format!("its snapshot at record {} does not belong to its journal", at.next_seq);
                return Err(StoreError::Corrupt { path: self.path.clone(), reason });
            }
            snapshot = Some(Saved { at_seq: at.next_seq, bytes });
        } else if self.place.first != Chain::default() {
            let reason = "its snapshot is gone, and records were dropped".into();
            return Err(StoreError::Corrupt { path: self.path.clone(), reason });
        }
        Ok(Loaded { schema: SCHEMA, snapshot, first: self.place.first, head: self.place.head })
    }

    fn head(&self) -> Chain {
        self.batch.head(self.place.head)
    }

    fn durable(&self) -> Chain {
        self.place.head
    }

    fn append(&mut self, lines: &[EncodedLine]) -> Result<(), StoreError> {
        self.living()?;
        self.hook.reached(Point::AppendBefore)?;
        self.batch.append(self.place.head, lines)?;
        self.hook.reached(Point::AppendAfter)
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.living()?;
        if self.batch.is_empty() {
            return Ok(());
        }
        self.fatal(|store| {
            store.hook.reached(Point::SyncBefore)?;
            store.commit(Point::SyncWithin, |_, _| Ok(()))?;
            store.hook.reached(Point::SyncAfter)
        })
    }

    fn snapshot(&mut self, at_seq: u64, checkpoint: &[u8]) -> Result<(), StoreError> {
        self.living()?;
        let at = self.chain(at_seq)?;
        let kept = rows::snapshot_at(&self.db).map_err(|error| self.row("read", error))?;
        check_snapshot(kept, at_seq, self.head(), checkpoint)?;
        self.fatal(|store| {
            store.hook.reached(Point::SnapshotBefore)?;
            store.commit(Point::SnapshotWithin, |db, _| Ok(rows::put_snapshot(db, at, checkpoint)?))?;
            store.hook.reached(Point::SnapshotAfter)
        })
    }

    fn compact(&mut self, keep: Retention, now_ms: Millis) -> Result<Compacted, StoreError> {
        self.living()?;
        self.fatal(|store| {
            store.hook.reached(Point::CompactBefore)?;
            let cutoff = now_ms.saturating_sub(keep.max_age_ms);
            let most = usize::try_from(DROP).unwrap_or(usize::MAX);
            let done = store.commit(Point::CompactWithin, |db, place| {
                let begin = place.first.next_seq;
                // No further than one step goes: the rows in between are looked at.
                let window = begin.saturating_add(DROP).min(place.head.next_seq);
                let young = rows::first_young(db, window, cutoff)?;
                let covered = rows::snapshot_at(db)?.unwrap_or(0);
                let end = keep.drop_below(place.head.next_seq, young, covered).min(window);
                let mut done = Compacted::default();
                if end > begin {
                    let last = rows::line(db, end - 1)?.ok_or_else(|| gone(end - 1))?;
                    place.first = last.after();
                    done.records = rows::drop_lines(db, end)? as u64;
                }
                done.commands = rows::drop_commands(db, cutoff, most)? as u64;
                done.more = done.records == DROP || done.commands == DROP;
                Ok(done)
            })?;
            store.give_back()?;
            store.hook.reached(Point::CompactAfter)?;
            Ok(done)
        })
    }

    fn chain_at(&mut self, seq: u64) -> Result<Chain, StoreError> {
        self.living()?;
        self.chain(seq)
    }

    fn page(&mut self, from_seq: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        self.living()?;
        let (first, end) = (self.place.first.next_seq, self.place.head.next_seq);
        if from_seq < first {
            return Err(StoreError::OutOfRange { seq: from_seq, first, end });
        }
        rows::page(&self.db, from_seq, PAGE_BYTES).map_err(|error| self.row("read", error))
    }

    fn damaged(&self, damage: Damage) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), damage }
    }

    fn begin_command(&mut self, id: &str, body: Hash, at_ms: Millis) -> Result<Begun, StoreError> {
        self.living()?;
        command::check_id(id)?;
        self.hook.reached(Point::AppendBefore)?;
        let begun = command::begin(self.known(id)?, body);
        if begun == Begun::New {
            self.batch.commands.insert(id.into(), Command::new(id, body, at_ms));
        }
        self.hook.reached(Point::AppendAfter)?;
        Ok(begun)
    }

    fn end_command(&mut self, id: &str, result: &[u8]) -> Result<(), StoreError> {
        self.living()?;
        self.hook.reached(Point::AppendBefore)?;
        let ended = command::end(self.known(id)?, id, result)?;
        self.batch.commands.insert(id.into(), ended);
        self.hook.reached(Point::AppendAfter)
    }

    fn command(&mut self, id: &str) -> Result<Option<Command>, StoreError> {
        self.living()?;
        self.known(id)
    }

    fn open_commands(&mut self) -> Result<Vec<Command>, StoreError> {
        self.living()?;
        let mut open = self.batch.commands.clone();
        let take = |command: Command| {
            // The batch knows better.
            if command.result.is_none() {
                open.entry(command.id.clone()).or_insert(command);
            }
        };
        rows::each_command(&self.db, take).map_err(|error| self.row("read", error))?;
        Ok(open.into_values().filter(|command| command.result.is_none()).collect())
    }

    fn meta(&mut self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.living()?;
        match self.batch.meta.get(key) {
            Some(value) => Ok(Some(value.clone())),
            None => rows::value(&self.db, key).map_err(|error| self.row("read", error)),
        }
    }

    fn put_meta(&mut self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.living()?;
        check_meta(key, value)?;
        self.hook.reached(Point::AppendBefore)?;
        self.batch.meta.insert(key.into(), value.into());
        self.hook.reached(Point::AppendAfter)
    }
}

fn gone(seq: u64) -> RowError {
    RowError::Line(Damage::Missing { expected: seq, found: seq + 1 })
}

impl SqliteStore {
    /// Gives pages that are free to the file system, some at a time.
    fn give_back(&mut self) -> Result<(), StoreError> {
        let given = || -> rusqlite::Result<()> {
            let mut step = self.db.prepare_cached(&format!("PRAGMA incremental_vacuum({GIVE_BACK})"))?;
            let mut rows = step.query([])?;
            while rows.next()?.is_some() {}
            Ok(())
        };
        given().map_err(|error| self.row("shrink", error.into()))
    }
}
