//! The sandbox (SPEC 9): loads a decider from bytes or a file, refuses what could reach the world, and asks it for plans
//! under limits, in a fresh instance for every call.
//!
//! ```no_run
//! use homeostat::sandbox::{Limits, Sandbox};
//!
//! let sandbox = Sandbox::new(Limits::default())?;
//! let decider = sandbox.built_in()?;
//! println!("{:?}", decider.inspect());
//! # Ok::<(), homeostat::sandbox::LoadError>(())
//! ```
//!
//! A plan is the guest's word and nothing more: `engine` validates it before any of it is applied.

mod admission;
mod cache;
mod call;
mod complexity;
mod config;
mod contract;
mod description;
mod error;
mod failure;
mod limits;
mod linking;
mod loaded;
mod memory;
mod store;
mod thread;
mod weight;

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

pub use cache::{Cache, CacheUse};
pub use contract::Contract;
pub use error::LoadError;
pub use failure::GuestFailure;
pub use limits::{Limit, LimitError, Limits};
pub use loaded::{Inspection, LoadedDecider, digest};
pub use thread::DeciderThread;

/// The component of the decider that is part of this library.
pub const BUILT_IN: &[u8] = decider_artifact::COMPONENT;

/// An engine, a pool of instances, and the limits for all that runs in it.
#[derive(Clone)]
pub struct Sandbox {
    engine: wasmtime::Engine,
    limits: Arc<Limits>,
    ticker: Arc<config::Ticker>,
    cache: Option<Arc<Cache>>,
}

impl Sandbox {
    /// Sets up a sandbox. Reserves address space for the pool; memory is used only by calls.
    ///
    /// # Errors
    ///
    /// [`LoadError::Limits`] when one is out of its range, [`LoadError::Setup`] when they cannot work on this machine.
    pub fn new(limits: Limits) -> Result<Sandbox, LoadError> {
        let setup = |reason: String| LoadError::Setup { reason };
        limits.check()?;
        let engine = config::engine(&limits).map_err(|error| setup(format!("{error:#}")))?;
        let ticker = config::Ticker::start(&engine, limits.wall_clock_ms).map_err(|error| setup(error.to_string()))?;
        Ok(Sandbox { engine, limits: Arc::new(limits), ticker: Arc::new(ticker), cache: None })
    }

    /// The same, with a cache of compiled code: a component that was admitted before is not compiled again.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::new`]. A cache that cannot be used is none.
    pub fn with_cache(limits: Limits, cache: Cache) -> Result<Sandbox, LoadError> {
        Ok(Sandbox { cache: Some(Arc::new(cache)), ..Sandbox::new(limits)? })
    }

    /// The same sandbox, with a cache of compiled code from now on.
    pub fn cached(self, cache: Cache) -> Sandbox {
        Sandbox { cache: Some(Arc::new(cache)), ..self }
    }

    /// Removes compiled code from the cache: all but that of the deciders with these digests, as this sandbox runs them.
    /// Returns how many files went.
    pub fn collect(&self, keep: &[&str]) -> usize {
        self.cache.as_ref().map_or(0, |cache| cache.collect(&self.engine, keep))
    }

    /// The cache, when it has one.
    pub fn cache(&self) -> Option<&Cache> {
        self.cache.as_deref()
    }

    /// Loads a component. Compiling takes tens of milliseconds, and the guest runs twice: not on an async worker.
    ///
    /// # Errors
    ///
    /// Each reason to refuse it, by name.
    pub fn load(&self, bytes: &[u8]) -> Result<LoadedDecider, LoadError> {
        LoadedDecider::load(&self.engine, bytes, self.limits.clone(), self.ticker.clone(), self.cache.as_deref())
    }

    /// Loads a component from a file. No more of it is read than a component may have.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::load`], and when the file cannot be read.
    pub fn load_file(&self, path: &Path) -> Result<LoadedDecider, LoadError> {
        let read = |error| LoadError::Read { path: path.into(), error };
        let limit = self.limits.component_bytes;
        let file = std::fs::File::open(path).map_err(read)?;
        let size = file.metadata().map_err(read)?.len();
        if size > limit {
            return Err(LoadError::TooLarge { bytes: size, limit });
        }
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(read)?;
        self.load(&bytes)
    }

    /// Loads the decider that is part of this library.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::load`]; with limits that are too small for it.
    pub fn built_in(&self) -> Result<LoadedDecider, LoadError> {
        self.load(BUILT_IN)
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sandbox").field("limits", &self.limits).finish_non_exhaustive()
    }
}
