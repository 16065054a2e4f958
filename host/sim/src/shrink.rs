//! Shrinking: the list of choices that failed is made as short and as plain as possible, while it still fails the same way.

use crate::setup::{Decide, Outcome, Setup, SetupError, replay};

/// The smallest failing run that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The run, with its trace.
    pub outcome: Outcome,
    /// How many choices were left.
    pub choices: Vec<u32>,
    /// How many runs it took.
    pub runs: u64,
}

struct Search<'s, 'd, 'e> {
    setup: &'s Setup,
    decide: &'d mut Decide<'e>,
    id: &'static str,
    best: Vec<u32>,
    /// Inputs of the best run.
    steps: u64,
    runs: u64,
    more: &'s mut dyn FnMut() -> bool,
}

/// Shrinks a failing list of choices for as long as `more` says so. The violation keeps its property.
///
/// # Errors
///
/// The engine refuses the fleet.
pub fn shrink(
    setup: &Setup,
    choices: &[u32],
    id: &'static str,
    decide: &mut Decide<'_>,
    more: &mut dyn FnMut() -> bool,
) -> Result<Shrunk, SetupError> {
    let faults = choices.len().min(crate::faults::FAULTS);
    let mut search = Search { setup, decide, id, best: choices.to_vec(), steps: u64::MAX, runs: 0, more };
    search.switch_off(faults)?;
    while search.round()? {}
    let Search { decide, best, runs, .. } = search;
    let outcome = replay(setup, best.clone(), decide, true)?;
    Ok(Shrunk { outcome, choices: best, runs })
}

impl Search<'_, '_, '_> {
    /// Tries one list; keeps it when it fails the same way.
    fn fails(&mut self, candidate: Vec<u32>) -> Result<bool, SetupError> {
        self.fails_within(candidate, self.steps)
    }

    /// As [`Search::fails`], in at most so many inputs.
    fn fails_within(&mut self, candidate: Vec<u32>, steps: u64) -> Result<bool, SetupError> {
        if candidate == self.best {
            return Ok(false);
        }
        self.runs += 1;
        let outcome = replay(self.setup, candidate.clone(), self.decide, false)?;
        // A shorter list that makes a longer history is no help to a reader.
        let same = outcome.violation.is_some_and(|violation| violation.id == self.id);
        let better = same && outcome.tally.steps <= steps;
        if better {
            self.steps = outcome.tally.steps;
            self.best = candidate;
            // What follows the last choice that was made is never read; one more says that there was no end before.
            self.best.truncate(outcome.choices.len());
        }
        Ok(better)
    }

    /// The first choices say which faults take part: each that need not is switched off, and everything else stays in place.
    fn switch_off(&mut self, faults: usize) -> Result<(), SetupError> {
        for at in 0..faults {
            if self.best.get(at).is_some_and(|value| *value != 0) && (self.more)() {
                let mut candidate = self.best.clone();
                candidate[at] = 0;
                self.fails_within(candidate, u64::MAX)?;
            }
        }
        Ok(())
    }

    /// One round of all ways; whether any helped.
    fn round(&mut self) -> Result<bool, SetupError> {
        let before = self.best.clone();
        self.cut_tail()?;
        // Zeroes first: they switch whole faults off and move nothing.
        self.chunks(true)?;
        self.lower()?;
        self.chunks(false)?;
        if self.best == before {
            self.exchange()?;
        }
        Ok(self.best != before && (self.more)())
    }

    /// When the list ends, the faults stop: for liveness the tail is the first thing that can go.
    fn cut_tail(&mut self) -> Result<(), SetupError> {
        let mut step = self.best.len() / 2;
        while step > 0 && (self.more)() {
            let keep = self.best.len().saturating_sub(step);
            if !self.fails(self.best[..keep].to_vec())? {
                step /= 2;
            }
        }
        Ok(())
    }

    /// Deletes chunks, or makes them all zero; large ones first.
    fn chunks(&mut self, zero: bool) -> Result<(), SetupError> {
        let mut size = (self.best.len() / 2).max(1);
        loop {
            let mut end = self.best.len();
            while end > 0 && (self.more)() {
                let start = end.saturating_sub(size);
                let end_now = end.min(self.best.len());
                let mut candidate = self.best.clone();
                if zero {
                    if candidate[start.min(end_now)..end_now].iter().all(|choice| *choice == 0) {
                        end = start;
                        continue;
                    }
                    candidate[start..end_now].fill(0);
                } else {
                    candidate.drain(start.min(end_now)..end_now);
                }
                self.fails(candidate)?;
                end = start.min(self.best.len());
            }
            if size == 1 || !(self.more)() {
                return Ok(());
            }
            size /= 2;
        }
    }

    /// Puts another fault in the place of a choice: one that makes the history shorter.
    fn exchange(&mut self) -> Result<(), SetupError> {
        let mut at = 0;
        while at < self.best.len() && self.steps > 0 {
            for other in 1..20 {
                if !(self.more)() {
                    return Ok(());
                }
                if self.best.get(at).is_some_and(|value| *value != other) {
                    let mut candidate = self.best.clone();
                    candidate[at] = other;
                    self.fails_within(candidate, self.steps.saturating_sub(1))?;
                }
            }
            at += 1;
        }
        Ok(())
    }

    /// Lowers single values: to 0, to half, by one.
    fn lower(&mut self) -> Result<(), SetupError> {
        let mut at = 0;
        while at < self.best.len() && (self.more)() {
            let value = self.best[at];
            for lower in [0, value / 2, value.saturating_sub(1)] {
                if lower < value && at < self.best.len() {
                    let mut candidate = self.best.clone();
                    candidate[at] = lower;
                    if self.fails(candidate)? {
                        break;
                    }
                }
            }
            at += 1;
        }
        Ok(())
    }
}
