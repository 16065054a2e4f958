//! A thread of their own for guests: a spinning guest would wedge an async worker and its timers.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use decider::{Plan, Snapshot};
use engine::io::DeciderFailure;
use tokio::sync::oneshot;

use super::failure::GuestFailure;
use super::loaded::LoadedDecider;

/// A thread that asks deciders, one call at a time. It ends when this is dropped, after the call it is in.
#[derive(Debug)]
pub struct DeciderThread {
    calls: Sender<Call>,
}

struct Call {
    decider: Arc<LoadedDecider>,
    snapshot: Arc<Snapshot>,
    answer: oneshot::Sender<Result<Plan, DeciderFailure>>,
}

impl DeciderThread {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The system has no thread to give.
    pub fn start() -> std::io::Result<DeciderThread> {
        let (calls, waiting) = channel::<Call>();
        std::thread::Builder::new().name("decider".into()).spawn(move || {
            while let Ok(Call { decider, snapshot, answer }) = waiting.recv() {
                if answer.is_closed() {
                    continue;
                }
                // Nobody may be waiting any more; then the plan is not wanted.
                let _ = answer.send(decider.decide(&snapshot));
            }
        })?;
        Ok(DeciderThread { calls })
    }

    /// Asks a decider for a plan. Which one is named for every call, so that it can be swapped between two.
    pub async fn reconcile(
        &self,
        decider: Arc<LoadedDecider>,
        snapshot: Arc<Snapshot>,
    ) -> Result<Plan, DeciderFailure> {
        let digest = decider.digest().to_string();
        let gone = || GuestFailure::Host { reason: "the decider's thread has ended".into() }.of_decider(&digest);
        let (answer, answered) = oneshot::channel();
        self.calls.send(Call { decider, snapshot, answer }).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}
