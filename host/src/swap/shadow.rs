//! Asks a candidate for a plan for each snapshot that the decider in force is asked about, and compares (SPEC 11). The loop hands
//! over pointers and never waits: while the candidate is busy, passes are skipped and counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use decider::{Plan, Snapshot};
use engine::io::{DeciderFailure, DeciderIdentity};
use tokio::sync::{mpsc, oneshot, watch};

use super::divergence::{Pass, Side, Tally};
use super::report::Compared;
use crate::decide::Decider;

/// A question, and the answer of the decider in force once it is there.
struct Question {
    /// What the one in force is shown.
    snapshot: Arc<Snapshot>,
    /// What the candidate is shown.
    shown: Arc<Snapshot>,
    active: Arc<DeciderIdentity>,
    answer: oneshot::Receiver<Result<Plan, DeciderFailure>>,
}

/// The loop's end.
pub(crate) struct ShadowFeed {
    /// The revision of the wish.
    pub revision: u64,
    /// Who is asked.
    pub candidate: DeciderIdentity,
    questions: mpsc::Sender<Question>,
    /// The call that the candidate was given too.
    asked: Option<(u64, oneshot::Sender<Result<Plan, DeciderFailure>>)>,
    seen: Arc<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    tally: Mutex<Tally>,
    skipped: AtomicU64,
}

/// The other end: what was found so far.
#[derive(Clone, Debug)]
pub(crate) struct ShadowTally {
    seen: Arc<Seen>,
    looked_at: watch::Receiver<u64>,
}

/// Starts to ask a candidate. It ends when the feed is dropped.
pub(crate) fn start(revision: u64, candidate: Arc<dyn Decider>) -> (ShadowFeed, ShadowTally) {
    let (questions, waiting) = mpsc::channel(1);
    let (count, looked_at) = watch::channel(0);
    let seen = Arc::new(Seen::default());
    let own = candidate.identity();
    tokio::spawn(work(candidate, waiting, seen.clone(), count));
    (
        ShadowFeed { revision, candidate: own, questions, asked: None, seen: seen.clone() },
        ShadowTally { seen, looked_at },
    )
}

impl ShadowFeed {
    /// The decider in force is asked; `shown` is what the candidate would be asked in its place.
    pub fn asked(&mut self, call: u64, snapshot: &Arc<Snapshot>, shown: &Arc<Snapshot>, active: &Arc<DeciderIdentity>) {
        let (sender, answer) = oneshot::channel();
        let question = Question { snapshot: snapshot.clone(), shown: shown.clone(), active: active.clone(), answer };
        match self.questions.try_send(question) {
            Ok(()) => self.asked = Some((call, sender)),
            Err(_) => {
                self.asked = None;
                self.seen.skipped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// It answered.
    pub fn answered(&mut self, call: u64, result: &Result<Plan, DeciderFailure>) {
        if let Some((_, sender)) = self.asked.take_if(|(asked, _)| *asked == call) {
            // The candidate may be gone.
            let _ = sender.send(result.clone());
        }
    }
}

impl ShadowTally {
    /// What was found so far.
    pub fn compared(&self) -> Compared {
        let tally = self.seen.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.compared(self.seen.skipped.load(Ordering::Relaxed))
    }

    /// Waits until something was compared.
    pub async fn first(&mut self) {
        // The candidate's task outlives neither the feed nor the host.
        let _ = self.looked_at.wait_for(|count| *count > 0).await;
    }
}

async fn work(
    candidate: Arc<dyn Decider>,
    mut waiting: mpsc::Receiver<Question>,
    seen: Arc<Seen>,
    count: watch::Sender<u64>,
) {
    let own = candidate.identity();
    while let Some(Question { snapshot, shown, active, answer }) = waiting.recv().await {
        let answered = candidate.decide(shown.clone()).await;
        // A call that was dropped, at a swap, is not compared.
        let Ok(plan) = answer.await else { continue };
        let looked_at = {
            let mut tally = seen.tally.lock().unwrap_or_else(PoisonError::into_inner);
            let (plan, answered) = (plan.as_ref(), answered.as_ref());
            let active = Side { shown: &snapshot, answer: plan, rules: &active.rules };
            let candidate = Side { shown: &shown, answer: answered, rules: &own.rules };
            // Names are put in by whoever knows them.
            tally.add(&Pass { seq: None, active, candidate }, |_| None);
            tally.looked_at()
        };
        count.send_replace(looked_at);
    }
}
