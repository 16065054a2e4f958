//! Measuring that does not need criterion: what a few calls cost.

use std::time::{Duration, Instant};

/// How long one call takes.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The median by the wall clock.
    pub wall: Duration,
    /// The mean on the processor, which other programs on the machine disturb less.
    pub processor: Duration,
}

/// What one of `calls` calls costs, after a few to warm up.
pub fn measure<T>(calls: u32, mut call: impl FnMut() -> T) -> Cost {
    for _ in 0..calls.div_ceil(10) {
        std::hint::black_box(call());
    }
    let calls = calls.max(1);
    let before = on_processor();
    let walls = (0..calls).map(|_| {
        let started = Instant::now();
        std::hint::black_box(call());
        started.elapsed()
    });
    let wall = middle(walls.collect());
    Cost { wall, processor: on_processor().saturating_sub(before) / calls }
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The time that this thread has spent on the processor, to a few milliseconds; Linux only, else always zero.
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0))
}
