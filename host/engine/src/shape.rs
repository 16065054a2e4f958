//! The desired state (SPEC 2): what an operator declares, and the checks that refuse it whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::rollout::{Rollout, check_parameter};

/// The longest id of a run or a group, in bytes: slot names stay valid as file names, host names and labels.
pub const MAX_ID_BYTES: usize = 48;

/// The shape of one run's fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterShape {
    /// The run it belongs to.
    pub run: String,
    /// Rises with every change of content.
    pub generation: u64,
    /// The groups, in the order of the declaration.
    pub groups: Vec<GroupShape>,
}

/// A group of equal slots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupShape {
    /// The group's id; slots are named `{id}-{index}`.
    pub id: String,
    /// How many slots.
    pub count: u32,
    /// What each slot's node is made from.
    pub template: Arc<Template>,
    /// How its nodes are replaced when the template changes.
    #[serde(default, skip_serializing_if = "Rollout::is_default")]
    pub rollout: Rollout,
    /// What policies may read; no part of a template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

impl GroupShape {
    /// A group without rollout settings and parameters.
    pub fn new(id: impl Into<String>, count: u32, template: Arc<Template>) -> Self {
        GroupShape { id: id.into(), count, template, rollout: Rollout::default(), parameters: BTreeMap::new() }
    }
}

/// What a node is made from. Immutable per attempt: any difference is drift (SPEC 2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// The backend that makes it, such as `process`.
    pub provider: String,
    /// Settings that only this provider understands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Setting>,
    /// What to boot from, where the provider has images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// What the node is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// What to run.
    pub boot: Boot,
    /// How readiness is established.
    pub join: Join,
    /// Free labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A provider-specific setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A finite number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Setting>),
    /// A table.
    Table(BTreeMap<String, Setting>),
}

/// What to run on a node. `{endpoint}`, `{run}`, `{node}`, `{attempt}`, `{dir}` and `{self}` are filled in by the backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    /// Program and arguments; never empty.
    pub command: Vec<String>,
    /// Environment, on top of what the backend sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Files to write before the command starts: relative path to content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// How readiness is established.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// What has to hold.
    pub probe: Probe,
    /// Time between two tries, in milliseconds.
    pub interval_ms: u64,
    /// Longest time one try may take, in milliseconds.
    pub timeout_ms: u64,
}

/// A join probe. The texts may contain the placeholders of [`Boot`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Probe {
    /// A GET of this URL answers with a status of 200 to 299.
    Http(String),
    /// A TCP connection to this address opens.
    Tcp(String),
    /// This command exits with 0.
    Exec(Vec<String>),
    /// A line of the boot command's output matches this regular expression.
    Stdout(String),
}

/// How large a shape may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapeLimits {
    /// Slots in one group.
    pub max_group_count: u32,
    /// Slots in all groups together.
    pub max_nodes: u32,
}

impl Default for ShapeLimits {
    fn default() -> Self {
        ShapeLimits { max_group_count: 10_000, max_nodes: 10_000 }
    }
}

/// Why a shape is refused. Nothing of it is taken over. `field` is a path such as `group[1].count`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The shape is of another run.
    #[error("run: {found:?} is another run; this driver keeps {expected:?}")]
    OtherRun {
        /// The driver's run.
        expected: String,
        /// The shape's.
        found: String,
    },
    /// An id is empty, too long, or has a character it must not have.
    #[error("{field}: {value:?} is not an id: {why}")]
    MalformedId {
        /// Where.
        field: String,
        /// The id.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two groups share an id.
    #[error("{field}: {value:?} is already the id of another group")]
    DuplicateGroup {
        /// Where the second one is.
        field: String,
        /// The id.
        value: String,
    },
    /// Two slots would have the same name.
    #[error("{field}: the slot name {value:?} is already taken by another group")]
    DuplicateSlot {
        /// Which group makes the second one.
        field: String,
        /// The name.
        value: String,
    },
    /// A count or the whole expansion is over its limit.
    #[error("{field}: {value} is over the limit of {limit}")]
    OverLimit {
        /// Where.
        field: String,
        /// How much.
        value: u64,
        /// How much is allowed.
        limit: u64,
    },
    /// A group has not so many indices left: those that an operator destroyed are never used again.
    #[error("{field}: {value} indices are wanted; {limit} are left, the others were destroyed for good")]
    Exhausted {
        /// Where.
        field: String,
        /// How many.
        value: u64,
        /// How many there are.
        limit: u64,
    },
    /// A number is NaN or infinite.
    #[error("{field}: {value} is not a finite number")]
    NotFinite {
        /// Where.
        field: String,
        /// The number, as text.
        value: String,
    },
    /// A value is not one that can work.
    #[error("{field}: {value:?}: {why}")]
    Invalid {
        /// Where.
        field: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// No backend of that name.
    #[error("{field}: no provider {value:?}; known: {known}")]
    UnknownProvider {
        /// Where.
        field: String,
        /// The name.
        value: String,
        /// Those that exist.
        known: String,
    },
    /// The generation went back (S10).
    #[error("generation: {found} is lower than {current}, which is in force")]
    GenerationBack {
        /// In force.
        current: u64,
        /// Offered.
        found: u64,
    },
    /// The content changed and the generation did not (S10).
    #[error("generation: the content changed, but the generation is still {generation}; it must rise")]
    SameGeneration {
        /// In force, and offered.
        generation: u64,
    },
}

impl ShapeError {
    /// The path of the field the error is about, such as `group[1].count`.
    pub fn field(&self) -> &str {
        match self {
            ShapeError::OtherRun { .. } => "run",
            ShapeError::GenerationBack { .. } | ShapeError::SameGeneration { .. } => "generation",
            ShapeError::MalformedId { field, .. }
            | ShapeError::DuplicateGroup { field, .. }
            | ShapeError::DuplicateSlot { field, .. }
            | ShapeError::OverLimit { field, .. }
            | ShapeError::Exhausted { field, .. }
            | ShapeError::NotFinite { field, .. }
            | ShapeError::Invalid { field, .. }
            | ShapeError::UnknownProvider { field, .. } => field,
        }
    }
}

/// The name of a slot.
pub fn slot_name(group: &str, index: u32) -> String {
    format!("{group}-{index}")
}

impl ClusterShape {
    /// Checks all that SPEC 2 refuses, except the revision contract, which needs the shape in force.
    pub fn check(&self, limits: &ShapeLimits, providers: &BTreeSet<String>) -> Result<(), ShapeError> {
        check_id("run", &self.run)?;
        let mut ids = BTreeSet::new();
        let mut total: u64 = 0;
        for (at, group) in self.groups.iter().enumerate() {
            let field = |name: &str| format!("group[{at}].{name}");
            check_id(&field("id"), &group.id)?;
            if !ids.insert(group.id.as_str()) {
                return Err(ShapeError::DuplicateGroup { field: field("id"), value: group.id.clone() });
            }
            over(&field("count"), u64::from(group.count), u64::from(limits.max_group_count))?;
            total = total.saturating_add(u64::from(group.count));
            over(&field("count"), total, u64::from(limits.max_nodes))?;
            let at = format!("group[{at}]");
            group.template.check(&at, providers)?;
            group.rollout.check(&at, limits)?;
            group.parameters.iter().try_for_each(|(name, value)| check_parameter(&at, name, value))?;
        }
        // `a-1` of group `a` cannot equal `a-1-0` of group `a-1`, so distinct ids give distinct names; checked all the same.
        let mut names = BTreeSet::new();
        for (at, group) in self.groups.iter().enumerate() {
            for index in 0..group.count {
                let value = slot_name(&group.id, index);
                if names.contains(&value) {
                    return Err(ShapeError::DuplicateSlot { field: format!("group[{at}].id"), value });
                }
                names.insert(value);
            }
        }
        Ok(())
    }

    /// The number of slots.
    pub fn slots(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.count)).sum()
    }
}

impl Template {
    fn check(&self, at: &str, providers: &BTreeSet<String>) -> Result<(), ShapeError> {
        let field = |name: &str| format!("{at}.{name}");
        if !providers.contains(&self.provider) {
            return Err(ShapeError::UnknownProvider {
                field: field("provider"),
                value: self.provider.clone(),
                known: providers.iter().cloned().collect::<Vec<_>>().join(", "),
            });
        }
        for (name, setting) in &self.settings {
            check_finite(&field(&format!("settings.{name}")), setting)?;
        }
        if self.boot.command.first().is_none_or(|program| program.is_empty()) {
            return Err(ShapeError::Invalid {
                field: field("boot.command"),
                value: format!("{:?}", self.boot.command),
                why: "a command needs at least a program".into(),
            });
        }
        Ok(())
    }
}

fn check_finite(field: &str, setting: &Setting) -> Result<(), ShapeError> {
    match setting {
        Setting::Float(number) if !number.is_finite() => {
            Err(ShapeError::NotFinite { field: field.into(), value: number.to_string() })
        }
        Setting::List(items) => {
            items.iter().enumerate().try_for_each(|(at, item)| check_finite(&format!("{field}[{at}]"), item))
        }
        Setting::Table(table) => table.iter().try_for_each(|(key, item)| check_finite(&format!("{field}.{key}"), item)),
        Setting::Bool(_) | Setting::Integer(_) | Setting::Float(_) | Setting::Text(_) => Ok(()),
    }
}

fn over(field: &str, value: u64, limit: u64) -> Result<(), ShapeError> {
    if value > limit {
        return Err(ShapeError::OverLimit { field: field.into(), value, limit });
    }
    Ok(())
}

/// Ids are lower-case ASCII letters, digits and inner hyphens, 1 to [`MAX_ID_BYTES`] bytes.
pub fn check_id(field: &str, value: &str) -> Result<(), ShapeError> {
    let why = if value.is_empty() {
        "it is empty"
    } else if value.len() > MAX_ID_BYTES {
        "it is longer than 48 bytes"
    } else if !value.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        "only lower-case ASCII letters, digits and hyphens are allowed"
    } else if value.starts_with('-') || value.ends_with('-') {
        "it starts or ends with a hyphen"
    } else {
        return Ok(());
    };
    Err(ShapeError::MalformedId { field: field.into(), value: shorten(value), why })
}

/// Long values are cut for people.
fn shorten(value: &str) -> String {
    match value.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", &value[..cut]),
        None => value.into(),
    }
}
