//! What a run is about, and what it gives.

use decider::{Plan, Snapshot};
use engine::driver::DriverError;
use engine::invariants::Violation;
use engine::io::{DeciderFailure, DeciderIdentity};
use engine::policy::Policy;
use engine::shape::{ClusterShape, ShapeError};

use crate::choices::Choices;
use crate::faults::{FAULTS, FaultKind, Rates};
use crate::run::Sim;
use crate::tally::Tally;

/// How plans are made.
pub type Decide<'a> = dyn FnMut(&Snapshot) -> Result<Plan, DeciderFailure> + 'a;

/// What a run is about.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The fleet that people begin with and edit.
    pub shape: ClusterShape,
    /// The operator's settings.
    pub policy: Policy,
    /// The rate of each fault.
    pub rates: Rates,
    /// Faults stop at a random instant before this one, in milliseconds.
    pub until_ms: u64,
    /// The decider.
    pub identity: DeciderIdentity,
    /// Every so many plans, S11 and S12 are checked by asking the decider again; 1 is every plan, 0 never.
    pub scrutiny: u32,
    /// The rule that is broken on purpose (tests only).
    pub mutation: Option<engine::mutation::Mutation>,
}

impl Setup {
    /// A fleet under the built-in decider, with the full menu for two hours at most.
    pub fn new(shape: ClusterShape, policy: Policy) -> Self {
        let identity = DeciderIdentity::native();
        let (rates, until_ms) = (Rates::default(), 2 * 60 * 60 * 1_000);
        Setup { shape, policy, rates, until_ms, identity, scrutiny: 32, mutation: None }
    }
}

/// Why nothing can be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The engine refuses the fleet.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The engine refuses to start.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// Without seeds nothing is tested.
    #[error("zero seeds test nothing")]
    NoSeeds,
    /// Without groups nobody has anything to edit.
    #[error("the fleet has no groups: there is nothing to simulate")]
    NoGroups,
    /// Without time nothing happens.
    #[error("zero simulated time tests nothing")]
    NoTime,
}

/// What a run gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The first violation; none for a run as it should be.
    pub violation: Option<Violation>,
    /// Every choice, to run it again.
    pub choices: Vec<u32>,
    /// What was exercised.
    pub tally: Tally,
    /// Inputs of the driver, one line each, with what the world did between them; empty unless asked for.
    pub trace: Vec<String>,
    /// The same as a scenario of the scenario language; empty unless asked for.
    pub scenario: String,
    /// How many inputs the trace has.
    pub events: usize,
}

/// Runs a seed.
///
/// # Errors
///
/// The engine refuses the fleet.
pub fn run_seed(setup: &Setup, seed: u64, decide: &mut Decide<'_>, traced: bool) -> Result<Outcome, SetupError> {
    let forced = FaultKind::ALL.get(usize::try_from(seed % FAULTS as u64).unwrap_or(0)).copied();
    Sim::new(setup, Choices::from_seed(seed), forced, decide, traced).map(Sim::run)
}

/// Runs a recorded list of choices; when it is used up, the faults stop.
///
/// # Errors
///
/// The engine refuses the fleet.
pub fn replay(setup: &Setup, choices: Vec<u32>, decide: &mut Decide<'_>, traced: bool) -> Result<Outcome, SetupError> {
    Sim::new(setup, Choices::from_list(choices), None, decide, traced).map(Sim::run)
}
