//! Instants, lengths of time and lines for people.

use std::time::{Duration, UNIX_EPOCH};

use console::measure_text_width;

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

/// The time of day in UTC, or the number where there is no such day.
pub fn time_of_day(at_ms: u64) -> String {
    // The year 9999 is the last one that is written so.
    const LAST_MS: u64 = 253_402_300_799_999;
    match UNIX_EPOCH.checked_add(Duration::from_millis(at_ms)).filter(|_| at_ms <= LAST_MS) {
        Some(time) => humantime::format_rfc3339_millis(time).to_string(),
        None => format!("{at_ms}ms"),
    }
}

/// An instant as [`time_of_day`] writes it, also without fractions of a second.
pub fn instant(text: &str) -> Option<u64> {
    let time = humantime::parse_rfc3339(text).ok()?;
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// `no nodes`, `1 node`, `2 nodes`, `2 passes`.
pub fn counted(number: u64, noun: &str) -> String {
    let ending = if noun.ends_with('s') { "es" } else { "s" };
    match number {
        0 => format!("no {noun}{ending}"),
        1 => format!("1 {noun}"),
        many => format!("{many} {noun}{ending}"),
    }
}

/// A digest, short.
pub fn short(digest: &str) -> String {
    match digest.char_indices().nth(19) {
        Some((cut, _)) => format!("{}…", &digest[..cut]),
        None => digest.to_owned(),
    }
}

/// Control characters, and those that change the order of others or cannot be seen, made visible.
pub fn escape(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let visible = |c: char| if is_hidden(c) { c.escape_default().to_string() } else { c.to_string() };
    if text.contains(is_hidden) { text.chars().map(visible).collect() } else { text.to_owned() }
}

/// A text in lines of at most `width` columns, broken at spaces and after commas where there are any. Never empty.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    let text = escape(text);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut columns = 0;
    for piece in text.split_inclusive([' ', ',']) {
        let (wide, bare) = (measure_text_width(piece), measure_text_width(piece.trim_end()));
        if columns + bare > width && columns > 0 {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
            columns = 0;
        }
        if bare <= width {
            line.push_str(piece);
            columns += wide;
            continue;
        }
        // A piece without a place to break it.
        for c in piece.chars() {
            let one = measure_text_width(c.encode_utf8(&mut [0; 4]));
            if columns + one > width {
                lines.push(std::mem::take(&mut line));
                columns = 0;
            }
            line.push(c);
            columns += one;
        }
    }
    if !line.trim_end().is_empty() || lines.is_empty() {
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// A text in one line of at most `width` columns.
pub fn fit(text: &str, width: usize) -> String {
    console::truncate_str(&escape(text), width, "…").into_owned()
}

/// A text, filled up with spaces.
pub(crate) fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(measure_text_width(text))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

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

    #[test]
    fn lines_are_broken_where_they_can_be() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("[1,2,3,4]", 5), ["[1,2,", "3,4]"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("", 8), [""]);
        assert_eq!(wrap("x\u{1b}[2J", 20), ["x\\u{1b}[2J"]);
        for width in 0..40 {
            for line in wrap("the „quick“ brown fox, 12345678901234567890123456789, 狐 jumps", width) {
                assert!(measure_text_width(&line) <= width.max(2), "{width} {line:?}");
            }
        }
    }

    #[test]
    fn an_instant_is_read_as_it_is_written() {
        for at_ms in [0, 1_700_000_000_123, 253_402_300_799_999] {
            assert_eq!(instant(&time_of_day(at_ms)).unwrap(), at_ms);
        }
        assert_eq!(time_of_day(u64::MAX), format!("{}ms", u64::MAX));
        assert_eq!(instant("yesterday"), None);
    }
}
