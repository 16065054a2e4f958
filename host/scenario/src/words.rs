//! The words of the scenario language: times, shapes, outcomes, observations, listings.

use engine::id::{AttemptId, ExternalKey, OperationId};
use engine::io::{Done, Fault, Listing, Observation, Resource};
use engine::rollout::{Rollout, Share};
use engine::shape::{ClusterShape, GroupShape};

use crate::build;

/// No line has more characters: what is longer was not written by a person.
const MAX_LINE: usize = 100_000;

/// Words, with double quotes around those that contain spaces; in quotes, `\"`, `\\`, `\n` and `\t` stand for one character.
pub(crate) fn split(line: &str) -> Result<Vec<String>, String> {
    if line.len() > MAX_LINE {
        return Err(format!("a line of more than {MAX_LINE} bytes"));
    }
    let (mut words, mut word, mut quoted, mut open) = (Vec::new(), String::new(), false, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => (quoted, open) = (!quoted, true),
            '\\' if quoted => word.push(match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(c) => c,
                None => return Err("the text ends after a backslash".into()),
            }),
            c if c.is_whitespace() && !quoted => {
                if open {
                    words.push(std::mem::take(&mut word));
                }
                open = false;
            }
            c => {
                word.push(c);
                open = true;
            }
        }
    }
    if quoted {
        return Err("a quote is not closed".into());
    }
    if open {
        words.push(word);
    }
    Ok(words)
}

/// Milliseconds as `1.500s`.
pub fn ms(value: u64) -> String {
    match (value / 1_000, value % 1_000) {
        (seconds, 0) => format!("{seconds}s"),
        (seconds, rest) => format!("{seconds}.{rest:03}s"),
    }
}

/// A length of time or an instant: `1500ms`, `1.5s`, `2m`, `1h`, `1m30s`.
pub(crate) fn parse_ms(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no time; a time is 1500ms, 1.5s, 2m, 1h, 1m30s");
    let (mut rest, mut sum) = (text, 0_u64);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, unit) = rest.split_at(digits);
        let letters = unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len());
        let (unit, later) = unit.split_at(letters);
        let unit = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(wrong()),
        };
        sum = times(number, unit).and_then(|part| sum.checked_add(part)).ok_or_else(wrong)?;
        rest = later;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(sum) }
}

/// A decimal number of units, in milliseconds; digits below a millisecond are no number of them.
fn times(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| (1..=3).contains(digits))?;
    let part = fraction.parse::<u64>().ok()? * unit;
    let scale = 10_u64.pow(digits);
    part.is_multiple_of(scale).then(|| whole.checked_add(part / scale))?
}

/// A whole number.
pub(crate) fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is no {what}"))
}

/// Parses `a3.2`.
pub(crate) fn parse_operation(text: &str) -> Result<OperationId, String> {
    crate::session::operation_id(text).ok_or_else(|| format!("{text:?} is no operation id, such as a1.2"))
}

pub(crate) fn parse_shape(generation: &str, groups: &[&str]) -> Result<ClusterShape, String> {
    let generation = number(generation, "generation")?;
    let mut run = build::RUN;
    let mut parsed = Vec::new();
    for group in groups {
        if let Some(other) = group.strip_prefix("run:") {
            run = other;
            continue;
        }
        let wrong =
            || format!("{group:?} is no group; a group is id=count, id=count@template or id=count@template:provider");
        let (group, settings) = group.split_once(',').unwrap_or((group, ""));
        let (id, rest) = group.split_once('=').ok_or_else(wrong)?;
        let (count, template) = rest.split_once('@').unwrap_or((rest, "v1"));
        let (tag, provider) = template.split_once(':').unwrap_or((template, "fake"));
        let mut group = GroupShape::new(id, number(count, "count")?, build::template(provider, tag));
        for setting in settings.split_terminator(',') {
            match setting.split_once(':') {
                Some((name, value)) => _ = group.parameters.insert(name.into(), value.into()),
                None => rollout(&mut group.rollout, setting)?,
            }
        }
        parsed.push(group);
    }
    let mut shape = ClusterShape { run: build::RUN.into(), generation, groups: parsed };
    shape.run = run.into();
    Ok(shape)
}

/// One setting of a rollout, such as `max-unavailable=25%` or `paused`.
pub(crate) fn rollout(rollout: &mut Rollout, setting: &str) -> Result<(), String> {
    let share = |text: &str| match text.parse() {
        Ok(nodes) => Ok(Some(Share::Nodes(nodes))),
        Err(_) => Share::percent(text).map(Some).map_err(|why| format!("{text:?}: {why}")),
    };
    match setting.split_once('=') {
        None if setting == "paused" => rollout.paused = true,
        Some(("max-unavailable", value)) => rollout.max_unavailable = share(value)?,
        Some(("max-surge", value)) => rollout.max_surge = share(value)?,
        Some(("max-failing", value)) => rollout.max_failing = share(value)?,
        _ => {
            let all = "max-unavailable=N, max-surge=N, max-failing=N (N nodes, or N%), paused";
            return Err(format!("{setting:?} is no setting of a rollout; they are {all}"));
        }
    }
    Ok(())
}

pub(crate) fn parse_fault(how: &[&str]) -> Result<Fault, String> {
    let wrong =
        || "it fails retryable, permanent, not-ready or ambiguous, then \"words\", then a wait to ask for".to_string();
    let (kind, rest) = how.split_first().ok_or_else(wrong)?;
    if rest.len() > 2 || (rest.len() > 1 && *kind != "retryable") {
        return Err(wrong());
    }
    let reason = rest.first().map_or_else(|| "it failed".to_string(), |words| (*words).to_string());
    match *kind {
        "retryable" => {
            Ok(Fault::Retryable { reason, retry_after_ms: rest.get(1).map(|span| parse_ms(span)).transpose()? })
        }
        "permanent" => Ok(Fault::Permanent { reason }),
        "not-ready" => Ok(Fault::NotReady { reason }),
        "ambiguous" => Ok(Fault::Ambiguous { reason }),
        _ => Err(wrong()),
    }
}

pub(crate) fn parse_result(how: &[&str]) -> Result<Result<Done, Fault>, String> {
    let owned = |word: &&str| (*word).to_string();
    Ok(match how {
        ["leased", lease] => Ok(Done::Leased { lease: owned(lease), adopted: false }),
        ["leased", lease, "adopted"] => Ok(Done::Leased { lease: owned(lease), adopted: true }),
        ["absent"] => Ok(Done::Absent),
        ["found", endpoint] => Ok(Done::Found { endpoint: owned(endpoint) }),
        ["started", session] => Ok(Done::Started { session: owned(session), adopted: false }),
        ["started", session, "adopted"] => Ok(Done::Started { session: owned(session), adopted: true }),
        ["cancelled"] => Ok(Done::Cancelled),
        ["destroyed"] => Ok(Done::Destroyed),
        _ => Err(parse_fault(how).map_err(|faults| {
            format!("a result is leased L, absent, found E, started S, cancelled, destroyed; or {faults}")
        })?),
    })
}

pub(crate) fn parse_observation(what: &[&str]) -> Result<Observation, String> {
    let failed = |reason: &str, permanent| Observation::Failed {
        progress: decider::Progress::JoinFailed,
        reason: reason.into(),
        permanent,
    };
    match what {
        ["joined"] => Ok(Observation::Joined),
        ["progress", code] => {
            let progress = code.parse().ok().and_then(decider::Progress::from_code);
            progress.map(Observation::Progress).ok_or_else(|| format!("{code:?} is no progress, 0 to 10"))
        }
        ["output"] => Ok(Observation::Output("a line".into())),
        ["failed", reason] => Ok(failed(reason, false)),
        ["failed", reason, "permanent"] => Ok(failed(reason, true)),
        ["closed"] => Ok(Observation::Closed { exit: None }),
        ["closed", exit] => Ok(Observation::Closed { exit: Some((*exit).into()) }),
        _ => {
            Err("what is observed is joined, progress N, output, failed \"why\" [permanent], closed [\"exit\"]".into())
        }
    }
}

pub(crate) fn parse_listing(provider: &str, complete: &str, entries: &[&str]) -> Result<Listing, String> {
    let complete = match complete {
        "complete" => true,
        "partial" => false,
        other => return Err(format!("a listing is complete or partial, not {other:?}")),
    };
    let mut resources = Vec::new();
    for entry in entries {
        let wrong = || format!("{entry:?} is no entry; an entry is [run:]slot/aN=lease[@template] or -=lease");
        let (label, lease) = entry.split_once('=').ok_or_else(wrong)?;
        let (lease, tag) = lease.split_once('@').map_or((lease, None), |(lease, tag)| (lease, Some(tag)));
        let key = match label {
            "-" => None,
            label => {
                let (run, label) = label.split_once(':').unwrap_or((build::RUN, label));
                let (slot, attempt) = label.split_once("/a").ok_or_else(wrong)?;
                let attempt = AttemptId(attempt.parse().map_err(|_| wrong())?);
                Some(ExternalKey { run: run.into(), slot: slot.into(), attempt })
            }
        };
        resources.push(Resource { lease: lease.into(), key, template: tag.map(|tag| build::template(provider, tag)) });
    }
    Ok(Listing { complete, resources })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, expected) in [("5s", 5_000), ("250ms", 250), ("1.5s", 1_500), ("2m", 120_000), ("1h1m1s", 3_661_000)]
        {
            assert_eq!(parse_ms(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "5",
            "s",
            "-1s",
            "1.s",
            "1.0005s",
            "0.5ms",
            "5 s",
            "99999999999999999999s",
            "18446744073709551615h",
            "1d",
        ] {
            assert!(parse_ms(text).is_err(), "{text}");
        }
    }

    #[test]
    fn quotes_hold_words_together_and_must_close() {
        assert_eq!(split(r#"fail web-0 retryable "no \"quota\" left" 5s"#).unwrap()[3], r#"no "quota" left"#);
        assert!(split("fail \"x").is_err());
        assert!(split("fail \"x\\").is_err());
    }
}
