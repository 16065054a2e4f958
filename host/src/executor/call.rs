//! One backend call an operation: which, and how its answer is classified (SPEC 7).

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use engine::io::{CreateRequest, Done, Fault, Listing, Operation, Request};
use tokio::task::JoinError;
use tracing::Instrument;

use super::Executor;
use crate::backends::{Backend, StartRequest};

/// Performs an operation, when its attempt's turn comes.
pub(super) async fn perform(
    executor: Executor,
    backend: Arc<dyn Backend>,
    operation: Operation,
    turn: Arc<tokio::sync::Mutex<()>>,
) -> Result<Done, Fault> {
    let _turn = turn.lock().await;
    let key = &operation.key;
    match &operation.request {
        Request::CreateLease(request) => {
            backend.create(request).await.map(|leased| Done::Leased { lease: leased.lease, adopted: leased.adopted })
        }
        Request::SettleCreate(request) => settle_create(&*backend, request).await,
        Request::LookupEndpoint { lease } => backend.lookup(key, lease).await.map(|endpoint| Done::Found { endpoint }),
        Request::StartBootstrap { lease, endpoint, template } => {
            let observations = executor.observations(key.attempt);
            let started = backend.start(StartRequest { key, lease, endpoint, template }, observations).await?;
            Ok(Done::Started { session: started.session, adopted: started.adopted })
        }
        Request::CancelBootstrap { lease, session } => {
            backend.cancel(key, lease, session).await.map(|()| Done::Cancelled)
        }
        Request::DestroyLease { lease } => backend.destroy(key, lease).await.map(|()| Done::Destroyed),
    }
}

/// The same, with a span around it that says how it ended. One that is given up says nothing.
pub(super) fn traced(
    operation: &Operation,
    call: impl Future<Output = Result<Done, Fault>> + Send + 'static,
) -> impl Future<Output = Result<Done, Fault>> + Send + 'static {
    let span = traces::operation(operation);
    let recorded = span.clone();
    async move {
        let result = call.await;
        traces::ended(&recorded, &result);
        result
    }
    .instrument(span)
}

/// Looks for the label of an ambiguous create; makes nothing. Only a complete listing says "absent" (S14).
async fn settle_create(backend: &dyn Backend, request: &CreateRequest) -> Result<Done, Fault> {
    let listing = match backend.list(&request.key.run).await {
        Ok(listing) => listing,
        Err(fault @ Fault::Retryable { .. }) => return Err(fault),
        Err(other) => return Err(Fault::retryable(format!("listing failed: {other}"))),
    };
    // The lowest reference, so that the order of a listing decides nothing.
    let ours = listing.resources.into_iter().filter(|resource| resource.key.as_ref() == Some(&request.key));
    match ours.map(|resource| resource.lease).min() {
        Some(lease) => Ok(Done::Leased { lease, adopted: true }),
        None if listing.complete => Ok(Done::Absent),
        None => Err(Fault::retryable("the listing is not complete; the label may be on what is missing")),
    }
}

/// Lists in a task of its own, so that a panic stays there, for at most `limit`.
pub(super) async fn list(backend: Arc<dyn Backend>, run: String, limit: Duration) -> Result<Listing, Fault> {
    let mut task = tokio::spawn(async move { backend.list(&run).await });
    match tokio::time::timeout(limit, &mut task).await {
        Ok(Ok(listed)) => listed,
        Ok(Err(gone)) => Err(Fault::retryable(words_of(gone))),
        Err(_) => {
            task.abort();
            Err(Fault::retryable(format!("no answer to a listing in {} ms", limit.as_millis())))
        }
    }
}

/// The words of a call that ended without an answer.
pub(super) fn words_of(gone: JoinError) -> String {
    match panic_words(gone) {
        Some(words) => format!("the backend panicked: {words}"),
        None => "the call was dropped".into(),
    }
}

/// What a task said when it panicked; `None` when it was dropped.
pub(crate) fn panic_words(gone: JoinError) -> Option<String> {
    Some(cause_of(&*gone.try_into_panic().ok()?))
}

/// What was said with a panic.
pub(crate) fn cause_of(cause: &(dyn Any + Send)) -> String {
    let words = cause.downcast_ref::<&str>().copied().or_else(|| cause.downcast_ref::<String>().map(String::as_str));
    words.unwrap_or("no message").into()
}
