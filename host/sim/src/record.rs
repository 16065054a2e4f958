//! A run as a journal: what the host of this run would have written, and would still have after each of its deaths.

use std::collections::BTreeSet;

use decider::{Description, Plan};
use engine::driver::{DriverConfig, DriverError};
use engine::id::Millis;
use engine::io::{DeciderFailure, Input, Output};
use journal::{Draft, Entry, Recorder, SIMULATED, WriteError, Writer};

use crate::choices::Choices;
use crate::faults::{FAULTS, FaultKind};
use crate::run::{Sim, config};
use crate::setup::{Decide, Outcome, Setup, SetupError};

/// Which run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The run of a seed.
    Seed(u64),
    /// The run of a recorded list of choices.
    Choices(Vec<u32>),
}

/// Why a run was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Nothing can be simulated.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A record cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Runs one run, traced, and gives its journal. `description` is what the decider says of itself.
///
/// A death of the host that keeps its state takes back the records that were not durable, and then the host goes on in the
/// same history; one that loses the state begins another `start`. A run that breaks nothing ends with an end mark.
///
/// # Errors
///
/// The engine refuses the fleet, or a record would be too long.
pub fn record(
    setup: &Setup,
    which: Which,
    description: &Description,
    decide: &mut Decide<'_>,
) -> Result<(Outcome, Vec<u8>), RecordError> {
    let (choices, forced) = match which {
        Which::Choices(choices) => (Choices::from_list(choices), None),
        Which::Seed(seed) => {
            let forced = FaultKind::ALL.get(usize::try_from(seed % FAULTS as u64).unwrap_or(0)).copied();
            (Choices::from_seed(seed), forced)
        }
    };
    let mut tape = Tape::new(description);
    let mut sim = Sim::new(setup, choices, forced, decide, true)?;
    tape.start(&config(setup, setup.identity.clone(), &sim.people.policy, &sim.world, 1, 0), sim.clock.shows(sim.now));
    sim.tape = Some(&mut tape);
    let outcome = sim.run();
    Ok((outcome, tape.finish()?))
}

/// The records so far.
pub(crate) struct Tape {
    description: Description,
    recorder: Option<Recorder>,
    entries: Vec<(Millis, Entry)>,
    /// How many there were when everything was durable.
    durable: usize,
    /// Calls that a fault answered in the decider's place.
    simulated: BTreeSet<u64>,
    /// The last answer, until it is folded.
    answer: Option<(u64, Result<Plan, DeciderFailure>)>,
}

impl Tape {
    fn new(description: &Description) -> Self {
        let (entries, simulated) = (Vec::new(), BTreeSet::new());
        Tape { description: description.clone(), recorder: None, entries, durable: 0, simulated, answer: None }
    }

    /// A driver begins.
    pub fn start(&mut self, config: &DriverConfig, shown: Millis) {
        let (recorder, draft) = Recorder::start(config, &self.description);
        self.recorder = Some(recorder);
        self.simulated.clear();
        self.answer = None;
        self.entries.push((shown, draft.entry()));
    }

    /// An input was folded, and this came out.
    pub fn folded(&mut self, input: Input, error: Option<&DriverError>, outputs: &[Output], shown: Millis) {
        let Some(recorder) = &mut self.recorder else { return };
        if matches!(input, Input::Decided { .. }) {
            self.answer = None;
        }
        let mut entry = recorder.folded(input, error).map(Draft::entry);
        if let Some(Entry::Pass { call, decider, snapshot: Some(_), .. }) = &mut entry
            && self.simulated.remove(call)
        {
            *decider = SIMULATED.into();
        }
        let follows = outputs.iter().filter_map(|output| recorder.output(output)).map(Draft::entry);
        self.entries.extend(entry.into_iter().chain(follows).map(|entry| (shown, entry)));
    }

    /// A fault answers a call in the decider's place.
    pub fn simulated(&mut self, call: u64) {
        self.simulated.insert(call);
    }

    /// All that was folded so far is durable: a store begins with that, and a start record of its own.
    pub fn mark(&mut self) {
        self.durable = self.entries.len();
    }

    /// The host died, and its store has so many durable records.
    pub fn lose(&mut self, records: u64, recorder: Recorder) {
        let kept = usize::try_from(records.saturating_sub(1)).unwrap_or(usize::MAX);
        self.entries.truncate(self.durable.saturating_add(kept));
        self.recorder = Some(recorder);
        self.simulated.clear();
        self.answer = None;
    }

    fn end(&mut self, shown: Millis) {
        if let Some(recorder) = &self.recorder {
            self.entries.push((shown, recorder.end().entry()));
        }
    }

    fn finish(self) -> Result<Vec<u8>, WriteError> {
        let mut writer = Writer::new(Vec::new());
        for (at_ms, entry) in &self.entries {
            writer.append(*at_ms, entry)?;
        }
        Ok(writer.into_inner())
    }
}

impl Sim<'_> {
    /// What is answered to a call does not come from the decider.
    pub(crate) fn not_the_decider(&mut self, call: u64) {
        if let Some(tape) = &mut self.tape {
            tape.simulated(call);
        }
    }

    /// The decider answered.
    pub(crate) fn keep_answer(&mut self, call: u64, result: &Result<Plan, DeciderFailure>) {
        if let Some(tape) = &mut self.tape {
            tape.answer = Some((call, result.clone()));
        }
    }

    /// The run is over. One that broke something breaks off; if it was by a plan, that is the last record.
    pub(crate) fn end_tape(&mut self) {
        let shown = self.clock.shows(self.now);
        let Some(tape) = self.tape.as_mut().filter(|_| self.up) else { return };
        if self.found.is_none() {
            return tape.end(shown);
        }
        let Some((call, result)) = tape.answer.take() else { return };
        let input = Input::Decided { call, result };
        let folded = self.driver.handle(input.clone(), shown);
        let outputs: Vec<Output> = std::iter::from_fn(|| self.driver.poll_output()).collect();
        tape.folded(input, folded.as_ref().err(), &outputs, shown);
    }
}
