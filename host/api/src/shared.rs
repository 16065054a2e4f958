//! What all connections have in common.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use bytes::Bytes;
use tokio::sync::{Semaphore, watch};

use crate::control::Control;
use crate::limits::{Bucket, Limits};
use crate::watch::Rendered;
use crate::wire::Status;

/// Told of each answer: the path as the document has it (or `other`), and the status.
pub(crate) type OnAnswer = Arc<dyn Fn(&'static str, StatusCode) + Send + Sync>;

/// What all connections have in common.
pub(crate) struct Shared {
    pub(crate) control: Arc<dyn Control>,
    pub(crate) limits: Limits,
    /// True once the server is told to stop.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) commands: Bucket,
    pub(crate) bodies: Semaphore,
    pub(crate) components: Arc<Semaphore>,
    pub(crate) rendered: Rendered,
    pub(crate) on_answer: Option<OnAnswer>,
    watchers: AtomicUsize,
    status: Mutex<Option<(Arc<Status>, Bytes)>>,
}

impl Shared {
    pub(crate) fn new(
        control: Arc<dyn Control>,
        limits: Limits,
        stopping: watch::Receiver<bool>,
        on_answer: Option<OnAnswer>,
    ) -> Self {
        Shared {
            control,
            stopping,
            commands: Bucket::new(limits.commands),
            bodies: Semaphore::new(limits.bodies.max(1)),
            components: Arc::new(Semaphore::new(limits.components.max(1))),
            rendered: Rendered::default(),
            on_answer,
            watchers: AtomicUsize::new(0),
            status: Mutex::new(None),
            limits,
        }
    }

    /// The fleet as it is, with its text, which is made once for all who ask.
    pub(crate) fn status(&self) -> Result<(Arc<Status>, Bytes), serde_json::Error> {
        let status = self.control.status();
        let mut kept = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, text)) = &*kept
            && Arc::ptr_eq(of, &status)
        {
            return Ok((status, text.clone()));
        }
        let text = Bytes::from(serde_json::to_vec(&*status)?);
        *kept = Some((status.clone(), text.clone()));
        Ok((status, text))
    }

    /// One more watcher, until it is dropped; none when there are too many.
    pub(crate) fn watcher(self: &Arc<Self>) -> Option<Watcher> {
        let most = self.limits.watchers;
        self.watchers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| (now < most).then_some(now + 1))
            .ok()
            .map(|_| Watcher(self.clone()))
    }

    pub(crate) fn watchers(&self) -> usize {
        self.watchers.load(Ordering::Relaxed)
    }
}

/// Somebody who watches.
pub(crate) struct Watcher(Arc<Shared>);

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Ends when the server is told to stop.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // A server that was dropped has stopped too.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}
