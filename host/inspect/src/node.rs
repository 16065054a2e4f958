//! One node, closely.

use api::wire::{HistoryItem, NodeDetail, Operation, TemplateView};
use engine::driver::Driver;
use engine::shape::{Probe, Setting, Template};
use engine::state::Slot;

use crate::status::listed;

/// All that is known of a node; `None` where no slot has that name, or nothing is wanted or left of it.
pub fn node(driver: &Driver, name: &str, recent: Vec<HistoryItem>) -> Option<NodeDetail> {
    let state = driver.state();
    let slot = state.slot(*state.names.get(name)?)?;
    let listed = listed(&driver.node_view(name)?);
    let held = slot.node.as_ref();
    let template = held.and_then(|held| state.templates.get(held.template.0 as usize));
    let retry = held.map(|held| &held.retry);
    Some(NodeDetail {
        schema: "homeostat.node/v1".into(),
        node: listed,
        now_ms: driver.now_ms(),
        provider: template.map(|template| template.provider.clone()),
        lease: held.and_then(|held| held.lease.clone()),
        session: held.and_then(|held| held.session.clone()),
        key: held.map(|held| state.key(&slot.name, held.attempt).to_string()),
        operation: held.and_then(|held| held.pending.as_ref()).map(|pending| Operation {
            id: pending.operation.id.to_string(),
            kind: pending.operation.request.kind().label().into(),
            since_ms: pending.sent_ms,
            deadline_ms: Some(pending.deadline_ms),
        }),
        doubt: retry.and_then(|retry| retry.ambiguous.as_ref()).map(|doubt| Operation {
            id: doubt.id.to_string(),
            kind: doubt.kind.label().into(),
            since_ms: doubt.since_ms,
            deadline_ms: None,
        }),
        stage_deadline_ms: held.and_then(|held| held.stage_deadline),
        next_effect_ms: retry.and_then(|retry| retry.next_effect_at),
        probe_ms: retry.and_then(|retry| retry.probe_at),
        restart_ms: retry.and_then(|retry| retry.restart_at),
        template: template.map(|template| shown(template)),
        drifted: drifted(slot),
        recent,
    })
}

fn drifted(slot: &Slot) -> bool {
    matches!((&slot.desired, &slot.node), (Some(desired), Some(held)) if desired.template != held.template)
}

/// A template without what may be secret: values of the environment and contents of files stay where they are.
fn shown(template: &Template) -> TemplateView {
    TemplateView {
        provider: template.provider.clone(),
        image: template.image.clone(),
        role: template.role.clone(),
        command: template.boot.command.clone(),
        env: template.boot.env.keys().cloned().collect(),
        files: template.boot.files.keys().cloned().collect(),
        join: probe(&template.join.probe),
        settings: template.settings.iter().map(|(name, value)| (name.clone(), setting(value))).collect(),
        labels: template.labels.clone(),
    }
}

fn setting(value: &Setting) -> String {
    match value {
        Setting::Bool(value) => value.to_string(),
        Setting::Integer(value) => value.to_string(),
        Setting::Float(value) => value.to_string(),
        Setting::Text(value) => value.clone(),
        Setting::List(values) => format!("[{}]", values.iter().map(setting).collect::<Vec<_>>().join(", ")),
        Setting::Table(values) => {
            let pairs = values.iter().map(|(name, value)| format!("{name} = {}", setting(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The join probe in words.
pub(crate) fn probe(probe: &Probe) -> String {
    match probe {
        Probe::Http(url) => format!("GET {url} answers 200 to 299"),
        Probe::Tcp(address) => format!("{address} accepts a connection"),
        Probe::Exec(command) => format!("`{}` exits with 0", command.join(" ")),
        Probe::Stdout(pattern) => format!("a line of output matches {pattern:?}"),
    }
}
