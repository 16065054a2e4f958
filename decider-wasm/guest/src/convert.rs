//! Between the generated types and the decider's: moves of vectors, no copies.

use alloc::vec::Vec;

use crate::bindings::exports::homeostat::decider::policy as wire;

/// The wire's snapshot as the decider's.
pub fn snapshot(from: wire::Snapshot) -> decider::Snapshot {
    let wire::Settings { backoff_initial_ms, backoff_cap_ms, probe_interval_ms } = from.settings;
    decider::Snapshot {
        now_ms: from.now_ms,
        run: from.run,
        generation: from.generation,
        settings: decider::Settings { backoff_initial_ms, backoff_cap_ms, probe_interval_ms },
        groups: from.groups.into_iter().map(group).collect(),
        templates: from.templates.into_iter().map(template).collect(),
        nodes: nodes(from.nodes),
    }
}

fn group(from: wire::Group) -> decider::Group {
    decider::Group {
        name: from.name,
        count: from.count,
        nodes: from.nodes,
        ready: from.ready,
        failed: from.failed,
        deleting: from.deleting,
        pending: from.pending,
        max_unavailable: from.max_unavailable,
        max_surge: from.max_surge,
        available: from.available,
        failing: from.failing,
        trying: from.trying,
        max_failing: from.max_failing,
        pauses: from.pauses,
        parameters: from.parameters,
    }
}

fn template(from: wire::Template) -> decider::Template {
    let wire::Template { provider, role, labels } = from;
    decider::Template { provider, role, labels }
}

fn nodes(from: wire::Nodes) -> decider::Nodes {
    decider::Nodes {
        node: from.node,
        attempt: from.attempt,
        group: from.group,
        slot: from.slot,
        stage: from.stage,
        intent: from.intent,
        template: from.template,
        desired_template: from.desired_template,
        live: from.live,
        progress: from.progress,
        pending: from.pending,
        pending_deadline: from.pending_deadline,
        ambiguous: from.ambiguous,
        failures: from.failures,
        next_effect_at: from.next_effect_at,
        probe_at: from.probe_at,
        restart_at: from.restart_at,
        stage_deadline: from.stage_deadline,
        turn: from.turn,
        marks: from.marks,
    }
}

/// The decider's plan as the wire's.
pub fn plan(from: decider::Plan) -> wire::Plan {
    let decider::Decisions { node, attempt, rule, verb, hold, until } = from.decisions;
    wire::Plan { wake_at_ms: from.wake_at_ms, decisions: wire::Decisions { node, attempt, rule, verb, hold, until } }
}

/// The decider's description as the wire's.
pub fn description(from: decider::Description) -> wire::Description {
    let decider::Description { name, version, contract, rules } = from;
    let rules: Vec<wire::Rule> =
        rules.into_iter().map(|decider::Rule { id, sentence }| wire::Rule { id, sentence }).collect();
    wire::Description { name, version, contract, rules }
}
