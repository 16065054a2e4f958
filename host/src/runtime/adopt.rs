//! The start (SPEC 10): every backend is listed, completely, before anything else (S14). A host without its state adopts what
//! it finds; one with its state goes on where it was, and compares.

use std::time::Duration;

use ::store::Store;
use engine::driver::{Driver, DriverConfig, DriverError};
use engine::io::{Fault, Input, Listing};
use engine::recovery::LiveSession;
use tokio::time::{Instant, sleep, timeout_at};

use super::HostError;
use crate::clock::Clock;
use crate::decide::Decider;
use crate::executor::Executor;
use crate::journal::{Durable, History, Journal, JournalFile};

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What a start needs.
pub(super) struct Begin<'b> {
    pub executor: &'b Executor,
    /// The backends.
    pub names: Vec<String>,
    /// How long a backend may fail to give a complete listing.
    pub limit: Duration,
    pub clock: Clock,
}

/// A driver, and what it is given first.
pub(super) struct Begun {
    pub driver: Driver,
    pub inputs: Vec<Input>,
    /// Sessions to listen to again.
    pub sessions: Vec<LiveSession>,
    pub clock: Clock,
}

impl Begin<'_> {
    /// With a fence of attempt ids: what the backends hold is adopted.
    pub async fn with_fence(
        self,
        journal: Box<dyn Journal>,
        file: Option<JournalFile>,
        mut config: DriverConfig,
        decider: &dyn Decider,
    ) -> Result<(Box<dyn Journal>, History, Begun), HostError> {
        config.next_attempt = journal.next_attempt();
        config.epoch = journal.starts_before();
        let driver = Driver::new(config.clone()).map_err(driver_error)?;
        let history = match file {
            Some(mut file) => {
                file.start(&config, &decider.description(), self.clock.now_ms())?;
                History::File(Box::new(file))
            }
            None => History::None,
        };
        let listings = self.listings(&config.run).await?;
        let inputs = listings.into_iter().map(|(provider, listing)| Input::Adopt { provider, listing }).collect();
        Ok((journal, history, Begun { driver, inputs, sessions: Vec::new(), clock: self.clock }))
    }

    /// With a store. What was pending is in doubt and sessions are listened to again; what the store does not know is an
    /// orphan, no attempt id is used that something bears already, and nothing is made before that is known.
    pub async fn with_store(
        self,
        store: Box<dyn Store>,
        copy: Option<JournalFile>,
        config: &DriverConfig,
        // The settings come with the declaration, if it is a new one.
        declared: bool,
        decider: &dyn Decider,
    ) -> Result<(History, Begun), HostError> {
        let now_ms = self.clock.now_ms();
        let listings = self.listings(&config.run).await?;
        let surveyed = listings.into_iter().map(|(provider, listing)| Input::Surveyed { provider, listing });
        let (history, known) = Durable::open(store, copy, config, &decider.description(), now_ms)?;
        let history = History::Store(Box::new(history));
        let Some(driver) = known else {
            let driver = Driver::new(config.clone()).map_err(driver_error)?;
            let inputs = surveyed.collect();
            return Ok((history, Begun { driver, inputs, sessions: Vec::new(), clock: self.clock }));
        };
        if *driver.providers() != config.providers {
            let names = |map: &std::collections::BTreeMap<_, _>| format!("{map:?}");
            return Err(HostError::Setup(format!(
                "the backends are not those that the state was kept with: {} then, {} now",
                names(driver.providers()),
                names(&config.providers)
            )));
        }
        let mut inputs = vec![Input::Restarted];
        if *driver.decider() != config.decider {
            inputs.push(Input::DeciderChanged(config.decider.clone()));
        }
        if *driver.policy() != config.policy && !declared {
            inputs.push(Input::PolicyChanged(config.policy));
        }
        inputs.extend(surveyed);
        // A wall clock that was set back must not make everything wait until it catches up.
        let clock = Clock::starting_at(now_ms.max(driver.now_ms()));
        let sessions = driver.live_sessions();
        Ok((history, Begun { driver, inputs, sessions, clock }))
    }

    /// All at once, taken over in the order of the names.
    async fn listings(&self, run: &str) -> Result<Vec<(String, Listing)>, HostError> {
        let mut asked = Vec::new();
        for name in &self.names {
            let listing = complete_listing(self.executor.clone(), name.clone(), run.to_owned(), self.limit);
            asked.push(tokio::spawn(listing));
        }
        let mut listings = Vec::new();
        for listing in asked {
            let gone = |gone| HostError::Setup(format!("the listing at the start: {gone}"));
            listings.push(listing.await.map_err(gone)??);
        }
        Ok(listings)
    }
}

fn driver_error(error: DriverError) -> HostError {
    match error {
        DriverError::Shape(shape) => HostError::Shape(shape),
        other => HostError::Driver(other),
    }
}

/// Lists a backend until it gives a complete listing, for `limit` at most; a permanent refusal ends it at once.
pub(super) async fn complete_listing(
    executor: Executor,
    provider: String,
    run: String,
    limit: Duration,
) -> Result<(String, Listing), HostError> {
    let until = Instant::now() + limit;
    let mut pause = FIRST_PAUSE;
    let mut tries = 0;
    loop {
        tries += 1;
        let listed = timeout_at(until, executor.listing(&provider, &run)).await;
        let fault = match listed {
            Ok(Ok(listing)) if listing.complete => return Ok((provider, listing)),
            Ok(Ok(_)) => Fault::retryable("the listing is not complete"),
            Ok(Err(fault)) => fault,
            Err(_) => Fault::retryable(format!("no answer in {} ms", limit.as_millis())),
        };
        let asked = match fault {
            Fault::Retryable { retry_after_ms: Some(ms), .. } => Duration::from_millis(ms),
            _ => Duration::ZERO,
        };
        let wait = pause.max(asked);
        let over = until.checked_duration_since(Instant::now()).is_none_or(|left| left <= wait);
        if over || matches!(fault, Fault::Permanent { .. }) {
            return Err(HostError::Adoption { provider, tries, fault });
        }
        sleep(wait).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
