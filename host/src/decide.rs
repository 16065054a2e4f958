//! Who decides: the runtime asks a [`Decider`] for each plan and validates what it answers.

use std::sync::Arc;

use async_trait::async_trait;
use decider::{Plan, Snapshot};
use engine::io::{DeciderFailure, DeciderIdentity};

/// A decider, as the runtime sees it. It answers in bounded time, whatever is in it, and never blocks an async worker.
#[async_trait]
pub trait Decider: Send + Sync {
    /// Which it is, and which rules it may cite.
    fn identity(&self) -> DeciderIdentity;

    /// One plan for one snapshot; nothing else may influence it.
    async fn decide(&self, snapshot: Arc<Snapshot>) -> Result<Plan, DeciderFailure>;
}

/// The built-in ladder, called natively: for tests, simulation and comparison. The host itself asks the component.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeDecider;

#[async_trait]
impl Decider for NativeDecider {
    fn identity(&self) -> DeciderIdentity {
        DeciderIdentity { digest: "native".into(), rules: decider::describe().rules }
    }

    async fn decide(&self, snapshot: Arc<Snapshot>) -> Result<Plan, DeciderFailure> {
        Ok(decider::reconcile(&snapshot))
    }
}
