//! `homeostat decider run`.

use decider::{DecisionRow, Description, HoldKind, NO_INDEX, Plan, Snapshot, Verb};
use engine::validate::check_plan;
use serde::Serialize;

use super::super::table::Table;
use super::super::{Failure, Terminal};
use crate::sandbox::LoadedDecider;
use crate::view::lasting;

#[derive(Serialize)]
struct Decided<'a> {
    schema: &'static str,
    decider: &'a str,
    now_ms: u64,
    wake_at_ms: u64,
    decisions: Vec<DecidedNode<'a>>,
}

#[derive(Serialize)]
struct DecidedNode<'a> {
    node: u32,
    name: Option<String>,
    attempt: u64,
    rule: &'a str,
    verb: &'static str,
    hold: Option<&'static str>,
    until_ms: Option<u64>,
}

pub(super) fn run(decider: &LoadedDecider, snapshot: &Snapshot, terminal: &Terminal) -> Result<(), Failure> {
    let failed =
        |class: &str, detail: String| Failure::Failed(anyhow::anyhow!("{} ({class}): {detail}", decider.digest()));
    let plan = decider.reconcile(snapshot).map_err(|failure| failed(failure.class(), failure.to_string()))?;
    // A plan is the guest's word: what the engine would refuse is not shown as if it counted.
    let description = decider.description();
    check_plan(&plan, snapshot, description.rules.len()).map_err(|error| failed("invalid-plan", error.to_string()))?;
    let decisions = plan.decisions.rows().map(|row| decided(&row, snapshot, description)).collect::<Vec<_>>();
    if terminal.is_json() {
        let (now_ms, wake_at_ms) = (snapshot.now_ms, plan.wake_at_ms);
        let schema = "homeostat.decision/v1";
        return terminal.print_json(&Decided { schema, decider: decider.digest(), now_ms, wake_at_ms, decisions });
    }
    terminal.print(&text(&plan, snapshot, &decisions, terminal))
}

fn decided<'a>(row: &DecisionRow, snapshot: &Snapshot, description: &'a Description) -> DecidedNode<'a> {
    DecidedNode {
        node: row.node,
        name: name(row.node, snapshot),
        attempt: row.attempt,
        rule: description.rules.get(usize::from(row.rule)).map_or("?", |rule| rule.id.as_str()),
        verb: Verb::from_code(row.verb).map_or("?", Verb::label),
        hold: HoldKind::from_code(row.hold).map(HoldKind::label),
        until_ms: (row.until > 0).then_some(row.until),
    }
}

/// The slot's name, while its group is in the shape.
fn name(node: u32, snapshot: &Snapshot) -> Option<String> {
    let row = snapshot.nodes.row(snapshot.nodes.node.binary_search(&node).ok()?)?;
    if row.group == NO_INDEX {
        return None;
    }
    let group = snapshot.groups.get(row.group as usize)?;
    Some(engine::shape::slot_name(&group.name, row.slot))
}

fn text(plan: &Plan, snapshot: &Snapshot, decisions: &[DecidedNode<'_>], terminal: &Terminal) -> String {
    let instant = |at: u64| match at.checked_sub(snapshot.now_ms) {
        Some(left) => format!("in {}", lasting(left)),
        None => format!("{} ago", lasting(snapshot.now_ms - at)),
    };
    let mut table = Table::new(&["node", "attempt", "rule", "verb", "waits for", "until"]);
    for one in decisions {
        table.push([
            one.name.clone().unwrap_or_else(|| format!("#{}", one.node)),
            if one.attempt == 0 { "-".into() } else { format!("a{}", one.attempt) },
            one.rule.to_owned(),
            one.verb.to_owned(),
            one.hold.unwrap_or_default().to_owned(),
            one.until_ms.map(instant).unwrap_or_default(),
        ]);
    }
    let wake = match plan.wake_at_ms {
        0 => "nothing changes by time alone".to_owned(),
        at => format!("to be asked again {}", instant(at)),
    };
    format!("{}\n{wake}\n", table.render(&terminal.style()))
}
