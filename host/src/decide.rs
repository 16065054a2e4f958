//! Who decides: the runtime asks a [`Decider`] for each plan and validates what it answers.

use std::sync::Arc;

use async_trait::async_trait;
use decider::{Description, Plan, Snapshot};
use engine::io::{DeciderFailure, DeciderIdentity};

use crate::sandbox::{DeciderThread, Limits, LoadError, LoadedDecider, Sandbox};

/// A decider, as the runtime sees it. It answers in bounded time, whatever is in it, and never blocks an async worker.
#[async_trait]
pub trait Decider: Send + Sync {
    /// Which it is, and which rules it may cite.
    fn identity(&self) -> DeciderIdentity;

    /// What it says of itself, for people.
    fn description(&self) -> Description {
        Description { rules: self.identity().rules, ..Description::default() }
    }

    /// The fuel that the last call used, where that is metered.
    fn fuel_used(&self) -> Option<u64> {
        None
    }

    /// Another way to ask the same decider, that does not queue behind the calls of this one; `None` where calls do not queue.
    fn beside(&self) -> Option<Arc<dyn Decider>> {
        None
    }

    /// One plan for one snapshot; nothing else may influence it.
    async fn decide(&self, snapshot: Arc<Snapshot>) -> Result<Plan, DeciderFailure>;
}

/// The built-in ladder, called natively: for tests, simulation and comparison. The host itself asks the component.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeDecider;

#[async_trait]
impl Decider for NativeDecider {
    fn identity(&self) -> DeciderIdentity {
        DeciderIdentity::native()
    }

    fn description(&self) -> Description {
        decider::describe()
    }

    async fn decide(&self, snapshot: Arc<Snapshot>) -> Result<Plan, DeciderFailure> {
        Ok(decider::reconcile(&snapshot))
    }
}

/// A component in the sandbox, asked on a thread of its own (SPEC 9).
#[derive(Debug)]
pub struct SandboxedDecider {
    decider: Arc<LoadedDecider>,
    thread: DeciderThread,
}

impl SandboxedDecider {
    /// The decider that is part of this library, under the default limits. Compiles it, which takes tens of milliseconds.
    ///
    /// # Errors
    ///
    /// The sandbox cannot be set up on this machine.
    pub fn built_in() -> Result<Self, LoadError> {
        let decider = Sandbox::new(Limits::default())?.built_in()?;
        Self::start(Arc::new(decider)).map_err(|error| LoadError::Setup { reason: error.to_string() })
    }

    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The system has no thread to give.
    pub fn start(decider: Arc<LoadedDecider>) -> std::io::Result<Self> {
        Ok(SandboxedDecider { decider, thread: DeciderThread::start()? })
    }
}

#[async_trait]
impl Decider for SandboxedDecider {
    fn identity(&self) -> DeciderIdentity {
        self.decider.identity()
    }

    fn description(&self) -> Description {
        self.decider.description().clone()
    }

    fn fuel_used(&self) -> Option<u64> {
        Some(self.decider.fuel_used())
    }

    fn beside(&self) -> Option<Arc<dyn Decider>> {
        // Without another thread, calls queue.
        Some(Arc::new(SandboxedDecider::start(self.decider.clone()).ok()?))
    }

    async fn decide(&self, snapshot: Arc<Snapshot>) -> Result<Plan, DeciderFailure> {
        self.thread.reconcile(self.decider.clone(), snapshot).await
    }
}
