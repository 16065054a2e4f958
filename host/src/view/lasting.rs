//! Lengths of time, short.

/// A length of time for people: `250ms`, `4.2s`, `59s`, `3m 20s`, `5h 3m`, `12d 4h`.
pub fn lasting(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        _ if ms < 1_000 => format!("{ms}ms"),
        0..10 if ms % 1_000 >= 100 => format!("{seconds}.{}s", ms % 1_000 / 100),
        0..60 => format!("{seconds}s"),
        60..3_600 => two(seconds, 60, "m", 1, "s"),
        3_600..86_400 => two(seconds, 3_600, "h", 60, "m"),
        _ => two(seconds, 86_400, "d", 3_600, "h"),
    }
}

fn two(seconds: u64, large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match seconds % large / small {
        0 => format!("{}{large_unit}", seconds / large),
        rest => format!("{}{large_unit} {rest}{small_unit}", seconds / large),
    }
}

#[cfg(test)]
mod tests {
    use super::lasting;

    #[test]
    fn two_units_at_most() {
        for (ms, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (4_250, "4.2s"),
            (59_999, "59s"),
            (60_000, "1m"),
            (200_000, "3m 20s"),
            (18_180_000, "5h 3m"),
            (90_000_000, "1d 1h"),
        ] {
            assert_eq!(lasting(ms), text, "{ms}");
        }
        lasting(u64::MAX);
    }
}
