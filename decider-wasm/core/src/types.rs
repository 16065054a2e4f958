//! The contract's types, once, for guest and host (`wit/decider.wit` documents every field). Columns on the wire, rows in
//! the hand: [`Nodes::rows`] reads, [`Decisions::push`] writes.

use alloc::{string::String, vec::Vec};

/// Declares a record of the contract with what the host needs of it behind features.
macro_rules! record {
    ($(#[$meta:meta])* $name:ident { $($(#[$fmeta:meta])* $wire:literal $field:ident: $ty:ty,)+ }) => {
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case", deny_unknown_fields))]
        #[cfg_attr(
            feature = "component",
            derive(wasmtime::component::ComponentType, wasmtime::component::Lift, wasmtime::component::Lower),
            component(record)
        )]
        $(#[$meta])*
        pub struct $name { $($(#[$fmeta])* #[cfg_attr(feature = "component", component(name = $wire))] pub $field: $ty,)+ }
    };
}

record! {
    /// A rule the decider may cite.
    Rule {
        /// Short and stable, such as `R5`.
        "id" id: String,
        /// What the rule says, in one sentence.
        "sentence" sentence: String,
    }
}

record! {
    /// What a decider says of itself.
    Description {
        /// The decider's name.
        "name" name: String,
        /// The decider's own version.
        "version" version: String,
        /// The contract version it was built for.
        "contract" contract: String,
        /// Every rule it may cite.
        "rules" rules: Vec<Rule>,
    }
}

record! {
    /// The host's settings that a decision may depend on.
    Settings {
        /// First delay after a failure.
        "backoff-initial-ms" backoff_initial_ms: u64,
        /// Longest delay after a failure.
        "backoff-cap-ms" backoff_cap_ms: u64,
        /// Wait between two looks at an endpoint that is not there yet.
        "probe-interval-ms" probe_interval_ms: u64,
    }
}

record! {
    /// A group of the desired shape, with its totals over the whole fleet.
    Group {
        /// The group's id.
        "name" name: String,
        /// How many slots it should have.
        "count" count: u32,
        /// Nodes whose slot belongs to it.
        "nodes" nodes: u32,
        /// Of these, ready and active.
        "ready" ready: u32,
        /// Of these, failed.
        "failed" failed: u32,
        /// Of these, deleting.
        "deleting" deleting: u32,
        /// Of these, with an operation pending.
        "pending" pending: u32,
        /// How many may be unavailable because of a rollout; none is "no limit".
        #[cfg_attr(feature = "serde", serde(default))]
        "max-unavailable" max_unavailable: Option<u32>,
        /// How many slots a rollout may use beyond `count`.
        #[cfg_attr(feature = "serde", serde(default))]
        "max-surge" max_surge: u32,
        /// Ready, active nodes whose slot is desired, of whatever template; surge included.
        #[cfg_attr(feature = "serde", serde(default))]
        "available" available: u32,
        /// Nodes made from what their slot should have, not ready, that have failed since they were last ready.
        #[cfg_attr(feature = "serde", serde(default))]
        "failing" failing: u32,
        /// Of these, with an attempt under way.
        #[cfg_attr(feature = "serde", serde(default))]
        "trying" trying: u32,
        /// With more than this many failing, rollouts stop; none is "never".
        #[cfg_attr(feature = "serde", serde(default))]
        "max-failing" max_failing: Option<u32>,
        /// [`crate::pauses`] bits.
        #[cfg_attr(feature = "serde", serde(default))]
        "pauses" pauses: u8,
        /// What the operator sets for policies; sorted by key.
        #[cfg_attr(feature = "serde", serde(default))]
        "parameters" parameters: Vec<(String, String)>,
    }
}

record! {
    /// What a node is made from, as far as a decision may depend on it.
    Template {
        /// The provider that makes it.
        "provider" provider: String,
        /// What the node is for; may be empty.
        "role" role: String,
        /// Labels, sorted by key.
        "labels" labels: Vec<(String, String)>,
    }
}

record! {
    /// The node table: one entry per slot or node in every column.
    #[cfg_attr(feature = "serde", serde(remote = "Self"))]
    Nodes {
        /// The slot's number.
        "node" node: Vec<u32>,
        /// The attempt that holds it; 0 when vacant.
        "attempt" attempt: Vec<u64>,
        /// Index in `groups`.
        "group" group: Vec<u32>,
        /// Index in the group.
        "slot" slot: Vec<u32>,
        /// [`crate::Stage`] code.
        "stage" stage: Vec<u8>,
        /// [`crate::Intent`] code.
        "intent" intent: Vec<u8>,
        /// The attempt's template.
        "template" template: Vec<u32>,
        /// The slot's desired template.
        "desired-template" desired_template: Vec<u32>,
        /// [`crate::live`] bits.
        "live" live: Vec<u8>,
        /// [`crate::Progress`] code.
        "progress" progress: Vec<u8>,
        /// [`crate::OperationKind`] code in flight; 0 when none.
        "pending" pending: Vec<u8>,
        /// Its deadline.
        "pending-deadline" pending_deadline: Vec<u64>,
        /// [`crate::OperationKind`] code to settle; 0 when none.
        "ambiguous" ambiguous: Vec<u8>,
        /// Failures in a row.
        "failures" failures: Vec<u32>,
        /// No operation before.
        "next-effect-at" next_effect_at: Vec<u64>,
        /// No look at the endpoint before.
        "probe-at" probe_at: Vec<u64>,
        /// No new attempt before.
        "restart-at" restart_at: Vec<u64>,
        /// The stage's deadline.
        "stage-deadline" stage_deadline: Vec<u64>,
        /// Its place among the nodes of its group that wait for the same thing; [`crate::NO_INDEX`] when it waits for none.
        #[cfg_attr(feature = "serde", serde(default))]
        "turn" turn: Vec<u32>,
        /// [`crate::marks`] bits.
        #[cfg_attr(feature = "serde", serde(default))]
        "marks" marks: Vec<u8>,
    }
}

record! {
    /// All that a decision may depend on.
    Snapshot {
        /// The instant of the pass.
        "now-ms" now_ms: u64,
        /// The run's id.
        "run" run: String,
        /// The generation of the desired shape.
        "generation" generation: u64,
        /// The host's settings.
        "settings" settings: Settings,
        /// The groups of the desired shape.
        "groups" groups: Vec<Group>,
        /// Every template in use.
        "templates" templates: Vec<Template>,
        /// The slots and nodes to decide.
        "nodes" nodes: Nodes,
    }
}

record! {
    /// The decision table: one entry per node in every column.
    Decisions {
        /// Which node.
        "node" node: Vec<u32>,
        /// Which attempt.
        "attempt" attempt: Vec<u64>,
        /// Index in the description's rules.
        "rule" rule: Vec<u8>,
        /// [`crate::Verb`] code.
        "verb" verb: Vec<u8>,
        /// [`crate::HoldKind`] code; 0 when not a hold.
        "hold" hold: Vec<u8>,
        /// What ends the hold at the latest; 0 when no instant does.
        "until" until: Vec<u64>,
    }
}

record! {
    /// The answer.
    Plan {
        /// The earliest instant at which some decision could change by time alone; 0 when none.
        "wake-at-ms" wake_at_ms: u64,
        /// The decisions.
        "decisions" decisions: Decisions,
    }
}

impl Snapshot {
    /// The group that a row belongs to; `None` when its group is gone from the shape.
    #[inline]
    pub fn group_of(&self, row: &NodeRow) -> Option<&Group> {
        self.groups.get(row.group as usize)
    }
}

/// One row of [`Nodes`]: codes and instants as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct NodeRow {
    /// The slot's number.
    pub node: u32,
    /// The attempt that holds it; 0 when vacant.
    pub attempt: u64,
    /// Index in `groups`.
    pub group: u32,
    /// Index in the group.
    pub slot: u32,
    /// [`crate::Stage`] code.
    pub stage: u8,
    /// [`crate::Intent`] code.
    pub intent: u8,
    /// The attempt's template.
    pub template: u32,
    /// The slot's desired template.
    pub desired_template: u32,
    /// [`crate::live`] bits.
    pub live: u8,
    /// [`crate::Progress`] code.
    pub progress: u8,
    /// [`crate::OperationKind`] code in flight; 0 when none.
    pub pending: u8,
    /// Its deadline.
    pub pending_deadline: u64,
    /// [`crate::OperationKind`] code to settle; 0 when none.
    pub ambiguous: u8,
    /// Failures in a row.
    pub failures: u32,
    /// No operation before.
    pub next_effect_at: u64,
    /// No look at the endpoint before.
    pub probe_at: u64,
    /// No new attempt before.
    pub restart_at: u64,
    /// The stage's deadline.
    pub stage_deadline: u64,
    /// Its place among the nodes of its group that wait for the same thing.
    pub turn: u32,
    /// [`crate::marks`] bits.
    pub marks: u8,
}

/// One row of [`Decisions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionRow {
    /// Which node.
    pub node: u32,
    /// Which attempt.
    pub attempt: u64,
    /// Index in the description's rules.
    pub rule: u8,
    /// [`crate::Verb`] code.
    pub verb: u8,
    /// [`crate::HoldKind`] code; 0 when not a hold.
    pub hold: u8,
    /// What ends the hold at the latest; 0 when no instant does.
    pub until: u64,
}

macro_rules! columns {
    ($table:ident, $row:ident { $($field:ident),+ $(,)? }) => {
        impl $table {
            /// The number of whole rows: the length of the shortest column.
            pub fn len(&self) -> usize {
                let mut rows = usize::MAX;
                $(rows = if self.$field.len() < rows { self.$field.len() } else { rows };)+
                rows
            }

            /// Whether there is no whole row.
            pub fn is_empty(&self) -> bool { self.len() == 0 }

            /// Whether all columns have the same length.
            pub fn is_even(&self) -> bool {
                let rows = self.len();
                $(self.$field.len() == rows &&)+ true
            }

            /// An empty table with room for `rows` rows.
            pub fn with_capacity(rows: usize) -> Self {
                $table { $($field: Vec::with_capacity(rows),)+ }
            }

            /// Appends one row.
            #[inline]
            pub fn push(&mut self, row: $row) { $(self.$field.push(row.$field);)+ }

            /// The rows, in order.
            #[inline]
            pub fn rows(&self) -> impl ExactSizeIterator<Item = $row> + '_ {
                let rows = self.len();
                $(let $field = &self.$field[..rows];)+
                (0..rows).map(move |row| $row { $($field: $field[row],)+ })
            }

            /// One row; `None` past the end.
            pub fn row(&self, row: usize) -> Option<$row> {
                Some($row { $($field: *self.$field.get(row)?,)+ })
            }
        }
    };
}

columns!(
    Nodes,
    NodeRow {
        node,
        attempt,
        group,
        slot,
        stage,
        intent,
        template,
        desired_template,
        live,
        progress,
        pending,
        pending_deadline,
        ambiguous,
        failures,
        next_effect_at,
        probe_at,
        restart_at,
        stage_deadline,
        turn,
        marks,
    }
);
columns!(Decisions, DecisionRow { node, attempt, rule, verb, hold, until });

impl NodeRow {
    /// A desired slot that no node holds.
    pub const fn vacant(node: u32, group: u32, slot: u32, desired_template: u32) -> Self {
        NodeRow {
            node,
            attempt: 0,
            group,
            slot,
            stage: 0,
            intent: 0,
            template: crate::NO_INDEX,
            desired_template,
            live: 0,
            progress: 0,
            pending: 0,
            pending_deadline: 0,
            ambiguous: 0,
            failures: 0,
            next_effect_at: 0,
            probe_at: 0,
            restart_at: 0,
            stage_deadline: 0,
            turn: crate::NO_INDEX,
            marks: 0,
        }
    }
}

/// Tables that were written before contract 1.1 lack its columns.
#[cfg(feature = "serde")]
mod kept {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Nodes;

    impl<'de> Deserialize<'de> for Nodes {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            // The derived one.
            let mut nodes = Nodes::deserialize(deserializer)?;
            if nodes.turn.is_empty() && nodes.marks.is_empty() {
                nodes.turn.resize(nodes.node.len(), crate::NO_INDEX);
                nodes.marks.resize(nodes.node.len(), 0);
            }
            Ok(nodes)
        }
    }

    impl Serialize for Nodes {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            Nodes::serialize(self, serializer)
        }
    }
}
