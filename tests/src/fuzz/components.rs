//! Component bytes: they are refused by name, or admitted and answer or fail by name.

use cases::fuzz::change_component;
use cases::snapshots::{Random, plausible};
use decider::Snapshot;
use engine::validate::check_plan;
use homeostat::sandbox::{Limits, LoadError, Sandbox};

/// The longest case.
pub const MOST_BYTES: usize = 64 << 10;

/// A case that starts so is no component but a list of changes to one that is known: a byte for which, then three for each
/// change. A fuzzer that knows nothing of components gets past the first checks with it.
pub const CHANGES: &[u8] = b"edit";

/// More changes make nothing new.
const MOST_CHANGES: usize = 64;

/// Runs cases in a sandbox with narrow limits.
pub struct Components {
    sandbox: Sandbox,
    snapshot: Snapshot,
    known: Vec<&'static [u8]>,
}

impl Components {
    /// `known` are the components that lists of changes refer to.
    ///
    /// # Errors
    ///
    /// There is no sandbox here.
    pub fn new(known: Vec<&'static [u8]>) -> Result<Self, LoadError> {
        let limits = Limits { fuel_base: 5_000_000, wall_clock_ms: 2_000, memory_bytes: 16 << 20, ..Limits::default() };
        Ok(Components { sandbox: Sandbox::new(limits)?, snapshot: plausible(&mut Random::new(1), 5), known })
    }

    /// Cases to start from: every component that is known, as it is and as a list of changes.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let list = |at: usize| [CHANGES, &[at as u8], &[0; 3]].concat();
        let whole = self.known.iter().map(|component| component.to_vec());
        whole.chain((0..self.known.len()).map(list)).collect()
    }

    /// The component that a case is.
    pub fn component(&self, case: &[u8]) -> Vec<u8> {
        let Some(list) = case.strip_prefix(CHANGES).filter(|_| !self.known.is_empty()) else {
            return case.to_vec();
        };
        let (at, changes) = list.split_first().map_or((0, list), |(at, changes)| (usize::from(*at), changes));
        let mut component = self.known[at % self.known.len()].to_vec();
        for change in changes.chunks(3).take(MOST_CHANGES) {
            let seed = change.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
            let mut random = Random::new(seed);
            let other = random.one_of(&self.known);
            change_component(&mut random, &mut component, other);
            component.truncate(MOST_BYTES);
        }
        component
    }

    /// Loads what the case is, and asks it once.
    pub fn run(&self, case: &[u8]) -> String {
        match self.sandbox.load(&self.component(case)) {
            Err(error @ (LoadError::Describe(_) | LoadError::Trial(_))) => shape_of(&error.to_string()),
            Err(error) => format!("{} {}", error.class(), shape_of(&error.to_string())),
            Ok(decider) => match decider.reconcile(&self.snapshot) {
                Err(failure) => format!("admitted, {}", failure.class()),
                Ok(plan) => match check_plan(&plan, &self.snapshot, decider.description().rules.len()) {
                    Ok(()) => "admitted".into(),
                    Err(error) => format!("admitted, {}", error.property()),
                },
            },
        }
    }
}

/// Words without the numbers and names in them: two refusals for one reason are one.
fn shape_of(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).take(140).collect()
}
