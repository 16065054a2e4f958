//! History in a store (SPEC 10, 12): a driver that is rebuilt from it goes on where the one before was killed.

use ::journal::{Chain, Entry, Hash, Recorder};
use decider::Description;
use engine::checkpoint::CheckpointError;
use engine::driver::{Driver, DriverConfig, DriverError};
use engine::id::Millis;
use engine::io::{Input, Output};
use store::{Begun, Retention, Store, records};

use super::{JournalError, JournalFile};

/// A checkpoint is written after so many records, so that a start folds no more than that.
const CHECKPOINT_EVERY: u64 = 20_000;
/// What announces nothing, such as a result, is synced within this time: else a kill would lose the knowledge of a fleet that
/// has come to rest, and the next start would have to find it out again.
const VOLATILE_MS: Millis = 100;
/// What is kept for people: a million records, a month.
const KEEP: Retention = Retention { max_records: 1_000_000, max_age_ms: 30 * 24 * 60 * 60 * 1_000 };

/// The history of one run in a store that nobody else writes.
pub struct Durable {
    store: Box<dyn Store>,
    recorder: Recorder,
    /// Something was announced, or promised to somebody, that is not durable yet.
    dirty: bool,
    /// When the oldest record was taken that is not durable.
    volatile_since: Option<Millis>,
    checkpoint_at: u64,
    /// There is more history to drop than one step does.
    compacting: bool,
    copy: Option<Copy>,
}

/// A file that has the same records, as soon as they are durable: it is never ahead of the store.
struct Copy {
    file: JournalFile,
    waiting: Vec<(Millis, Entry)>,
}

impl Durable {
    /// Reads what a store holds of a run: the driver that folded it, or `None` when it holds nothing yet.
    ///
    /// # Errors
    ///
    /// The store is damaged, belongs to another run, or was written by an engine that decided otherwise. Nothing was changed.
    pub(crate) fn open(
        mut store: Box<dyn Store>,
        copy: Option<JournalFile>,
        config: &DriverConfig,
        description: &Description,
        now_ms: Millis,
    ) -> Result<(Self, Option<Driver>), JournalError> {
        let loaded = store.load()?;
        let mut copy = copy.map(|file| Copy { file, waiting: Vec::new() });
        if let Some(copy) = &mut copy {
            copy.file.copy_of(&mut *store)?;
        }
        if loaded.is_fresh() {
            let (recorder, draft) = Recorder::start(config, description);
            let mut durable = Durable {
                store,
                recorder,
                dirty: true,
                volatile_since: None,
                checkpoint_at: CHECKPOINT_EVERY,
                compacting: false,
                copy,
            };
            durable.take(now_ms, draft.entry())?;
            return Ok((durable, None));
        }
        let from = loaded.replay_from();
        let mut walk = match loaded.snapshot {
            Some(saved) => ::journal::Walk::after(Driver::restore(&saved.bytes)?),
            None => ::journal::Walk::new(),
        };
        for line in records(&mut *store, from)? {
            let line = line?;
            let seq = line.seq;
            walk.follow(&line).map_err(|error| JournalError::OtherEngine { seq, error })?;
        }
        let (driver, recorder) = walk.into_parts().ok_or(JournalError::NoStart)?;
        if driver.state().run != config.run {
            let (found, expected) = (driver.state().run.clone(), config.run.clone());
            return Err(JournalError::OtherStore { found, expected });
        }
        let checkpoint_at = store.head().next_seq.saturating_add(CHECKPOINT_EVERY);
        let durable =
            Durable { store, recorder, dirty: false, volatile_since: None, checkpoint_at, compacting: true, copy };
        Ok((durable, Some(driver)))
    }

    /// An input was given to the driver, and this is what it said.
    pub(crate) fn folded(
        &mut self,
        input: Input,
        error: Option<&DriverError>,
        at_ms: Millis,
    ) -> Result<(), JournalError> {
        // Whoever asked for a shape is answered: it must not be forgotten after that.
        self.dirty |= matches!(input, Input::Desired(_) | Input::Command(_) | Input::Restarted);
        if let Some(draft) = self.recorder.folded(input, error) {
            self.take(at_ms, draft.entry())?;
        }
        Ok(())
    }

    /// The driver gave an output.
    pub(crate) fn output(&mut self, output: &Output, at_ms: Millis) -> Result<(), JournalError> {
        if let Some(draft) = self.recorder.output(output) {
            self.dirty = true;
            self.take(at_ms, draft.entry())?;
        }
        Ok(())
    }

    /// Keeps a record that folds nothing; durable with the next sync.
    pub(crate) fn note(&mut self, entry: Entry, at_ms: Millis) -> Result<(), JournalError> {
        self.dirty = true;
        self.take(at_ms, entry)
    }

    /// Looks into the store, which nobody else may write.
    pub(crate) fn look<T>(&mut self, look: impl FnOnce(&mut dyn Store) -> T) -> T {
        look(&mut *self.store)
    }

    /// Takes a command with its result, which goes to the disk together with what the command does; or finds that its id was
    /// used before.
    pub(crate) fn command(
        &mut self,
        id: &str,
        body: Hash,
        at_ms: Millis,
        result: impl FnOnce() -> Vec<u8>,
    ) -> Result<Begun, JournalError> {
        let begun = self.store.begin_command(id, body, at_ms)?;
        if begun == Begun::New {
            self.dirty = true;
            self.store.end_command(id, &result())?;
        }
        Ok(begun)
    }

    /// A named value.
    pub(crate) fn meta(&mut self, key: &str) -> Result<Option<Vec<u8>>, JournalError> {
        Ok(self.store.meta(key)?)
    }

    /// Keeps a named value; durable with the next sync.
    pub(crate) fn put_meta(&mut self, key: &str, value: &[u8]) -> Result<(), JournalError> {
        self.dirty = true;
        Ok(self.store.put_meta(key, value)?)
    }

    /// Where the journal stands, with what is not durable yet.
    pub(crate) fn head(&self) -> Chain {
        self.store.head()
    }

    /// Makes durable what announces an effect, and all before it; whether there was anything.
    pub(crate) fn sync(&mut self) -> Result<bool, JournalError> {
        let dirty = self.dirty;
        if dirty {
            self.flush()?;
        }
        Ok(dirty)
    }

    /// When what announces nothing should be synced too.
    pub(crate) fn flush_at(&self) -> Option<Millis> {
        self.volatile_since.map(|since| since.saturating_add(VOLATILE_MS))
    }

    fn take(&mut self, at_ms: Millis, entry: Entry) -> Result<(), JournalError> {
        self.store.append_entry(at_ms, &entry)?;
        self.volatile_since.get_or_insert(at_ms);
        if let Some(copy) = &mut self.copy {
            copy.waiting.push((at_ms, entry));
        }
        Ok(())
    }

    /// Makes durable whatever was taken.
    pub(crate) fn flush(&mut self) -> Result<(), JournalError> {
        self.store.sync()?;
        self.synced()
    }

    /// Everything that was taken is durable.
    fn synced(&mut self) -> Result<(), JournalError> {
        self.dirty = false;
        self.volatile_since = None;
        if let Some(copy) = &mut self.copy {
            for (at_ms, entry) in copy.waiting.drain(..) {
                copy.file.copy(at_ms, entry)?;
            }
        }
        Ok(())
    }

    /// All outputs are drained: now and then the driver is written down, and history that nobody needs any more is dropped.
    pub(crate) fn rested(&mut self, driver: &Driver, now_ms: Millis) -> Result<(), JournalError> {
        if self.store.head().next_seq >= self.checkpoint_at && driver.is_between_passes() {
            self.checkpoint(driver)?;
            self.compacting = true;
        }
        // A step at a time, so that no pass waits long.
        if self.compacting {
            self.compacting = self.store.compact(KEEP, now_ms)?.more;
        }
        Ok(())
    }

    /// The host ends: the next start folds nothing.
    pub(crate) fn end(&mut self, driver: &Driver, at_ms: Millis) -> Result<(), JournalError> {
        self.take(at_ms, self.recorder.end().entry())?;
        match driver.is_between_passes() {
            true => self.checkpoint(driver)?,
            false => self.flush()?,
        }
        match &mut self.copy {
            Some(copy) => copy.file.settle(),
            None => Ok(()),
        }
    }

    fn checkpoint(&mut self, driver: &Driver) -> Result<(), JournalError> {
        let bytes = match driver.checkpoint() {
            Ok(bytes) => bytes,
            // The next rest will do.
            Err(CheckpointError::Undrained { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let head = self.store.head().next_seq;
        self.store.snapshot(head, &bytes)?;
        self.synced()?;
        self.checkpoint_at = head.saturating_add(CHECKPOINT_EVERY);
        Ok(())
    }
}
