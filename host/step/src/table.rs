//! The ladder, held against a decision: the row that matched, fact by fact.

use decider::facts::{Column, Facts};
use decider::ladder::{LADDER, RULES, Row, Until, Verdict, first_match};
use decider::{DecisionRow, HoldKind, NodeRow, Rule, Snapshot};

use crate::page::Page;
use crate::words::verb;

/// What a node was asked with, and what was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub row: NodeRow,
    facts: Facts,
    pub decision: DecisionRow,
}

impl Asked {
    /// The part of a pass that is about one node.
    pub fn of(snapshot: &Snapshot, plan: &decider::Plan, node: u32) -> Option<Self> {
        let row = snapshot.nodes.rows().find(|row| row.node == node)?;
        let decision = plan.decisions.rows().find(|row| row.node == node)?;
        Some(Asked { row, facts: Facts::in_snapshot(&row, snapshot), decision })
    }

    pub fn facts(&self) -> Facts {
        self.facts
    }

    /// The row of this program's table that matches.
    pub fn matched(&self) -> &'static Row {
        first_match(self.facts())
    }

    /// Whether that row decides what was decided by this rule.
    pub fn agrees(&self, rule: &str) -> bool {
        let row = self.matched();
        let (verb, hold, until) = match row.then {
            Verdict::Act(verb) => (verb.code(), 0, 0),
            Verdict::Hold(kind, until) => (0, kind.code(), until.of(&self.row)),
        };
        let DecisionRow { verb: v, hold: h, until: u, .. } = self.decision;
        (id(row.rule), verb, hold, until) == (rule, v, h, u)
    }
}

/// The id of a rule of this program's table.
fn id(rule: u8) -> &'static str {
    RULES.get(usize::from(rule)).map_or("?", |(id, _)| *id)
}

/// The rules that the table has had from the beginning; numbers from here on came later.
const FIRST: usize = 18;

/// Whether these are the rules of this program's table, or of an earlier one, in whatever order.
pub fn is_ladder(rules: &[Rule]) -> bool {
    let is = |rule: &Rule, (id, sentence): &(&str, &str)| rule.id == *id && rule.sentence == *sentence;
    let there = |known: &(&str, &str)| rules.iter().any(|rule| is(rule, known));
    RULES.iter().take(FIRST).all(there) && rules.iter().all(|rule| RULES.iter().any(|known| is(rule, known)))
}

/// The facts that a row allows in one column; `None` when it asks for nothing there.
fn allowed(row: &Row, column: Column) -> Option<Vec<&'static str>> {
    let values = column.values();
    let known: Vec<_> = values.iter().filter(|(word, _)| *word != "?").collect();
    if known.iter().all(|(_, bit)| row.when & bit != 0) {
        return None;
    }
    Some(values.iter().filter(|(_, bit)| row.when & bit != 0).map(|(word, _)| *word).collect())
}

/// What a row asks for, in one line: `wanted no; standing destroyed; …`.
pub fn condition(row: &Row) -> String {
    let columns: Vec<String> = conditions(row).map(|(column, words)| format!("{column} {words}")).collect();
    if columns.is_empty() { "whatever no other row matches".into() } else { columns.join(", ") }
}

/// The columns in which a row asks for something, and the words it allows there.
pub fn conditions(row: &Row) -> impl Iterator<Item = (String, String)> {
    Column::ALL.iter().filter_map(|column| {
        let words = allowed(row, *column)?;
        Some((column.label().to_lowercase(), words.join("|")))
    })
}

/// What a row decides.
pub(crate) fn verdict(row: &Row) -> String {
    match row.then {
        Verdict::Act(act) => act.label().into(),
        Verdict::Hold(kind, until) => {
            let until = match until {
                Until::Open => return format!("hold for {}", kind.label()),
                Until::Restart => "restart-at",
                Until::Deadline => "pending-deadline",
                Until::Effect => "next-effect-at",
                Until::Look => "probe-at",
                Until::Stage => "stage-deadline",
            };
            format!("hold for {}, until {until}", kind.label())
        }
    }
}

/// What was decided, in a few words.
pub(crate) fn decided(decision: &DecisionRow) -> String {
    match HoldKind::from_code(decision.hold) {
        Some(kind) => format!("hold for {}", kind.label()),
        None => verb(decision.verb).into(),
    }
}

/// The row that decided a node, each fact beside what the row allows.
pub(crate) fn show(asked: &Asked, page: &mut Page) {
    let row = asked.matched();
    page.row(&[("fact", 10), ("asked with", 12), ("the row allows", 0)], true);
    for (column, word) in asked.facts().words() {
        let allows = allowed(row, column).map_or_else(|| "any".into(), |words| words.join(" "));
        page.row(&[(&column.label().to_lowercase(), 10), (word, 12), (&allows, 0)], false);
    }
    page.indented("then       ", &verdict(row));
    page.indented("because    ", row.reason);
}

/// The rows of one rule of this program's table.
pub(crate) fn rows(rule: &str) -> impl Iterator<Item = &'static Row> {
    LADDER.iter().filter(move |row| id(row.rule) == rule)
}
