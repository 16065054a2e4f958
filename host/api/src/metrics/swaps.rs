//! What is counted of swaps and shadows.

use std::time::Duration;

use prometheus::{Error, Histogram, IntCounter, IntCounterVec};

use super::catalogue::Catalogue;
use crate::wire::{DeciderCommand, SwapVerdict};

/// How a pass in shadow came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShadowPass {
    /// The same plan.
    Equal,
    /// Another plan.
    Differs,
    /// The candidate was busy with an earlier one.
    Skipped,
    /// The candidate had no plan.
    Failed,
}

pub(super) struct Swaps {
    verdicts: IntCounterVec,
    rollbacks: IntCounter,
    switch_seconds: Histogram,
    passes: IntCounterVec,
}

impl Swaps {
    pub fn new(c: &mut Catalogue) -> Result<Self, Error> {
        let verdicts =
            c.counters("homeostat_swaps_total", "Swaps of the decider by how they came out.", &["verdict"])?;
        let rollbacks =
            c.counter("homeostat_decider_rollbacks_total", "Deciders that were rolled back by themselves.")?;
        let switch_seconds = c.histogram(
            "homeostat_switch_seconds",
            "Time for which no pass could start because a decider was put in force, its commit included.",
            &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0],
        )?;
        let passes = c.counters(
            "homeostat_shadow_passes_total",
            "Passes in shadow: equal, differs, skipped (the candidate was busy), failed (it had no plan).",
            &["result"],
        )?;
        // What has not happened is a 0, not a gap: the first one is then a rise.
        SwapVerdict::ALL.iter().for_each(|verdict| drop(verdicts.with_label_values(&[verdict.label()])));
        let all = [ShadowPass::Equal, ShadowPass::Differs, ShadowPass::Skipped, ShadowPass::Failed];
        all.into_iter().for_each(|pass| drop(passes.with_label_values(&[label(pass)])));
        Ok(Swaps { verdicts, rollbacks, switch_seconds, passes })
    }

    pub fn came_out(&self, verdict: SwapVerdict) {
        self.verdicts.with_label_values(&[verdict.label()]).inc();
        if verdict == SwapVerdict::RolledBack {
            self.rollbacks.inc();
        }
    }

    pub fn switched(&self, took: Duration) {
        self.switch_seconds.observe(took.as_secs_f64());
    }

    pub fn compared(&self, pass: ShadowPass) {
        self.passes.with_label_values(&[label(pass)]).inc();
    }
}

fn label(pass: ShadowPass) -> &'static str {
    match pass {
        ShadowPass::Equal => "equal",
        ShadowPass::Differs => "differs",
        ShadowPass::Skipped => "skipped",
        ShadowPass::Failed => "failed",
    }
}

pub(super) fn name_of(command: &DeciderCommand) -> &'static str {
    match command {
        DeciderCommand::Swap { .. } => "swap",
        DeciderCommand::Shadow { .. } => "shadow",
        DeciderCommand::StopShadow {} => "stop-shadow",
        DeciderCommand::Cancel { .. } => "cancel-swap",
        DeciderCommand::Rollback {} => "rollback",
        DeciderCommand::Pin { .. } => "pin",
        DeciderCommand::Unpin {} => "unpin",
    }
}
