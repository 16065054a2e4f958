//! One record as a page: what it says, whom it changed, and what the node that is looked at was, was told, and waits for.

use std::collections::BTreeSet;

use decider::{Plan, Verb};
use engine::id::{AttemptId, Millis};
use engine::view::NodeView;
use journal::{Entry, Step};

use crate::facts::{NONE, facts, slot};
use crate::page::{Page, WIDTH};
use crate::table::{Asked, condition, decided, is_ladder};
use crate::tape::Scene;
use crate::text::{counted, lasting, since, time_of_day};
use crate::trail::Trail;
use crate::words::verb;

/// So many lines of one kind; the rest is counted.
const MOST_LINES: usize = 20;

/// The record and all that is known around it.
pub(crate) fn show(
    scene: &Scene,
    last: u64,
    focus: Option<&str>,
    touched: &[&str],
    broken: &[String],
    page: &mut Page,
) {
    let line = &scene.line;
    let label = match &line.entry {
        Entry::Input { of, .. } => of.label(),
        entry => entry.label(),
    };
    let time = format!("{}  {}", since(scene.after.started_ms(), line.at_ms), time_of_day(line.at_ms));
    page.title(&format!("record {}/{last}  {label}  {time}", line.seq));
    // The names as they are known afterwards: what is new has one.
    page.say(&scene.after.words().record(&line.entry, line.at_ms));
    for what in broken {
        page.alarm(&format!("violation: {what}"));
    }
    if scene.after.driver().is_none() {
        page.aside("The engine of this program could not follow so far: facts are not known until the next start.");
        return;
    }
    let outputs = scene.after.outputs().iter().filter_map(|output| scene.after.words().output(output));
    for words in outputs.take(MOST_LINES) {
        page.indented("  ", &words);
    }
    match (focus, touched) {
        (Some(node), _) => one(scene, node, page),
        (None, [node]) => one(scene, node, page),
        (None, []) => {}
        (None, many) => {
            page.gap();
            changes(scene, many, page);
        }
    }
}

/// Several nodes, a line each.
fn changes(scene: &Scene, nodes: &[&str], page: &mut Page) {
    page.row(&[("node", 18), ("attempt", 7), ("stage", 32), ("decided", 0)], true);
    for name in nodes.iter().take(MOST_LINES) {
        let stage = |trail: &Trail| {
            let held = slot(trail, name).and_then(|slot| slot.node.as_ref());
            held.map_or("vacant", |node| node.stage.label())
        };
        let (before, after) = (stage(&scene.before), stage(&scene.after));
        let stage = if before == after { after.to_owned() } else { format!("{before} -> {after}") };
        let slot = slot(&scene.after, name);
        let attempt =
            slot.and_then(|slot| slot.node.as_ref()).map_or_else(|| NONE.into(), |node| node.attempt.to_string());
        let told =
            told(scene, name).map_or_else(String::new, |(rule, asked)| format!("{rule} {}", verb(asked.decision.verb)));
        page.row(&[(name, 18), (&attempt, 7), (&stage, 32), (&told, 0)], false);
    }
    if nodes.len() > MOST_LINES {
        page.aside(&format!("and {} more", nodes.len() - MOST_LINES));
    }
    page.aside("`node NAME` shows one of them.");
}

/// One node: its facts before and after, what it was told, and what it waits for.
fn one(scene: &Scene, name: &str, page: &mut Page) {
    page.gap();
    let (before, after) = (facts(&scene.before, name), facts(&scene.after, name));
    let known: BTreeSet<bool> = [&scene.before, &scene.after].map(|trail| slot(trail, name).is_some()).into();
    if !known.contains(&true) {
        page.aside(&format!("{name} is not known at this record."));
        return;
    }
    page.row(&[(name, 19), ("  before", 30), ("  after", 0)], true);
    for ((fact, was), (_, is)) in before.iter().zip(&after) {
        let changed = was != is;
        if changed || is != NONE {
            let mark = if changed { "*" } else { " " };
            page.row(&[(fact, 19), (" ", 1), (was, 28), (mark, 1), (is, 0)], changed);
        }
    }
    page.gap();
    decision(scene, name, page);
    let view = scene.after.driver().map(engine::driver::Driver::view);
    let Some(view) = view.as_ref().and_then(|view| view.nodes.iter().find(|node| node.node == name)) else { return };
    page.indented("waits for ", &waits(view, &scene.after, scene.line.at_ms));
}

/// What a node waits for and until when, in one sentence.
fn waits(view: &NodeView, trail: &Trail, now_ms: Millis) -> String {
    let what = what(view, trail);
    match view.until_ms.map(|until| (since(trail.started_ms(), until), until.checked_sub(now_ms))) {
        Some((until, Some(left))) => format!("{what}, until {until} (in {})", lasting(left)),
        Some((until, None)) => format!("{what}, until {until} (past)"),
        None => what.to_owned(),
    }
}

/// What a node waits for.
fn what<'a>(view: &'a NodeView, trail: &Trail) -> &'a str {
    let last = slot(trail, &view.node).and_then(|slot| slot.decision.as_ref());
    match last.map(|decision| decision.verb) {
        _ if view.waits_for.is_empty() => "nothing (steady)",
        // Done when it was decided; what comes next is for the next pass to say.
        Some(verb) if verb != Verb::Hold && verb.operation().is_none() && view.waits_for == verb.label() => {
            "a decision"
        }
        _ => view.waits_for.as_str(),
    }
}

/// What this record decided about a node, with the id of the rule.
pub(crate) fn told(scene: &Scene, name: &str) -> Option<(String, Asked)> {
    let Some(Step::Answered { asked: Some(asked), answer: Ok(plan) }) = &scene.step else { return None };
    let node = *scene.before.state()?.names.get(name)?;
    let part = Asked::of(&asked.snapshot, plan, node.0)?;
    let rule = asked.rules.get(usize::from(part.decision.rule));
    Some((rule.map_or_else(|| format!("rule #{}", part.decision.rule), |rule| rule.id.clone()), part))
}

fn decision(scene: &Scene, name: &str, page: &mut Page) {
    match (&scene.step, told(scene, name)) {
        (Some(Step::Answered { asked: Some(asked), .. }), Some((id, part))) => {
            let rule = asked.rules.get(usize::from(part.decision.rule));
            page.indented("", &format!("decided: {id} {}", decided(&part.decision)));
            if let Some(rule) = rule {
                page.indented("  rule    ", &rule.sentence);
            }
            if is_ladder(&asked.rules) {
                let row = part.matched();
                if part.agrees(&id) {
                    page.indented("  row     ", &condition(row));
                    page.indented("  because ", row.reason);
                } else {
                    page.alarm(&format!("  this program's table would say R{}: {}", row.rule, row.reason));
                }
            }
            if is_skipped(scene, name) {
                page.alarm("  not applied: the node had changed while it was decided, or the plan is not valid");
            }
        }
        (Some(Step::Answered { asked: Some(asked), answer: Ok(Plan { decisions, .. }) }), None) => {
            let asked = counted(asked.snapshot.nodes.len() as u64, "node");
            page.aside(&format!("not decided here: asked about {asked}, {} decided", decisions.len()));
        }
        _ => {
            let last = slot(&scene.after, name).and_then(|slot| slot.decision.as_ref());
            if let Some(last) = last {
                let hold =
                    last.hold.map_or_else(|| last.verb.label().to_owned(), |hold| format!("hold for {}", hold.label()));
                let at = since(scene.after.started_ms(), last.at_ms);
                page.aside(&format!("last decided at {at}: {} {hold}", last.rule));
            }
        }
    }
}

/// Whether the decision about a node came to nothing.
fn is_skipped(scene: &Scene, name: &str) -> bool {
    let (Some(before), Some(after)) = (scene.before.driver(), scene.after.driver()) else { return false };
    let decision = |trail| slot(trail, name).and_then(|slot| slot.decision.clone());
    let (was, is) = (decision(&scene.before), decision(&scene.after));
    let reaped = slot(&scene.before, name).is_some_and(|slot| slot.node.is_some())
        && slot(&scene.after, name).is_some_and(|slot| slot.node.is_none());
    let stale = after.stats().stale_decisions > before.stats().stale_decisions;
    let passed = is.as_ref().is_some_and(|decision| decision.at_ms == after.now_ms());
    !reaped && was == is && (stale || !passed)
}

/// The nodes, a line each.
pub(crate) fn nodes(scene: &Scene, wanted: Option<&str>, page: &mut Page) {
    let Some(driver) = scene.after.driver() else {
        page.aside("The engine of this program could not follow so far.");
        return;
    };
    let view = driver.view();
    let state = if view.converged { "converged" } else { "not converged" };
    page.title(&format!("{}: generation {}, {state}", view.run, view.generation));
    let chosen: Vec<&NodeView> =
        view.nodes.iter().filter(|node| wanted.is_none_or(|text| node.node.contains(text))).collect();
    if chosen.is_empty() {
        page.aside("no such nodes");
        return;
    }
    page.row(&[("node", 18), ("attempt", 7), ("stage", 17), ("rule", 4), ("waits for", 19), ("until", 0)], true);
    for node in chosen.iter().take(2 * MOST_LINES) {
        let attempt = node.attempt.map_or_else(|| NONE.into(), |attempt| AttemptId(attempt).to_string());
        let stage = if node.deleting { format!("{}, deleting", node.stage) } else { node.stage.to_owned() };
        let until = node.until_ms.map_or_else(String::new, |until| since(scene.after.started_ms(), until));
        let rule = node.rule.as_deref().unwrap_or(NONE);
        page.row(
            &[(&node.node, 18), (&attempt, 7), (&stage, 17), (rule, 4), (what(node, &scene.after), 19), (&until, 0)],
            false,
        );
    }
    if chosen.len() > 2 * MOST_LINES {
        page.aside(&format!(
            "and {} more; `nodes TEXT` shows those with TEXT in their names",
            chosen.len() - 2 * MOST_LINES
        ));
    }
    for reap in view.reaping.iter().take(MOST_LINES) {
        page.indented("  ", &format!("being destroyed: {reap}"));
    }
    for orphan in view.orphans.iter().take(MOST_LINES) {
        page.indented("  ", &format!("nobody's: {orphan}"));
    }
    for pause in view.pauses.iter().take(MOST_LINES) {
        page.indented("  ", &pause.words);
    }
}

/// The record as it is in the file.
pub(crate) fn record(scene: &Scene, all: bool, page: &mut Page) {
    let text = serde_json::to_string(&scene.line.entry).unwrap_or_default();
    let lines = crate::text::wrap(&text, WIDTH);
    let most = if all { usize::MAX } else { 2 * MOST_LINES };
    for line in lines.iter().take(most) {
        page.line(line);
    }
    if lines.len() > most {
        page.aside(&format!("and {} more lines: `record all`", lines.len() - most));
    }
    page.aside(&format!("hash {}", scene.line.hash));
}
