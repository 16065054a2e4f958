//! A decider that passed admission.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use decider::{Description, Plan, Rule, Snapshot};
use engine::io::{DeciderFailure, DeciderIdentity};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::admission::{Admitted, admit};
use super::cache::{Cache, hex};
use super::call;
use super::config::Ticker;
use super::contract::Contract;
use super::error::LoadError;
use super::failure::GuestFailure;
use super::limits::Limits;
use super::memory;

/// A decider that passed admission and can be asked for plans, from any thread and any number of times. Each call has an
/// instance of its own, so that nothing survives from one to the next.
pub struct LoadedDecider {
    admitted: Admitted,
    digest: String,
    from_cache: bool,
    size_bytes: u64,
    limits: Arc<Limits>,
    ticker: Arc<Ticker>,
    fuel: AtomicU64,
}

/// What is known of a loaded decider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Inspection {
    /// `sha256:` and 64 hexadecimal digits, over the component's bytes.
    pub digest: String,
    /// The name it declares.
    pub name: String,
    /// The version it declares.
    pub version: String,
    /// The contract version it was built for.
    pub contract: String,
    /// The component's size in bytes.
    pub size_bytes: u64,
    /// What it imports: types at most.
    pub imports: Vec<String>,
    /// What it exports.
    pub exports: Vec<String>,
    /// The rules it may cite, in the order of their indices.
    pub rules: Vec<Rule>,
    /// The limits it runs under.
    pub limits: Limits,
}

impl LoadedDecider {
    pub(super) fn load(
        engine: &wasmtime::Engine,
        bytes: &[u8],
        limits: Arc<Limits>,
        ticker: Arc<Ticker>,
        cache: Option<&Cache>,
    ) -> Result<LoadedDecider, LoadError> {
        let began = Instant::now();
        let loaded = Self::check(engine, bytes, limits, ticker, cache);
        if began.elapsed() > memory::LONG {
            // Also of what is refused.
            memory::give_back();
        }
        loaded
    }

    fn check(
        engine: &wasmtime::Engine,
        bytes: &[u8],
        limits: Arc<Limits>,
        ticker: Arc<Ticker>,
        cache: Option<&Cache>,
    ) -> Result<LoadedDecider, LoadError> {
        let digest = digest(bytes);
        let ready = cache.and_then(|cache| cache.get(engine, &digest));
        let from_cache = ready.is_some();
        let admitted = admit(engine, bytes, ready, &limits, ticker.ticks())?;
        if let Some(cache) = cache.filter(|_| !from_cache) {
            // Only now: what is refused is not worth a place.
            cache.put(engine, &digest, admitted.instance_pre.component());
        }
        Ok(LoadedDecider {
            admitted,
            digest,
            from_cache,
            size_bytes: bytes.len() as u64,
            limits,
            ticker,
            fuel: AtomicU64::new(0),
        })
    }

    /// Asks for a plan. Blocks until the guest answers, or a limit stops it; never call it on an async worker
    /// ([`super::DeciderThread`] is for that). The plan is the guest's word: `engine` validates it.
    pub fn reconcile(&self, snapshot: &Snapshot) -> Result<Plan, GuestFailure> {
        let Admitted { instance_pre, reconcile, contract, .. } = &self.admitted;
        // SAFETY: `admit` made the trial pass through `reconcile_checked` with this export of this component.
        #[allow(unsafe_code)]
        unsafe {
            call::reconcile(
                instance_pre,
                (reconcile, *contract),
                snapshot,
                &self.limits,
                self.ticker.ticks(),
                &self.fuel,
            )
        }
    }

    /// The fuel that the last call used.
    pub fn fuel_used(&self) -> u64 {
        self.fuel.load(Ordering::Relaxed)
    }

    /// The same, with the failure as the engine takes it.
    pub fn decide(&self, snapshot: &Snapshot) -> Result<Plan, DeciderFailure> {
        self.reconcile(snapshot).map_err(|failure| failure.of_decider(&self.digest))
    }

    /// `sha256:` and 64 hexadecimal digits, over the component's bytes.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Whether its code came from the sandbox's cache instead of being compiled.
    pub fn from_cache(&self) -> bool {
        self.from_cache
    }

    /// What it says of itself.
    pub fn description(&self) -> &Description {
        &self.admitted.description
    }

    /// Which it is, as the engine takes it.
    pub fn identity(&self) -> DeciderIdentity {
        DeciderIdentity::new(self.digest(), self.description().clone())
    }

    /// The version of the contract that it speaks.
    pub fn contract(&self) -> Contract {
        self.admitted.contract
    }

    /// All that is known of it.
    pub fn inspect(&self) -> Inspection {
        let Description { name, version, contract, rules } = self.admitted.description.clone();
        Inspection {
            digest: self.digest.clone(),
            name,
            version,
            contract,
            size_bytes: self.size_bytes,
            imports: self.admitted.imports.clone(),
            exports: self.admitted.exports.clone(),
            rules,
            limits: (*self.limits).clone(),
        }
    }
}

impl fmt::Debug for LoadedDecider {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Description { name, version, .. } = &self.admitted.description;
        out.debug_struct("LoadedDecider")
            .field("name", name)
            .field("version", version)
            .field("digest", &self.digest)
            .finish()
    }
}

/// The name of a component by its bytes.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}
