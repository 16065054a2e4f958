//! Observations on their way from a bootstrap session to the driver: one channel an attempt, in order, output thinned out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::id::AttemptId;
use engine::recovery::LiveSession;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Executor, Shared};
use crate::backends::{Fault, Observation, ObservationSink, StartRequest};

/// A line of output at most this often reaches the driver, an attempt.
const OUTPUT_INTERVAL: Duration = Duration::from_secs(1);
/// Longer lines are cut for the driver; the watcher sees them whole.
const OUTPUT_BYTES: usize = 1024;
/// Observations a session may be ahead of the host.
const BACKLOG: usize = 64;

type Sent = (AttemptId, Observation);

/// The channels that have a session at their other end.
#[derive(Default)]
pub(super) struct Sessions {
    open: Mutex<BTreeMap<AttemptId, mpsc::WeakSender<Sent>>>,
}

impl Sessions {
    fn open(&self) -> MutexGuard<'_, BTreeMap<AttemptId, mpsc::WeakSender<Sent>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Executor {
    /// Where the observations of an attempt go. A start that is made again shares the channel of the first, so that there
    /// is one order and one rate an attempt.
    pub(super) fn observations(&self, attempt: AttemptId) -> ObservationSink {
        let mut open = self.shared.sessions.open();
        if let Some(sender) = open.get(&attempt).and_then(mpsc::WeakSender::upgrade) {
            return ObservationSink::new(attempt, sender);
        }
        let (sender, receiver) = mpsc::channel(BACKLOG);
        open.insert(attempt, sender.downgrade());
        tokio::spawn(forward(self.shared.clone(), attempt, receiver));
        ObservationSink::new(attempt, sender)
    }
}

impl Executor {
    /// Listens again to a session of an earlier start of the host. One that cannot be found is closed, and nothing is known
    /// of its end. The task ends when that is known.
    pub fn listen(&self, known: LiveSession) -> JoinHandle<()> {
        let executor = self.clone();
        tokio::spawn(async move {
            let attempt = known.key.attempt;
            let heard = match executor.shared.backends.get(&known.provider) {
                Some(backend) => {
                    let LiveSession { key, lease, endpoint, template, session, .. } = &known;
                    let request = StartRequest { key, lease, endpoint, template };
                    backend.listen(request, session, executor.observations(attempt)).await
                }
                None => Err(Fault::permanent("no such backend")),
            };
            if heard.is_err() {
                executor.shared.observed(attempt, Observation::Closed { exit: None }).await;
            }
        })
    }
}

async fn forward(shared: Arc<Shared>, attempt: AttemptId, mut receiver: mpsc::Receiver<Sent>) {
    let mut held: Option<String> = None;
    let mut quiet_until = Instant::now();
    loop {
        tokio::select! {
            biased;
            received = receiver.recv() => match received {
                None => break,
                Some((_, Observation::Output(line))) => {
                    if let Some(watcher) = &shared.watcher {
                        watcher(attempt, &line);
                    }
                    held = Some(cut(line));
                    // A flood must not keep the clock from being looked at.
                    if Instant::now() < quiet_until {
                        continue;
                    }
                }
                Some((_, observation)) => {
                    shared.observed(attempt, observation).await;
                    continue;
                }
            },
            () = tokio::time::sleep_until(quiet_until), if held.is_some() => {}
        }
        if let Some(line) = held.take() {
            quiet_until = Instant::now() + OUTPUT_INTERVAL;
            shared.observed(attempt, Observation::Output(line)).await;
        }
    }
    if let Some(line) = held {
        tokio::time::sleep_until(quiet_until).await;
        shared.observed(attempt, Observation::Output(line)).await;
    }
    let mut open = shared.sessions.open();
    // A later session of the attempt may have opened a channel of its own.
    if open.get(&attempt).is_some_and(|sender| sender.strong_count() == 0) {
        open.remove(&attempt);
    }
}

fn cut(mut line: String) -> String {
    if line.len() > OUTPUT_BYTES {
        let mut at = OUTPUT_BYTES;
        while !line.is_char_boundary(at) {
            at -= 1;
        }
        line.truncate(at);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let line = cut("é".repeat(OUTPUT_BYTES));
        assert_eq!(line.len(), OUTPUT_BYTES + "…".len());
        assert_eq!(cut("short".into()), "short");
        assert_eq!(cut("ab".repeat(OUTPUT_BYTES / 2)).len(), OUTPUT_BYTES);
        let odd = cut(format!("a{}", "é".repeat(OUTPUT_BYTES)));
        assert_eq!(odd.len(), OUTPUT_BYTES - 1 + "…".len());
    }
}
