//! Deciders: which there are, which is in force, and what may be done with them (SPEC 11).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::swap::SwapTerms;

/// A decider, by what its component says of itself. It is known by its digest alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeciderRef {
    /// `sha256:` and 64 hexadecimal digits, over the component's bytes.
    pub digest: String,
    /// The name it declares.
    pub name: String,
    /// The version it declares.
    pub version: String,
    /// The contract version it was built for.
    pub contract: String,
}

/// The decider in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeciderStatus {
    /// The digest of its bytes.
    pub digest: String,
    /// The name it declares.
    pub name: String,
    /// The version it declares.
    pub version: String,
    /// The contract version it was built for.
    pub contract: String,
    /// Why it fails, if it does.
    pub failure: Option<String>,
    /// Since when it is in force; none where that is not known.
    #[serde(default)]
    pub since_ms: Option<u64>,
    /// The command that put it in force; none when the start did.
    #[serde(default)]
    pub by: Option<String>,
    /// The one before: what a rollback goes back to.
    #[serde(default)]
    pub previous: Option<DeciderRef>,
    /// No other one is put in force until it is unpinned.
    #[serde(default)]
    pub pinned: bool,
    /// It is watched: what fails until then rolls back by itself.
    #[serde(default)]
    pub watching: Option<Watching>,
    /// It is in force because the one before it was rolled back by itself.
    #[serde(default)]
    pub rolled_back: Option<RolledBack>,
    /// How many are quarantined.
    #[serde(default)]
    pub quarantined: u32,
}

/// What is watched after a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Watching {
    /// The swap.
    pub swap: String,
    /// Until when.
    pub until_ms: u64,
    /// So many failed nodes roll back too, such as `20%`; none when only the decider's own failures do.
    pub failed: Option<String>,
}

/// A rollback that nobody asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RolledBack {
    /// The one that was in force, and is quarantined now.
    pub from: DeciderRef,
    /// What it did, in a line.
    pub why: String,
    /// When.
    pub at_ms: u64,
    /// The swap that had put it in force.
    pub swap: String,
}

/// All deciders that the daemon keeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Deciders {
    /// `homeostat.deciders/v1`.
    pub schema: String,
    /// When this was answered, by the daemon's clock.
    #[serde(default)]
    pub now_ms: u64,
    /// Counts the wishes for another decider; only rises. To be repeated as `expect_revision`.
    pub revision: u64,
    /// The one in force first, the one before it next, then the latest loaded.
    pub deciders: Vec<DeciderEntry>,
}

/// A decider that is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeciderEntry {
    /// Which.
    #[serde(flatten)]
    pub decider: DeciderRef,
    /// The component's size.
    pub size_bytes: u64,
    /// When it came.
    pub loaded_ms: u64,
    /// The command that named it first; none when none has, or when it came with a start.
    pub by: Option<String>,
    /// It is part of the daemon, and always there.
    pub built_in: bool,
    /// It is in force.
    pub active: bool,
    /// It was in force before.
    pub previous: bool,
    /// No other one is put in force.
    pub pinned: bool,
    /// It runs in shadow now.
    pub shadowing: bool,
    /// Why it is not put in force again.
    pub quarantine: Option<Quarantine>,
}

/// Why a decider is not put in force again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quarantine {
    /// What it did, in a line.
    pub why: String,
    /// When.
    pub at_ms: u64,
    /// The swap that had put it in force.
    pub swap: Option<String>,
}

/// One decider, closely.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeciderDetail {
    /// `homeostat.decider-detail/v1`.
    pub schema: String,
    /// When this was answered, by the daemon's clock.
    #[serde(default)]
    pub now_ms: u64,
    /// What the list says of it.
    #[serde(flatten)]
    pub entry: DeciderEntry,
    /// What it imports: types at most.
    pub imports: Vec<String>,
    /// What it exports.
    pub exports: Vec<String>,
    /// The rules it may cite.
    pub rules: Vec<DeciderRule>,
    /// The limits it runs under, by name.
    pub limits: BTreeMap<String, u64>,
    /// When it was put in force, and by what; oldest first, the last ones.
    pub in_force: Vec<InForce>,
}

/// A rule that a decider may cite.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeciderRule {
    /// Its id, such as `R15`.
    pub id: String,
    /// What it says.
    pub sentence: String,
}

/// A time for which a decider was in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InForce {
    /// From when.
    pub from_ms: u64,
    /// Until when; none when it still is.
    pub to_ms: Option<u64>,
    /// By which command; none when a start did it, or a rollback.
    pub by: Option<String>,
}

/// A component was taken in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Uploaded {
    /// `homeostat.decider-upload/v1`.
    pub schema: String,
    /// It was there before: nothing was done now.
    pub known: bool,
    /// What it is.
    #[serde(flatten)]
    pub entry: DeciderEntry,
}

/// Something to be done about deciders. It is carried out once for each id, as a
/// [`CommandRequest`](super::CommandRequest) is; both have the same ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeciderRequest {
    /// Names it for ever: the same again acts once and gives the first result. 1 to 64 letters, digits, `-` and `_`. It is the
    /// name of the swap too.
    pub id: String,
    /// Refused unless this many wishes were made so far ([`Deciders::revision`]).
    #[serde(default)]
    pub expect_revision: Option<u64>,
    /// What to do.
    pub command: DeciderCommand,
}

/// What to do about deciders. A `decider` is a digest, a beginning of at least 8 of its digits, `active`, `previous` or
/// `built-in`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "do", deny_unknown_fields)]
pub enum DeciderCommand {
    /// Puts another one in force, if nothing speaks against it: check, replay, shadow, switch, watch. A newer one takes the
    /// place of one that has not switched yet.
    Swap {
        /// Which.
        decider: String,
        /// How it is judged.
        #[serde(default)]
        terms: SwapTerms,
    },
    /// Asks it too from now on, and compares; it is not put in force.
    Shadow {
        /// Which.
        decider: String,
        /// So much history first, in milliseconds.
        #[serde(default)]
        replay_ms: u64,
    },
    /// Ends the shadow.
    StopShadow {},
    /// Ends a swap that has not switched, or a shadow.
    Cancel {
        /// Which.
        swap: String,
    },
    /// Puts the previous one in force, at once and whatever it would do.
    Rollback {},
    /// No other one is put in force until it is unpinned; a rollback by itself apart. It ends a quarantine.
    Pin {
        /// Which; the active one unless told. Another one is kept, and its quarantine ended.
        #[serde(default)]
        decider: Option<String>,
    },
    /// Ends that.
    Unpin {},
}

/// What came of it. It is durable; a swap goes on by itself ([`SwapDetail`](super::SwapDetail)).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeciderResult {
    /// `homeostat.decider-command/v1`.
    pub schema: String,
    /// Its id.
    pub id: String,
    /// The id was used before: this is what was answered then, and nothing was done now.
    pub replayed: bool,
    /// When it was taken.
    pub at_ms: u64,
    /// What it does, in a line.
    pub text: String,
    /// How many wishes were made, this one included.
    pub revision: u64,
    /// The swap or shadow that goes on.
    pub swap: Option<String>,
    /// The decider that it is about.
    pub decider: Option<DeciderRef>,
}
