//! How a host is put together.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::metrics::Metrics;
use engine::driver::DriverConfig;
use engine::io::{Input, Notice};
use engine::policy::Policy;
use engine::shape::ClusterShape;
use engine::view::View;
use inspect::DecisionLog;
use store::Store;
use tokio::sync::{broadcast, mpsc, watch};

use super::adopt::{Begin, Begun};
use super::changes::Publisher;
use super::deciders::Shared;
use super::declare::{DECLARED, Declaration};
use super::handle::{HostHandle, Outcome};
use super::inforce::{self, Given, InForce};
use super::instruments::Instruments;
use super::select::{Parts, Runtime};
use super::swaps::Swaps;
use super::{HostError, HostEvent, Intervals};
use crate::backends::Backend;
use crate::clock::Clock;
use crate::decide::Decider;
use crate::executor::{Executor, OutputWatcher, panic_words};
use crate::journal::{FileFence, Journal, JournalError, JournalFile, MemoryJournal, StateDir};
use crate::registry::{Document, Ready, Registry};
use crate::swap::Jobs;

/// Observations and results that may wait for the loop.
const EVENTS: usize = 1_024;
/// How long a start waits until the sessions of an earlier one are listened to again.
const HEARD_LIMIT: Duration = Duration::from_secs(5);
/// Events a slow listener may fall behind.
const BROADCAST: usize = 4_096;

/// A host in the making: see [`super::Host`].
pub struct HostBuilder {
    run: String,
    backends: BTreeMap<String, Arc<dyn Backend>>,
    twice: Option<String>,
    decider: Option<Arc<dyn Decider>>,
    policy: Policy,
    intervals: Intervals,
    clock: Option<Clock>,
    watcher: Option<OutputWatcher>,
    state: State,
    history: Option<JournalFile>,
    first: First,
    goes_on: bool,
    instruments: Instruments,
    registry: Option<Registry>,
    declared_decider: Option<Ready>,
    beside: Option<PathBuf>,
}

/// What is wanted first.
enum First {
    None,
    Shape(ClusterShape),
    Declared(Declaration),
}

enum State {
    Memory,
    Dir(PathBuf),
    Journal(Box<dyn Journal>),
    Store(Box<dyn Store>),
}

impl HostBuilder {
    pub(super) fn new(run: String) -> Self {
        HostBuilder {
            run,
            backends: BTreeMap::new(),
            twice: None,
            decider: None,
            policy: Policy::default(),
            intervals: Intervals::default(),
            clock: None,
            watcher: None,
            state: State::Memory,
            history: None,
            first: First::None,
            goes_on: false,
            instruments: Instruments::default(),
            registry: None,
            declared_decider: None,
            beside: None,
        }
    }

    /// A backend, under the name that templates call it by.
    pub fn backend(self, name: impl Into<String>, backend: impl Backend + 'static) -> Self {
        self.shared_backend(name, Arc::new(backend))
    }

    /// A backend that the caller keeps a hold of.
    pub fn shared_backend(mut self, name: impl Into<String>, backend: Arc<dyn Backend>) -> Self {
        let name = name.into();
        if self.backends.insert(name.clone(), backend).is_some() {
            self.twice = Some(name);
        }
        self
    }

    /// Who decides. Required. With a registry, it is who decides at first: a state that was kept knows which one is in force.
    pub fn decider(mut self, decider: impl Decider + 'static) -> Self {
        self.decider = Some(Arc::new(decider));
        self
    }

    /// The same, with a decider that others hold too.
    pub fn shared_decider(mut self, decider: Arc<dyn Decider>) -> Self {
        self.decider = Some(decider);
        self
    }

    /// Where deciders are loaded from, so that they can be swapped by their digest and found again after a restart.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// A decider that is named explicitly, from somewhere that is read again and again, such as a file. Where the state has
    /// taken it over before, what was swapped since stands. Needs a registry that has its bytes.
    pub fn declare_decider(mut self, declared: Ready) -> Self {
        self.declared_decider = Some(declared);
        self
    }

    /// The state directory of the store's database, so that history is read beside the loop instead of by it.
    pub fn read_beside(mut self, state: impl Into<PathBuf>) -> Self {
        self.beside = Some(state.into());
        self
    }

    /// The operator's settings; the defaults otherwise.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// The runtime's own intervals; the defaults otherwise.
    pub fn intervals(mut self, intervals: Intervals) -> Self {
        self.intervals = intervals;
        self
    }

    /// The first shape; more come through [`HostHandle::update_shape`].
    pub fn shape(mut self, shape: ClusterShape) -> Self {
        self.first = First::Shape(shape);
        self
    }

    /// A first shape with its settings, from somewhere that is read again and again, such as a file. Where the state has
    /// taken it over before, what was changed since stands (see [`HostHandle::declare`]).
    pub fn declare(mut self, declared: Declaration) -> Self {
        self.policy = declared.policy;
        self.first = First::Declared(declared);
        self
    }

    /// Goes on with the shape and the settings that the store has in force, where nothing is declared or what is declared is
    /// refused ([`HostHandle::refused`] says why). Where none is in force, that is an error as ever.
    pub fn go_on(mut self) -> Self {
        self.goes_on = true;
        self
    }

    /// A directory that keeps what has to outlive the host; it is locked. Without it attempt ids start from 1 again, above
    /// those that are adopted.
    pub fn state_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.state = State::Dir(path.into());
        self
    }

    /// A journal of the caller's own, instead of a state directory.
    pub fn journal(mut self, journal: impl Journal + 'static) -> Self {
        self.state = State::Journal(Box::new(journal));
        self
    }

    /// A store that keeps all that the driver folds, instead of a state directory: a host that was killed goes on where it was
    /// (SPEC 10). Nothing is adopted from a listing; what the store does not know is an orphan.
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.state = State::Store(Box::new(store));
        self
    }

    /// Records all that the driver folds and decides, to be replayed (SPEC 12). With a store it is a copy of what that keeps.
    pub fn history(mut self, file: JournalFile) -> Self {
        self.history = Some(file);
        self
    }

    /// Keeps what was decided lately, with its facts, for whoever shows it.
    pub fn decisions(mut self, log: Arc<DecisionLog>) -> Self {
        self.instruments.keep_decisions(log);
        self
    }

    /// Counts and measures what the host does.
    pub fn metrics(mut self, metrics: Arc<Metrics>) -> Self {
        self.instruments.keep_metrics(metrics);
        self
    }

    /// A clock of the caller's own, for tests.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Is told every line of output of every node. It must not block. If it panics, it is told no more; the host goes on.
    pub fn output_watcher(mut self, watcher: OutputWatcher) -> Self {
        let fell = AtomicBool::new(false);
        self.watcher = Some(Arc::new(move |attempt, line| {
            let told =
                !fell.load(Ordering::Relaxed) && catch_unwind(AssertUnwindSafe(|| watcher(attempt, line))).is_err();
            if told {
                fell.store(true, Ordering::Relaxed);
                tracing::error!("the output watcher panicked and is told no more");
            }
        }));
        self
    }

    /// Adopts what the backends hold and starts the loop, on the tokio runtime of the caller.
    ///
    /// # Errors
    ///
    /// What is missing or refused; [`HostError::Adoption`] names the backend that gave no complete listing.
    pub async fn start(mut self) -> Result<HostHandle, HostError> {
        if let Some(name) = self.twice {
            return Err(HostError::Setup(format!("two backends are named {name:?}")));
        }
        let default = self.decider.ok_or_else(|| HostError::Setup("a host needs a decider".into()))?;
        let clock = self.clock.unwrap_or_else(Clock::system);
        if self.goes_on && matches!(self.first, First::None) && !self.state.may_know_a_shape()? {
            return Err(HostError::NoShape);
        }
        let kept = if let State::Store(store) = &mut self.state { inforce::kept(&mut **store)? } else { None };
        let given = Given { default, declared: self.declared_decider, registry: self.registry.clone() };
        let (was, now_ms) = (kept.clone(), clock.now_ms());
        let chosen = tokio::task::spawn_blocking(move || InForce::choose(kept, given, now_ms)).await;
        let chosen = chosen.map_err(|gone| HostError::Setup(format!("choosing the decider: {gone}")))??;
        let InForce { decider, document, fallback, said } = chosen;
        let changed = was.is_none_or(|was| Document::read(&was).is_ok_and(|was| was != document));
        let config = DriverConfig {
            run: self.run.clone(),
            policy: self.policy,
            providers: self.backends.iter().map(|(name, backend)| (name.clone(), backend.promise())).collect(),
            decider: decider.identity(),
            next_attempt: 1,
            epoch: 0,
        };
        let (sender, events) = mpsc::channel(EVENTS);
        let limit = self.intervals.listing_limit;
        let executor = Executor::with(self.backends.clone(), sender, self.watcher, limit);
        let begin = Begin {
            executor: &executor,
            names: self.backends.keys().cloned().collect(),
            limit: self.intervals.adopt_limit,
            clock,
        };
        let (journal, history, begun): (Box<dyn Journal>, _, _) = match self.state {
            State::Store(store) => {
                let settled = self.goes_on || matches!(self.first, First::Declared(_));
                let (history, begun) = begin.with_store(store, self.history, &config, settled, &*decider).await?;
                (Box::new(MemoryJournal::default()), history, begun)
            }
            State::Memory => {
                begin.with_fence(Box::new(MemoryJournal::default()), self.history, config, &*decider).await?
            }
            State::Journal(journal) => begin.with_fence(journal, self.history, config, &*decider).await?,
            State::Dir(path) => {
                let fence = FileFence::open(StateDir::open(path).map_err(JournalError::from)?, &self.run)?;
                begin.with_fence(Box::new(fence), self.history, config, &*decider).await?
            }
        };
        let Begun { driver, inputs, sessions, clock } = begun;
        let (view_sender, views) = watch::channel(Arc::new(empty(&self.run, clock.now_ms())));
        let (event_sender, mut early) = broadcast::channel(BROADCAST);
        let (asks, waiting) = mpsc::channel(16);
        let swaps = Swaps::new(document, decider.identity(), fallback);
        let parts = Parts {
            driver,
            executor: executor.clone(),
            decider,
            journal,
            history,
            clock,
            intervals: self.intervals,
            backends: self.backends,
            asks: waiting,
            events,
            publisher: Publisher::new(view_sender, event_sender.clone()),
            instruments: self.instruments,
        };
        let mut runtime = Runtime::new(parts, swaps);
        let quiet = inputs.is_empty();
        let switches = inputs.iter().position(|input| matches!(input, Input::DeciderChanged(_))).unwrap_or(0);
        for (at, input) in inputs.into_iter().enumerate() {
            // In the transaction of the record that says the same.
            if changed && at == switches {
                runtime.save_deciders()?;
            }
            runtime.step(input)?;
        }
        if changed && quiet {
            runtime.save_deciders()?;
        }
        let heard: Vec<_> = sessions.into_iter().map(|session| executor.listen(session)).collect();
        // What was said until here nobody could hear.
        let opening = std::iter::from_fn(|| early.try_recv().ok());
        let opening =
            opening.filter_map(|event| if let HostEvent::Notice(notice) = event { Some(notice) } else { None });
        let opening: Arc<[Notice]> = opening.collect();
        drop(early);
        let may_go_on = self.goes_on && runtime.generation() > 0;
        let refused = match self.first {
            First::Shape(shape) => runtime.desire(shape).map(drop),
            First::Declared(declared) => runtime.declare(declared).map(drop),
            First::None if self.goes_on && !may_go_on => Err(HostError::NoShape),
            First::None => Ok(()),
        };
        let refused = match refused {
            Ok(()) => None,
            Err(HostError::Shape(error)) if may_go_on => Some(error),
            Err(error) => return Err(error),
        };
        let (outcome_sender, outcome) = watch::channel::<Outcome>(None);
        let lives = tokio::spawn(runtime.run());
        tokio::spawn(async move {
            // The caller's store and journal run in the loop; what they throw ends this host and nothing else.
            let ended = lives.await.unwrap_or_else(|gone| match panic_words(gone) {
                Some(words) => Err(HostError::Panicked { what: "the host's loop", words }),
                None => Err(HostError::Ended("the tokio runtime is going down".into())),
            });
            // Nobody may be waiting.
            let _ = outcome_sender.send(Some(ended.map(Arc::new).map_err(Arc::new)));
        });
        // Whoever starts it sees nodes that are there, or are said to be gone. One backend that hangs keeps nobody for long.
        let all = async {
            for one in heard {
                // One that failed said so itself.
                let _ = one.await;
            }
        };
        let _ = tokio::time::timeout(HEARD_LIMIT, all).await;
        let (registry, beside) = (self.registry, self.beside);
        let shared = Shared { jobs: Jobs::default(), registry, beside, keeping: tokio::sync::Mutex::default() };
        let (shared, said) = (Arc::new(shared), said.into());
        let refused = refused.map(Arc::new);
        Ok(HostHandle { asks, views, events: event_sender, outcome, opening, said, refused, clock, shared })
    }
}

impl State {
    /// Whether something was kept before, and not taken down since. Nothing is written.
    fn may_know_a_shape(&mut self) -> Result<bool, HostError> {
        let State::Store(store) = self else { return Ok(false) };
        let is_down = store.meta(DECLARED).map_err(JournalError::from)?.is_some_and(|declared| declared.is_empty());
        Ok(!is_down && !store.load().map_err(JournalError::from)?.is_fresh())
    }
}

/// What is seen before the loop has begun.
fn empty(run: &str, now_ms: u64) -> View {
    View {
        run: run.into(),
        generation: 0,
        observed_generation: 0,
        converged: false,
        now_ms,
        nodes: Vec::new(),
        reaping: Vec::new(),
        orphans: Vec::new(),
        pauses: Vec::new(),
    }
}
