//! What a command brought, as lines.

use std::fmt::Write as _;

use decider::{HoldKind, Verb};
use engine::driver::Driver;
use engine::io::{Notice, Output, Request};

use crate::session::{Came, Session, Subject};
use crate::words::ms;

/// Actions, operations, notices and refusals, in that order.
pub(crate) fn came(came: &Came, driver: &Driver, subject: &Subject) -> Vec<String> {
    let mut lines = Vec::new();
    for ((_, plan), held) in came.plans.iter().zip(&came.held) {
        for row in plan.decisions.rows() {
            // What goes on being held is no news.
            let how = match held.get(&row.node) {
                Some(true) => continue,
                Some(false) => ", held",
                None => "",
            };
            if row.verb != Verb::Hold.code() {
                let verb = Verb::from_code(row.verb).map_or("?", Verb::label);
                lines.push(format!("{} {} {verb}{how}", subject.rule(row.rule), name(driver, row.node)));
            }
        }
    }
    for output in &came.outputs {
        match output {
            Output::Record(_) | Output::Decide { .. } => {}
            Output::Submit(operation) => {
                let kind = match &operation.request {
                    Request::SettleCreate(_) => "settle-create",
                    request => request.kind().label(),
                };
                let (id, slot) = (operation.id, &operation.key.slot);
                lines.push(format!("-> {id} {kind} {slot} by {}", ms(operation.deadline_ms)));
            }
            Output::Ask(id) => lines.push(format!("ask {id}")),
            Output::Notice(notice) => lines.push(format!("notice: {}", notice_text(notice))),
        }
    }
    lines.extend(came.errors.iter().map(|error| format!("refused: {error}")));
    lines
}

fn name(driver: &Driver, node: u32) -> String {
    let slot = driver.state().slots.get(node as usize);
    slot.map_or_else(|| node.to_string(), |slot| slot.name.clone())
}

/// Where each node is.
pub(crate) fn show(session: &Session) -> Vec<String> {
    let view = session.driver.view();
    let (now, stats) = (session.now_ms, session.driver.stats());
    let converged = if view.converged { ", converged" } else { "" };
    let (generation, observed) = (view.generation, view.observed_generation);
    let mut lines = vec![format!("at {} generation {generation} evaluated {observed}{converged}", ms(now))];
    for node in &view.nodes {
        let mut text = format!("{} ", node.node);
        match node.attempt {
            Some(attempt) => {
                let _ = write!(text, "a{attempt} {}", node.stage);
            }
            None => text.push_str(node.stage),
        }
        for (set, word) in [
            (node.deleting, " deleting"),
            (node.ready, " ready"),
            (!node.desired, " undesired"),
            (node.surge, " surge"),
        ] {
            text.push_str(if set { word } else { "" });
        }
        if let Some(rule) = &node.rule {
            let _ = write!(text, " {rule}");
        }
        if !node.waits_for.is_empty() {
            let _ = write!(text, ", waits for {}", node.waits_for);
        }
        if let Some(until) = node.until_ms {
            let _ = write!(text, " until {}", ms(until));
        }
        if node.failures > 0 {
            let _ = write!(text, ", {} failures", node.failures);
        }
        if let Some(error) = &node.error {
            let _ = write!(text, ", {error}");
        }
        lines.push(text);
    }
    lines.extend(view.reaping.iter().map(|reap| format!("reaping {}/{}/{}", view.run, reap.node, reap.attempt)));
    for orphan in &view.orphans {
        let (provider, lease, run) = (&orphan.provider, &orphan.lease, &view.run);
        let destroying = if orphan.destroying { ", being destroyed" } else { "" };
        lines.push(format!("orphan {provider} {lease} ({run}/{}/{}){destroying}", orphan.node, orphan.attempt));
    }
    lines.extend(view.pauses.iter().map(|pause| pause.words.clone()));
    if stats.superseded + stats.late + stats.stale_decisions > 0 {
        let (superseded, late, stale) = (stats.superseded, stats.late, stats.stale_decisions);
        lines.push(format!("discarded: {superseded} superseded, {late} late, {stale} stale decisions"));
    }
    let person = |slot: &engine::state::Slot| {
        slot.decision.as_ref().is_some_and(|decision| decision.hold == Some(HoldKind::Person))
    };
    if session.driver.state().slots.iter().any(person) {
        lines.push(format!("held for {}", HoldKind::Person.label()));
    }
    // Reasons are texts of providers and people: one line each.
    lines.iter().map(|line| line.replace(['\n', '\r'], " ")).collect()
}

fn notice_text(notice: &Notice) -> String {
    let text = match notice {
        Notice::DeciderFailed { nodes, failure } if nodes.is_empty() => {
            format!("the decider fails for every snapshot: {}: {}", failure.class, failure.detail)
        }
        Notice::DeciderFailed { nodes, failure } => {
            format!("the decider fails for {}: {}: {}", nodes.join(", "), failure.class, failure.detail)
        }
        Notice::DeciderRecovered => "the decider decides again".into(),
        Notice::Inconsistent { node, facts } => format!("{node} is inconsistent: {facts}"),
        Notice::AwaitsPerson { node, rule, facts } => format!("{node} waits for a person by {rule}: {facts}"),
        Notice::Orphan { provider, lease, key } => format!("orphan {lease} at {provider} ({key})"),
        Notice::OrphanGone { provider, lease } => format!("orphan {lease} at {provider} is gone"),
        Notice::Reaping { provider, lease, key } => format!("reaping {lease} at {provider} ({key})"),
        Notice::StateIsOlder { orphans } => {
            format!("the state is older than {orphans} orphans: creates wait for a person")
        }
        Notice::Missing { provider, node, attempt, lease } => {
            format!("{node} {attempt}: {lease} is missing at {provider}")
        }
        Notice::Paused { scope, only } => format!("paused {} of {}", only.label(), whole(scope)),
        Notice::Resumed { scope, only } => format!("resumed {} of {}", only.label(), whole(scope)),
        Notice::GuardTripped { guard, limit, group } => {
            format!("guard {} of {limit} tripped for {}", guard.label(), whole(group))
        }
    };
    text.replace(['\n', '\r'], " ")
}

fn whole(scope: &Option<String>) -> &str {
    scope.as_deref().unwrap_or("the whole run")
}
