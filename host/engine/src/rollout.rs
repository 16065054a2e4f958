//! How a group's nodes are replaced when its template changes: budgets, surge, circuit, pause. Part of the shape's content, and
//! of no template: a change of them drifts nothing.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::shape::{GroupShape, ShapeError};

/// A group's rollout settings, as declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rollout {
    /// How many of the group may be unavailable because of a rollout; `None` is no limit, with surge it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Share>,
    /// How many nodes beyond the count a rollout may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<Share>,
    /// With more failing than this, rollouts stop and destroyed nodes restart one at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failing: Option<Share>,
    /// No healthy node is replaced because its template changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// A number of nodes, or a part of the group's count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// So many nodes.
    Nodes(u32),
    /// So much of the count, in per cent, 0 to 100.
    Percent(u8),
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Share::Nodes(nodes) => write!(f, "{nodes}"),
            Share::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl Share {
    /// The percentage that a text such as `25%` says; the reason where it says none.
    pub fn percent(text: &str) -> Result<Share, &'static str> {
        const EXPECTED: &str = "write a whole number of nodes, or a percentage in quotes, such as \"25%\"";
        let digits = text.strip_suffix('%').ok_or(EXPECTED)?;
        if digits.starts_with('-') {
            return Err("it is negative");
        }
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(EXPECTED);
        }
        match digits.parse::<u8>() {
            Ok(percent @ 0..=100) => Ok(Share::Percent(percent)),
            _ => Err("more than 100%"),
        }
    }

    fn is_zero(self) -> bool {
        matches!(self, Share::Nodes(0) | Share::Percent(0))
    }

    fn part(self, count: u32, up: bool) -> u32 {
        match self {
            Share::Nodes(nodes) => nodes,
            Share::Percent(percent) => {
                let product = u64::from(count) * u64::from(percent);
                u32::try_from(if up { product.div_ceil(100) } else { product / 100 }).unwrap_or(u32::MAX)
            }
        }
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Share::Nodes(nodes) => serializer.serialize_u32(*nodes),
            Share::Percent(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Nodes(u32),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Nodes(nodes) => Ok(Share::Nodes(nodes)),
            Written::Text(text) => Share::percent(&text).map_err(|why| de::Error::custom(format!("{text:?}: {why}"))),
        }
    }
}

/// A group's limits in nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How many may be unavailable because of a rollout; `None` is no limit.
    pub max_unavailable: Option<u32>,
    /// How many surge slots.
    pub max_surge: u32,
    /// The circuit; `None` is never open.
    pub max_failing: Option<u32>,
}

impl Rollout {
    /// Whether nothing is declared.
    pub fn is_default(&self) -> bool {
        *self == Rollout::default()
    }

    /// In nodes, for a group of `count`. Unavailable and failing are rounded down, surge up; where both budgets come to
    /// nothing, one may be unavailable, or nothing could ever be replaced.
    pub fn limits(&self, count: u32) -> Limits {
        let max_surge = self.max_surge.map_or(0, |share| share.part(count, true));
        let surges = self.max_surge.is_some_and(|share| !share.is_zero());
        let declared = self.max_unavailable.or(surges.then_some(Share::Nodes(0)));
        let max_unavailable = declared.map(|share| match share.part(count, false) {
            0 if max_surge == 0 => 1,
            nodes => nodes,
        });
        Limits { max_unavailable, max_surge, max_failing: self.max_failing.map(|share| share.part(count, false)) }
    }

    /// What cannot work. `at` is the path of the group, such as `group[1]`.
    pub(crate) fn check(&self, at: &str, limits: &crate::shape::ShapeLimits) -> Result<(), ShapeError> {
        let field = |name: &str| format!("{at}.rollout.{name}");
        let named = [
            ("max-unavailable", self.max_unavailable),
            ("max-surge", self.max_surge),
            ("max-failing", self.max_failing),
        ];
        for (name, share) in named {
            match share {
                Some(Share::Percent(percent)) if percent > 100 => {
                    let (value, why) = (format!("{percent}%"), "more than 100%".into());
                    return Err(ShapeError::Invalid { field: field(name), value, why });
                }
                Some(Share::Nodes(nodes)) if nodes > limits.max_group_count => {
                    let (value, limit) = (u64::from(nodes), u64::from(limits.max_group_count));
                    return Err(ShapeError::OverLimit { field: field(name), value, limit });
                }
                _ => {}
            }
        }
        let unavailable = self.max_unavailable.filter(|share| share.is_zero());
        if let Some(share) = unavailable.filter(|_| self.max_surge.is_none_or(Share::is_zero)) {
            let why = "nothing could ever be replaced: it is zero, and so is max-surge".into();
            return Err(ShapeError::Invalid { field: field("max-unavailable"), value: share.to_string(), why });
        }
        Ok(())
    }

    /// The settings as a scenario has them, each after a comma; nothing where nothing is declared.
    pub fn words(&self) -> String {
        let Rollout { max_unavailable, max_surge, max_failing, paused } = self;
        let shares = [("max-unavailable", max_unavailable), ("max-surge", max_surge), ("max-failing", max_failing)];
        let mut words = String::new();
        for (name, share) in shares {
            words.extend(share.map(|share| format!(",{name}={share}")));
        }
        if *paused {
            words.push_str(",paused");
        }
        words
    }

    /// The settings by name, as a fleet file has them.
    fn named(&self) -> [(&'static str, String); 4] {
        let words = |share: Option<Share>| share.map_or("none".into(), |share| share.to_string());
        [
            ("max-unavailable", words(self.max_unavailable)),
            ("max-surge", words(self.max_surge)),
            ("max-failing", words(self.max_failing)),
            ("paused", self.paused.to_string()),
        ]
    }
}

/// What changes of a group beside its count and its template, in words.
pub fn changes(before: &GroupShape, after: &GroupShape) -> Vec<String> {
    let mut changes = Vec::new();
    for ((name, old), (_, new)) in before.rollout.named().into_iter().zip(after.rollout.named()) {
        if old != new {
            changes.push(format!("rollout.{name} of {}: {old} to {new}", after.id));
        }
    }
    let keys =
        before.parameters.keys().chain(after.parameters.keys().filter(|key| !before.parameters.contains_key(*key)));
    for key in keys {
        let words = |group: &GroupShape| group.parameters.get(key).map_or("none".into(), |value| format!("{value:?}"));
        let (old, new) = (words(before), words(after));
        if old != new {
            changes.push(format!("parameter {key} of {}: {old} to {new}", after.id));
        }
    }
    changes
}

/// The longest name of a parameter, and its longest value, in bytes.
pub const MAX_PARAMETER_NAME_BYTES: usize = 64;
/// See [`MAX_PARAMETER_NAME_BYTES`].
pub const MAX_PARAMETER_VALUE_BYTES: usize = 4_096;

/// A parameter's name or value that cannot be. `at` is the path of the table.
pub(crate) fn check_parameter(at: &str, name: &str, value: &str) -> Result<(), ShapeError> {
    let invalid = |value: &str, why: &str| {
        let value = value.chars().take(60).collect();
        Err(ShapeError::Invalid { field: format!("{at}.parameters"), value, why: why.into() })
    };
    if name.is_empty() || name.len() > MAX_PARAMETER_NAME_BYTES {
        return invalid(name, "a parameter's name has 1 to 64 bytes");
    }
    if value.len() > MAX_PARAMETER_VALUE_BYTES {
        return invalid(value, "a parameter has at most 4096 bytes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]
    use super::*;
    use Share::{Nodes, Percent};

    fn limits(unavailable: Option<Share>, surge: Option<Share>, count: u32) -> (Option<u32>, u32) {
        let rollout = Rollout { max_unavailable: unavailable, max_surge: surge, ..Rollout::default() };
        let limits = rollout.limits(count);
        (limits.max_unavailable, limits.max_surge)
    }

    #[test]
    fn percentages_are_rounded_so_that_something_can_be_replaced() {
        for (unavailable, surge, count, expected) in [
            (None, None, 10, (None, 0)),
            (Some(Nodes(1)), None, 10, (Some(1), 0)),
            (Some(Percent(25)), None, 10, (Some(2), 0)),
            (Some(Percent(25)), None, 3, (Some(1), 0)),
            (Some(Percent(25)), Some(Percent(25)), 3, (Some(0), 1)),
            (Some(Percent(25)), Some(Percent(25)), 10, (Some(2), 3)),
            (Some(Percent(100)), None, 7, (Some(7), 0)),
            (None, Some(Nodes(2)), 10, (Some(0), 2)),
            (None, Some(Nodes(0)), 10, (None, 0)),
            (Some(Percent(1)), Some(Percent(1)), 0, (Some(1), 0)),
            (Some(Percent(100)), None, u32::MAX, (Some(u32::MAX), 0)),
        ] {
            assert_eq!(limits(unavailable, surge, count), expected, "{unavailable:?} {surge:?} of {count}");
        }
    }

    #[test]
    fn shares_are_written_as_in_the_fleet_file() {
        for text in ["1", "0", "\"25%\"", "\"0%\"", "\"100%\""] {
            let share: Share = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&share).unwrap(), text);
        }
        for text in ["-1", "1.5", "\"101%\"", "\"-5%\"", "\"25\"", "\"%\"", "\"1.5%\"", "true", "\"999999999999%\""] {
            assert!(serde_json::from_str::<Share>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let check = |unavailable, surge| {
            let rollout = Rollout { max_unavailable: unavailable, max_surge: surge, ..Rollout::default() };
            rollout.check("group[0]", &crate::shape::ShapeLimits::default())
        };
        assert!(check(Some(Nodes(0)), None).is_err());
        assert!(check(Some(Percent(0)), Some(Percent(0))).is_err());
        assert!(check(Some(Nodes(0)), Some(Nodes(1))).is_ok());
        assert!(check(None, Some(Nodes(0))).is_ok());
        let error = check(Some(Nodes(1)), Some(Nodes(10_001))).unwrap_err();
        assert_eq!(error.to_string(), "group[0].rollout.max-surge: 10001 is over the limit of 10000");
        assert!(check(Some(Percent(101)), None).is_err());
    }
}
