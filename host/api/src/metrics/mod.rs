//! What is counted, for Prometheus (text format 0.0.4). `docs/metrics.md` says what each one is for.
//!
//! Passes and their queue bear controller-runtime's names and labels, so that boards made for it work; the run is the
//! `controller`. No label is a node, and no set of label values grows with time: groups that vanish are dropped.
//!
//! What happens is counted when it happens ([`Metrics::taken`], [`Metrics::put_out`], [`Metrics::rested`] and the others: a
//! lookup and an atomic add each). What *is* (nodes, pauses, orphans) is read from the published [`Status`] when somebody asks.

mod catalogue;
mod fleet;
mod flow;
mod process;
mod swaps;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use catalogue::Catalogue;
pub use catalogue::{Described, Kind};
use fleet::Fleet;
use flow::Flow;
use process::Process;
use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge, TextEncoder};
use swaps::Swaps;

use crate::control::Refusal;
use crate::wire::{Command, CommandResult, DeciderCommand, DeciderResult, Status, SwapVerdict};

pub use swaps::ShadowPass;

/// What the answer's `Content-Type` says.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics cannot be set up or written.
#[derive(Debug, thiserror::Error)]
#[error("metrics: {0}")]
pub struct MetricsError(#[from] prometheus::Error);

/// All that is counted of one run. Cheap to call from anywhere; made once.
pub struct Metrics {
    registry: prometheus::Registry,
    described: Vec<Described>,
    flow: Mutex<Flow>,
    /// What is read at a scrape. Locked for the whole of it: two scrapes must not fill the same gauges.
    scraped: Mutex<(Fleet, Process)>,
    decider_fuel: IntGauge,
    decider_fuel_total: IntCounter,
    journal_bytes: IntGauge,
    journal_records: IntGauge,
    commit_seconds: Histogram,
    listing_failures: IntCounterVec,
    commands: IntCounterVec,
    swaps: Swaps,
    requests: IntCounterVec,
    watchers: IntGauge,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").field("described", &self.described.len()).finish_non_exhaustive()
    }
}

impl Metrics {
    /// For the run of this name, kept by a program of this version.
    ///
    /// # Errors
    ///
    /// Two metrics have one name, which no input brings about.
    pub fn new(run: &str, version: &str) -> Result<Self, MetricsError> {
        let mut catalogue = Catalogue::default();
        let flow = Flow::new(&mut catalogue, run)?;
        let fleet = Fleet::new(&mut catalogue)?;
        let process = Process::new(&mut catalogue)?;
        let c = &mut catalogue;
        let decider_fuel = c.gauge("homeostat_decider_fuel", "Fuel that the decider used for the last decision.")?;
        let decider_fuel_total = c.counter("homeostat_decider_fuel_total", "Fuel that the decider used in total.")?;
        let journal_bytes = c.gauge("homeostat_journal_bytes", "Bytes of the store on disk.")?;
        let journal_records = c.gauge("homeostat_journal_records", "Records that the journal keeps.")?;
        let commit_seconds = c.histogram(
            "homeostat_commit_seconds",
            "Time that one commit of the journal took, sync included.",
            &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0],
        )?;
        let listing_failures =
            c.counters("homeostat_listing_failures_total", "Listings of a backend that failed.", &["backend"])?;
        let commands = c.counters(
            "homeostat_commands_total",
            "Operator commands by how they were answered.",
            &["command", "result"],
        )?;
        let swaps = Swaps::new(c)?;
        let requests = c.counters(
            "homeostat_http_requests_total",
            "HTTP requests by the path's pattern and the status code.",
            &["path", "code"],
        )?;
        let watchers = c.gauge("homeostat_watchers", "Clients that watch now.")?;
        let build = c.gauges("homeostat_build_info", "1; the version is a label.", &["version"])?;
        build.with_label_values(&[version]).set(1);
        let (registry, described) = catalogue.done();
        Ok(Metrics {
            registry,
            described,
            flow: Mutex::new(flow),
            scraped: Mutex::new((fleet, process)),
            decider_fuel,
            decider_fuel_total,
            journal_bytes,
            journal_records,
            commit_seconds,
            listing_failures,
            commands,
            swaps,
            requests,
            watchers,
        })
    }

    /// Every metric there is, whether or not it has a value yet.
    pub fn described(&self) -> &[Described] {
        &self.described
    }

    /// The driver is about to be given an input.
    pub fn taken(&self, input: &engine::io::Input) {
        self.flow().taken(input);
    }

    /// The driver put out an output.
    pub fn put_out(&self, output: &engine::io::Output) {
        self.flow().put_out(output);
    }

    /// All outputs of an input are drained; `waits` when the driver wants to be woken at an instant.
    pub fn rested(&self, waits: bool) {
        self.flow().rested(waits);
    }

    /// A decision cost so much fuel.
    pub fn decider_fuel(&self, units: u64) {
        self.decider_fuel.set(signed(units));
        self.decider_fuel_total.inc_by(units);
    }

    /// How large the journal is.
    pub fn journal(&self, bytes: u64, records: u64) {
        self.journal_bytes.set(signed(bytes));
        self.journal_records.set(signed(records));
    }

    /// A commit took so long.
    pub fn committed(&self, took: Duration) {
        self.commit_seconds.observe(took.as_secs_f64());
    }

    /// A backend could not be listed.
    pub fn listing_failed(&self, backend: &str) {
        self.listing_failures.with_label_values(&[backend]).inc();
    }

    /// A command was answered.
    pub fn command(&self, command: &Command, answer: Result<&CommandResult, &Refusal>) {
        let result = result_of(answer.map(|done| done.replayed));
        self.commands.with_label_values(&[name_of(command), result]).inc();
    }

    /// A command about deciders was answered.
    pub fn decider_command(&self, command: &DeciderCommand, answer: Result<&DeciderResult, &Refusal>) {
        let result = result_of(answer.map(|done| done.replayed));
        self.commands.with_label_values(&[swaps::name_of(command), result]).inc();
    }

    /// Another decider was put in force; so long no pass could start.
    pub fn switched(&self, took: Duration) {
        self.swaps.switched(took);
    }

    /// A swap came out so. One that is rolled back while it is watched counts twice: it had switched before.
    pub fn swap(&self, verdict: SwapVerdict) {
        self.swaps.came_out(verdict);
    }

    /// A pass was compared in shadow, or not.
    pub fn shadow_pass(&self, pass: ShadowPass) {
        self.swaps.compared(pass);
    }

    /// A request was answered. `path` is the pattern, such as `/v1/nodes/{node}`, or `other` where there is none: never the
    /// path as it was sent.
    pub fn request(&self, path: &str, code: u16) {
        let mut digits = [0; 5];
        self.requests.with_label_values(&[path, decimal(code, &mut digits)]).inc();
    }

    /// So many clients watch now.
    pub fn watchers(&self, count: usize) {
        self.watchers.set(signed(count as u64));
    }

    /// All of it, as text.
    ///
    /// # Errors
    ///
    /// What is counted cannot be written as text, which no input brings about.
    pub fn render(&self, status: &Status) -> Result<String, MetricsError> {
        let mut scraped = self.scraped.lock().unwrap_or_else(PoisonError::into_inner);
        scraped.0.fill(status);
        scraped.1.fill();
        self.flow().fill();
        Ok(TextEncoder::new().encode_to_string(&self.registry.gather())?)
    }

    fn flow(&self) -> std::sync::MutexGuard<'_, Flow> {
        self.flow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn result_of(answer: Result<bool, &Refusal>) -> &'static str {
    match answer {
        Ok(true) => "replayed",
        Ok(false) => "done",
        Err(Refusal::NotFound(_)) => "not-found",
        Err(Refusal::Invalid(_)) => "invalid",
        Err(Refusal::Conflict(_)) => "conflict",
        Err(Refusal::Guard(_)) => "guard",
        Err(Refusal::Unavailable(_)) => "unavailable",
        Err(Refusal::Failed(_)) => "failed",
    }
}

fn name_of(command: &Command) -> &'static str {
    match command {
        Command::Apply { .. } => "apply",
        Command::Scale { .. } => "scale",
        Command::AddNode { .. } => "add-node",
        Command::Kill { .. } => "kill",
        Command::Destroy { .. } => "destroy",
        Command::Pause { .. } => "pause",
        Command::Resume { .. } => "resume",
        Command::AdoptOrphan { .. } => "adopt-orphan",
        Command::DestroyOrphan { .. } => "destroy-orphan",
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A number as text, without an allocation.
fn decimal(mut number: u16, digits: &mut [u8; 5]) -> &str {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    std::str::from_utf8(&digits[at..]).unwrap_or("0")
}
