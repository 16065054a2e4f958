//! Instants and digests for people.

use std::time::{Duration, UNIX_EPOCH};

use crate::view::lasting;

/// The time of day in UTC, or the number where there is no such day.
pub fn time_of_day(at_ms: u64) -> String {
    // The year 9999 is the last one that is written so.
    const LAST_MS: u64 = 253_402_300_799_999;
    match UNIX_EPOCH.checked_add(Duration::from_millis(at_ms)).filter(|_| at_ms <= LAST_MS) {
        Some(time) => humantime::format_rfc3339_millis(time).to_string(),
        None => format!("{at_ms}ms"),
    }
}

/// How long it is from one instant to another.
pub fn lasting_between(from_ms: u64, to_ms: u64) -> String {
    match to_ms.checked_sub(from_ms) {
        Some(span) => lasting(span),
        None => format!("-{}", lasting(from_ms - to_ms)),
    }
}

/// How long after an instant another one is: `+12.345s`.
pub fn since(from_ms: u64, at_ms: u64) -> String {
    let (sign, span) = if at_ms < from_ms { ('-', from_ms - at_ms) } else { ('+', at_ms - from_ms) };
    format!("{sign}{}.{:03}s", span / 1_000, span % 1_000)
}

/// A digest, short.
pub fn short(digest: &str) -> String {
    match digest.char_indices().nth(19) {
        Some((cut, _)) => format!("{}…", &digest[..cut]),
        None => digest.to_owned(),
    }
}
