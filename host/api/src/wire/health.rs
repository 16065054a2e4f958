//! Whether all is well, and what is wrong.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the daemon finds when it looks at itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// `homeostat.diagnosis/v1`.
    pub schema: String,
    /// State directory, store, decider, backends, clock.
    pub checks: Vec<Check>,
}

/// One look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// At what.
    pub name: String,
    /// How it is.
    pub verdict: Verdict,
    /// In a line.
    pub text: String,
    /// What to do about it; empty when nothing.
    pub remedy: String,
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and will not for ever.
    Warning,
    /// It does not work.
    Bad,
}

/// What is known of the fleet, to be put somewhere else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Export {
    /// `homeostat.snapshot/v1`.
    pub schema: String,
    /// The run.
    pub run: String,
    /// When.
    pub at_ms: u64,
    /// The journal's next record and the hash before it, so that it is known what this covers.
    pub next_seq: u64,
    /// That hash, in hexadecimal digits.
    pub hash: String,
    /// What is remembered of the declared fleet, so that the same file is not taken for an edit (64 hexadecimal digits).
    #[serde(default)]
    pub declared: Option<String>,
    /// The driver's checkpoint.
    #[schemars(with = "serde_json::Value")]
    pub checkpoint: serde_json::Value,
    /// The deciders that go along; null where an earlier version wrote it.
    #[serde(default)]
    pub deciders: Option<CarriedDeciders>,
}

/// The decider in force, and those that can follow it without being given anew: the one before, and the pinned one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CarriedDeciders {
    /// The digest of the one in force.
    pub active: String,
    /// What the state says of them and of past wishes (`homeostat.deciders/v1`).
    #[schemars(with = "serde_json::Value")]
    pub registry: serde_json::Value,
    /// Their components.
    pub components: Vec<Carried>,
    /// Those whose components could not be had; whoever imports this does not know them.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

/// A component, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Carried {
    /// Its digest.
    pub digest: String,
    /// The name and the version that it declares.
    pub title: String,
    /// Its bytes (base64).
    #[serde(with = "super::base64")]
    #[schemars(with = "String")]
    pub component: Vec<u8>,
}

/// A decider whose component could not be had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its digest.
    pub digest: String,
    /// Why.
    pub why: String,
}

/// Why something was not answered (RFC 9457, `application/problem+json`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// What kind, such as `urn:homeostat:guard`: `unauthorized`, `forbidden`, `guard`, `not-found`, `method`, `conflict`, `too-large`,
    /// `type`, `invalid`, `rate`, `unavailable`, `failed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// In a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// In a line, with the value that is wrong.
    pub detail: String,
}
