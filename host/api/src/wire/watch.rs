//! What `watch` sends besides changes, and what queries ask for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The changes since the revision that was asked for, or since the last one sent, are not all remembered. The whole list
/// follows; what is not in it is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Relist {
    /// `homeostat.relist/v1`.
    pub schema: String,
    /// `unknown-revision`: of another start of the daemon, too long ago, or never given out; `lagged`: the reader was too slow.
    pub reason: String,
    /// In words.
    pub text: String,
}

/// The last thing that `watch` sends: the daemon is stopping. The fleet goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    /// `homeostat.end/v1`.
    pub schema: String,
    /// In words.
    pub text: String,
}

/// Where `watch` begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WatchQuery {
    /// After this revision; else with the whole list. The header `Last-Event-ID` says the same and goes before it.
    pub from: Option<String>,
}

/// Which decisions are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DecisionsQuery {
    /// At most so many, 1 to 1,000; 100 unless told.
    pub limit: Option<usize>,
}
