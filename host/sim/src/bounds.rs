//! How long a fleet may take to settle once faults have stopped (L1), computed from its settings and not from experience.

use engine::policy::Policy;

use crate::run::LISTING_MS;

/// The longest that anything in flight may still take effect, or a provider may have asked to wait.
const LATE_MS: u64 = 300_000;

/// The longest that an operation may take.
fn longest(policy: &Policy) -> u64 {
    let operations = &policy.deadlines;
    operations
        .create_lease_ms
        .max(operations.lookup_endpoint_ms)
        .max(operations.start_bootstrap_ms)
        .max(operations.cancel_bootstrap_ms)
        .max(operations.destroy_lease_ms)
}

/// A bound on time and on rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Simulated time, in milliseconds.
    pub ms: u64,
    /// Inputs of the driver.
    pub rounds: u64,
}

impl Bound {
    /// The bound where so many slots are replaced, or tried again, one after the other: each waits for its backoff, cleans up and
    /// climbs without a fault.
    pub fn one_by_one(self, policy: &Policy, slots: u64) -> Bound {
        let Bound { ms, rounds } = self;
        let waits = policy.backoff_cap_ms.saturating_mul(2).saturating_add(policy.probe_interval_ms.saturating_mul(4));
        let more =
            waits.saturating_add(longest(policy).saturating_mul(2)).saturating_add(LISTING_MS).saturating_mul(slots);
        Bound {
            ms: ms.saturating_add(more).min(1 << 40),
            rounds: rounds.saturating_mul(2).saturating_add(more / 1_000),
        }
    }

    /// The bound for a fleet of so many slots at most, over so many providers, whose clock has to catch up `lag_ms`.
    ///
    /// The worst node is climbing with a silent bootstrap whose deadline is the longest there is; it then fails, is cleaned
    /// up, waits for its restart, and climbs once more without a fault. What lands late is swept by the listing after.
    pub fn of(policy: &Policy, slots: u64, providers: u64, lag_ms: u64) -> Bound {
        let longest = longest(policy);
        let stages = &policy.stages;
        let growth = u64::from(stages.growth_cap.max(1));
        let stage = stages.join_ms.max(stages.bootstrap_ms).saturating_add(stages.endpoint_ms).saturating_mul(growth);
        let waits = policy.backoff_cap_ms.saturating_mul(4).saturating_add(policy.probe_interval_ms.saturating_mul(4));
        let ms = lag_ms
            .saturating_add(longest.saturating_mul(2))
            .saturating_add(stage)
            .saturating_add(waits)
            .saturating_add(LATE_MS * 2)
            .saturating_add(LISTING_MS * 4)
            .min(1 << 40);
        // One climb is 4 operations, their results and passes, one clean-up 2; twice each, and as much again for doubts.
        // A node may look for its endpoint once every probe interval, for as long as that stage lasts: 4 inputs a look.
        let looks = stages.endpoint_ms.saturating_mul(growth) / policy.probe_interval_ms.max(1);
        let rounds = (200 + 4 * looks) * (slots + 4) + (ms / LISTING_MS + 2) * (providers + 1) * 2;
        Bound { ms, rounds }
    }
}
