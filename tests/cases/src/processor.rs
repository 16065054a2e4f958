//! Time that other work on the machine does not stretch.

use std::time::Duration;

/// Processor time of all threads of this process so far, in steps of 10 ms.
///
/// # Panics
///
/// Where there is no `/proc`.
#[allow(clippy::expect_used)]
pub fn time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("the process is there");
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // In the program and in the kernel, in hundredths of a second.
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
