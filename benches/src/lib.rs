//! Measuring that does not need criterion: the median of a few calls.

use std::time::{Duration, Instant};

/// How long one call takes: by the wall clock, and on the processor, which other programs on the machine disturb less.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Wall-clock time.
    pub wall: Duration,
    /// Time on the processor.
    pub processor: Duration,
}

/// The median cost of `calls` calls, after a few to warm up.
pub fn median<T>(calls: usize, mut call: impl FnMut() -> T) -> Cost {
    for _ in 0..calls.div_ceil(10) {
        std::hint::black_box(call());
    }
    let mut walls = Vec::with_capacity(calls);
    let mut before = on_processor();
    let begun = before;
    let mut processors = Vec::with_capacity(calls);
    // Asking for the time on the processor costs microseconds; short calls get their mean instead.
    let short = calls > 1_000;
    for _ in 0..calls.max(1) {
        let started = Instant::now();
        std::hint::black_box(call());
        walls.push(started.elapsed());
        if !short {
            let now = on_processor();
            processors.push(now.saturating_sub(before));
            before = now;
        }
    }
    if short {
        processors.push(on_processor().saturating_sub(begun) / calls as u32);
    }
    Cost { wall: middle(walls), processor: middle(processors) }
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The time that this thread has spent on the processor; Linux only, else always zero.
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0))
}
