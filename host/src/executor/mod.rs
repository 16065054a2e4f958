//! The executor (SPEC 7): performs operations through a backend, each in a task of its own, off the pass; deduplicates by
//! operation id; classifies outcomes. It chooses nothing.
//!
//! There is no limit on how many calls run at once for a provider: with one, a few hanging calls would delay every
//! other node. What bounds them is the fleet: one operation an attempt.

mod call;
mod observe;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::id::{AttemptId, OperationId};
use engine::io::{Done, Fault, Input, Listing, Operation, OperationStatus};
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinError};

use crate::backends::{Backend, Observation};
pub(crate) use call::{cause_of, panic_words};
use observe::Sessions;

/// Sees every line of output of every bootstrap, before it is thinned out for the driver. Must not block.
pub type OutputWatcher = Arc<dyn Fn(AttemptId, &str) + Send + Sync>;

/// What the executor reports.
#[derive(Clone, Debug, PartialEq)]
pub enum ExecutorEvent {
    /// To be folded by the driver.
    Input(Input),
    /// A backend could not be listed. Nothing follows from it (S14).
    ListingFailed {
        /// Which backend.
        provider: String,
        /// Its words.
        fault: Fault,
    },
}

/// Why an operation was not started. None of its effect has happened through this call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// No backend of that name.
    #[error("operation {id}: no backend {provider:?}")]
    UnknownProvider {
        /// The operation.
        id: OperationId,
        /// The name.
        provider: String,
    },
    /// The id was used before, with another input (S3).
    #[error("operation {id}: submitted again with another {field}")]
    OtherInput {
        /// The operation.
        id: OperationId,
        /// What differs: `key`, `provider` or `request`.
        field: &'static str,
    },
    /// The attempt has an operation running (S2).
    #[error("operation {id}: operation {running} of the same attempt is still running")]
    Busy {
        /// The refused operation.
        id: OperationId,
        /// The running one.
        running: OperationId,
    },
    /// A later operation of the attempt was submitted; what became of this one is no longer known here.
    #[error("operation {id}: the attempt is already at operation {latest}")]
    Superseded {
        /// The refused operation.
        id: OperationId,
        /// The attempt's latest.
        latest: OperationId,
    },
    /// The executor is being shut down.
    #[error("operation {id}: the executor is shutting down")]
    ShuttingDown {
        /// The refused operation.
        id: OperationId,
    },
}

/// What the executor counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutorStats {
    /// Operations started.
    pub started: u64,
    /// Operations whose result was recorded.
    pub completed: u64,
    /// Recorded results delivered again.
    pub replayed: u64,
    /// Submissions that joined a running operation.
    pub joined: u64,
    /// Submissions refused.
    pub refused: u64,
    /// Operations given up as ambiguous.
    pub given_up: u64,
    /// Completions of operations given up before: discarded.
    pub late_discarded: u64,
    /// Backend calls that panicked.
    pub panicked: u64,
    /// Listings that failed or took too long.
    pub listings_failed: u64,
}

/// Performs operations. Cheap to clone; all clones are one executor. Must be used inside a tokio runtime.
#[derive(Clone)]
pub struct Executor {
    shared: Arc<Shared>,
}

struct Shared {
    backends: BTreeMap<String, Arc<dyn Backend>>,
    events: mpsc::Sender<ExecutorEvent>,
    watcher: Option<OutputWatcher>,
    list_timeout: Duration,
    ledger: Mutex<Ledger>,
    sessions: Sessions,
    idle: Notify,
}

#[derive(Default)]
struct Ledger {
    /// The latest operation of each attempt.
    slots: BTreeMap<AttemptId, Slot>,
    /// Backends that are being listed.
    listing: std::collections::BTreeSet<String>,
    running: usize,
    closed: bool,
    stats: ExecutorStats,
}

struct Slot {
    operation: Operation,
    phase: Phase,
    /// Held during a backend call of this attempt. A call that was given up keeps it until it is really gone, so that the
    /// next one cannot run beside it (S2).
    turn: Arc<tokio::sync::Mutex<()>>,
}

enum Phase {
    Running(AbortHandle),
    Completed(Result<Done, Fault>),
    /// Classified as ambiguous; a late completion is discarded.
    GivenUp,
}

const GIVEN_UP: &str = "given up after its deadline; it may still happen";

impl Executor {
    /// An executor over these backends. `events` receives results and observations; whoever reads it must keep reading.
    pub fn new(backends: BTreeMap<String, Arc<dyn Backend>>, events: mpsc::Sender<ExecutorEvent>) -> Self {
        Executor::with(backends, events, None, Duration::from_secs(60))
    }

    /// As [`Executor::new`], with a watcher for output and the longest time that a listing may take.
    pub fn with(
        backends: BTreeMap<String, Arc<dyn Backend>>,
        events: mpsc::Sender<ExecutorEvent>,
        watcher: Option<OutputWatcher>,
        list_timeout: Duration,
    ) -> Self {
        let ledger = Mutex::new(Ledger::default());
        let sessions = Sessions::default();
        let idle = Notify::new();
        Executor { shared: Arc::new(Shared { backends, events, watcher, list_timeout, ledger, sessions, idle }) }
    }

    /// Starts an operation, joins it when it is running, or delivers its recorded result again. Never waits.
    ///
    /// The result arrives as [`Input::Completed`].
    pub fn submit(&self, operation: Operation) -> Result<(), SubmitError> {
        let mut ledger = self.shared.ledger();
        let outcome = self.admit(&mut ledger, operation);
        if outcome.is_err() {
            ledger.stats.refused += 1;
        }
        outcome
    }

    fn admit(&self, ledger: &mut Ledger, operation: Operation) -> Result<(), SubmitError> {
        let id = operation.id;
        let Some(backend) = self.shared.backends.get(&operation.provider) else {
            return Err(SubmitError::UnknownProvider { id, provider: operation.provider });
        };
        let mut turn = None;
        if let Some(slot) = ledger.slots.get(&id.attempt) {
            let latest = slot.operation.id;
            if id.sequence < latest.sequence {
                return Err(SubmitError::Superseded { id, latest });
            }
            if id == latest {
                if let Some(field) = difference(&slot.operation, &operation) {
                    return Err(SubmitError::OtherInput { id, field });
                }
                let again = match &slot.phase {
                    Phase::Running(_) => {
                        ledger.stats.joined += 1;
                        return Ok(());
                    }
                    Phase::Completed(result) => result.clone(),
                    Phase::GivenUp => Err(Fault::Ambiguous { reason: GIVEN_UP.into() }),
                };
                ledger.stats.replayed += 1;
                self.deliver(Input::Completed { id, result: again });
                return Ok(());
            }
            if matches!(slot.phase, Phase::Running(_)) {
                return Err(SubmitError::Busy { id, running: latest });
            }
            turn = Some(slot.turn.clone());
        }
        if ledger.closed {
            return Err(SubmitError::ShuttingDown { id });
        }
        let turn = turn.unwrap_or_default();
        let call = call::perform(self.clone(), backend.clone(), operation.clone(), turn.clone());
        let inner = tokio::spawn(call::traced(&operation, call));
        let phase = Phase::Running(inner.abort_handle());
        ledger.slots.insert(id.attempt, Slot { operation, phase, turn });
        ledger.running += 1;
        ledger.stats.started += 1;
        let executor = self.clone();
        tokio::spawn(async move {
            let ended = inner.await;
            executor.settle(id, ended).await;
        });
        Ok(())
    }

    /// What became of an operation? A completed one's result is delivered again. A running one is given up: it is
    /// ambiguous from now on, and its late completion is discarded. An unknown one is ambiguous.
    pub fn ask(&self, id: OperationId) -> OperationStatus {
        let mut ledger = self.shared.ledger();
        let ledger = &mut *ledger;
        let Some(slot) = ledger.slots.get_mut(&id.attempt).filter(|slot| slot.operation.id == id) else {
            return OperationStatus::Ambiguous;
        };
        match &slot.phase {
            Phase::Completed(result) => {
                ledger.stats.replayed += 1;
                self.deliver(Input::Completed { id, result: result.clone() });
                OperationStatus::Completed
            }
            Phase::Running(task) => {
                task.abort();
                slot.phase = Phase::GivenUp;
                ledger.running -= 1;
                ledger.stats.given_up += 1;
                self.shared.idle.notify_waiters();
                OperationStatus::Ambiguous
            }
            Phase::GivenUp => OperationStatus::Ambiguous,
        }
    }

    /// Forgets what is recorded of an attempt: the driver has folded its last operation. A running one is kept.
    pub fn forget(&self, attempt: AttemptId) {
        let mut ledger = self.shared.ledger();
        // A given-up call that is not gone yet still holds its turn; the next operation must find it.
        if let Some(slot) = ledger.slots.get(&attempt)
            && !matches!(slot.phase, Phase::Running(_))
            && slot.turn.try_lock().is_ok()
        {
            ledger.slots.remove(&attempt);
        }
    }

    /// Starts listing a backend; the answer arrives as [`Input::Listed`] or [`ExecutorEvent::ListingFailed`]. `false` when
    /// there is no such backend or it is being listed already.
    pub fn list(&self, provider: &str, run: &str) -> bool {
        if !self.shared.backends.contains_key(provider) || !self.shared.ledger().listing.insert(provider.into()) {
            return false;
        }
        let (executor, provider, run) = (self.clone(), provider.to_owned(), run.to_owned());
        tokio::spawn(async move {
            let listed = executor.listing(&provider, &run).await;
            executor.shared.ledger().listing.remove(&provider);
            let event = match listed {
                Ok(listing) => ExecutorEvent::Input(Input::Listed { provider, listing }),
                Err(fault) => ExecutorEvent::ListingFailed { provider, fault },
            };
            executor.shared.send(event).await;
        });
        true
    }

    /// Lists a backend and waits for the answer, for as long as a listing may take.
    pub async fn listing(&self, provider: &str, run: &str) -> Result<Listing, Fault> {
        let listed = match self.shared.backends.get(provider) {
            Some(backend) => call::list(backend.clone(), run.to_owned(), self.shared.list_timeout).await,
            None => Err(Fault::permanent(format!("no backend {provider:?}"))),
        };
        if listed.is_err() {
            self.shared.ledger().stats.listings_failed += 1;
        }
        listed
    }

    /// What was counted.
    pub fn stats(&self) -> ExecutorStats {
        self.shared.ledger().stats
    }

    /// The operations that are running, in order.
    pub fn running(&self) -> Vec<OperationId> {
        let ledger = self.shared.ledger();
        ledger
            .slots
            .values()
            .filter(|slot| matches!(slot.phase, Phase::Running(_)))
            .map(|slot| slot.operation.id)
            .collect()
    }

    /// How many attempts have an operation recorded here.
    pub fn remembered(&self) -> usize {
        self.shared.ledger().slots.len()
    }

    /// Starts nothing more, waits for what runs, and gives up what is left after `limit`; those are answered, in order.
    pub async fn shutdown(&self, limit: Duration) -> Vec<OperationId> {
        self.shared.ledger().closed = true;
        let drained = async {
            loop {
                let ended = self.shared.idle.notified();
                tokio::pin!(ended);
                ended.as_mut().enable();
                if self.shared.ledger().running == 0 {
                    return;
                }
                ended.await;
            }
        };
        let _ = tokio::time::timeout(limit, drained).await;
        let left = self.running();
        for id in &left {
            self.ask(*id);
        }
        left
    }

    /// Records how a call ended and reports it, unless it was given up before.
    async fn settle(&self, id: OperationId, ended: Result<Result<Done, Fault>, JoinError>) {
        let result = {
            let mut ledger = self.shared.ledger();
            let ledger = &mut *ledger;
            if ended.as_ref().is_err_and(JoinError::is_panic) {
                ledger.stats.panicked += 1;
            }
            let slot = ledger.slots.get_mut(&id.attempt);
            let slot = slot.filter(|slot| slot.operation.id == id && matches!(slot.phase, Phase::Running(_)));
            match (slot, ended) {
                (None, Err(gone)) if gone.is_cancelled() => return,
                (None, _) => {
                    ledger.stats.late_discarded += 1;
                    return;
                }
                (Some(slot), ended) => {
                    let result = ended.unwrap_or_else(|gone| Err(Fault::Ambiguous { reason: call::words_of(gone) }));
                    slot.phase = Phase::Completed(result.clone());
                    ledger.running -= 1;
                    ledger.stats.completed += 1;
                    result
                }
            }
        };
        self.shared.idle.notify_waiters();
        self.shared.send(ExecutorEvent::Input(Input::Completed { id, result })).await;
    }

    /// Delivers without waiting: in order while there is room, else from a task.
    fn deliver(&self, input: Input) {
        if let Err(mpsc::error::TrySendError::Full(event)) = self.shared.events.try_send(ExecutorEvent::Input(input)) {
            let shared = self.shared.clone();
            tokio::spawn(async move { shared.send(event).await });
        }
    }
}

impl Shared {
    /// The lock is never held across a call into foreign code, so a poisoned one is still consistent.
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When nobody reads any more the host has ended, and there is nobody to tell.
    async fn send(&self, event: ExecutorEvent) {
        let _ = self.events.send(event).await;
    }

    async fn observed(&self, attempt: AttemptId, observation: Observation) {
        self.send(ExecutorEvent::Input(Input::Observed { attempt, observation })).await;
    }
}

/// In what two submissions of one id differ. The deadline is the driver's and no input of the effect.
fn difference(recorded: &Operation, offered: &Operation) -> Option<&'static str> {
    if recorded.key != offered.key {
        Some("key")
    } else if recorded.provider != offered.provider {
        Some("provider")
    } else if recorded.request != offered.request {
        Some("request")
    } else {
        None
    }
}
