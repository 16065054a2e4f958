//! The words of the scenario language: times, shapes, outcomes, observations, listings.

use engine::id::{AttemptId, ExternalKey};
use engine::io::{Done, Fault, Listing, Observation, Resource};

use crate::build;

/// Words, with double quotes around those that contain spaces.
pub(crate) fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut open) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '"' => (quoted, open) = (!quoted, true),
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
    if open {
        words.push(word);
    }
    words
}

/// Milliseconds as `1.5s`.
pub fn ms(value: u64) -> String {
    match (value / 1_000, value % 1_000) {
        (seconds, 0) => format!("{seconds}s"),
        (seconds, rest) => format!("{seconds}.{rest:03}s"),
    }
}

pub(crate) fn parse_ms(text: &str) -> Result<u64, String> {
    let number = text
        .strip_suffix("ms")
        .map(|number| (number, 1))
        .or_else(|| text.strip_suffix('s').map(|number| (number, 1_000)));
    let (number, unit) = number.ok_or_else(|| format!("{text} is no time"))?;
    number.parse::<u64>().map(|number| number * unit).map_err(|_| format!("{text} is no time"))
}

pub(crate) fn parse_shape(generation: &str, groups: &[&str]) -> Result<engine::shape::ClusterShape, String> {
    let generation = generation.parse().map_err(|_| format!("{generation} is no generation"))?;
    let mut run = build::RUN;
    let mut parsed = Vec::new();
    for group in groups {
        if let Some(other) = group.strip_prefix("run:") {
            run = other;
            continue;
        }
        let (id, rest) = group.split_once('=').ok_or("a group is id=count[@template[:provider]]")?;
        let (count, template) = rest.split_once('@').unwrap_or((rest, "v1"));
        let (tag, provider) = template.split_once(':').unwrap_or((template, "fake"));
        let count = count.parse().map_err(|_| format!("{count} is no count"))?;
        parsed.push((id, count, build::template(provider, tag)));
    }
    let mut shape = build::shape(generation, &parsed);
    shape.run = run.into();
    Ok(shape)
}

pub(crate) fn parse_fault(how: &[&str]) -> Result<Fault, String> {
    let reason = how.get(1).map_or_else(|| "it failed".to_string(), |words| (*words).to_string());
    let after = how.get(2).map(|span| parse_ms(span)).transpose()?;
    match how.first() {
        Some(&"retryable") => Ok(Fault::Retryable { reason, retry_after_ms: after }),
        Some(&"permanent") => Ok(Fault::Permanent { reason }),
        Some(&"not-ready") => Ok(Fault::NotReady { reason }),
        Some(&"ambiguous") => Ok(Fault::Ambiguous { reason }),
        _ => Err("fail WHO retryable|permanent|not-ready|ambiguous [\"words\"] [wait]".into()),
    }
}

pub(crate) fn parse_result(how: &[&str]) -> Result<Result<Done, Fault>, String> {
    let text = |at: usize| how.get(at).map_or_else(String::new, |word| (*word).to_string());
    Ok(match how.first() {
        Some(&"leased") => Ok(Done::Leased { lease: text(1), adopted: text(2) == "adopted" }),
        Some(&"absent") => Ok(Done::Absent),
        Some(&"found") => Ok(Done::Found { endpoint: text(1) }),
        Some(&"started") => Ok(Done::Started { session: text(1), adopted: text(2) == "adopted" }),
        Some(&"cancelled") => Ok(Done::Cancelled),
        Some(&"destroyed") => Ok(Done::Destroyed),
        _ => Err(parse_fault(how)?),
    })
}

pub(crate) fn parse_observation(what: &[&str]) -> Result<Observation, String> {
    match what {
        ["joined"] => Ok(Observation::Joined),
        ["progress", code] => {
            let code = code.parse().ok().and_then(decider::Progress::from_code).ok_or("no such progress")?;
            Ok(Observation::Progress(code))
        }
        ["output"] => Ok(Observation::Output("a line".into())),
        ["failed", reason, rest @ ..] => Ok(Observation::Failed {
            progress: decider::Progress::JoinFailed,
            reason: (*reason).into(),
            permanent: rest == ["permanent"],
        }),
        ["closed"] => Ok(Observation::Closed { exit: None }),
        ["closed", exit] => Ok(Observation::Closed { exit: Some((*exit).into()) }),
        _ => Err("observe WHO joined | progress N | output | failed \"why\" [permanent] | closed [\"exit\"]".into()),
    }
}

pub(crate) fn parse_listing(complete: &str, entries: &[&str]) -> Result<Listing, String> {
    let complete = match complete {
        "complete" => true,
        "partial" => false,
        _ => return Err("a listing is complete or partial".into()),
    };
    let mut resources = Vec::new();
    for entry in entries {
        let (label, lease) = entry.split_once('=').ok_or("an entry is [run:]slot/aN=lease[@template] or -=lease")?;
        let (lease, tag) = lease.split_once('@').map_or((lease, None), |(lease, tag)| (lease, Some(tag)));
        let key = match label {
            "-" => None,
            label => {
                let (run, label) = label.split_once(':').unwrap_or((build::RUN, label));
                let (slot, attempt) = label.split_once("/a").ok_or("a label is slot/aN")?;
                let attempt = AttemptId(attempt.parse().map_err(|_| "no attempt".to_string())?);
                Some(ExternalKey { run: run.into(), slot: slot.into(), attempt })
            }
        };
        resources.push(Resource { lease: lease.into(), key, template: tag.map(|tag| build::template("fake", tag)) });
    }
    Ok(Listing { complete, resources })
}
