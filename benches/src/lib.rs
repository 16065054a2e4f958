//! Measuring that does not need criterion: the median of a few calls.

use std::time::{Duration, Instant};

/// The median time of `calls` calls, after a few to warm up.
pub fn median<T>(calls: usize, mut call: impl FnMut() -> T) -> Duration {
    for _ in 0..calls.div_ceil(10) {
        std::hint::black_box(call());
    }
    let mut times: Vec<Duration> = (0..calls.max(1))
        .map(|_| {
            let started = Instant::now();
            std::hint::black_box(call());
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}
