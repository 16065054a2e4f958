//! History in a store (SPEC 10, 12): a driver that is rebuilt from it goes on where the one before was killed.

use ::journal::{Chain, Entry, Hash};
use decider::Description;
use engine::driver::{Driver, DriverConfig, DriverError};
use engine::id::Millis;
use engine::io::{Input, Output};
use store::{Begun, Keep, Schedule, Store};

use super::{JournalError, JournalFile};

/// The history of one run in a store that nobody else writes.
pub struct Durable {
    keep: Keep<dyn Store>,
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
        let known = store::refold(&mut *store)?;
        let mut copy = copy.map(|file| Copy { file, waiting: Vec::new() });
        if let Some(copy) = &mut copy {
            copy.file.copy_of(&mut *store)?;
        }
        let schedule = Schedule::default();
        let Some((driver, recorder)) = known else {
            let (keep, first) = Keep::begin(store, schedule, config, description, now_ms)?;
            let mut durable = Durable { keep, copy };
            durable.taken(now_ms, Some(first));
            return Ok((durable, None));
        };
        if driver.state().run != config.run {
            let (found, expected) = (driver.state().run.clone(), config.run.clone());
            return Err(JournalError::OtherStore { found, expected });
        }
        Ok((Durable { keep: Keep::resume(store, schedule, recorder), copy }, Some(driver)))
    }

    /// An input was given to the driver, and this is what it said.
    pub(crate) fn folded(
        &mut self,
        input: Input,
        error: Option<&DriverError>,
        at_ms: Millis,
    ) -> Result<(), JournalError> {
        let entry = self.keep.folded(input, error, at_ms)?;
        self.taken(at_ms, entry);
        Ok(())
    }

    /// The driver gave an output.
    pub(crate) fn output(&mut self, output: &Output, at_ms: Millis) -> Result<(), JournalError> {
        let entry = self.keep.output(output, at_ms)?;
        self.taken(at_ms, entry);
        Ok(())
    }

    /// Keeps a record that folds nothing; durable with the next sync.
    pub(crate) fn note(&mut self, entry: Entry, at_ms: Millis) -> Result<(), JournalError> {
        let entry = self.keep.note(entry, at_ms)?;
        self.taken(at_ms, Some(entry));
        Ok(())
    }

    /// Looks into the store, which nobody else may write.
    pub(crate) fn look<T>(&mut self, look: impl FnOnce(&mut dyn Store) -> T) -> T {
        look(self.keep.store())
    }

    fn taken(&mut self, at_ms: Millis, entry: Option<Entry>) {
        if let (Some(copy), Some(entry)) = (&mut self.copy, entry) {
            copy.waiting.push((at_ms, entry));
        }
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
        let begun = self.keep.store().begin_command(id, body, at_ms)?;
        if begun == Begun::New {
            self.keep.promised();
            self.keep.store().end_command(id, &result())?;
        }
        Ok(begun)
    }

    /// A named value.
    pub(crate) fn meta(&mut self, key: &str) -> Result<Option<Vec<u8>>, JournalError> {
        Ok(self.keep.store().meta(key)?)
    }

    /// Keeps a named value; durable with the next sync.
    pub(crate) fn put_meta(&mut self, key: &str, value: &[u8]) -> Result<(), JournalError> {
        self.keep.promised();
        Ok(self.keep.store().put_meta(key, value)?)
    }

    /// Where the journal stands, with what is not durable yet.
    pub(crate) fn head(&self) -> Chain {
        self.keep.head()
    }

    /// Makes durable what announces an effect, and all before it; whether there was anything.
    pub(crate) fn sync(&mut self) -> Result<bool, JournalError> {
        let synced = self.keep.sync()?;
        if synced {
            self.synced()?;
        }
        Ok(synced)
    }

    /// When what announces nothing should be synced too.
    pub(crate) fn flush_at(&self) -> Option<Millis> {
        self.keep.flush_at()
    }

    /// Makes durable whatever was taken.
    pub(crate) fn flush(&mut self) -> Result<(), JournalError> {
        self.keep.flush()?;
        self.synced()
    }

    /// Everything that was taken is durable.
    fn synced(&mut self) -> Result<(), JournalError> {
        if let Some(copy) = &mut self.copy {
            for (at_ms, entry) in copy.waiting.drain(..) {
                copy.file.copy(at_ms, entry)?;
            }
        }
        Ok(())
    }

    /// All outputs are drained: now and then the driver is written down, and history that nobody needs any more is dropped.
    pub(crate) fn rested(&mut self, driver: &Driver, now_ms: Millis) -> Result<(), JournalError> {
        if self.keep.rested(driver, now_ms)? {
            self.synced()?;
        }
        Ok(())
    }

    /// The host ends: the next start folds nothing.
    pub(crate) fn end(&mut self, driver: &Driver, at_ms: Millis) -> Result<(), JournalError> {
        let entry = self.keep.end(driver, at_ms)?;
        self.taken(at_ms, Some(entry));
        self.synced()?;
        match &mut self.copy {
            Some(copy) => copy.file.settle(),
            None => Ok(()),
        }
    }
}
