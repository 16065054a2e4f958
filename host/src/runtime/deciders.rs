//! What a caller can do about deciders while the host runs (SPEC 11).

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::HostError;
use super::handle::{Ask, HostHandle};
use super::operate::Refused;
use super::select::Runtime;
use super::swaps::{NotSwitched, Switch, Switched};
use super::wishes::{Asked, Begin, Taken};
use crate::decide::Decider;
use crate::registry::{Document, Entry, Ready, Registry, RegistryError};
use crate::sandbox::digest;
use crate::swap::{Jobs, Past, Purpose, Stop, SwapJob, SwapReport, Task, Terms};

/// Who is to be judged.
#[derive(Clone)]
pub enum Candidate {
    /// A decider that the registry has, or the built-in one, by its whole digest.
    Digest(String),
    /// A component. It is loaded, and kept when it is a decider.
    Component(Arc<[u8]>),
    /// A decider of the caller's own, which cannot be loaded again after a restart.
    Ready(Arc<dyn Decider>),
}

impl Candidate {
    fn digest(&self) -> String {
        match self {
            Candidate::Digest(digest) => digest.clone(),
            Candidate::Component(bytes) => digest(bytes),
            Candidate::Ready(decider) => decider.identity().digest,
        }
    }
}

impl std::fmt::Debug for Candidate {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Candidate").field(&self.digest()).finish()
    }
}

/// A wish for another decider.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Names the wish for ever, as the id of a command does: the same again acts once. Needs a store.
    pub id: Option<String>,
    /// Refused unless so many wishes were made before.
    pub expect_revision: Option<u64>,
    /// Which decider.
    pub candidate: Candidate,
    /// What the candidate was called by whoever asks; the same again is the same wish, whatever it means then. The digest
    /// unless told.
    pub named: Option<String>,
    /// How it is judged. Without a time for the shadow, one that is only shadowed is shadowed until it is stopped.
    pub terms: Terms,
    /// Only ask it beside the one in force.
    pub shadow_only: bool,
    /// It comes from where a host is given its decider when it starts, such as a file that is watched: a start that is given the
    /// same does not take it over again, whatever came of the wish.
    pub declares: bool,
}

impl Wish {
    /// A swap that is judged by nothing but its load, and not watched.
    pub fn swap(candidate: Candidate) -> Self {
        Wish {
            id: None,
            expect_revision: None,
            candidate,
            named: None,
            terms: Terms::default(),
            shadow_only: false,
            declares: false,
        }
    }
}

/// What a host knows of deciders.
#[derive(Clone, Debug)]
pub struct Deciders {
    /// What is kept, in force, pinned, quarantined and watched.
    pub document: Document,
    /// Swaps and shadows of this start, the newest first.
    pub swaps: Vec<Arc<SwapReport>>,
}

/// What the handle and all tasks of swaps share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub jobs: Jobs,
    pub registry: Option<Registry>,
    /// Where history can be read beside the loop.
    pub beside: Option<std::path::PathBuf>,
    /// Bytes are not collected while others are being kept.
    pub keeping: tokio::sync::Mutex<()>,
}

/// The way from a task of a swap to the loop: it keeps no host alive.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub asks: mpsc::WeakSender<Ask>,
    pub shared: Arc<Shared>,
}

/// Does something on the loop.
pub(crate) type Act = Box<dyn FnOnce(&mut Runtime) -> Result<(), HostError> + Send>;

impl Ask {
    /// Does something on the loop, and answers what came of it. What is fatal ends the loop.
    pub(crate) fn within<T: Send + 'static>(
        act: impl FnOnce(&mut Runtime) -> Result<T, HostError> + Send + 'static,
        reply: oneshot::Sender<Result<T, HostError>>,
    ) -> Self {
        Ask::Within(Box::new(move |runtime| match act(runtime) {
            // Whoever asked learns the reason from the outcome.
            Err(fatal @ (HostError::Journal(_) | HostError::Driver(_))) => Err(fatal),
            answer => {
                // Whoever asked may be gone.
                let _ = reply.send(answer);
                Ok(())
            }
        }))
    }
}

impl Line {
    /// Does something on the loop.
    pub async fn within<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Runtime) -> Result<T, HostError> + Send + 'static,
    ) -> Result<T, HostError> {
        let ended = || HostError::Ended("it ended before it answered".into());
        let (reply, answer) = oneshot::channel();
        let asks = self.asks.upgrade().ok_or_else(ended)?;
        asks.send(Ask::within(act, reply)).await.map_err(|_| ended())?;
        drop(asks);
        answer.await.map_err(|_| ended())?
    }

    /// Puts a decider in force.
    pub async fn switch(&self, switch: Switch) -> Result<Result<Switched, NotSwitched>, HostError> {
        let (reply, switched) = oneshot::channel();
        self.within(|runtime| runtime.switch(switch, reply)).await?;
        Ok(switched.await.unwrap_or(Err(NotSwitched::Ended)))
    }

    /// Loads a component, and keeps it when it is a decider.
    pub async fn add(&self, bytes: Arc<[u8]>, by: Option<String>) -> Result<Ready, HostError> {
        let registry = self.registry()?;
        let _kept = self.shared.keeping.lock().await;
        let now_ms = self.within(|runtime| Ok(runtime.now_ms())).await?;
        let added = tokio::task::spawn_blocking(move || registry.add(&bytes, now_ms, by.as_deref())).await;
        let ready = added.map_err(|gone| HostError::Setup(format!("loading a decider: {gone}")))??;
        let entry = ready.entry.clone();
        self.within(move |runtime| runtime.keep_decider(entry)).await?;
        Ok(ready)
    }

    /// Loads the decider of a digest.
    pub async fn ready(&self, digest: String) -> Result<Ready, HostError> {
        let registry = self.registry()?;
        let loaded = tokio::task::spawn_blocking(move || registry.ready(&digest)).await;
        Ok(loaded.map_err(|gone| HostError::Setup(format!("loading a decider: {gone}")))??)
    }

    /// Drops the bytes of what is not kept any more.
    pub async fn collect(&self) -> Result<(), HostError> {
        let Ok(registry) = self.registry() else { return Ok(()) };
        let _kept = self.shared.keeping.lock().await;
        let document = self.within(|runtime| Ok(runtime.swaps.document.clone())).await?;
        let collected = tokio::task::spawn_blocking(move || registry.collect(&document)).await;
        Ok(collected.map_err(|gone| HostError::Setup(format!("dropping deciders: {gone}")))??)
    }

    /// Where history can be read.
    pub fn past(&self) -> Past {
        match &self.shared.beside {
            Some(folder) => Past::Beside(folder.clone()),
            None => Past::Loop(self.asks.clone()),
        }
    }

    fn registry(&self) -> Result<Registry, HostError> {
        let none = || HostError::Setup("this host has no registry of deciders".into());
        self.shared.registry.clone().ok_or_else(none)
    }
}

impl From<RegistryError> for HostError {
    fn from(error: RegistryError) -> Self {
        HostError::Decider(Box::new(error))
    }
}

impl HostHandle {
    fn line(&self) -> Line {
        Line { asks: self.asks.downgrade(), shared: self.shared.clone() }
    }

    /// Lets another decider decide, from the next pass on, whatever it would do. What was held because the previous one failed is
    /// decided again.
    ///
    /// # Errors
    ///
    /// [`HostError::Ended`] when the host has ended.
    pub async fn use_decider(&self, decider: Arc<dyn Decider>) -> Result<(), HostError> {
        let switch = Switch {
            revision: 0,
            ready: Ready::of(decider),
            watch_ms: None,
            limit: None,
            by: None,
            text: "at once".into(),
            watched: None,
        };
        match self.line().switch(switch).await? {
            Ok(_) => Ok(()),
            Err(_) => Err(HostError::Ended("it is being shut down".into())),
        }
    }

    /// Wishes for another decider: it is loaded and checked, judged as the terms say, put in force between two passes, and
    /// watched (SPEC 11). This returns as soon as the wish is durable; what comes of it is the job's. A newer wish takes the place
    /// of one that has not switched.
    ///
    /// # Errors
    ///
    /// [`HostError::Order`] for an unusable id; [`HostError::Ended`]. A wish that is refused at once is no error: see
    /// [`SwapTaken::outcome`].
    pub async fn swap(&self, wish: Wish) -> Result<SwapTaken, HostError> {
        let Wish { id, expect_revision, candidate, named, terms, shadow_only, declares } = wish;
        let digest = candidate.digest();
        let named = named.unwrap_or_else(|| digest.clone());
        let asked = Asked::Wish { digest, named, terms: terms.clone(), shadow_only, declares };
        let purpose = if shadow_only { Purpose::Shadow } else { Purpose::Swap };
        let begin = self.ask(id, expect_revision, asked).await?;
        Ok(self.begin(begin, candidate, terms, purpose))
    }

    /// Puts the previous decider in force again, at once and whatever it would do.
    ///
    /// # Errors
    ///
    /// As [`HostHandle::swap`].
    pub async fn roll_back(&self, id: Option<String>, expect_revision: Option<u64>) -> Result<SwapTaken, HostError> {
        let begin = self.ask(id, expect_revision, Asked::Rollback).await?;
        let previous = begin.taken.as_ref().ok().and_then(|taken| taken.decider.clone()).unwrap_or_default();
        Ok(self.begin(begin, Candidate::Digest(previous), Terms::default(), Purpose::Rollback))
    }

    /// No other decider than this one, or the one in force, is put in force until it is unpinned; it is kept, and its quarantine
    /// is ended. The watch goes on.
    ///
    /// # Errors
    ///
    /// As [`HostHandle::swap`].
    pub async fn pin(&self, id: Option<String>, digest: Option<String>) -> Result<Result<Taken, Refused>, HostError> {
        Ok(self.ask(id, None, Asked::Pin { digest }).await?.taken)
    }

    /// Ends that.
    ///
    /// # Errors
    ///
    /// As [`HostHandle::swap`].
    pub async fn unpin(&self, id: Option<String>) -> Result<Result<Taken, Refused>, HostError> {
        Ok(self.ask(id, None, Asked::Unpin).await?.taken)
    }

    /// Calls a swap that has not switched, or a shadow, off.
    ///
    /// # Errors
    ///
    /// As [`HostHandle::swap`].
    pub async fn call_off(&self, id: Option<String>, swap: &str) -> Result<Result<Taken, Refused>, HostError> {
        let job = self.shared.jobs.named(swap).filter(|job| job.report.borrow().outcome.is_none());
        let asked = Asked::Cancel { id: swap.into(), is_open: job.is_some() };
        let begin = self.ask(id, None, asked).await?;
        if let (Some(job), Ok(taken)) = (job, &begin.taken)
            && !taken.replayed
        {
            job.stop(Stop::Cancelled);
        }
        Ok(begin.taken)
    }

    /// Ends the shadow.
    ///
    /// # Errors
    ///
    /// As [`HostHandle::swap`].
    pub async fn stop_shadow(&self, id: Option<String>) -> Result<Result<Taken, Refused>, HostError> {
        let job = self.shared.jobs.shadowing();
        let begin = self.ask(id, None, Asked::StopShadow { is_open: job.is_some() }).await?;
        if let (Some(job), Ok(taken)) = (job, &begin.taken)
            && !taken.replayed
        {
            job.stop(Stop::Cancelled);
        }
        Ok(begin.taken)
    }

    /// Loads a component, and keeps it when it is a decider: it can be asked for by its digest.
    ///
    /// # Errors
    ///
    /// [`HostError::Decider`] with the reason to refuse it, or that there is no registry.
    pub async fn add_decider(&self, bytes: Arc<[u8]>, by: Option<String>) -> Result<Entry, HostError> {
        let line = self.line();
        let ready = line.add(bytes, by).await?;
        line.collect().await?;
        Ok(ready.entry)
    }

    /// What is known of deciders.
    ///
    /// # Errors
    ///
    /// [`HostError::Ended`] when the host has ended.
    pub async fn deciders(&self) -> Result<Deciders, HostError> {
        let document = self.line().within(|runtime| Ok(runtime.swaps.document.clone())).await?;
        Ok(Deciders { document, swaps: self.shared.jobs.reports() })
    }

    /// A swap or a shadow of this start, by its name.
    pub fn swap_named(&self, id: &str) -> Option<SwapJob> {
        self.shared.jobs.named(id).map(SwapJob::new)
    }

    /// Where deciders are loaded from; `None` for a host without a registry.
    pub fn registry(&self) -> Option<&Registry> {
        self.shared.registry.as_ref()
    }

    /// Counts the changes in the reports of swaps and shadows.
    pub fn swap_changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.shared.jobs.changes()
    }

    async fn ask(&self, id: Option<String>, expect_revision: Option<u64>, asked: Asked) -> Result<Begin, HostError> {
        self.line().within(move |runtime| runtime.ask_deciders(id, expect_revision, asked)).await
    }

    /// Starts the task of what was taken.
    fn begin(&self, begin: Begin, candidate: Candidate, terms: Terms, purpose: Purpose) -> SwapTaken {
        let Begin { taken, document } = begin;
        let Ok(taken) = taken else { return SwapTaken { outcome: taken, job: None } };
        let id = taken.swap.clone().unwrap_or_default();
        if taken.replayed {
            return SwapTaken { outcome: Ok(taken), job: self.swap_named(&id) };
        }
        let digest = candidate.digest();
        let task = Task { line: self.line(), candidate, terms, revision: taken.revision, id, digest, purpose };
        let job = task.spawn(&document, taken.at_ms);
        SwapTaken { outcome: Ok(taken), job: Some(SwapJob::new(job)) }
    }
}

/// A wish that was taken.
#[derive(Clone, Debug)]
pub struct SwapTaken {
    /// What was taken, or why it was refused at once.
    pub outcome: Result<Taken, Refused>,
    /// What goes on; `None` where nothing does, or where it belonged to an earlier start of the host.
    pub job: Option<SwapJob>,
}
