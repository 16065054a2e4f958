//! The JSON Schema of the fleet file, for editors. The types here only describe; reading is done by walking the tree,
//! which places errors better. A test holds the two together.

use std::collections::BTreeMap;

use engine::shape::Setting;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// The JSON Schema of the fleet file.
pub fn json_schema() -> Schema {
    let mut schema = schemars::schema_for!(FleetFile);
    schema.insert("title".into(), "Homeostat fleet file".into());
    schema
}

/// A fleet: what should run, in groups of equal nodes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FleetFile {
    /// Names the run; fixed for its life.
    pub run: Id,
    /// Rises with every change. Left out, the host assigns it.
    #[schemars(range(min = 1))]
    pub generation: Option<u64>,
    /// The groups.
    #[serde(default)]
    pub group: Vec<GroupTable>,
    /// Backoff, intervals, deadlines and limits; each has a default.
    pub policy: Option<PolicyTable>,
    /// How much may be made, kept and destroyed before a person is asked; none of them holds unless it is written.
    pub guards: Option<GuardsTable>,
    /// How nodes are replaced when their template changes, for groups that do not say it themselves.
    pub rollout: Option<RolloutTable>,
    /// What policies may read, for all groups. A change of it replaces nothing.
    pub parameters: Option<BTreeMap<String, String>>,
}

/// A group of equal nodes, named `{id}-0`, `{id}-1` and so on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GroupTable {
    /// Unique among the groups.
    pub id: Id,
    /// How many nodes.
    pub count: u32,
    /// What makes the nodes. Default: `process`.
    pub provider: Option<String>,
    /// What to boot from, where the provider has images.
    #[schemars(length(min = 1))]
    pub image: Option<String>,
    /// What the nodes are for; shown, and seen by the decider.
    pub role: Option<String>,
    /// Free labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// What to run on each node.
    pub boot: BootTable,
    /// How a node shows that it is ready. Default: a TCP connection to `{endpoint}` opens.
    pub join: Option<JoinTable>,
    /// Settings that only this provider understands.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub settings: Option<BTreeMap<String, Setting>>,
    /// How its nodes are replaced when the template changes; no part of the template.
    pub rollout: Option<RolloutTable>,
    /// What policies may read, over those of the file; no part of the template.
    pub parameters: Option<BTreeMap<String, String>>,
}

/// How nodes are replaced when their template changes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RolloutTable {
    /// How many of a group may be unavailable because of it. Default: no limit; with `max-surge`, none.
    pub max_unavailable: Option<ShareOf>,
    /// How many nodes beyond the count it may use. Default: 0.
    pub max_surge: Option<ShareOf>,
    /// With more of a group failing than this, no healthy node is replaced. Default: no limit.
    pub max_failing: Option<ShareOf>,
    /// No healthy node is replaced. Default: false.
    pub paused: Option<bool>,
}

/// A whole number of nodes, or a percentage of the group's count.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum ShareOf {
    /// So many nodes.
    Nodes(u32),
    /// So much of the count, such as `25%`.
    Percent(String),
}

impl JsonSchema for ShareOf {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A whole number of nodes, or a percentage of the group's count, such as \"25%\".",
            "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": 1_000_000 },
                { "type": "string", "pattern": "^([0-9]{1,2}|100)%$" }
            ],
            "examples": [1, "25%"]
        })
    }
}

/// What to run. `{endpoint}`, `{run}`, `{node}`, `{attempt}`, `{dir}` and `{self}` are filled in.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BootTable {
    /// Program and arguments. There is no shell unless it is named here.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Environment, on top of what the provider sets.
    pub env: Option<BTreeMap<String, String>>,
    /// Files to write before the command starts: path below the node's directory to content.
    pub files: Option<BTreeMap<String, String>>,
}

/// How a node shows that it is ready.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct JoinTable {
    /// What has to hold. Default: `{ tcp = "{endpoint}" }`.
    pub probe: Option<ProbeTable>,
    /// Time between two tries. Default: 250ms.
    pub interval: Option<Duration>,
    /// Longest time one try may take. Default: 2s.
    pub timeout: Option<Duration>,
}

/// What has to hold: exactly one of these. The texts may contain the placeholders of the boot command.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeTable {
    /// A GET of this `http://` URL answers with a status of 200 to 299.
    Http(String),
    /// A TCP connection to this address opens.
    Tcp(String),
    /// This command exits with 0.
    Exec(#[schemars(length(min = 1))] Vec<String>),
    /// A line of the boot command's output matches this regular expression.
    Stdout(String),
}

/// The operator's settings.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PolicyTable {
    /// Delays after failures.
    pub backoff: Option<BackoffTable>,
    /// Wait between two looks at an endpoint that is not there yet. Default: 1s.
    pub probe_interval: Option<Duration>,
    /// How long each kind of operation may take.
    pub deadlines: Option<DeadlinesTable>,
    /// How long an attempt may stay in each stage.
    pub stages: Option<StagesTable>,
    /// How large a fleet may be.
    pub limits: Option<LimitsTable>,
}

/// Delays after failures: they double from `initial` to `cap`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BackoffTable {
    /// The first. Default: 1s.
    pub initial: Option<Duration>,
    /// The longest. Default: 60s.
    pub cap: Option<Duration>,
    /// The part of a delay that is taken off at most, the same for the same attempt. Default: 0.
    #[schemars(range(min = 0, max = 100))]
    pub jitter_percent: Option<u8>,
}

/// How long each kind of operation may take.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DeadlinesTable {
    /// Asking the provider for a resource. Default: 60s.
    pub create_lease: Option<Duration>,
    /// Asking where it can be reached. Default: 15s.
    pub lookup_endpoint: Option<Duration>,
    /// Starting the boot command. Default: 30s.
    pub start_bootstrap: Option<Duration>,
    /// Stopping it. Default: 30s.
    pub cancel_bootstrap: Option<Duration>,
    /// Giving the resource back. Default: 60s.
    pub destroy_lease: Option<Duration>,
}

/// How long an attempt may stay in each stage; longer after failures.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StagesTable {
    /// From the lease to an endpoint. Default: 2m.
    pub endpoint: Option<Duration>,
    /// From one sign of progress of a bootstrap to the next. Default: 1m.
    pub bootstrap: Option<Duration>,
    /// From a bootstrap's start until it joined. Default: 5m.
    pub join: Option<Duration>,
    /// How many times longer they get at most. Default: 8.
    #[schemars(range(min = 1, max = 1000))]
    pub growth_cap: Option<u32>,
}

/// How large a fleet may be.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LimitsTable {
    /// Nodes in one group. Default: 10000.
    #[schemars(range(max = 1_000_000))]
    pub max_group_count: Option<u32>,
    /// Nodes in all groups together. Default: 10000.
    #[schemars(range(max = 1_000_000))]
    pub max_nodes: Option<u32>,
}

/// How much may be made, kept and destroyed before a person is asked.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GuardsTable {
    /// Destroys begun within a minute, of all groups together.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub destroys_per_minute: Option<u32>,
    /// New nodes' first creates within an hour, of all groups together.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub creates_per_hour: Option<u32>,
    /// Resources that live, or may live, at once. What is above it waits for room, not for a person.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub live_resources: Option<u32>,
    /// The share of a group's nodes, in per cent, that may be down at once because they were destroyed; one always may.
    #[schemars(range(min = 1, max = 100))]
    pub destroyed_share_percent: Option<u8>,
}

/// An id: lower-case ASCII letters, digits and inner hyphens, at most 48.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Id(pub String);

impl JsonSchema for Id {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Id".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Lower-case ASCII letters, digits and inner hyphens, 1 to 48 of them.",
            "type": "string",
            "pattern": "^[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?$"
        })
    }
}

/// A length of time such as `500ms`, `10s` or `1m 30s`.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Duration(pub String);

impl JsonSchema for Duration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of time, such as \"500ms\", \"10s\" or \"1m 30s\": at least 1ms, at most ten years.",
            "type": "string",
            "pattern": "^\\s*([0-9]+(\\.[0-9]+)?\\s*[a-zA-Zµ]+\\s*)+$",
            "examples": ["500ms", "10s", "1m 30s"]
        })
    }
}
