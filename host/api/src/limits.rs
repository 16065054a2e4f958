//! How much of the daemon a caller may take.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the server takes at most. Each listener has its own share of connections, so that whoever fills the TCP one cannot
/// keep the owner off the socket.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Connections of one listener at once. One more is answered 503 and closed.
    pub connections: usize,
    /// Watchers at once, of all listeners. One more is answered 429.
    pub watchers: usize,
    /// The whole head of a request, in bytes; also what is buffered of an answer. Beyond: 431. At least 8,192.
    pub head_bytes: usize,
    /// Lines in the head. Beyond: 431.
    pub head_lines: usize,
    /// The request's target, in bytes. Beyond: 414.
    pub target_bytes: usize,
    /// A body. Beyond: 413.
    pub body_bytes: usize,
    /// Bodies that are being received at once, so that memory stays bounded; others wait.
    pub bodies: usize,
    /// A decider's component. Beyond: 413.
    pub component_bytes: usize,
    /// Components that are being received or checked at once; others wait.
    pub components: usize,
    /// From the first byte awaited to the end of the head; also how long a connection may idle. Then it is closed.
    pub head_time: Duration,
    /// From the head's end to the body's. Then 408.
    pub body_time: Duration,
    /// How long a TLS handshake may take.
    pub handshake_time: Duration,
    /// How long the caller may take nothing of an answer. Then the connection is closed.
    pub write_time: Duration,
    /// How long an answer may take to be made. Then 503; a command goes on.
    pub answer_time: Duration,
    /// The same, for what a component is compiled for: of a large one, such as an interpreter, that takes a minute on a busy
    /// machine.
    pub compile_time: Duration,
    /// Time between two signs of life to a watcher.
    pub heartbeat: Duration,
    /// Requests of one connection.
    pub requests: Rate,
    /// Commands of everybody.
    pub commands: Rate,
    /// Wrong tokens of everybody that are answered 401; others are answered 429. A right one always passes.
    pub wrong_tokens: Rate,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 256,
            watchers: 200,
            head_bytes: 16 * 1024,
            head_lines: 64,
            target_bytes: 4 * 1024,
            body_bytes: 1024 * 1024,
            bodies: 16,
            component_bytes: 16 * 1024 * 1024,
            components: 2,
            head_time: Duration::from_secs(30),
            body_time: Duration::from_secs(20),
            handshake_time: Duration::from_secs(10),
            write_time: Duration::from_secs(30),
            answer_time: Duration::from_secs(30),
            compile_time: Duration::from_secs(150),
            heartbeat: Duration::from_secs(15),
            requests: Rate { per_second: 200.0, at_once: 400.0 },
            commands: Rate { per_second: 20.0, at_once: 100.0 },
            wrong_tokens: Rate { per_second: 1.0, at_once: 20.0 },
        }
    }
}

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// In the long run.
    pub per_second: f64,
    /// In a row, after a rest. At least 1.
    pub at_once: f64,
}

/// A token bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: Rate,
    level: Mutex<(f64, Instant)>,
}

impl Bucket {
    pub(crate) fn new(rate: Rate) -> Self {
        Bucket { rate, level: Mutex::new((rate.at_once.max(1.0), Instant::now())) }
    }

    /// Takes one; else says after how many whole seconds there is one.
    pub(crate) fn take(&self) -> Result<(), u64> {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> Result<(), u64> {
        let mut level = self.lock();
        let (left, since) = *level;
        let refilled = left + now.saturating_duration_since(since).as_secs_f64() * self.rate.per_second;
        let full = refilled.min(self.rate.at_once.max(1.0));
        if full >= 1.0 {
            *level = (full - 1.0, now);
            return Ok(());
        }
        *level = (full, now);
        let wait = (1.0 - full) / self.rate.per_second.max(1e-3);
        Err(wait.ceil().max(1.0) as u64)
    }

    fn lock(&self) -> MutexGuard<'_, (f64, Instant)> {
        self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_what_was_saved_and_then_the_rate() {
        let bucket = Bucket::new(Rate { per_second: 0.5, at_once: 3.0 });
        let start = Instant::now();
        let taken = |after: f64| bucket.take_at(start + Duration::from_secs_f64(after));
        assert_eq!([taken(0.0), taken(0.0), taken(0.0)], [Ok(()), Ok(()), Ok(())]);
        assert_eq!(taken(0.0), Err(2));
        assert_eq!(taken(1.5), Err(1));
        assert_eq!(taken(2.1), Ok(()));
        assert_eq!(taken(2.2), Err(2));
        assert_eq!([taken(100.0), taken(100.0), taken(100.0)], [Ok(()), Ok(()), Ok(())]);
        assert_eq!(taken(100.0), Err(2));
    }
}
