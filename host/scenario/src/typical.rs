//! A fleet as it looks in the middle of a rollout: most nodes steady, some on their way up or down, few in trouble.

use decider::{NodeRow, Stage};

/// How many kinds of rows there are.
pub const KINDS: u32 = 20;
/// How many groups the rows refer to.
pub const GROUPS: u32 = 3;
/// How many templates the rows refer to.
pub const TEMPLATES: u32 = 4;

/// The row of a node of this kind, from 0; what it waits for is due at `soon`, in milliseconds. From 11 on it is ready and steady.
pub fn row(node: u32, kind: u32, soon: u64) -> NodeRow {
    let vacant = NodeRow::vacant(node, node % GROUPS, node / GROUPS, node % TEMPLATES);
    let held = NodeRow { attempt: u64::from(node) + 1, template: node % TEMPLATES, ..vacant };
    match kind {
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
