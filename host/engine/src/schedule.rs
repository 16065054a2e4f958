//! Backoff, jitter and deadlines as data (SPEC 6). Nothing here reads a clock.

use crate::id::{AttemptId, Millis};
use crate::policy::Policy;

/// The last instant the driver accepts. Everything it adds to an instant is bounded by [`MAX_SPAN_MS`], so sums cannot wrap.
pub const MAX_INSTANT_MS: Millis = u64::MAX / 4;

/// The longest time it ever adds to an instant: longer settings and provider waits are cut to it (about 31,000 years).
pub const MAX_SPAN_MS: u64 = 1_000_000_000_000_000;

/// An instant `span_ms` later.
pub fn after(now: Millis, span_ms: u64) -> Millis {
    now.saturating_add(span_ms.min(MAX_SPAN_MS))
}

/// The delay after the `failures`-th failure in a row: exponential from the initial delay to the cap, less a jitter that
/// the attempt id alone determines. Never 0 unless the policy's initial delay is.
pub fn backoff_ms(policy: &Policy, attempt: AttemptId, failures: u32) -> u64 {
    let cap = policy.backoff_cap_ms.min(MAX_SPAN_MS);
    let doublings = failures.saturating_sub(1).min(63);
    let delay = policy.backoff_initial_ms.saturating_mul(1 << doublings).min(cap);
    let percent = u64::from(policy.backoff_jitter_percent.min(100));
    let spread = delay / 100 * percent + delay % 100 * percent / 100;
    match spread {
        0 => delay,
        _ => (delay - mix(attempt.0 ^ u64::from(failures).rotate_left(32)) % (spread + 1)).max(delay.min(1)),
    }
}

/// How much longer a stage may take after failures: `1 + failures` times, up to the policy's cap.
pub fn stretched_ms(policy: &Policy, span_ms: u64, failures: u32) -> u64 {
    let times = failures.saturating_add(1).min(policy.stages.growth_cap.max(1));
    span_ms.saturating_mul(u64::from(times)).min(MAX_SPAN_MS)
}

/// splitmix64: spreads an id over all bits.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]
    use super::*;

    #[test]
    fn backoff_doubles_to_the_cap_and_never_overflows() {
        let policy = Policy::default();
        let delays: Vec<u64> = (1..9).map(|failures| backoff_ms(&policy, AttemptId(1), failures)).collect();
        assert_eq!(delays, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        for failures in [64, 65, 10_000, u32::MAX] {
            assert_eq!(backoff_ms(&policy, AttemptId(u64::MAX), failures), 60_000);
        }
        let extreme = Policy { backoff_initial_ms: u64::MAX, backoff_cap_ms: u64::MAX, ..Policy::default() };
        assert_eq!(backoff_ms(&extreme, AttemptId(1), u32::MAX), MAX_SPAN_MS);
    }

    #[test]
    fn jitter_takes_off_at_most_its_share_and_depends_on_the_attempt_alone() {
        let policy = Policy { backoff_jitter_percent: 50, ..Policy::default() };
        let mut seen = std::collections::BTreeSet::new();
        for attempt in 1..200 {
            let delay = backoff_ms(&policy, AttemptId(attempt), 3);
            assert!((2_000..=4_000).contains(&delay), "{delay}");
            assert_eq!(delay, backoff_ms(&policy, AttemptId(attempt), 3));
            seen.insert(delay);
        }
        assert!(seen.len() > 100);
        let all = Policy { backoff_jitter_percent: 100, ..policy };
        assert!((1..200).all(|attempt| backoff_ms(&all, AttemptId(attempt), 1) > 0));
    }
}
