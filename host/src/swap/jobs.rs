//! The swaps and shadows of one host: each has a report that can be watched, and can be called off until it has switched.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::report::{Purpose, SwapReport};

/// So many are remembered.
const REMEMBERED: usize = 32;

/// Why a job ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A wish of this revision came.
    Superseded(u64),
    /// Somebody called it off.
    Cancelled,
}

/// All jobs, by revision.
#[derive(Debug)]
pub(crate) struct Jobs {
    jobs: Mutex<BTreeMap<u64, Arc<Job>>>,
    changed: watch::Sender<u64>,
}

/// One job.
#[derive(Debug)]
pub(crate) struct Job {
    pub report: watch::Sender<Arc<SwapReport>>,
    pub stop: watch::Sender<Option<Stop>>,
}

impl Default for Jobs {
    fn default() -> Self {
        Jobs { jobs: Mutex::default(), changed: watch::channel(0).0 }
    }
}

impl Jobs {
    fn jobs(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job begins; older ones that have not switched are called off. Where a newer one has begun already, it is this one.
    pub fn begin(&self, report: SwapReport) -> Arc<Job> {
        let mut jobs = self.jobs();
        let revision = report.revision;
        let newer = jobs.keys().copied().find(|other| *other > revision).map(Stop::Superseded);
        for (_, older) in jobs.range(..revision) {
            older.stop(Stop::Superseded(revision));
        }
        let job = Arc::new(Job { report: watch::channel(Arc::new(report)).0, stop: watch::channel(newer).0 });
        jobs.insert(revision, job.clone());
        while jobs.len() > REMEMBERED {
            jobs.pop_first();
        }
        drop(jobs);
        self.tell();
        job
    }

    /// The job of that name.
    pub fn named(&self, id: &str) -> Option<Arc<Job>> {
        self.jobs().values().rev().find(|job| job.report.borrow().id == id).cloned()
    }

    /// The newest that shadows and has not ended.
    pub fn shadowing(&self) -> Option<Arc<Job>> {
        let open = |job: &&Arc<Job>| {
            let report = job.report.borrow();
            report.purpose == Purpose::Shadow && report.outcome.is_none()
        };
        self.jobs().values().rev().find(open).cloned()
    }

    /// All reports, the newest first.
    pub fn reports(&self) -> Vec<Arc<SwapReport>> {
        self.jobs().values().rev().map(|job| job.report.borrow().clone()).collect()
    }

    /// Counts what changes in any of them.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Something changed.
    pub fn tell(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl Job {
    /// Calls it off; one that was called off before keeps its reason.
    pub fn stop(&self, why: Stop) {
        self.stop.send_if_modified(|stop| {
            let is_new = stop.is_none();
            stop.get_or_insert(why);
            is_new
        });
    }
}
