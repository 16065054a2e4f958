//! Contract 1.0 (`wit/1.0/decider.wit`): what a decider built for it is shown of a snapshot. Its columns are borrowed, not
//! copied. A plan has the same shape in both.

use alloc::{borrow::Cow, string::String, vec::Vec};

use crate::{NO_INDEX, marks};

/// The version itself.
pub const CONTRACT: &str = "1.0.0";

/// Whether that is a version of it: 1.0 with any patch.
pub fn is_spoken(version: &str) -> bool {
    version.strip_prefix("1.0.").is_some_and(|patch| !patch.contains('.'))
}

/// Declares a borrowed record, and how the host lowers it.
macro_rules! record {
    ($(#[$meta:meta])* $name:ident { $($(#[$fmeta:meta])* $wire:literal $field:ident: $ty:ty,)+ }) => {
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[cfg_attr(
            feature = "component",
            derive(wasmtime::component::ComponentType, wasmtime::component::Lower),
            component(record)
        )]
        $(#[$meta])*
        pub struct $name<'a> { $($(#[$fmeta])* #[cfg_attr(feature = "component", component(name = $wire))] pub $field: $ty,)+ }
    };
}

record! {
    /// See [`crate::Group`].
    Group {
        /// The group's id.
        "name" name: &'a str,
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
    }
}

record! {
    /// See [`crate::Nodes`].
    Nodes {
        /// The slot's number.
        "node" node: &'a [u32],
        /// The attempt that holds it.
        "attempt" attempt: &'a [u64],
        /// Index in `groups`.
        "group" group: &'a [u32],
        /// Index in the group.
        "slot" slot: &'a [u32],
        /// [`crate::Stage`] code.
        "stage" stage: &'a [u8],
        /// [`crate::Intent`] code.
        "intent" intent: &'a [u8],
        /// The attempt's template.
        "template" template: &'a [u32],
        /// The slot's desired template.
        "desired-template" desired_template: &'a [u32],
        /// [`crate::live`] bits.
        "live" live: &'a [u8],
        /// [`crate::Progress`] code.
        "progress" progress: &'a [u8],
        /// [`crate::OperationKind`] code in flight.
        "pending" pending: &'a [u8],
        /// Its deadline.
        "pending-deadline" pending_deadline: &'a [u64],
        /// [`crate::OperationKind`] code to settle.
        "ambiguous" ambiguous: &'a [u8],
        /// Failures in a row.
        "failures" failures: &'a [u32],
        /// No operation before.
        "next-effect-at" next_effect_at: &'a [u64],
        /// No look at the endpoint before.
        "probe-at" probe_at: &'a [u64],
        /// No new attempt before.
        "restart-at" restart_at: &'a [u64],
        /// The stage's deadline.
        "stage-deadline" stage_deadline: &'a [u64],
    }
}

record! {
    /// See [`crate::Snapshot`].
    Snapshot {
        /// The instant of the pass.
        "now-ms" now_ms: u64,
        /// The run's id.
        "run" run: &'a str,
        /// The generation of the desired shape.
        "generation" generation: u64,
        /// The host's settings.
        "settings" settings: &'a crate::Settings,
        /// The groups of the desired shape.
        "groups" groups: Vec<Group<'a>>,
        /// Every template in use.
        "templates" templates: &'a [crate::Template],
        /// The slots and nodes to decide.
        "nodes" nodes: Nodes<'a>,
    }
}

impl<'a> From<&'a crate::Snapshot> for Snapshot<'a> {
    fn from(from: &'a crate::Snapshot) -> Self {
        let groups = from.groups.iter().map(|group| Group {
            name: &group.name,
            count: group.count,
            nodes: group.nodes,
            ready: group.ready,
            failed: group.failed,
            deleting: group.deleting,
            pending: group.pending,
        });
        let nodes = &from.nodes;
        Snapshot {
            now_ms: from.now_ms,
            run: &from.run,
            generation: from.generation,
            settings: &from.settings,
            groups: groups.collect(),
            templates: &from.templates,
            nodes: Nodes {
                node: &nodes.node,
                attempt: &nodes.attempt,
                group: &nodes.group,
                slot: &nodes.slot,
                stage: &nodes.stage,
                intent: &nodes.intent,
                template: &nodes.template,
                desired_template: &nodes.desired_template,
                live: &nodes.live,
                progress: &nodes.progress,
                pending: &nodes.pending,
                pending_deadline: &nodes.pending_deadline,
                ambiguous: &nodes.ambiguous,
                failures: &nodes.failures,
                next_effect_at: &nodes.next_effect_at,
                probe_at: &nodes.probe_at,
                restart_at: &nodes.restart_at,
                stage_deadline: &nodes.stage_deadline,
            },
        }
    }
}

/// A snapshot without its surge slots, of which contract 1.0 knows nothing: a vacant one is not there, one that a node
/// holds is not desired. What a plan of such a decider has to be checked against. Borrowed where there is none.
pub fn without_surge(whole: &crate::Snapshot) -> Cow<'_, crate::Snapshot> {
    let surge = |bits: &u8| bits & marks::SURGE != 0;
    if !whole.nodes.marks.iter().any(surge) {
        return Cow::Borrowed(whole);
    }
    let mut nodes = crate::Nodes::with_capacity(whole.nodes.len());
    for mut row in whole.nodes.rows() {
        if surge(&row.marks) {
            if row.attempt == 0 {
                continue;
            }
            (row.group, row.desired_template, row.turn, row.marks) = (NO_INDEX, NO_INDEX, NO_INDEX, 0);
        }
        nodes.push(row);
    }
    Cow::Owned(crate::Snapshot {
        now_ms: whole.now_ms,
        run: String::clone(&whole.run),
        generation: whole.generation,
        settings: whole.settings.clone(),
        groups: whole.groups.clone(),
        templates: whole.templates.clone(),
        nodes,
    })
}
