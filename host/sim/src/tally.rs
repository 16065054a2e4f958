//! What was exercised: so that a run that tested nothing is visible.

use crate::faults::{FAULTS, FaultKind};

/// Counts of one run, or of many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Seeds that ran to their end.
    pub seeds: u64,
    /// Inputs folded.
    pub steps: u64,
    /// Passes finished.
    pub passes: u64,
    /// Simulated time, in milliseconds.
    pub simulated_ms: u64,
    /// Simulated time of all desired slots together, in milliseconds.
    pub node_ms: u64,
    /// How often each fault was injected.
    pub faults: Vec<u64>,
    /// For each rule: decisions that came after no fault, then after each fault as the last one to hit the node.
    pub rules: Vec<Vec<u64>>,
}

impl Tally {
    /// Nothing yet.
    pub fn new(rules: usize) -> Self {
        Tally { faults: vec![0; FAULTS], rules: vec![vec![0; FAULTS + 1]; rules], ..Tally::default() }
    }

    /// Adds what another run exercised.
    pub fn add(&mut self, other: &Tally) {
        self.seeds += other.seeds;
        self.steps += other.steps;
        self.passes += other.passes;
        self.simulated_ms += other.simulated_ms;
        self.node_ms += other.node_ms;
        self.faults.resize(FAULTS, 0);
        for (sum, count) in self.faults.iter_mut().zip(&other.faults) {
            *sum += count;
        }
        if self.rules.len() < other.rules.len() {
            self.rules.resize(other.rules.len(), vec![0; FAULTS + 1]);
        }
        for (sums, counts) in self.rules.iter_mut().zip(&other.rules) {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count;
            }
        }
    }

    /// Faults that never happened.
    pub fn faults_not_exercised(&self) -> Vec<FaultKind> {
        FaultKind::ALL
            .iter()
            .copied()
            .filter(|fault| self.faults.get(*fault as usize).is_none_or(|n| *n == 0))
            .collect()
    }

    /// Indices of rules that never decided.
    pub fn rules_not_exercised(&self) -> Vec<usize> {
        self.rules.iter().enumerate().filter(|(_, row)| row.iter().all(|n| *n == 0)).map(|(at, _)| at).collect()
    }
}
