//! The start: what every backend holds is listed, completely, before anything else (SPEC 10, S14).

use std::time::Duration;

use engine::io::{Fault, Listing};
use tokio::time::{Instant, sleep, timeout_at};

use super::HostError;
use crate::executor::Executor;

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Lists a backend until it gives a complete listing, for `limit` at most; a permanent refusal ends it at once.
pub(super) async fn complete_listing(
    executor: Executor,
    provider: String,
    run: String,
    limit: Duration,
) -> Result<(String, Listing), HostError> {
    let until = Instant::now() + limit;
    let mut pause = FIRST_PAUSE;
    let mut tries = 0;
    loop {
        tries += 1;
        let listed = timeout_at(until, executor.listing(&provider, &run)).await;
        let fault = match listed {
            Ok(Ok(listing)) if listing.complete => return Ok((provider, listing)),
            Ok(Ok(_)) => Fault::retryable("the listing is not complete"),
            Ok(Err(fault)) => fault,
            Err(_) => Fault::retryable(format!("no answer in {} ms", limit.as_millis())),
        };
        let asked = match fault {
            Fault::Retryable { retry_after_ms: Some(ms), .. } => Duration::from_millis(ms),
            _ => Duration::ZERO,
        };
        let wait = pause.max(asked);
        let over = until.checked_duration_since(Instant::now()).is_none_or(|left| left <= wait);
        if over || matches!(fault, Fault::Permanent { .. }) {
            return Err(HostError::Adoption { provider, tries, fault });
        }
        sleep(wait).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
