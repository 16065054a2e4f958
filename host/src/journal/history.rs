//! Where the history of a host goes.

use engine::driver::{Driver, DriverError};
use engine::id::Millis;
use engine::io::{Input, Output};

use super::{Durable, JournalError, JournalFile};

/// Where the history of a host goes.
pub(crate) enum History {
    /// Nowhere.
    None,
    /// Into a file, to be looked at and replayed.
    File(Box<JournalFile>),
    /// Into a store, from which the next start goes on.
    Store(Box<Durable>),
}

impl History {
    /// Whether anything is kept.
    pub fn is_kept(&self) -> bool {
        !matches!(self, History::None)
    }

    /// An input was given to the driver, and this is what it said.
    pub fn folded(&mut self, input: Input, error: Option<&DriverError>, at_ms: Millis) -> Result<(), JournalError> {
        match self {
            History::None => Ok(()),
            History::File(file) => file.folded(input, error, at_ms),
            History::Store(store) => store.folded(input, error, at_ms),
        }
    }

    /// The driver gave an output.
    pub fn output(&mut self, output: &Output, at_ms: Millis) -> Result<(), JournalError> {
        match self {
            History::None => Ok(()),
            History::File(file) => file.output(output, at_ms),
            History::Store(store) => store.output(output, at_ms),
        }
    }

    /// Keeps a record that folds nothing.
    pub fn note(&mut self, entry: ::journal::Entry, at_ms: Millis) -> Result<(), JournalError> {
        match self {
            History::None => Ok(()),
            History::File(file) => file.note(entry, at_ms),
            History::Store(store) => store.note(entry, at_ms),
        }
    }

    /// Makes durable what announces an effect, and all before it; whether there was anything.
    pub fn sync(&mut self) -> Result<bool, JournalError> {
        match self {
            History::None => Ok(false),
            History::File(file) => file.sync().map(|()| true),
            History::Store(store) => store.sync(),
        }
    }

    /// Where commands are remembered; `None` where nothing outlives the host.
    pub fn store(&mut self) -> Option<&mut Durable> {
        match self {
            History::None | History::File(_) => None,
            History::Store(store) => Some(store),
        }
    }

    /// When [`History::flush`] is due.
    pub fn flush_at(&self) -> Option<Millis> {
        match self {
            History::None | History::File(_) => None,
            History::Store(store) => store.flush_at(),
        }
    }

    /// Makes durable what nothing waits for.
    pub fn flush(&mut self) -> Result<(), JournalError> {
        match self {
            History::None | History::File(_) => Ok(()),
            History::Store(store) => store.flush(),
        }
    }

    /// All outputs of an input are drained.
    pub fn rested(&mut self, driver: &Driver, now_ms: Millis) -> Result<(), JournalError> {
        match self {
            History::None | History::File(_) => Ok(()),
            History::Store(store) => store.rested(driver, now_ms),
        }
    }

    /// The host ends.
    pub fn end(&mut self, driver: &Driver, at_ms: Millis) -> Result<(), JournalError> {
        match self {
            History::None => Ok(()),
            History::File(file) => file.end(at_ms),
            History::Store(store) => store.end(driver, at_ms),
        }
    }
}
