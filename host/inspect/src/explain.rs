//! Why a node is where it is, what ends that, and what a person can do (SPEC 12).

use api::wire::{Explanation, Fact, RuleRow};
use decider::HoldKind;
use decider::facts::Facts;
use decider::ladder::first_match;
use engine::driver::Driver;
use engine::pause::HeldBy;
use engine::state::{Decision, Slot};
use engine::view::NodeView;
use step::table::{conditions, is_ladder};
use step::text::lasting;

/// Explains a node; `None` where no slot has that name, or nothing is wanted or left of it.
pub fn explain(driver: &Driver, name: &str) -> Option<Explanation> {
    let state = driver.state();
    let slot = state.slot(*state.names.get(name)?)?;
    let view = driver.node_view(name)?;
    let now_ms = driver.now_ms();
    // Once something happened to it, the last decision explains nothing any more.
    let decision = slot.decision.as_ref().filter(|decision| decision.revision == slot.revision);
    let asked = driver.asked_about(name);
    let asked = asked.as_ref().and_then(|asked| Some(Facts::in_snapshot(&asked.nodes.row(0)?, asked)));
    let row = decision.and_then(|decision| rule_row(driver, decision, asked));
    let asks: Vec<String> = row.iter().flat_map(|row| &row.when).map(|when| column(when).to_owned()).collect();
    let facts = asked.map(|asked| facts(asked, &asks)).unwrap_or_default();
    let ends = ends(&view, decision);
    let next_step = next_step(slot, &view, decision);
    Some(Explanation {
        schema: "homeostat.explanation/v1".into(),
        node: view.node.clone(),
        attempt: view.attempt,
        now_ms,
        summary: summary(&view, row.as_ref(), &ends, &next_step, now_ms),
        rule: row,
        decided_ms: decision.map(|decision| decision.at_ms),
        verb: decision.map(|decision| decision.verb.label().into()),
        facts,
        ends,
        until_ms: view.until_ms,
        next_step,
    })
}

/// `wanted = same` is about `wanted`.
fn column(when: &str) -> &str {
    when.split(" = ").next().unwrap_or(when)
}

/// The row that decided: of the built-in table where the decider declares it, else the rule's sentence alone.
fn rule_row(driver: &Driver, decision: &Decision, asked: Option<Facts>) -> Option<RuleRow> {
    let rules = &driver.decider().rules;
    let rule = rules.iter().find(|rule| *rule.id == *decision.rule)?;
    let matched = asked.filter(|_| is_ladder(rules)).map(first_match);
    // Time may have passed a deadline since: then another row matches, and this one is known by its sentence only.
    let matched = matched.filter(|row| format!("R{}", row.rule) == *decision.rule);
    Some(RuleRow {
        id: rule.id.clone(),
        reason: matched.map_or_else(|| rule.sentence.clone(), |row| row.reason.to_owned()),
        when: matched
            .into_iter()
            .flat_map(conditions)
            .map(|(column, words)| format!("{column} = {}", words.replace('|', " or ")))
            .collect(),
    })
}

fn facts(asked: Facts, asks: &[String]) -> Vec<Fact> {
    let words = asked.words();
    let fact = |name: String, value: &str| Fact { matters: asks.contains(&name), name, value: value.to_owned() };
    words.into_iter().map(|(column, word)| fact(column.label().to_lowercase(), word)).collect()
}

/// What ends the wait.
fn ends(view: &NodeView, decision: Option<&Decision>) -> String {
    if let Some(held) = &view.held {
        return held.clone();
    }
    if view.waits_for.is_empty() {
        return match decision.and_then(|decision| decision.hold) {
            Some(HoldKind::Steady) => "a change: of the shape, or of the node".into(),
            _ => String::new(),
        };
    }
    view.waits_for.clone()
}

/// What a person can do, if anything.
fn next_step(slot: &Slot, view: &NodeView, decision: Option<&Decision>) -> String {
    let name = &view.node;
    if let Some(held) = slot.held.as_ref().filter(|_| view.held.is_some()) {
        return match &held.by {
            HeldBy::Pause(pause) => format!("`{}` lets it go on", pause.resume()),
            HeldBy::LiveResources { .. } => {
                "raise `live-resources` under [guards] in the fleet file, or ask for fewer nodes; else it goes on when one goes"
                    .into()
            }
            HeldBy::Twin => "nothing: it goes on when the other one is gone".into(),
            HeldBy::Rollout { group } => {
                format!("set `rollout.paused = false` for the group {group:?} in the fleet file, and apply it")
            }
        };
    }
    if view.decider_fails {
        return "`homeostat doctor` says how the decider fails; use another one, or change what it is asked about"
            .into();
    }
    match decision.and_then(|decision| decision.hold) {
        Some(HoldKind::Budget) => {
            return "nothing: its turn comes when others of its group are ready; `homeostat status` shows which are not, and a \
                    larger `rollout.max-unavailable` in the fleet file lets more be replaced at once"
                .into();
        }
        Some(HoldKind::Circuit) => {
            return format!(
                "look why others of its group fail: `homeostat status`, then `homeostat history NODE`; a mended template goes \
                 out at once to those that fail, and {name} follows when enough of them are ready"
            );
        }
        _ => {}
    }
    if let Some(decision) = decision.filter(|decision| decision.hold == Some(HoldKind::Person)) {
        if &*decision.rule != "R17" {
            return format!(
                "do what its rule, {}, asks for; `homeostat decider inspect` lists the rules",
                decision.rule
            );
        }
        return format!(
            "its facts contradict each other: look at `homeostat history {name}`, then `homeostat kill {name}` to replace \
             it, or `homeostat destroy {name}` to do without"
        );
    }
    let held = slot.node.as_ref();
    let permanent = held.and_then(|held| held.failure.as_ref()).is_some_and(|failure| failure.permanent);
    let ambiguous = held.and_then(|held| held.retry.ambiguous.as_ref());
    if permanent {
        return "trying again cannot help: change its template in the fleet file, and apply it".into();
    }
    if let Some(doubt) = ambiguous {
        return format!(
            "nothing: whether its {} happened is being found out; nothing is made or destroyed until that is known",
            doubt.kind.label()
        );
    }
    match (view.failures, view.ready && !view.deleting) {
        (_, true) if view.error.is_some() => {
            format!(
                "look whether it still works, and if it does not, `homeostat kill {name}`: a new one takes its place"
            )
        }
        (_, true) => "nothing".into(),
        (0 | 1, _) => "nothing: it goes on by itself".into(),
        // What an attempt wrote goes with its resource; the end of it is kept until another one is gone.
        (failures, _) if held.is_some_and(|held| held.climbs() && held.lease.is_some()) => format!(
            "it failed {failures} times in a row and is tried again: `homeostat history {name}` shows why, and \
             `homeostat logs {name} --previous` what the attempt before wrote last"
        ),
        (failures, _) => {
            format!(
                "it failed {failures} times in a row and is tried again: `homeostat history {name}` shows why, and \
                 `homeostat logs {name}` what it wrote last"
            )
        }
    }
}

/// All of it in a line.
fn summary(view: &NodeView, row: Option<&RuleRow>, ends: &str, next_step: &str, now_ms: u64) -> String {
    let what = match (view.attempt, view.deleting) {
        (None, _) => "is vacant".to_owned(),
        (Some(attempt), true) => format!("is being taken down at {} (attempt {attempt})", view.stage),
        (Some(attempt), false) if view.ready => format!("is ready (attempt {attempt})"),
        (Some(attempt), false) => format!("is at {} (attempt {attempt})", view.stage),
    };
    let mut line = format!("{} {what}", view.node);
    if let Some(error) = &view.error {
        line.push_str(&format!(", after: {error}"));
    }
    if let Some(row) = row {
        line.push_str(&format!("; {}: {}", row.id, row.reason));
    }
    if !ends.is_empty() {
        line.push_str(&format!("; waits for {ends}"));
        if let Some(until) = view.until_ms {
            line.push_str(&format!(", {} at most", lasting(until.saturating_sub(now_ms))));
        }
    }
    let todo = next_step.split(':').next().unwrap_or(next_step);
    line.push_str(&format!(". To do: {}.", if todo == "nothing" { "nothing" } else { next_step }));
    line
}
