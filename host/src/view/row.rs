//! The rows of the table, from the engine's view.

use engine::view::{NodeView, View};

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its group.
    pub group: String,
    /// Its slot's name.
    pub node: String,
    /// The attempt that holds the slot.
    pub attempt: Option<u64>,
    /// Where it stands.
    pub stage: String,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether it failed.
    pub failed: bool,
    /// Whether it is being taken down.
    pub deleting: bool,
    /// What it waits for; empty when for nothing.
    pub waits_for: String,
    /// How long that lasts at most, in milliseconds.
    pub left_ms: Option<u64>,
    /// What went wrong, or where it can be reached.
    pub note: Option<String>,
}

/// The line above the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The run.
    pub run: String,
    /// The generation in force.
    pub generation: u64,
    /// Nodes that are ready.
    pub ready: usize,
    /// Slots that are desired.
    pub desired: usize,
    /// Whether the fleet has the declared shape.
    pub converged: bool,
    /// Whether all of it is being taken down.
    pub ending: bool,
}

impl Row {
    fn of(node: &NodeView, now_ms: u64) -> Self {
        Row {
            group: node.group.clone(),
            node: node.node.clone(),
            attempt: node.attempt,
            stage: node.stage.to_owned(),
            ready: node.ready,
            failed: node.stage == decider::Stage::Failed.label(),
            deleting: node.deleting,
            waits_for: node.waits_for.clone(),
            left_ms: node.until_ms.map(|until| until.saturating_sub(now_ms)),
            note: node.error.clone().or_else(|| node.endpoint.clone()),
        }
    }
}

/// The rows of a view, in its order. `now_ms` is the host's clock, which may be ahead of the view's.
pub fn rows(view: &View, now_ms: u64) -> Vec<Row> {
    view.nodes.iter().map(|node| Row::of(node, now_ms)).collect()
}

/// The line above the table.
pub fn summary(view: &View) -> Summary {
    Summary {
        run: view.run.clone(),
        generation: view.generation,
        ready: view.nodes.iter().filter(|node| node.desired && node.ready).count(),
        desired: view.nodes.iter().filter(|node| node.desired).count(),
        converged: view.converged,
        ending: false,
    }
}
