//! A window of the day, in UTC.

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// From one minute of the day to another, of the next day when it is not later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    from_ms: u64,
    to_ms: u64,
}

/// The text is no window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

impl Window {
    /// Reads `HH:MM-HH:MM`. Two times that are equal are the whole day.
    pub fn read(text: &str) -> Result<Window, Unreadable> {
        let (from, to) = text.split_once('-').ok_or(Unreadable)?;
        Ok(Window { from_ms: time(from)?, to_ms: time(to)? })
    }

    /// Whether it is open at that instant. It is closed at the instant that ends it.
    pub fn is_open(self, now_ms: u64) -> bool {
        let now = now_ms % DAY_MS;
        if self.from_ms < self.to_ms {
            self.from_ms <= now && now < self.to_ms
        } else {
            self.from_ms <= now || now < self.to_ms
        }
    }

    /// When it opens, or, while it is open, when it closes: after `now_ms`. 0 when it never does.
    pub fn next_turn(self, now_ms: u64) -> u64 {
        if self.from_ms == self.to_ms {
            return 0;
        }
        let wanted = if self.is_open(now_ms) { self.to_ms } else { self.from_ms };
        let wait = (wanted + DAY_MS - now_ms % DAY_MS) % DAY_MS;
        now_ms.checked_add(wait).unwrap_or(0)
    }
}

fn time(text: &str) -> Result<u64, Unreadable> {
    let (hours, minutes) = text.split_once(':').ok_or(Unreadable)?;
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if hours < 24 && minutes < 60 { Ok((hours * 60 + minutes) * MINUTE_MS) } else { Err(Unreadable) }
}

fn number(text: &str) -> Result<u64, Unreadable> {
    let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().map_err(|_| Unreadable) } else { Err(Unreadable) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn at(hours: u64, minutes: u64) -> u64 {
        7 * DAY_MS + (hours * 60 + minutes) * MINUTE_MS
    }

    #[test]
    fn a_window_may_reach_over_midnight() {
        let night = Window::read("22:00-06:00").unwrap();
        for (hours, minutes, open, turns) in [
            (21, 59, false, at(22, 0)),
            (22, 0, true, at(30, 0)),
            (23, 59, true, at(30, 0)),
            (0, 0, true, at(6, 0)),
            (5, 59, true, at(6, 0)),
            (6, 0, false, at(22, 0)),
        ] {
            assert_eq!(night.is_open(at(hours, minutes)), open, "{hours}:{minutes}");
            assert_eq!(night.next_turn(at(hours, minutes)), turns, "{hours}:{minutes}");
        }
        assert!(!night.is_open(at(6, 0)) && night.is_open(at(6, 0) - 1));
    }

    #[test]
    fn a_window_within_a_day_and_the_whole_day() {
        let noon = Window::read("12:00-13:30").unwrap();
        assert!(noon.is_open(at(13, 29)) && !noon.is_open(at(13, 30)) && !noon.is_open(at(11, 59)));
        assert_eq!(noon.next_turn(at(13, 30)), at(36, 0));
        let always = Window::read("00:00-00:00").unwrap();
        assert!(always.is_open(at(3, 0)));
        assert_eq!(always.next_turn(at(3, 0)), 0);
    }

    #[test]
    fn what_is_no_window_is_refused() {
        for text in
            ["", "-", "22-06", "22:00", "24:00-06:00", "22:60-06:00", "2:00-06:00", "22:00-+6:00", "22:00 - 06:00"]
        {
            assert_eq!(Window::read(text), Err(Unreadable), "{text:?}");
        }
        // Instants at the end of time are no reason to panic.
        assert_eq!(Window::read("22:00-06:00").unwrap().next_turn(u64::MAX), 0);
    }
}
