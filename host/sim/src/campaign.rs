//! Many seeds on many threads. What comes out does not depend on how many: the lowest failing seed is the one reported, and
//! counts are sums.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::setup::{Decide, Outcome, Setup, SetupError, run_seed};
use crate::tally::Tally;

/// Seeds to run.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// What each is about.
    pub setup: Setup,
    /// The first seed.
    pub first: u64,
    /// How many.
    pub seeds: u64,
    /// Threads.
    pub jobs: usize,
}

/// The lowest seed that broke something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The seed.
    pub seed: u64,
    /// Its run.
    pub outcome: Outcome,
}

/// How far a campaign is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Seeds that are done.
    pub seeds: u64,
    /// Passes finished.
    pub passes: u64,
    /// Simulated time of all desired slots together, in milliseconds.
    pub node_ms: u64,
}

/// What the threads share.
struct Shared<'p> {
    next: AtomicU64,
    /// The lowest seed known to fail; later ones need not run.
    lowest: AtomicU64,
    stop: AtomicBool,
    done: Mutex<Done>,
    progress: &'p (dyn Fn(Progress) + Sync),
}

#[derive(Default)]
struct Done {
    progress: Progress,
    /// Tallies by seed are added in the order of seeds only where order could matter; sums have none.
    tally: Tally,
    failing: Option<Failing>,
    error: Option<SetupError>,
}

impl Campaign {
    /// Runs all seeds. `decider` makes one decider a thread; `progress` hears of every seed that is done.
    ///
    /// # Errors
    ///
    /// No seeds, no time, or a fleet that the engine refuses.
    pub fn run<'d>(
        &self,
        decider: &(dyn Fn() -> Box<Decide<'d>> + Sync),
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(Tally, Option<Failing>), SetupError> {
        if self.seeds == 0 {
            return Err(SetupError::NoSeeds);
        }
        let shared = Shared {
            next: AtomicU64::new(0),
            lowest: AtomicU64::new(u64::MAX),
            stop: AtomicBool::new(false),
            done: Mutex::new(Done { tally: Tally::new(self.setup.identity.rules.len()), ..Done::default() }),
            progress,
        };
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| self.work(&shared, decider));
            }
        });
        let done = shared.done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        match done.error {
            Some(error) => Err(error),
            None => Ok((done.tally, done.failing)),
        }
    }

    fn work<'d>(&self, shared: &Shared<'_>, decider: &(dyn Fn() -> Box<Decide<'d>> + Sync)) {
        let mut decide = decider();
        while !shared.stop.load(Ordering::Relaxed) {
            let at = shared.next.fetch_add(1, Ordering::Relaxed);
            let seed = self.first.wrapping_add(at);
            if at >= self.seeds || at > shared.lowest.load(Ordering::Relaxed) {
                return;
            }
            let ran = run_seed(&self.setup, seed, &mut *decide, false);
            let mut done = shared.done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match ran {
                Err(error) => {
                    done.error.get_or_insert(error);
                    shared.stop.store(true, Ordering::Relaxed);
                }
                Ok(outcome) => {
                    done.progress.seeds += 1;
                    done.progress.passes += outcome.tally.passes;
                    done.progress.node_ms += outcome.tally.node_ms;
                    done.tally.add(&outcome.tally);
                    if outcome.violation.is_some() {
                        shared.lowest.fetch_min(at, Ordering::Relaxed);
                        if done.failing.as_ref().is_none_or(|failing| seed < failing.seed) {
                            done.failing = Some(Failing { seed, outcome });
                        }
                    }
                    (shared.progress)(done.progress);
                }
            }
        }
    }
}
