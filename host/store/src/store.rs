//! The store, by the steps that matter.

use engine::id::Millis;
use journal::{Chain, Damage, EncodedLine, Entry, Hash};

use crate::command::{Begun, Command};
use crate::error::StoreError;

/// The largest checkpoint of a driver, in bytes.
pub const MAX_SNAPSHOT_BYTES: usize = 768 << 20;
/// The longest key of a value, and the largest value, in bytes.
pub const MAX_META_BYTES: usize = 1 << 20;

/// Keeps snapshot, journal, commands and a few named values (SPEC 10, 12).
///
/// What is appended is volatile. [`sync`](Store::sync) makes all of it durable together; an effect leaves only after the sync
/// that covers its record (S1). An error of `sync`, `snapshot` or `compact` is fatal: what is durable is not known, so the
/// store refuses everything after it, and only opening it anew says how things stand.
pub trait Store: Send {
    /// What is durable: checked, so that what comes from it can be relied on.
    ///
    /// # Errors
    ///
    /// Damage, or the system refuses.
    fn load(&mut self) -> Result<Loaded, StoreError>;

    /// Where the journal stands, with what is not durable yet.
    fn head(&self) -> Chain;

    /// Where the durable part of the journal stands.
    fn durable(&self) -> Chain;

    /// Takes records that follow [`head`](Store::head). Volatile: part of the next sync.
    ///
    /// # Errors
    ///
    /// They do not follow; none of them is taken.
    fn append(&mut self, lines: &[EncodedLine]) -> Result<(), StoreError>;

    /// Encodes and takes one record; gives its number. Volatile.
    ///
    /// # Errors
    ///
    /// It is too long.
    fn append_entry(&mut self, at_ms: Millis, entry: &Entry) -> Result<u64, StoreError> {
        let line = EncodedLine::encode(self.head(), at_ms, entry)?;
        let seq = line.seq;
        self.append(&[line])?;
        Ok(seq)
    }

    /// The group commit: when it returns, everything taken before is durable.
    ///
    /// # Errors
    ///
    /// Fatal, and never to be retried.
    fn sync(&mut self) -> Result<(), StoreError>;

    /// Keeps the checkpoint of a driver that has folded the records before `at_seq`, and everything taken before, durably. It
    /// takes the place of the one before it.
    ///
    /// # Errors
    ///
    /// Fatal, unless it is only too large or `at_seq` is out of range.
    fn snapshot(&mut self, at_seq: u64, checkpoint: &[u8]) -> Result<(), StoreError>;

    /// Drops, durably, records that the newest snapshot covers and that are beyond the retention, and commands that ended
    /// longer ago than it says; with it, everything taken before becomes durable. One call drops a bounded number:
    /// [`Compacted::more`] says whether to call again.
    ///
    /// # Errors
    ///
    /// Fatal.
    fn compact(&mut self, keep: Retention, now_ms: Millis) -> Result<Compacted, StoreError>;

    /// Where the journal stood before a kept record, or stands after the last one.
    ///
    /// # Errors
    ///
    /// It is not kept.
    fn chain_at(&mut self, seq: u64) -> Result<Chain, StoreError>;

    /// Some durable lines from `from_seq` on, without their line breaks and unchecked; empty at the end. At least one, and not
    /// many more than a megabyte. [`records`](crate::records()) checks them.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn page(&mut self, from_seq: u64) -> Result<Vec<Vec<u8>>, StoreError>;

    /// The error that names this store and what is wrong with its journal.
    fn damaged(&self, damage: Damage) -> StoreError;

    /// Takes a command, unless its id was taken before. Volatile: nothing may be done for it before the next sync.
    ///
    /// # Errors
    ///
    /// The id is empty or too long.
    fn begin_command(&mut self, id: &str, body: Hash, at_ms: Millis) -> Result<Begun, StoreError>;

    /// Keeps how a command ended. Volatile.
    ///
    /// # Errors
    ///
    /// It was not taken, or has ended before.
    fn end_command(&mut self, id: &str, result: &[u8]) -> Result<(), StoreError>;

    /// The command of this id, durable or not.
    ///
    /// # Errors
    ///
    /// Damage, or the system refuses.
    fn command(&mut self, id: &str) -> Result<Option<Command>, StoreError>;

    /// The commands without a result, in the order of their ids, durable or not: what a daemon that died left undone.
    ///
    /// # Errors
    ///
    /// Damage, or the system refuses.
    fn open_commands(&mut self) -> Result<Vec<Command>, StoreError>;

    /// A named value, durable or not.
    ///
    /// # Errors
    ///
    /// Damage, or the system refuses.
    fn meta(&mut self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Keeps a named value. Volatile.
    ///
    /// # Errors
    ///
    /// It is too large.
    fn put_meta(&mut self, key: &str, value: &[u8]) -> Result<(), StoreError>;
}

/// What a store holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The schema it is kept in.
    pub schema: u32,
    /// The newest checkpoint; fold the records from its `at_seq` on. Without one, fold all of them.
    pub snapshot: Option<Saved>,
    /// Where the journal stood before the oldest kept record: the hash of the last dropped one.
    pub first: Chain,
    /// Where it stands.
    pub head: Chain,
}

impl Loaded {
    /// Whether nothing was ever kept.
    pub fn is_fresh(&self) -> bool {
        self.head == Chain::default() && self.snapshot.is_none()
    }

    /// The first record that the checkpoint does not cover.
    pub fn replay_from(&self) -> u64 {
        self.snapshot.as_ref().map_or(self.first.next_seq, |saved| saved.at_seq)
    }
}

/// A kept checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The first record that it does not cover.
    pub at_seq: u64,
    /// What [`engine::driver::Driver::restore`] reads.
    pub bytes: Vec<u8>,
}

/// How much history is kept. What is needed to start again is kept in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The most records.
    pub max_records: u64,
    /// The age from which a record, or a command that ended, need not be kept.
    pub max_age_ms: Millis,
}

/// What was dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Records.
    pub records: u64,
    /// Commands.
    pub commands: u64,
    /// There is more to drop.
    pub more: bool,
}

impl Retention {
    /// The first record that stays: beyond either limit, and never one that the newest snapshot does not cover.
    pub(crate) fn drop_below(self, head: u64, young: u64, covered: u64) -> u64 {
        head.saturating_sub(self.max_records).max(young).min(covered)
    }
}

/// Refuses a checkpoint that is too large, or older than the one that is kept.
pub(crate) fn check_snapshot(kept: Option<u64>, at_seq: u64, head: Chain, bytes: &[u8]) -> Result<(), StoreError> {
    if let Some(first) = kept.filter(|kept| *kept > at_seq) {
        return Err(StoreError::OutOfRange { seq: at_seq, first, end: head.next_seq });
    }
    too_large("a checkpoint", bytes.len(), MAX_SNAPSHOT_BYTES)
}

/// Refuses a named value that is too large.
pub(crate) fn check_meta(key: &str, value: &[u8]) -> Result<(), StoreError> {
    too_large("the key of a value", key.len(), MAX_META_BYTES)?;
    too_large("a value", value.len(), MAX_META_BYTES)
}

fn too_large(what: &'static str, bytes: usize, most: usize) -> Result<(), StoreError> {
    if bytes > most { Err(StoreError::TooLarge { what, bytes, most }) } else { Ok(()) }
}
