//! Between the generated types and the decider's: moves of vectors, no copies.

use alloc::vec::Vec;

use crate::bindings::exports::homeostat::decider::policy as wire;
use crate::own;

/// The wire's snapshot as the decider's.
pub fn snapshot(from: wire::Snapshot) -> own::Snapshot {
    let wire::Settings { backoff_initial_ms, backoff_cap_ms, probe_interval_ms } = from.settings;
    own::Snapshot {
        now_ms: from.now_ms,
        run: from.run,
        generation: from.generation,
        settings: own::Settings { backoff_initial_ms, backoff_cap_ms, probe_interval_ms },
        groups: from.groups.into_iter().map(group).collect(),
        templates: from.templates.into_iter().map(template).collect(),
        nodes: nodes(from.nodes),
    }
}

fn group(from: wire::Group) -> own::Group {
    let wire::Group { name, count, nodes, ready, failed, deleting, pending } = from;
    own::Group { name, count, nodes, ready, failed, deleting, pending }
}

fn template(from: wire::Template) -> own::Template {
    let wire::Template { provider, role, labels } = from;
    own::Template { provider, role, labels }
}

fn nodes(from: wire::Nodes) -> own::Nodes {
    own::Nodes {
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
    }
}

/// The decider's plan as the wire's.
pub fn plan(from: own::Plan) -> wire::Plan {
    let own::Decisions { node, attempt, rule, verb, hold, until } = from.decisions;
    wire::Plan { wake_at_ms: from.wake_at_ms, decisions: wire::Decisions { node, attempt, rule, verb, hold, until } }
}

/// The decider's description as the wire's.
pub fn description(from: own::Description) -> wire::Description {
    let own::Description { name, version, contract, rules } = from;
    let rules: Vec<wire::Rule> =
        rules.into_iter().map(|own::Rule { id, sentence }| wire::Rule { id, sentence }).collect();
    wire::Description { name, version, contract, rules }
}
