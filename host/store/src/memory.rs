//! A store in memory, with a durable and a volatile part: for the simulator, for tests, and for hosts whose backends die with
//! them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use engine::id::Millis;
use journal::{Chain, Damage, EncodedLine, Hash};

use crate::batch::Batch;
use crate::command::{self, Begun, Command};
use crate::error::StoreError;
use crate::point::{FailPoint, Hook, Point};
use crate::store::{Compacted, Loaded, Retention, Saved, Store, check_meta, check_snapshot};

/// The schema that it says it has.
const SCHEMA: u32 = 1;
/// Records of a page, and records or commands dropped by one compaction.
const PAGE: usize = 256;

/// Keeps everything in memory. A clone is another store with the same content.
#[derive(Default)]
pub struct MemoryStore {
    durable: Durable,
    batch: Batch,
    poisoned: Option<String>,
    hook: Hook,
}

#[derive(Clone, Debug, Default)]
struct Durable {
    first: Chain,
    head: Chain,
    lines: VecDeque<Arc<EncodedLine>>,
    snapshot: Option<(u64, Arc<[u8]>)>,
    commands: BTreeMap<String, Command>,
    meta: BTreeMap<String, Vec<u8>>,
}

impl Clone for MemoryStore {
    /// Without the fail-point.
    fn clone(&self) -> Self {
        let MemoryStore { durable, batch, poisoned, hook: _ } = self;
        let (durable, batch, poisoned) = (durable.clone(), batch.clone(), poisoned.clone());
        MemoryStore { durable, batch, poisoned, hook: Hook::default() }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("durable", &self.durable.head)
            .field("head", &self.head())
            .field("poisoned", &self.poisoned)
            .finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// With nothing in it.
    pub fn new() -> Self {
        MemoryStore::default()
    }

    /// The process dies and starts again: what was not synced is gone, and the store is open again. The fail-point stays.
    pub fn crash(&mut self) {
        self.batch = Batch::default();
        self.poisoned = None;
    }

    /// Asks this at every boundary from now on; nothing where it is `None`.
    pub fn set_fail_point(&mut self, fail_point: Option<Box<dyn FailPoint>>) {
        self.hook = Hook(fail_point);
    }

    fn living(&self) -> Result<(), StoreError> {
        match &self.poisoned {
            Some(why) => Err(StoreError::Poisoned { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// A step after which, when it fails, nothing is known.
    fn fatal<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let done = step(self);
        if let Err(error) = &done {
            self.poisoned = Some(error.to_string());
        }
        done
    }

    fn commit(&mut self) {
        let Batch { lines, commands, meta } = std::mem::take(&mut self.batch);
        if let Some(last) = lines.last() {
            self.durable.head = last.after();
        }
        self.durable.lines.extend(lines.into_iter().map(Arc::new));
        self.durable.commands.extend(commands);
        self.durable.meta.extend(meta);
    }

    fn known(&self, id: &str) -> Option<Command> {
        self.batch.commands.get(id).or_else(|| self.durable.commands.get(id)).cloned()
    }

    fn out_of_range(&self, seq: u64) -> StoreError {
        StoreError::OutOfRange { seq, first: self.durable.first.next_seq, end: self.head().next_seq }
    }

    fn drop_old(&mut self, keep: Retention, now_ms: Millis) -> Compacted {
        let durable = &mut self.durable;
        let cutoff = now_ms.saturating_sub(keep.max_age_ms);
        let young =
            durable.lines.iter().find(|line| line.at_ms >= cutoff).map_or(durable.head.next_seq, |line| line.seq);
        let covered = durable.snapshot.as_ref().map_or(0, |(at_seq, _)| *at_seq);
        let end = keep.drop_below(durable.head.next_seq, young, covered);
        let mut done = Compacted::default();
        while let Some(line) = durable.lines.front().filter(|line| line.seq < end) {
            if done.records == PAGE as u64 {
                done.more = true;
                break;
            }
            durable.first = line.after();
            durable.lines.pop_front();
            done.records += 1;
        }
        let over = |command: &&Command| command.result.is_some() && command.at_ms < cutoff;
        let ended: Vec<String> = durable.commands.values().filter(over).map(|command| command.id.clone()).collect();
        done.more |= ended.len() > PAGE;
        for id in ended.iter().take(PAGE) {
            durable.commands.remove(id);
            done.commands += 1;
        }
        done
    }
}

impl Store for MemoryStore {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        self.living()?;
        let saved = self.durable.snapshot.as_ref();
        let snapshot = saved.map(|(at_seq, bytes)| Saved { at_seq: *at_seq, bytes: bytes.to_vec() });
        Ok(Loaded { schema: SCHEMA, snapshot, first: self.durable.first, head: self.durable.head })
    }

    fn head(&self) -> Chain {
        self.batch.head(self.durable.head)
    }

    fn durable(&self) -> Chain {
        self.durable.head
    }

    fn append(&mut self, lines: &[EncodedLine]) -> Result<(), StoreError> {
        self.living()?;
        self.hook.reached(Point::AppendBefore)?;
        self.batch.append(self.durable.head, lines)?;
        self.hook.reached(Point::AppendAfter)
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.living()?;
        if self.batch.is_empty() {
            return Ok(());
        }
        self.fatal(|store| {
            store.hook.reached(Point::SyncBefore)?;
            store.commit();
            store.hook.reached(Point::SyncAfter)
        })
    }

    fn snapshot(&mut self, at_seq: u64, checkpoint: &[u8]) -> Result<(), StoreError> {
        self.living()?;
        self.chain_at(at_seq)?;
        check_snapshot(self.durable.snapshot.as_ref().map(|(at_seq, _)| *at_seq), at_seq, self.head(), checkpoint)?;
        self.fatal(|store| {
            store.hook.reached(Point::SnapshotBefore)?;
            store.commit();
            store.durable.snapshot = Some((at_seq, checkpoint.into()));
            store.hook.reached(Point::SnapshotAfter)
        })
    }

    fn compact(&mut self, keep: Retention, now_ms: Millis) -> Result<Compacted, StoreError> {
        self.living()?;
        self.fatal(|store| {
            store.hook.reached(Point::CompactBefore)?;
            store.commit();
            let done = store.drop_old(keep, now_ms);
            store.hook.reached(Point::CompactAfter)?;
            Ok(done)
        })
    }

    fn chain_at(&mut self, seq: u64) -> Result<Chain, StoreError> {
        let Durable { first, head, lines, .. } = &self.durable;
        if seq == first.next_seq {
            return Ok(*first);
        }
        if seq == head.next_seq {
            return Ok(*head);
        }
        let at = seq.checked_sub(first.next_seq).and_then(|at| usize::try_from(at).ok());
        let kept = at.and_then(|at| lines.get(at)).map(|line| line.before());
        kept.or_else(|| self.batch.chain_at(seq)).ok_or_else(|| self.out_of_range(seq))
    }

    fn page(&mut self, from_seq: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        self.living()?;
        let at = from_seq.checked_sub(self.durable.first.next_seq).ok_or_else(|| self.out_of_range(from_seq))?;
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        Ok(self.durable.lines.iter().skip(at).take(PAGE).map(|line| line.bytes.clone()).collect())
    }

    fn damaged(&self, damage: Damage) -> StoreError {
        StoreError::Damaged { path: PathBuf::from("the store in memory"), damage }
    }

    fn begin_command(&mut self, id: &str, body: Hash, at_ms: Millis) -> Result<Begun, StoreError> {
        self.living()?;
        command::check_id(id)?;
        self.hook.reached(Point::AppendBefore)?;
        let begun = command::begin(self.known(id), body);
        if begun == Begun::New {
            self.batch.commands.insert(id.into(), Command::new(id, body, at_ms));
        }
        self.hook.reached(Point::AppendAfter)?;
        Ok(begun)
    }

    fn end_command(&mut self, id: &str, result: &[u8]) -> Result<(), StoreError> {
        self.living()?;
        self.hook.reached(Point::AppendBefore)?;
        let ended = command::end(self.known(id), id, result)?;
        self.batch.commands.insert(id.into(), ended);
        self.hook.reached(Point::AppendAfter)
    }

    fn command(&mut self, id: &str) -> Result<Option<Command>, StoreError> {
        self.living()?;
        Ok(self.known(id))
    }

    fn open_commands(&mut self) -> Result<Vec<Command>, StoreError> {
        self.living()?;
        let mut all = self.durable.commands.clone();
        all.extend(self.batch.commands.clone());
        Ok(all.into_values().filter(|command| command.result.is_none()).collect())
    }

    fn meta(&mut self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.living()?;
        Ok(self.batch.meta.get(key).or_else(|| self.durable.meta.get(key)).cloned())
    }

    fn put_meta(&mut self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.living()?;
        check_meta(key, value)?;
        self.hook.reached(Point::AppendBefore)?;
        self.batch.meta.insert(key.into(), value.into());
        self.hook.reached(Point::AppendAfter)
    }
}
