//! Snapshots, codes and instants of any kind: the native code and the component answer, and answer the same.

use cases::fuzz::{Choices, snapshot};
use cases::snapshots::Random;
use engine::validate::check_plan;
use homeostat::sandbox::{Limits, LoadError, LoadedDecider, Sandbox};

/// The longest case.
pub const MOST_BYTES: usize = 6_000;

/// Cases to start from.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut random = Random::new(5);
    let mut fresh = |bytes: u64| (0..bytes).map(|_| random.number() as u8).collect::<Vec<u8>>();
    vec![Vec::new(), fresh(100), fresh(400), fresh(2_000)]
}

/// Runs cases in the built-in component and natively.
pub struct Snapshots {
    component: LoadedDecider,
}

impl Snapshots {
    /// With the default limits.
    ///
    /// # Errors
    ///
    /// There is no sandbox here.
    pub fn new() -> Result<Self, LoadError> {
        Ok(Snapshots { component: Sandbox::new(Limits::default())?.built_in()? })
    }

    /// Asks both.
    pub fn run(&self, case: &[u8]) -> String {
        let snapshot = snapshot(&mut Choices::new(case));
        let native = decider::reconcile(&snapshot);
        let plan = self.component.reconcile(&snapshot);
        let told = || serde_json::to_string(&snapshot).unwrap_or_default();
        assert!(
            plan.as_ref().is_ok_and(|plan| native == *plan),
            "native {native:?}, the component {plan:?} on {}",
            told()
        );
        // Facts that contradict each other can make a plan that is refused; whether it is, is for the validator to say.
        let rules = self.component.description().rules.len();
        let checked = check_plan(&native, &snapshot, rules).map_err(|error| error.property());
        let decisions = &native.decisions;
        let mut last = decisions.rule.iter().zip(&decisions.verb).map(|(r, v)| (*r, *v)).collect::<Vec<_>>();
        last.sort_unstable();
        last.dedup();
        last.truncate(3);
        format!("{checked:?} {last:?}")
    }
}
