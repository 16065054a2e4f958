//! The registry of deciders (SPEC 11): components by digest, and the document that says which one is in force. Bytes are checked
//! against their digest whenever they are loaded.

mod document;
mod shelf;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use document::{
    DECIDERS, Document, Entry, FailedLimit, KEPT, Outcome, Pin, Quarantined, SCHEMA, Term, Watch, Wished,
};
use engine::id::Millis;

use crate::decide::{Decider, SandboxedDecider};
use crate::sandbox::{BUILT_IN, LoadError, LoadedDecider, Sandbox, digest};
use shelf::Shelf;

/// Why a decider cannot be had from the registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The system refuses.
    #[error("cannot {doing} {}: {error}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Its words.
        error: std::io::Error,
    },
    /// Its bytes are not there.
    #[error("the decider {digest} is not in {place}: put its component there, or name another decider")]
    Missing {
        /// The digest.
        digest: String,
        /// Where it should be.
        place: String,
    },
    /// Its bytes are others.
    #[error(
        "{} is damaged: it should have the digest {wanted} and has {found}; put the component there again, or name another \
         decider",
        path.display()
    )]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// The digest that it should have.
        wanted: String,
        /// The one it has.
        found: String,
    },
    /// What the store keeps of deciders cannot be relied on.
    #[error("what the state says of deciders cannot be read: {0}")]
    Document(String),
    /// It is no decider, or not one that this host can ask.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Components by digest, and a sandbox that loads them.
#[derive(Clone, Debug)]
pub struct Registry {
    shelf: Arc<Shelf>,
    sandbox: Sandbox,
}

/// A decider that was loaded, ready to be asked.
#[derive(Clone)]
pub struct Ready {
    /// The decider.
    pub decider: Arc<dyn Decider>,
    /// What is known of it.
    pub entry: Entry,
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Ready").field("entry", &self.entry).finish_non_exhaustive()
    }
}

impl Ready {
    /// One that the caller brings; its bytes are not kept.
    pub fn of(decider: Arc<dyn Decider>) -> Self {
        let description = decider.description();
        let entry = Entry {
            digest: decider.identity().digest,
            name: description.name,
            version: description.version,
            contract: description.contract,
            size_bytes: 0,
            loaded_at_ms: 0,
            by: None,
            rules: description.rules,
        };
        let size_bytes = if entry.digest == Registry::built_in() { BUILT_IN.len() as u64 } else { 0 };
        let entry = Entry { size_bytes, ..entry };
        Ready { decider, entry }
    }
}

impl Registry {
    /// A registry in a state directory.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn in_state(state: &Path, sandbox: Sandbox) -> Result<Self, RegistryError> {
        let shelf = Shelf::in_state(state)?;
        // A later program has another one built in, and has to find the one that was in force. Where it cannot be kept now, that
        // program says which file it lacks.
        let _ = shelf.put(BUILT_IN);
        Ok(Registry { shelf: Arc::new(shelf), sandbox })
    }

    /// What a state directory has, to look at: nothing is made.
    pub fn look(state: &Path, sandbox: Sandbox) -> Self {
        Registry { shelf: Arc::new(Shelf::of_state(state)), sandbox }
    }

    /// A registry that lives as long as the process.
    pub fn in_memory(sandbox: Sandbox) -> Self {
        Registry { shelf: Arc::new(Shelf::in_memory()), sandbox }
    }

    /// The sandbox that loads.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The digest of the decider that is part of this library.
    pub fn built_in() -> String {
        digest(BUILT_IN)
    }

    /// Loads bytes, and keeps them when they are a decider. Blocks, for tens of milliseconds: not on an async worker.
    ///
    /// # Errors
    ///
    /// They are no decider; or the system refuses.
    pub fn add(&self, bytes: &[u8], now_ms: Millis, by: Option<&str>) -> Result<Ready, RegistryError> {
        let mut ready = self.keep(Some(bytes), self.sandbox.load(bytes)?)?;
        ready.entry.loaded_at_ms = now_ms;
        ready.entry.by = by.map(str::to_owned);
        Ok(ready)
    }

    /// Keeps a decider that was loaded from these bytes; without bytes the built-in one.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn keep(&self, bytes: Option<&[u8]>, loaded: LoadedDecider) -> Result<Ready, RegistryError> {
        if let Some(bytes) = bytes.filter(|_| loaded.digest() != Self::built_in()) {
            self.shelf.put(bytes)?;
        }
        start(loaded)
    }

    /// The component of a digest, which has that digest.
    ///
    /// # Errors
    ///
    /// Its bytes are gone or damaged.
    pub fn component(&self, digest: &str) -> Result<Arc<[u8]>, RegistryError> {
        if digest == Self::built_in() {
            return Ok(BUILT_IN.into());
        }
        self.shelf.get(digest, self.sandbox.limits().component_bytes)
    }

    /// Puts a component into a state directory as it is, for a host that starts there later.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn put(state: &Path, component: &[u8]) -> Result<(), RegistryError> {
        Shelf::in_state(state)?.put(component)?;
        Ok(())
    }

    /// Loads the decider of a digest without starting it: to look at it. Blocks as [`Registry::add`].
    ///
    /// # Errors
    ///
    /// Its bytes are gone or damaged, or this host cannot ask it.
    pub fn load(&self, digest: &str) -> Result<LoadedDecider, RegistryError> {
        if digest == Self::built_in() {
            return Ok(self.sandbox.built_in()?);
        }
        let bytes = self.shelf.get(digest, self.sandbox.limits().component_bytes)?;
        Ok(self.sandbox.load(&bytes)?)
    }

    /// Loads the decider of a digest and starts its thread. Blocks as [`Registry::add`].
    ///
    /// # Errors
    ///
    /// As [`Registry::load`].
    pub fn ready(&self, digest: &str) -> Result<Ready, RegistryError> {
        start(self.load(digest)?)
    }

    /// Drops the bytes, and the compiled code, that the document does not name.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn collect(&self, document: &Document) -> Result<(), RegistryError> {
        self.shelf.collect(|digest| document.entry(digest).is_some())?;
        let kept: Vec<&str> = document.entries.iter().map(|entry| entry.digest.as_str()).collect();
        self.sandbox.collect(&kept);
        Ok(())
    }
}

fn start(loaded: LoadedDecider) -> Result<Ready, RegistryError> {
    let seen = loaded.inspect();
    let decider = SandboxedDecider::start(Arc::new(loaded));
    let decider = decider.map_err(|error| LoadError::Setup { reason: error.to_string() })?;
    let entry = Entry {
        digest: seen.digest,
        name: seen.name,
        version: seen.version,
        contract: seen.contract,
        size_bytes: seen.size_bytes,
        loaded_at_ms: 0,
        by: None,
        rules: seen.rules,
    };
    Ok(Ready { decider: Arc::new(decider), entry })
}
