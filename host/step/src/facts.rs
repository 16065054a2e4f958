//! The facts of one node, each as a word or two.

use decider::Progress;
use engine::ledger::Status;
use engine::state::{Pending, Slot};

use crate::text::since;
use crate::trail::Trail;

/// What stands for a fact that there is not.
pub(crate) const NONE: &str = "-";

/// The slot of that name.
pub(crate) fn slot<'a>(trail: &'a Trail, name: &str) -> Option<&'a Slot> {
    let state = trail.state()?;
    state.slot(*state.names.get(name)?)
}

/// All facts of a slot and of what holds it, always the same ones in the same order.
pub(crate) fn facts(trail: &Trail, name: &str) -> Vec<(&'static str, String)> {
    facts_of(slot(trail, name), |at| since(trail.started_ms(), at))
}

/// As they are for any slot, with instants in these words; `-` stands for a fact that there is not.
pub fn facts_of(slot: Option<&Slot>, words: impl Fn(u64) -> String) -> Vec<(&'static str, String)> {
    let node = slot.and_then(|slot| slot.node.as_ref());
    let retry = node.map(|node| &node.retry);
    let pending = node.and_then(|node| node.pending.as_ref());
    let doubt = retry.and_then(|retry| retry.ambiguous.as_ref());
    let failure = node.and_then(|node| node.failure.as_ref());
    let at = |instant: Option<u64>| instant.map(&words);
    let text = |text: Option<&String>| text.cloned();
    let label = |label: Option<&'static str>| label.map(str::to_owned);
    let facts = [
        ("desired", slot.map(wanted)),
        ("attempt", node.map(|node| node.attempt.to_string())),
        ("stage", slot.map(|slot| slot.node.as_ref().map_or("vacant", |node| node.stage.label()).to_owned())),
        ("intent", node.map(|node| node.intent.label().to_owned())),
        ("lease", text(node.and_then(|node| node.lease.as_ref()))),
        ("endpoint", text(node.and_then(|node| node.endpoint.as_ref()))),
        ("session", text(node.and_then(|node| node.session.as_ref()))),
        ("progress", label(node.map(|node| node.progress).filter(|at| *at != Progress::None).map(Progress::label))),
        ("in flight", pending.map(flight)),
        ("its deadline", at(pending.map(|pending| pending.deadline_ms))),
        ("in doubt", doubt.map(|doubt| format!("{} {}", doubt.id, doubt.kind.label()))),
        ("since", at(doubt.map(|doubt| doubt.since_ms))),
        (
            "failures in a row",
            retry.map(|retry| retry.failures).filter(|failures| *failures > 0).map(|n| n.to_string()),
        ),
        ("no operation before", at(retry.and_then(|retry| retry.next_effect_at))),
        ("no look before", at(retry.and_then(|retry| retry.probe_at))),
        ("no attempt before", at(retry.and_then(|retry| retry.restart_at))),
        ("stage ends at", at(node.and_then(|node| node.stage_deadline))),
        ("why it failed", failure.map(|failure| failure.reason.clone())),
        ("last error", text(node.and_then(|node| node.last_error.as_ref()))),
        (
            "decider fails",
            slot.and_then(|slot| slot.quarantine.as_ref())
                .map(|held| format!("{}: {}", held.failure.class, held.failure.detail)),
        ),
    ];
    facts.into_iter().map(|(name, fact)| (name, fact.unwrap_or_else(|| NONE.into()))).collect()
}

fn wanted(slot: &Slot) -> String {
    match (&slot.desired, &slot.node) {
        (None, _) => "no".into(),
        (Some(desired), Some(node)) if desired.template != node.template => "with another template".into(),
        (Some(_), _) => "yes".into(),
    }
}

fn flight(pending: &Pending) -> String {
    let kind = pending.operation.request.kind().label();
    let id = pending.operation.id;
    match pending.status {
        Status::Asked => format!("{id} {kind}, overdue"),
        _ => format!("{id} {kind}"),
    }
}
