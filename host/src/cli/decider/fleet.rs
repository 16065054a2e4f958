//! A fleet of any size to ask deciders about.

use decider::{Group, NodeRow, Nodes, Settings, Snapshot, Template};
use scenario::typical::{self, GROUPS, KINDS, TEMPLATES};

const NOW_MS: u64 = 1_700_000_000_000;

/// The same for the same number, everywhere.
pub(super) fn typical(count: u32) -> Snapshot {
    let mut nodes = Nodes::with_capacity(count as usize);
    for node in 0..count {
        nodes.push(row(node));
    }
    let group = |index: u32| Group {
        name: format!("group-{index}"),
        count: count / GROUPS,
        nodes: count / GROUPS,
        ready: count / GROUPS / 2,
        available: count / GROUPS / 2,
        ..Group::default()
    };
    let template = |index: u32| Template {
        provider: "process".into(),
        role: format!("role-{index}"),
        labels: (0..index).map(|label| (format!("key-{label}"), format!("value-{index}"))).collect(),
    };
    Snapshot {
        now_ms: NOW_MS,
        run: "typical".into(),
        generation: 7,
        settings: Settings { backoff_initial_ms: 1_000, backoff_cap_ms: 60_000, probe_interval_ms: 1_000 },
        groups: (0..GROUPS).map(group).collect(),
        templates: (0..TEMPLATES).map(template).collect(),
        nodes,
    }
}

fn row(node: u32) -> NodeRow {
    // Fibonacci hashing: neighbours differ, and there is no pattern for a branch predictor.
    let mixed = node.wrapping_add(1).wrapping_mul(0x9e37_79b9);
    let soon = NOW_MS + u64::from(mixed % 60_000);
    typical::row(node, (mixed >> 16) % KINDS, soon)
}
