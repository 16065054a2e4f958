//! A snapshot from the bytes of a case.

use decider::{Group, NO_INDEX, NodeRow, Nodes, Settings, Snapshot, Template};

use super::Choices;

/// The snapshot that a case is: codes and instants of any kind.
pub fn snapshot(choices: &mut Choices<'_>) -> Snapshot {
    let now_ms = choices.number(1_700_000_000_000);
    let perhaps = |choices: &mut Choices<'_>| (choices.byte() & 1 != 0).then(|| choices.below(300));
    let group = |choices: &mut Choices<'_>| Group {
        name: choices.text(),
        count: choices.below(1 << 16),
        nodes: choices.below(300),
        ready: choices.below(300),
        failed: choices.below(300),
        deleting: choices.below(300),
        pending: choices.below(300),
        max_unavailable: perhaps(choices),
        max_surge: choices.below(4),
        available: choices.below(300),
        failing: choices.below(300),
        trying: choices.below(3),
        max_failing: perhaps(choices),
        pauses: choices.byte(),
        parameters: (0..choices.below(2)).map(|_| (choices.text(), choices.text())).collect(),
    };
    let template = |choices: &mut Choices<'_>| Template {
        provider: choices.text(),
        role: choices.text(),
        labels: (0..choices.below(3)).map(|_| (choices.text(), choices.text())).collect(),
    };
    let mut whole = Snapshot {
        now_ms,
        run: choices.text(),
        generation: choices.number(0),
        settings: Settings {
            backoff_initial_ms: choices.number(1_000),
            backoff_cap_ms: choices.number(60_000),
            probe_interval_ms: choices.number(1_000),
        },
        groups: (0..choices.below(4)).map(|_| group(choices)).collect(),
        templates: (0..choices.below(4)).map(|_| template(choices)).collect(),
        nodes: Nodes::default(),
    };
    while !choices.is_empty() && whole.nodes.len() < 200 {
        let node = whole.nodes.len() as u32;
        whole.nodes.push(row(choices, node, now_ms));
    }
    whole
}

fn row(choices: &mut Choices<'_>, node: u32, now_ms: u64) -> NodeRow {
    // One byte says which columns are of the rarer kind.
    let rare = choices.byte();
    let code = |choices: &mut Choices<'_>, known: u32, bit: u8| {
        if rare & bit != 0 { choices.byte() } else { choices.below(known) as u8 }
    };
    let index = |choices: &mut Choices<'_>| match choices.below(6) {
        4 => NO_INDEX,
        5 => choices.number(0) as u32,
        small => small,
    };
    let own = index(choices);
    NodeRow {
        node: if rare & 128 != 0 { choices.number(0) as u32 } else { node },
        attempt: choices.number(0),
        group: index(choices),
        slot: choices.number(0) as u32,
        stage: code(choices, 11, 1),
        intent: code(choices, 2, 2),
        template: own,
        desired_template: if rare & 64 != 0 { index(choices) } else { own },
        live: code(choices, 8, 4),
        progress: code(choices, 11, 8),
        pending: code(choices, 6, 16),
        pending_deadline: choices.number(now_ms),
        ambiguous: code(choices, 6, 32),
        failures: choices.number(0) as u32,
        next_effect_at: choices.number(now_ms),
        probe_at: choices.number(now_ms),
        restart_at: choices.number(now_ms),
        stage_deadline: choices.number(now_ms),
        turn: index(choices),
        marks: if rare & 128 != 0 { choices.byte() } else { 0 },
    }
}
