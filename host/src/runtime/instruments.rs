//! What is watched of the loop, for people and metrics. Nothing here reaches a decision.

use std::sync::Arc;
use std::time::Duration;

use api::metrics::Metrics;
use engine::driver::Driver;
use engine::io::{Input, Output};
use inspect::{Candidate, DecisionLog};
use tracing::Span;

use crate::decide::Decider;

/// Who watches.
#[derive(Default)]
pub(crate) struct Instruments {
    decisions: Option<Decisions>,
    metrics: Option<Arc<Metrics>>,
    /// The pass in flight: from the question to what came of the answer.
    pass: Option<(u64, Span)>,
}

struct Decisions {
    log: Arc<DecisionLog>,
    /// The snapshot that a plan is awaited for.
    asked: Option<(u64, Arc<decider::Snapshot>)>,
    candidates: Vec<Candidate>,
}

impl Instruments {
    pub fn keep_decisions(&mut self, log: Arc<DecisionLog>) {
        self.decisions = Some(Decisions { log, asked: None, candidates: Vec::new() });
    }

    pub fn keep_metrics(&mut self, metrics: Arc<Metrics>) {
        self.metrics = Some(metrics);
    }

    /// An input is about to be folded.
    pub fn given(&mut self, driver: &Driver, decider: &dyn Decider, input: &Input) {
        if let Some(metrics) = &self.metrics {
            metrics.taken(input);
            if let (Input::Decided { .. }, Some(fuel)) = (input, decider.fuel_used()) {
                metrics.decider_fuel(fuel);
            }
        }
        if let (Some(decisions), Input::Decided { call, result: Ok(plan) }) = (&mut self.decisions, input)
            && let Some((_, snapshot)) = decisions.asked.take_if(|(asked, _)| asked == call)
        {
            decisions.candidates = DecisionLog::candidates(driver, &snapshot, plan);
        }
    }

    /// What the operations that follow from an input belong to.
    pub fn span(&mut self, input: &Input) -> Span {
        match input {
            Input::Decided { call, .. } => {
                self.pass.take_if(|(asked, _)| asked == call).map_or_else(Span::none, |(_, span)| span)
            }
            _ => Span::current(),
        }
    }

    /// It was folded.
    pub fn folded(&mut self, driver: &Driver) {
        if let Some(decisions) = &mut self.decisions
            && !decisions.candidates.is_empty()
        {
            decisions.log.applied(driver, std::mem::take(&mut decisions.candidates));
        }
    }

    /// The driver put something out.
    pub fn output(&mut self, output: &Output) {
        if let Some(metrics) = &self.metrics {
            metrics.put_out(output);
        }
        if let Output::Decide { call, snapshot } = output {
            let span = traces::pass(*call, snapshot.nodes.len());
            self.pass = Some((*call, span));
            if let Some(decisions) = &mut self.decisions {
                decisions.asked = Some((*call, snapshot.clone()));
            }
        }
    }

    /// All outputs of an input are drained.
    pub fn rested(&mut self, driver: &Driver) {
        if let Some(metrics) = &self.metrics {
            metrics.rested(driver.requeue_at().is_some());
        }
    }

    /// What was taken is on the disk.
    pub fn committed(&mut self, took: Duration) {
        if let Some(metrics) = &self.metrics {
            metrics.committed(took);
        }
    }

    /// A decider was put in force; so long no pass could start.
    pub fn switched(&mut self, took: Duration) {
        if let Some(metrics) = &self.metrics {
            metrics.switched(took);
        }
    }

    /// A backend could not be listed.
    pub fn listing_failed(&mut self, backend: &str) {
        if let Some(metrics) = &self.metrics {
            metrics.listing_failed(backend);
        }
    }
}
