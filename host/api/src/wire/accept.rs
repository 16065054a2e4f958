//! Words of a swap that are written in one piece: what is accepted, how many nodes may fail, which decider is meant.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::decider::{DeciderEntry, Deciders};

/// The longest rule's id, in bytes.
const MAX_RULE_BYTES: usize = 32;
/// Digits of a digest that name a decider, at least.
const MIN_DIGITS: usize = 8;
/// Digits of a whole digest.
const DIGITS: usize = 64;

/// What is accepted that would be refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Accept {
    /// `destroys`: it would destroy more.
    Destroys,
    /// `creates`: it would create more.
    Creates,
    /// `failures`: it fails where the active one does not.
    Failures,
    /// `history`: what was decided before cannot judge it.
    History,
    /// `quarantine`: it was rolled back before.
    Quarantine,
    /// `all`: each of these but `quarantine`.
    All,
    /// `RULE->RULE`: what the active one decides by the first rule, and the candidate by the second.
    Rules(String, String),
}

impl FromStr for Accept {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "destroys" => Accept::Destroys,
            "creates" => Accept::Creates,
            "failures" => Accept::Failures,
            "history" => Accept::History,
            "quarantine" => Accept::Quarantine,
            "all" => Accept::All,
            _ => match text.split_once("->").map(|(from, to)| (from.trim(), to.trim())) {
                Some((from, to)) if is_rule(from) && is_rule(to) => Accept::Rules(from.into(), to.into()),
                _ => {
                    let words = "destroys, creates, failures, history, quarantine, all, or RULE->RULE such as R11->B3";
                    return Err(format!("{text:?} is not one of {words}"));
                }
            },
        })
    }
}

fn is_rule(id: &str) -> bool {
    (1..=MAX_RULE_BYTES).contains(&id.len()) && !id.chars().any(char::is_control)
}

impl fmt::Display for Accept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accept::Destroys => f.write_str("destroys"),
            Accept::Creates => f.write_str("creates"),
            Accept::Failures => f.write_str("failures"),
            Accept::History => f.write_str("history"),
            Accept::Quarantine => f.write_str("quarantine"),
            Accept::All => f.write_str("all"),
            Accept::Rules(from, to) => write!(f, "{from}->{to}"),
        }
    }
}

/// How many more nodes may be failed than at the switch, before it is rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FailedNodes {
    /// So many, at least 1.
    Nodes(u32),
    /// So many of a hundred that are desired, 1 to 100.
    Percent(u32),
}

impl FailedNodes {
    /// How many nodes that is, of so many that are desired; at least 1.
    pub fn of(self, desired: u64) -> u64 {
        match self {
            FailedNodes::Nodes(nodes) => u64::from(nodes),
            FailedNodes::Percent(percent) => (desired.saturating_mul(u64::from(percent)).div_ceil(100)).max(1),
        }
    }
}

impl FromStr for FailedNodes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number =
            |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u32>().ok());
        let found = match text.strip_suffix('%') {
            Some(percent) => number(percent).flatten().filter(|n| (1..=100).contains(n)).map(FailedNodes::Percent),
            None => number(text).flatten().filter(|n| *n > 0).map(FailedNodes::Nodes),
        };
        found.ok_or_else(|| format!("{text:?} is neither a number of nodes from 1 nor a share from 1% to 100%"))
    }
}

impl fmt::Display for FailedNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailedNodes::Nodes(nodes) => write!(f, "{nodes}"),
            FailedNodes::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// A decider, as a person or a command names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeciderName {
    /// `active`.
    Active,
    /// `previous`.
    Previous,
    /// `built-in`.
    BuiltIn,
    /// The digits of a digest: all 64, or a beginning of at least 8.
    Digest(String),
}

impl FromStr for DeciderName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match text {
            "active" => Ok(DeciderName::Active),
            "previous" => Ok(DeciderName::Previous),
            "built-in" => Ok(DeciderName::BuiltIn),
            _ if is_hex && (MIN_DIGITS..=DIGITS).contains(&digits.len()) => {
                Ok(DeciderName::Digest(digits.to_ascii_lowercase()))
            }
            _ => Err(format!(
                "{text:?} is no digest, no beginning of one with at least {MIN_DIGITS} digits, and not active, previous or built-in"
            )),
        }
    }
}

impl fmt::Display for DeciderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeciderName::Active => f.write_str("active"),
            DeciderName::Previous => f.write_str("previous"),
            DeciderName::BuiltIn => f.write_str("built-in"),
            DeciderName::Digest(digits) => f.write_str(digits),
        }
    }
}

impl DeciderName {
    /// The one that is meant.
    ///
    /// # Errors
    ///
    /// There is none, or there are several with these digits.
    pub fn pick<'d>(&self, deciders: &'d Deciders) -> Result<&'d DeciderEntry, crate::Refusal> {
        let is_it = |entry: &&DeciderEntry| match self {
            DeciderName::Active => entry.active,
            DeciderName::Previous => entry.previous,
            DeciderName::BuiltIn => entry.built_in,
            DeciderName::Digest(digits) => digits_of(&entry.decider.digest).starts_with(digits.as_str()),
        };
        let mut found = deciders.deciders.iter().filter(is_it);
        match (found.next(), found.next()) {
            (Some(entry), None) => Ok(entry),
            (Some(one), Some(other)) => {
                let names = [one, other].map(|entry| short(&entry.decider.digest, 16).to_owned());
                let text = format!("the digits {self} name several deciders: {}; give more of them", names.join(", "));
                Err(crate::Refusal::Conflict(text))
            }
            (None, _) => Err(crate::Refusal::NotFound(match self {
                DeciderName::Previous => "no decider was in force before".into(),
                _ => format!("there is no decider {self}: `homeostat decider ls` lists them"),
            })),
        }
    }
}

fn digits_of(digest: &str) -> &str {
    digest.strip_prefix("sha256:").unwrap_or(digest)
}

/// The first so many digits of a digest, for people.
pub fn short(digest: &str, digits: usize) -> &str {
    let all = digits_of(digest);
    all.char_indices().nth(digits).map_or(all, |(end, _)| &all[..end])
}

macro_rules! written_as_text {
    ($name:ident, $pattern:literal) => {
        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.to_string()
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

written_as_text!(Accept, "^(destroys|creates|failures|history|quarantine|all|.{1,32}->.{1,32})$");
written_as_text!(FailedNodes, "^[0-9]+%?$");

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::Refusal;
    use crate::wire::DeciderRef;

    #[test]
    fn what_is_accepted_is_written_as_it_is_read() {
        for text in ["destroys", "creates", "failures", "history", "quarantine", "all", "R11->B3"] {
            let read: Accept = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
            assert_eq!(serde_json::from_str::<Accept>(&format!("{text:?}")).unwrap(), read);
        }
        assert_eq!("R4 -> R11".parse::<Accept>(), Ok(Accept::Rules("R4".into(), "R11".into())));
        for odd in ["", "destroy", "->", "R4->", "->R4", "R4-R5", "R\n4->R5", &format!("{}->R4", "x".repeat(33))] {
            assert!(odd.parse::<Accept>().is_err(), "{odd:?}");
        }
    }

    #[test]
    fn a_share_of_failed_nodes_is_at_least_one() {
        let read = |text: &str| text.parse::<FailedNodes>();
        assert_eq!(read("20%").map(|limit| [limit.of(0), limit.of(4), limit.of(5), limit.of(6)]), Ok([1, 1, 1, 2]));
        assert_eq!(read("3").map(|limit| limit.of(100)), Ok(3));
        for odd in ["", "%", "0", "0%", "101%", "-1", "+1", "1.5", "2 %", "99999999999"] {
            assert!(read(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn a_decider_is_named_by_a_beginning_that_only_it_has() {
        let entry = |digits: &str, active| DeciderEntry {
            decider: DeciderRef { digest: format!("sha256:{digits:0<64}"), ..DeciderRef::default() },
            active,
            ..DeciderEntry::default()
        };
        let deciders = Deciders {
            deciders: vec![entry("abcdef0123", true), entry("abcdef0199", false), entry("12345678", false)],
            ..Deciders::default()
        };
        let pick = |name: &str| name.parse::<DeciderName>().unwrap().pick(&deciders);
        assert!(pick("active").unwrap().active);
        assert_eq!(pick("ABCDEF0199").unwrap(), &deciders.deciders[1]);
        assert_eq!(pick("sha256:12345678").unwrap(), &deciders.deciders[2]);
        assert_eq!(pick(&deciders.deciders[0].decider.digest).unwrap(), &deciders.deciders[0]);
        assert!(matches!(pick("abcdef01"), Err(Refusal::Conflict(_))));
        assert!(matches!(pick("ffffffff"), Err(Refusal::NotFound(_))));
        assert!(matches!(pick("previous"), Err(Refusal::NotFound(_))));
        for odd in ["", "abcdef0", "web-0-xyz", "sha256:", "sha1:abcdef01", &"a".repeat(65), "../../etc"] {
            assert!(odd.parse::<DeciderName>().is_err(), "{odd:?}");
        }
    }
}
