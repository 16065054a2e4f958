//! Backends: one provider each (SPEC 7). A backend creates, looks up, bootstraps, cancels, destroys and lists; it never
//! invents identity and never chooses what to do.

pub mod fake;
pub mod process;

use async_trait::async_trait;
pub use engine::id::{AttemptId, ExternalKey};
pub use engine::io::{CreateRequest, Endpoint, Fault, LeaseId, Listing, Observation, Promise, Resource, SessionId};
use engine::shape::Template;
use tokio::sync::mpsc;

/// One provider. Every call may be made again with the same key: what is there is adopted, what is gone is success.
///
/// Calls are made concurrently for different attempts, never for the same one. A call that is given up is dropped at an
/// await point; what it did until then must be found by the next call with the same key.
#[async_trait]
pub trait Backend: Send + Sync {
    /// What the provider can promise about creates.
    fn promise(&self) -> Promise;

    /// Refuses a template that this provider can never make, with the field (below the group) and the reason. No I/O.
    fn check(&self, template: &Template) -> Result<(), TemplateError> {
        let _ = template;
        Ok(())
    }

    /// Adopts the resource with this key, or makes it.
    async fn create(&self, request: &CreateRequest) -> Result<Leased, Fault>;

    /// Where the resource can be reached; [`Fault::NotReady`] while it has no address.
    async fn lookup(&self, key: &ExternalKey, lease: &LeaseId) -> Result<Endpoint, Fault>;

    /// Adopts the running bootstrap, or starts it. What it reports goes to `observations`, from the first to
    /// [`Observation::Closed`], also after this call has returned.
    async fn start(&self, request: StartRequest<'_>, observations: ObservationSink) -> Result<Started, Fault>;

    /// Listens again to a session that an earlier start of the host began; never begins another. What it reports goes to
    /// `observations`, as after [`Backend::start`]; one that has ended reports [`Observation::Closed`], with an exit status
    /// only where there is one (S14). Where this fails the session counts as closed, and nothing is known of its end: what
    /// was ready stays so, what was not yet is replaced.
    async fn listen(
        &self,
        request: StartRequest<'_>,
        session: &SessionId,
        observations: ObservationSink,
    ) -> Result<(), Fault> {
        let _ = (request, session, observations);
        Err(Fault::permanent("this backend cannot listen to a session again"))
    }

    /// What the boot command wrote last, for people.
    async fn output(&self, key: &ExternalKey, lease: &LeaseId, query: OutputQuery) -> Result<OutputPage, Fault> {
        let _ = (key, lease, query);
        Err(Fault::permanent("this backend keeps no output"))
    }

    /// The end of what the last attempt wrote that held this slot and is gone, for people; `None` where nothing is kept.
    async fn last_output(&self, run: &str, slot: &str, query: OutputQuery) -> Result<Option<LastOutput>, Fault> {
        let _ = (run, slot, query);
        Ok(None)
    }

    /// Stops the bootstrap and what it started. Already gone is success.
    async fn cancel(&self, key: &ExternalKey, lease: &LeaseId, session: &SessionId) -> Result<(), Fault>;

    /// Gives the resource back, if its label is this key. Already gone is success.
    async fn destroy(&self, key: &ExternalKey, lease: &LeaseId) -> Result<(), Fault>;

    /// What the provider holds for a run.
    async fn list(&self, run: &str) -> Result<Listing, Fault>;
}

/// What [`Backend::create`] answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    /// The provider's reference.
    pub lease: LeaseId,
    /// It was there already.
    pub adopted: bool,
}

/// What [`Backend::start`] answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The backend's reference.
    pub session: SessionId,
    /// It was running already.
    pub adopted: bool,
}

/// What [`Backend::output`] is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputQuery {
    /// Only lines after this place; `None` for the last ones.
    pub after: Option<u64>,
    /// At most so many.
    pub lines: usize,
}

/// What [`Backend::output`] answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputPage {
    /// Each line, oldest first, with its place: the next query goes on after it.
    pub lines: Vec<(u64, String)>,
    /// The place after the last line.
    pub next: u64,
}

/// What [`Backend::last_output`] answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastOutput {
    /// Whose it is.
    pub attempt: AttemptId,
    /// The lines. Their places are those they had before.
    pub page: OutputPage,
}

/// What [`Backend::start`] is asked.
#[derive(Clone, Copy, Debug)]
pub struct StartRequest<'a> {
    /// Whose bootstrap.
    pub key: &'a ExternalKey,
    /// Where.
    pub lease: &'a LeaseId,
    /// The address that look-up answered.
    pub endpoint: &'a Endpoint,
    /// What to run.
    pub template: &'a Template,
}

/// Why a provider can never make a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {value}: {reason}")]
pub struct TemplateError {
    /// The field below the group, such as `boot.command`.
    pub field: String,
    /// Its value, as text.
    pub value: String,
    /// Why not.
    pub reason: String,
}

/// Where a bootstrap session's observations go. Bounded: a session that reports faster than the host folds waits.
#[derive(Clone, Debug)]
pub struct ObservationSink {
    attempt: AttemptId,
    sender: mpsc::Sender<(AttemptId, Observation)>,
}

impl ObservationSink {
    /// A sink for one attempt's observations.
    pub fn new(attempt: AttemptId, sender: mpsc::Sender<(AttemptId, Observation)>) -> Self {
        ObservationSink { attempt, sender }
    }

    /// Reports. `false` when nobody listens any more: the session may end.
    pub async fn send(&self, observation: Observation) -> bool {
        self.sender.send((self.attempt, observation)).await.is_ok()
    }
}
