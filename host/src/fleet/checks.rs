//! What single values of a fleet file have to be.

use std::path::{Component, Path};

/// The longest length of time a fleet file can ask for: ten years, in milliseconds.
pub const MAX_DURATION_MS: u64 = 10 * 365 * 24 * 3_600 * 1_000;

/// A length of time in milliseconds, from a text such as `500ms` or `1m 30s`: at least 1 ms, at most
/// [`MAX_DURATION_MS`].
pub fn duration_ms(text: &str) -> Result<u64, String> {
    const EXAMPLES: &str = "write a number with a unit, such as \"500ms\", \"10s\" or \"1m 30s\"";
    if text.trim_start().starts_with('-') {
        return Err("a length of time cannot be negative".into());
    }
    let duration = humantime::parse_duration(text).map_err(|error| match error {
        humantime::DurationError::NumberOverflow => "too long: the number overflows".to_owned(),
        humantime::DurationError::UnknownUnit { unit, .. } if unit.is_empty() => {
            format!("not a length of time: the unit is missing; {EXAMPLES}")
        }
        humantime::DurationError::UnknownUnit { unit, .. } => {
            format!("not a length of time: no unit {:?}; {EXAMPLES}", super::error::cut(&unit, 20))
        }
        _ => format!("not a length of time; {EXAMPLES}"),
    })?;
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if ms > MAX_DURATION_MS {
        return Err("too long: at most ten years".into());
    }
    if duration.is_zero() {
        return Err("it must be longer than zero".into());
    }
    if duration.subsec_nanos() % 1_000_000 != 0 {
        return Err("it must be a whole number of milliseconds".into());
    }
    Ok(ms)
}

/// A text with its placeholders filled in with something that could stand there.
fn sample(text: &str) -> String {
    text.replace("{endpoint}", "127.0.0.1:1")
        .replace("{host}", "127.0.0.1")
        .replace("{port}", "1")
        .replace("{run}", "run")
        .replace("{node}", "node-0")
        .replace("{attempt}", "1")
        .replace("{dir}", "/dir")
        .replace("{state}", "/state")
        .replace("{self}", "/self")
}

/// `host:port`, placeholders allowed.
pub(super) fn address(text: &str) -> Result<(), String> {
    host_and_port(&sample(text), true)
}

/// An `http://` URL, placeholders allowed.
pub(super) fn http_url(text: &str) -> Result<(), String> {
    let sample = sample(text);
    if sample.starts_with("https://") {
        return Err("only http:// can be probed".into());
    }
    let Some(rest) = sample.strip_prefix("http://") else {
        return Err("a URL to probe starts with http://".into());
    };
    if rest.contains(|c: char| c.is_whitespace() || c.is_control() || !c.is_ascii()) {
        return Err("a URL has neither spaces nor characters other than ASCII".into());
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    if authority.contains('@') {
        return Err("a URL to probe has no user name".into());
    }
    host_and_port(authority, false)
}

fn host_and_port(text: &str, port_needed: bool) -> Result<(), String> {
    let (host, port) = match text.rfind(':') {
        // In `[::1]` the last colon is within the brackets.
        Some(colon) if !text[colon..].contains(']') => (&text[..colon], Some(&text[colon + 1..])),
        _ => (text, None),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let good = match bare {
        Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.len() <= 253
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
        }
    };
    if !good {
        return Err("the host is missing or malformed".into());
    }
    match port {
        None if port_needed => Err("the port is missing; write host:port, or \"{endpoint}\"".into()),
        None => Ok(()),
        Some(port)
            if port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0) =>
        {
            Ok(())
        }
        Some(_) => Err("the port is not a number from 1 to 65535".into()),
    }
}

/// A regular expression; bounded in size, so that no file can make it large.
pub(super) fn regular_expression(text: &str) -> Result<(), String> {
    match regex::RegexBuilder::new(text).size_limit(1 << 20).build() {
        Ok(_) => Ok(()),
        Err(regex::Error::CompiledTooBig(_)) => Err("the regular expression is too large".into()),
        Err(error) => {
            // The parser draws a picture over several lines and closes with the reason.
            let text = error.to_string();
            let reason = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("not accepted");
            let reason = reason.trim();
            Err(format!("not a regular expression: {}", reason.strip_prefix("error: ").unwrap_or(reason)))
        }
    }
}

/// A path below the node's directory.
pub(super) fn relative_path(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("a file needs a path".into());
    }
    if text.contains('\0') {
        return Err("a path has no NUL".into());
    }
    let path = Path::new(text);
    if path.is_absolute() || text.ends_with('/') || !path.components().all(|part| matches!(part, Component::Normal(_)))
    {
        return Err("it must be a path below the node's directory, without `.` and `..`".into());
    }
    Ok(())
}

/// The name of an environment variable.
pub(super) fn env_name(text: &str) -> Result<(), String> {
    if text.is_empty() || text.contains(['=', '\0']) {
        return Err("the name of an environment variable is not empty and has neither `=` nor NUL".into());
    }
    Ok(())
}

/// A text that a program can be given.
pub(super) fn no_nul(text: &str) -> Result<(), String> {
    if text.contains('\0') { Err("it cannot contain NUL".into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn durations() {
        for (text, ms) in [("500ms", 500), ("10s", 10_000), ("1m 30s", 90_000), ("1h30m", 5_400_000), ("1.5s", 1_500)] {
            assert_eq!(duration_ms(text), Ok(ms), "{text}");
        }
        for (text, why) in [
            ("-5s", "negative"),
            ("", "not a length"),
            ("5", "unit is missing"),
            ("5 parsecs", "no unit"),
            ("0s", "longer than zero"),
            ("0ms", "longer than zero"),
            ("1us", "whole number of milliseconds"),
            ("99999999999999999999s", "overflow"),
            ("18446744073709551615s", "too long"),
            ("11y", "ten years"),
            ("nan", "not a length"),
        ] {
            let said = duration_ms(text).unwrap_err();
            assert!(said.contains(why), "{text:?}: {said}");
        }
    }

    #[test]
    fn urls_and_addresses() {
        for url in ["http://{endpoint}/healthz", "http://localhost", "http://[::1]:80/?x", "http://10.0.0.1:8080"] {
            assert_eq!(http_url(url), Ok(()), "{url}");
        }
        for url in [
            "",
            "{endpoint}",
            "ftp://x",
            "https://x",
            "http://",
            "http://:80/",
            "http://a b/",
            "http://x:0",
            "http://x:99999",
            "http://ü/",
            "http://[zz]/",
            "http://a@b/",
        ] {
            assert!(http_url(url).is_err(), "{url}");
        }
        for address_ in ["{endpoint}", "localhost:80", "[::1]:80"] {
            assert_eq!(address(address_), Ok(()), "{address_}");
        }
        for address_ in ["", "localhost", ":80", "x:+1", "x:http", "[::1]"] {
            assert!(address(address_).is_err(), "{address_}");
        }
    }

    #[test]
    fn expressions() {
        assert_eq!(regular_expression("^ready$"), Ok(()));
        assert!(regular_expression("(").unwrap_err().contains("unclosed group"));
        assert!(regular_expression(r"\w{1000}{1000}").unwrap_err().contains("too large"));
    }

    #[test]
    fn paths() {
        assert_eq!(relative_path("etc/app.conf"), Ok(()));
        for path in ["", "/etc/passwd", "../x", "a/../../x", "a/", ".", "a\0b"] {
            assert!(relative_path(path).is_err(), "{path:?}");
        }
    }
}
