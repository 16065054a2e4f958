//! The host's clock: milliseconds since the Unix epoch, read once when it is made, and steady from then on. A wall clock that is
//! set does not move it; a machine that sleeps stops it. Deadlines therefore never jump.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engine::id::Millis;
use tokio::time::Instant;

/// No sleep is longer than this: what is due later is looked at again.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// A steady clock. It runs on tokio's time, so that paused time works.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base_ms: Millis,
    began: Instant,
}

impl Clock {
    /// A clock that shows the time of day now.
    pub fn system() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock::starting_at(u64::try_from(since.as_millis()).unwrap_or(0))
    }

    /// A clock that shows this instant now.
    pub fn starting_at(base_ms: Millis) -> Self {
        Clock { base_ms, began: Instant::now() }
    }

    /// The instant now.
    pub fn now_ms(&self) -> Millis {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.base_ms.saturating_add(passed)
    }

    /// Sleeps until an instant, or for a day if it is farther.
    pub async fn sleep_until(&self, at_ms: Millis) {
        let longest = Instant::now() + LONGEST_SLEEP;
        let passed = Duration::from_millis(at_ms.saturating_sub(self.base_ms));
        let at = self.began.checked_add(passed).map_or(longest, |at| at.min(longest));
        tokio::time::sleep_until(at).await;
    }
}
