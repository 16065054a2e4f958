//! The clock that the host reads, which may jump and stand still.

use engine::id::Millis;

/// The host's clock, as the driver sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostClock {
    pub skew_ms: i64,
    pub stands: Option<(Millis, Millis)>,
}

impl HostClock {
    /// What it shows.
    pub fn shows(&self, now: Millis) -> Millis {
        match self.stands {
            Some((at, until)) if now < until => at,
            _ => now.saturating_add_signed(self.skew_ms),
        }
    }

    /// When it will show an instant.
    pub fn when(&self, at: Millis, now: Millis) -> Millis {
        if at <= self.shows(now) {
            return now;
        }
        let when = at.saturating_add_signed(-self.skew_ms);
        self.stands.map_or(when, |(_, until)| when.max(until)).max(now)
    }
}
