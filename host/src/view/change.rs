//! What changed from one view to the next, a line for each node: for logs and machines.

use std::collections::BTreeMap;
use std::fmt;

use engine::view::{NodeView, View};
use serde::Serialize;

/// A change of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeChange {
    /// `homeostat.change/v1`.
    pub schema: &'static str,
    /// When, in milliseconds of the host's clock.
    pub at_ms: u64,
    /// Its slot's name.
    pub node: String,
    /// Its group.
    pub group: String,
    /// The attempt that holds the slot.
    pub attempt: Option<u64>,
    /// Where it stands; `gone` when nothing is left and nothing is wanted.
    pub stage: String,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether it is being taken down.
    pub deleting: bool,
    /// Whether its slot is desired.
    pub desired: bool,
    /// The rule that decided last, if nothing happened since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Its endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Failures in a row.
    #[serde(skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Until when it waits at the latest, when something went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What changed, in the order of the later view; nodes that are gone come last.
pub fn changes(before: Option<&View>, after: &View) -> Vec<NodeChange> {
    let known: BTreeMap<&str, &NodeView> =
        before.iter().flat_map(|view| &view.nodes).map(|node| (node.node.as_str(), node)).collect();
    let mut changes: Vec<NodeChange> = after
        .nodes
        .iter()
        .filter(|node| known.get(node.node.as_str()).is_none_or(|known| key(known) != key(node)))
        .map(|node| NodeChange::of(node, after.now_ms))
        .collect();
    let here: std::collections::BTreeSet<&str> = after.nodes.iter().map(|node| node.node.as_str()).collect();
    let gone = before.iter().flat_map(|view| &view.nodes).filter(|node| !here.contains(node.node.as_str()));
    changes.extend(gone.map(|node| NodeChange {
        attempt: None,
        stage: "gone".into(),
        ready: false,
        rule: None,
        error: None,
        until_ms: None,
        endpoint: None,
        ..NodeChange::of(node, after.now_ms)
    }));
    changes
}

/// What counts as a change.
fn key(node: &NodeView) -> (Option<u64>, &'static str, bool, bool, u32, Option<&str>) {
    (node.attempt, node.stage, node.ready, node.deleting, node.failures, node.error.as_deref())
}

impl NodeChange {
    /// A node as it is now.
    pub fn of(node: &NodeView, at_ms: u64) -> Self {
        NodeChange {
            schema: "homeostat.change/v1",
            at_ms,
            node: node.node.clone(),
            group: node.group.clone(),
            attempt: node.attempt,
            stage: node.stage.to_owned(),
            ready: node.ready,
            deleting: node.deleting,
            desired: node.desired,
            rule: node.rule.clone(),
            endpoint: node.endpoint.clone(),
            failures: node.failures,
            error: node.error.clone(),
            until_ms: node.until_ms.filter(|_| node.error.is_some()),
        }
    }
}

/// One line of `key=value` pairs.
impl fmt::Display for NodeChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node={}", self.node)?;
        if let Some(attempt) = self.attempt {
            write!(f, " attempt={attempt}")?;
        }
        write!(f, " stage={} ready={}", self.stage, self.ready)?;
        if !self.desired {
            write!(f, " desired=false")?;
        }
        if self.deleting {
            write!(f, " deleting=true")?;
        }
        if let Some(rule) = &self.rule {
            write!(f, " rule={}", Value(rule))?;
        }
        if let Some(endpoint) = &self.endpoint {
            write!(f, " endpoint={}", Value(endpoint))?;
        }
        if self.failures > 0 {
            write!(f, " failures={}", self.failures)?;
        }
        if let Some(error) = &self.error {
            write!(f, " error={}", Value(error))?;
        }
        if let Some(until) = self.until_ms {
            write!(f, " wait={}", Value(&super::lasting(until.saturating_sub(self.at_ms))))?;
        }
        Ok(())
    }
}

/// A value in quotes where it needs them.
struct Value<'a>(&'a str);

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain =
            !self.0.is_empty() && self.0.chars().all(|c| !c.is_whitespace() && !c.is_control() && !"\"=\\".contains(c));
        if plain { f.write_str(self.0) } else { write!(f, "{:?}", self.0) }
    }
}
