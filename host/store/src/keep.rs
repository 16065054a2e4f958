//! What a host does with a store (SPEC 10, 12): it appends what it folds, syncs before what that announces leaves, now and then
//! writes the driver down; and the next start rebuilds the driver from both. The host and the simulator use the same steps.

use decider::Description;
use engine::checkpoint::CheckpointError;
use engine::driver::{Driver, DriverConfig, DriverError};
use engine::id::Millis;
use engine::io::{Input, Output};
use journal::{Chain, Entry, Mismatch, Recorder, Walk};

use crate::error::StoreError;
use crate::records::records;
use crate::store::{Retention, Store};

/// What announces nothing, such as a result, is synced within this time: else a kill would lose the knowledge of a fleet that
/// has come to rest, and the next start would have to find it out again.
pub const VOLATILE_MS: Millis = 100;

/// When the driver is written down, and what is kept for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// A checkpoint is written after so many records, so that a start folds no more than that.
    pub checkpoint_every: u64,
    /// What history is kept.
    pub keep: Retention,
}

impl Default for Schedule {
    /// A checkpoint every 20,000 records; a million records, a month.
    fn default() -> Self {
        let keep = Retention { max_records: 1_000_000, max_age_ms: 30 * 24 * 60 * 60 * 1_000 };
        Schedule { checkpoint_every: 20_000, keep }
    }
}

/// Why a driver cannot be written down, or rebuilt from what is kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The checkpoint in it cannot be used.
    #[error("the state cannot be taken over: {0}")]
    Checkpoint(#[from] CheckpointError),
    /// Its records do not lead where they say.
    #[error(
        "record {seq} of the state was written by an engine that did something else: {error}; start the version that wrote \
         it once more and stop it, so that it leaves a checkpoint"
    )]
    OtherEngine {
        /// Which record.
        seq: u64,
        /// What differs.
        error: Mismatch,
    },
    /// Its records have no beginning.
    #[error("the state has records and no beginning; restore it from a copy")]
    NoStart,
}

/// A store that nobody else writes, and what of it is not durable yet.
#[derive(Debug)]
pub struct Keep<S: ?Sized> {
    schedule: Schedule,
    recorder: Recorder,
    /// Something was announced, or promised to somebody, that is not durable yet.
    dirty: bool,
    /// When the oldest record was taken that is not durable.
    volatile_since: Option<Millis>,
    checkpoint_at: u64,
    /// There is more history to drop than one step does.
    compacting: bool,
    store: Box<S>,
}

impl<S: Store + ?Sized> Keep<S> {
    /// The first start: the store is empty. Also gives the record that it takes.
    ///
    /// # Errors
    ///
    /// The store refuses.
    pub fn begin(
        store: Box<S>,
        schedule: Schedule,
        config: &DriverConfig,
        description: &Description,
        now_ms: Millis,
    ) -> Result<(Self, Entry), KeepError> {
        let (recorder, draft) = Recorder::start(config, description);
        let mut keep = Keep::on(store, schedule, recorder);
        keep.dirty = true;
        let entry = keep.take(now_ms, draft.entry())?;
        Ok((keep, entry))
    }

    /// A later start: what the store holds was folded, and this is the recorder after it.
    pub fn resume(store: Box<S>, schedule: Schedule, recorder: Recorder) -> Self {
        Keep { compacting: true, ..Keep::on(store, schedule, recorder) }
    }

    fn on(store: Box<S>, schedule: Schedule, recorder: Recorder) -> Self {
        let checkpoint_at = store.head().next_seq.saturating_add(schedule.checkpoint_every);
        Keep { schedule, recorder, dirty: false, volatile_since: None, checkpoint_at, compacting: false, store }
    }

    /// An input was given to the driver, and this is what it said. Gives the record.
    ///
    /// # Errors
    ///
    /// The store refuses.
    pub fn folded(
        &mut self,
        input: Input,
        error: Option<&DriverError>,
        at_ms: Millis,
    ) -> Result<Option<Entry>, KeepError> {
        // Whoever asked for a shape is answered: it must not be forgotten after that.
        self.dirty |= matches!(input, Input::Desired(_) | Input::Command(_) | Input::Restarted);
        let draft = self.recorder.folded(input, error);
        draft.map(|draft| self.take(at_ms, draft.entry())).transpose()
    }

    /// The driver gave an output. Gives the record, if it is one.
    ///
    /// # Errors
    ///
    /// The store refuses.
    pub fn output(&mut self, output: &Output, at_ms: Millis) -> Result<Option<Entry>, KeepError> {
        let Some(draft) = self.recorder.output(output) else { return Ok(None) };
        self.dirty = true;
        self.take(at_ms, draft.entry()).map(Some)
    }

    /// Takes a record that folds nothing. Gives it.
    ///
    /// # Errors
    ///
    /// The store refuses.
    pub fn note(&mut self, entry: Entry, at_ms: Millis) -> Result<Entry, KeepError> {
        self.dirty = true;
        self.take(at_ms, entry)
    }

    fn take(&mut self, at_ms: Millis, entry: Entry) -> Result<Entry, KeepError> {
        self.store.append_entry(at_ms, &entry)?;
        self.volatile_since.get_or_insert(at_ms);
        Ok(entry)
    }

    /// Something was put into the store that must be durable before anybody is told.
    pub fn promised(&mut self) {
        self.dirty = true;
    }

    /// Makes durable what announces an effect, and all before it; whether there was anything.
    ///
    /// # Errors
    ///
    /// Fatal.
    pub fn sync(&mut self) -> Result<bool, KeepError> {
        let dirty = self.dirty;
        if dirty {
            self.flush()?;
        }
        Ok(dirty)
    }

    /// When what announces nothing should be flushed too.
    pub fn flush_at(&self) -> Option<Millis> {
        self.volatile_since.map(|since| since.saturating_add(VOLATILE_MS))
    }

    /// Makes durable whatever was taken.
    ///
    /// # Errors
    ///
    /// Fatal.
    pub fn flush(&mut self) -> Result<(), KeepError> {
        self.store.sync()?;
        self.synced();
        Ok(())
    }

    fn synced(&mut self) {
        self.dirty = false;
        self.volatile_since = None;
    }

    /// All outputs are drained: now and then the driver is written down, and history that nobody needs any more is dropped.
    /// Whether everything that was taken became durable with it.
    ///
    /// # Errors
    ///
    /// Fatal.
    pub fn rested(&mut self, driver: &Driver, now_ms: Millis) -> Result<bool, KeepError> {
        let mut synced = false;
        if self.store.head().next_seq >= self.checkpoint_at && driver.is_between_passes() {
            synced = self.checkpoint(driver)?;
            self.compacting = true;
        }
        // A step at a time, so that no pass waits long.
        if self.compacting {
            self.compacting = self.store.compact(self.schedule.keep, now_ms)?.more;
        }
        Ok(synced)
    }

    /// The host ends: the next start folds nothing. Gives the record.
    ///
    /// # Errors
    ///
    /// Fatal.
    pub fn end(&mut self, driver: &Driver, at_ms: Millis) -> Result<Entry, KeepError> {
        let entry = self.take(at_ms, self.recorder.end().entry())?;
        if !(driver.is_between_passes() && self.checkpoint(driver)?) {
            self.flush()?;
        }
        Ok(entry)
    }

    /// Writes the driver down, unless its outputs are not drained: then the next rest will do. Whether it did; then everything
    /// that was taken is durable.
    ///
    /// # Errors
    ///
    /// Fatal.
    pub fn checkpoint(&mut self, driver: &Driver) -> Result<bool, KeepError> {
        let bytes = match driver.checkpoint() {
            Ok(bytes) => bytes,
            Err(CheckpointError::Undrained { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let head = self.store.head().next_seq;
        self.store.snapshot(head, &bytes)?;
        self.synced();
        self.checkpoint_at = head.saturating_add(self.schedule.checkpoint_every);
        Ok(true)
    }

    /// Where the journal stands, with what is not durable yet.
    pub fn head(&self) -> Chain {
        self.store.head()
    }

    /// The store.
    pub fn store(&mut self) -> &mut S {
        &mut self.store
    }

    /// The store, when the host is gone.
    pub fn into_store(self) -> Box<S> {
        self.store
    }
}

/// The driver that folded what a store holds, and the recorder to go on with; `None` for an empty store. Nothing is changed.
///
/// # Errors
///
/// The store is damaged, or was written by an engine that decided otherwise.
pub fn refold<S: Store + ?Sized>(store: &mut S) -> Result<Option<(Driver, Recorder)>, KeepError> {
    refold_with(store, |_| {})
}

/// The same; the driver of the checkpoint is first given to `prepare`, which breaks a rule where the simulator wants that.
///
/// # Errors
///
/// As [`refold`].
pub fn refold_with<S: Store + ?Sized>(
    store: &mut S,
    prepare: impl FnOnce(&mut Driver),
) -> Result<Option<(Driver, Recorder)>, KeepError> {
    let loaded = store.load()?;
    if loaded.is_fresh() {
        return Ok(None);
    }
    let from = loaded.replay_from();
    let mut walk = match loaded.snapshot {
        Some(saved) => {
            let mut driver = Driver::restore(&saved.bytes)?;
            prepare(&mut driver);
            Walk::after(driver)
        }
        None => Walk::new(),
    };
    for line in records(store, from)? {
        let line = line?;
        let seq = line.seq;
        walk.follow(&line).map_err(|error| KeepError::OtherEngine { seq, error })?;
    }
    walk.into_parts().map(Some).ok_or(KeepError::NoStart)
}
