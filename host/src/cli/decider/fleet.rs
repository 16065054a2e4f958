//! A fleet of any size to ask deciders about: most nodes steady, some on their way up or down, few in trouble.

use decider::{Group, NodeRow, Nodes, Settings, Snapshot, Stage, Template};

const GROUPS: u32 = 3;
const TEMPLATES: u32 = 4;
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
    let vacant = NodeRow::vacant(node, node % GROUPS, node / GROUPS, node % TEMPLATES);
    let held = NodeRow { attempt: u64::from(node) + 1, template: node % TEMPLATES, ..vacant };
    // Fibonacci hashing: neighbours differ, and there is no pattern for a branch predictor.
    let mixed = node.wrapping_add(1).wrapping_mul(0x9e37_79b9);
    let soon = NOW_MS + u64::from(mixed % 60_000);
    match (mixed >> 16) % 20 {
        0 => vacant,
        1 => NodeRow { stage: Stage::New.code(), ..held },
        2 => NodeRow { stage: Stage::LeaseRequested.code(), pending: 1, pending_deadline: soon, ..held },
        3 => NodeRow { stage: Stage::LeaseCreated.code(), live: 1, probe_at: soon, ..held },
        4 => NodeRow { stage: Stage::EndpointKnown.code(), live: 3, ..held },
        5 => NodeRow { stage: Stage::BootstrapRunning.code(), live: 7, stage_deadline: soon, ..held },
        6 => NodeRow { stage: Stage::Joined.code(), live: 7, ..held },
        7 => NodeRow { stage: Stage::Failed.code(), live: 1, failures: 2, ..held },
        8 => NodeRow { stage: Stage::Destroyed.code(), intent: 1, restart_at: soon, ..held },
        9 => NodeRow { stage: Stage::Dormant.code(), live: 7, desired_template: (node + 1) % TEMPLATES, ..held },
        10 => NodeRow { stage: Stage::Dormant.code(), live: 1, intent: 1, next_effect_at: soon, ..held },
        _ => NodeRow { stage: Stage::Dormant.code(), live: 7, ..held },
    }
}
