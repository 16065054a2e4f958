//! Passes, their queue and operations, counted from what goes into the driver and what comes out of it.

use std::collections::BTreeMap;
use std::time::Instant;

use engine::id::OperationId;
use engine::io::{Fault, Input, Notice, OperationStatus, Output, Request};
use prometheus::{Error, Gauge, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge};

use super::catalogue::Catalogue;

/// The bounds that controller-runtime has for a reconciliation, in seconds, and finer ones below: a pass takes microseconds.
const PASS_SECONDS: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5,
    0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
];

/// The bounds that work queues have in controller-runtime, in seconds.
const QUEUE_SECONDS: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];

/// From a look at a file to a machine that is ordered, in seconds.
const OPERATION_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
    1800.0,
];

/// More classes of failures than there are; one that is not among the first of them is counted as `other`.
const MAX_CLASSES: usize = 32;

/// An operation on its way.
struct Running {
    since: Instant,
    backend: String,
    kind: &'static str,
}

/// A pass whose plan came, and is being applied.
struct Ended {
    since: Instant,
    failed: bool,
}

/// The kinds of what people should know.
const NOTICES: [&str; 12] = [
    "decider-failed",
    "decider-recovered",
    "inconsistent",
    "awaits-person",
    "orphan",
    "orphan-gone",
    "reaping",
    "state-is-older",
    "missing",
    "paused",
    "resumed",
    "guard-tripped",
];

pub(super) struct Flow {
    /// When the pass was put out that is running.
    pass: Option<Instant>,
    /// Its answer is being folded.
    ended: Option<Ended>,
    /// When the input came that wants the next pass. Without a pass that runs, none may come of it.
    wanted: Option<Instant>,
    running: BTreeMap<OperationId, Running>,
    classes: Vec<String>,
    pass_success: IntCounter,
    pass_error: IntCounter,
    pass_requeue: IntCounter,
    pass_requeue_after: IntCounter,
    pass_errors: IntCounter,
    pass_seconds: Histogram,
    active: IntGauge,
    depth: IntGauge,
    adds: IntCounter,
    retries: IntCounter,
    queue_seconds: Histogram,
    work_seconds: Histogram,
    unfinished: Gauge,
    longest: Gauge,
    operations: IntCounterVec,
    operation_seconds: HistogramVec,
    pending: prometheus::IntGaugeVec,
    failures: IntCounterVec,
    notices: IntCounterVec,
}

impl Flow {
    pub fn new(c: &mut Catalogue, run: &str) -> Result<Self, Error> {
        let results = c.counters(
            "controller_runtime_reconcile_total",
            "Passes by result: success, error, requeue (another one at once), requeue_after (one at a known instant).",
            &["controller", "result"],
        )?;
        let result = |name| results.with_label_values(&[run, name]);
        let pass_errors = c.counters(
            "controller_runtime_reconcile_errors_total",
            "Passes for which the decider gave no plan, or one that was refused.",
            &["controller"],
        )?;
        let pass_seconds = c.histograms(
            "controller_runtime_reconcile_time_seconds",
            "Time of a pass, from the snapshot to the plan applied.",
            &["controller"],
            PASS_SECONDS,
        )?;
        let active = c.gauges("controller_runtime_active_workers", "Passes that run now: 0 or 1.", &["controller"])?;
        let most = c.gauges(
            "controller_runtime_max_concurrent_reconciles",
            "Passes that may run at once: 1.",
            &["controller"],
        )?;
        most.with_label_values(&[run]).set(1);
        let queue = &["name", "controller"];
        let depth =
            c.gauges("workqueue_depth", "Passes that are queued: 0 or 1, triggers collapse into one.", queue)?;
        let adds = c.counters("workqueue_adds_total", "Passes that were queued.", queue)?;
        let retries = c.counters("workqueue_retries_total", "Passes after one that failed.", queue)?;
        let queue_seconds = c.histograms(
            "workqueue_queue_duration_seconds",
            "How long a pass stayed queued, from its first trigger on.",
            queue,
            QUEUE_SECONDS,
        )?;
        let work_seconds =
            c.histograms("workqueue_work_duration_seconds", "How long a pass took.", queue, QUEUE_SECONDS)?;
        let unfinished = c.seconds_gauges(
            "workqueue_unfinished_work_seconds",
            "How long the pass that runs has been running; 0 when none runs.",
            queue,
        )?;
        let longest = c.seconds_gauges(
            "workqueue_longest_running_processor_seconds",
            "The same: one pass runs at a time.",
            queue,
        )?;
        let operations = c.counters(
            "homeostat_operations_total",
            "Operations that ended: done, not-ready, retryable, permanent, ambiguous.",
            &["backend", "kind", "outcome"],
        )?;
        let operation_seconds = c.histograms(
            "homeostat_operation_seconds",
            "Time of an operation, from its dispatch to its end, or until it was given up.",
            &["backend", "kind"],
            OPERATION_SECONDS,
        )?;
        let pending = c.gauges("homeostat_operations_running", "Operations on their way.", &["backend"])?;
        let failures = c.counters(
            "homeostat_decider_failures_total",
            "Failures of the decider by class, such as out-of-fuel.",
            &["class"],
        )?;
        let notices = c.counters("homeostat_notices_total", "What people should know, by kind.", &["kind"])?;
        // From the beginning on: a series that begins with its first one has not increased, and no alarm would see it.
        NOTICES.iter().for_each(|kind| drop(notices.with_label_values(&[kind])));
        Ok(Flow {
            pass: None,
            ended: None,
            wanted: None,
            running: BTreeMap::new(),
            classes: Vec::new(),
            pass_success: result("success"),
            pass_error: result("error"),
            pass_requeue: result("requeue"),
            pass_requeue_after: result("requeue_after"),
            pass_errors: pass_errors.with_label_values(&[run]),
            pass_seconds: pass_seconds.with_label_values(&[run]),
            active: active.with_label_values(&[run]),
            depth: depth.with_label_values(&[run, run]),
            adds: adds.with_label_values(&[run, run]),
            retries: retries.with_label_values(&[run, run]),
            queue_seconds: queue_seconds.with_label_values(&[run, run]),
            work_seconds: work_seconds.with_label_values(&[run, run]),
            unfinished: unfinished.with_label_values(&[run, run]),
            longest: longest.with_label_values(&[run, run]),
            operations,
            operation_seconds,
            pending,
            failures,
            notices,
        })
    }

    pub fn taken(&mut self, input: &Input) {
        let now = Instant::now();
        match input {
            Input::Decided { result, .. } => {
                if let Some(since) = self.pass.take() {
                    self.ended = Some(Ended { since, failed: result.is_err() });
                }
                if let Err(failure) = result {
                    self.failed(&failure.class);
                }
                return;
            }
            Input::Completed { id, result } => {
                let outcome = match result {
                    Ok(_) => "done",
                    Err(Fault::NotReady { .. }) => "not-ready",
                    Err(Fault::Retryable { .. }) => "retryable",
                    Err(Fault::Permanent { .. }) => "permanent",
                    Err(Fault::Ambiguous { .. }) => "ambiguous",
                };
                self.operation_ended(*id, outcome, now);
            }
            Input::Answered { id, status: OperationStatus::Ambiguous } => self.operation_ended(*id, "ambiguous", now),
            Input::Restarted => self.running.clear(),
            _ => {}
        }
        // While a pass runs, the first trigger counts; else nothing came of the one before.
        if self.pass.is_none() || self.wanted.is_none() {
            self.wanted = Some(now);
        }
    }

    pub fn put_out(&mut self, output: &Output) {
        match output {
            Output::Decide { .. } => {
                let now = Instant::now();
                let failed = self.ended.as_ref().is_some_and(|ended| ended.failed);
                self.finish(now, &self.pass_requeue.clone());
                self.adds.inc();
                if failed {
                    self.retries.inc();
                }
                let waited = self.wanted.take().map_or(0.0, |since| seconds(since, now));
                self.queue_seconds.observe(waited);
                self.pass = Some(now);
            }
            Output::Submit(operation) => {
                let kind = match &operation.request {
                    Request::CreateLease(_) => "create-lease",
                    Request::SettleCreate(_) => "settle-create",
                    Request::LookupEndpoint { .. } => "lookup-endpoint",
                    Request::StartBootstrap { .. } => "start-bootstrap",
                    Request::CancelBootstrap { .. } => "cancel-bootstrap",
                    Request::DestroyLease { .. } => "destroy-lease",
                };
                let running = Running { since: Instant::now(), backend: operation.provider.clone(), kind };
                self.running.insert(operation.id, running);
            }
            Output::Notice(notice) => self.noticed(notice),
            Output::Record(_) | Output::Ask(_) => {}
        }
    }

    pub fn rested(&mut self, waits: bool) {
        let result = if waits { self.pass_requeue_after.clone() } else { self.pass_success.clone() };
        self.finish(Instant::now(), &result);
        if self.pass.is_none() {
            // Nothing came of it.
            self.wanted = None;
        }
    }

    pub fn fill(&mut self) {
        let ran = self.pass.map_or(0.0, |since| seconds(since, Instant::now()));
        self.active.set(i64::from(self.pass.is_some()));
        self.depth.set(i64::from(self.pass.is_some() && self.wanted.is_some()));
        self.unfinished.set(ran);
        self.longest.set(ran);
        self.pending.reset();
        for running in self.running.values() {
            self.pending.with_label_values(&[running.backend.as_str()]).inc();
        }
    }

    fn finish(&mut self, now: Instant, result: &IntCounter) {
        let Some(ended) = self.ended.take() else { return };
        let took = seconds(ended.since, now);
        self.pass_seconds.observe(took);
        self.work_seconds.observe(took);
        if ended.failed {
            self.pass_error.inc();
            self.pass_errors.inc();
        } else {
            result.inc();
        }
    }

    fn operation_ended(&mut self, id: OperationId, outcome: &str, now: Instant) {
        // One that is not known was given up before, or was dispatched by an earlier start.
        let Some(running) = self.running.remove(&id) else { return };
        self.operations.with_label_values(&[running.backend.as_str(), running.kind, outcome]).inc();
        let labels = [running.backend.as_str(), running.kind];
        self.operation_seconds.with_label_values(&labels).observe(seconds(running.since, now));
    }

    fn noticed(&mut self, notice: &Notice) {
        let kind = match notice {
            Notice::DeciderFailed { failure, .. } => {
                // The plan came, and was refused.
                if let Some(ended) = self.ended.as_mut().filter(|ended| !ended.failed) {
                    ended.failed = true;
                    self.failed(&failure.class);
                }
                "decider-failed"
            }
            Notice::DeciderRecovered => "decider-recovered",
            Notice::Inconsistent { .. } => "inconsistent",
            Notice::AwaitsPerson { .. } => "awaits-person",
            Notice::Orphan { .. } => "orphan",
            Notice::OrphanGone { .. } => "orphan-gone",
            Notice::Reaping { .. } => "reaping",
            Notice::StateIsOlder { .. } => "state-is-older",
            Notice::Missing { .. } => "missing",
            Notice::Paused { .. } => "paused",
            Notice::Resumed { .. } => "resumed",
            Notice::GuardTripped { .. } => "guard-tripped",
        };
        self.notices.with_label_values(&[kind]).inc();
    }

    fn failed(&mut self, class: &str) {
        if !self.classes.iter().any(|known| known == class) {
            if self.classes.len() == MAX_CLASSES {
                self.failures.with_label_values(&["other"]).inc();
                return;
            }
            self.classes.push(class.to_owned());
        }
        self.failures.with_label_values(&[class]).inc();
    }
}

fn seconds(since: Instant, now: Instant) -> f64 {
    now.saturating_duration_since(since).as_secs_f64()
}
