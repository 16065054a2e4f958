//! Which rules decided anything, and how often: the decider's own, and for the built-in ladder the rows of its table (SPEC 4).

use decider::ladder::{LADDER, Verdict, first_match};
use decider::{DecisionRow, Rule, Verb, facts::Facts};
use serde::Serialize;

/// Decisions of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub rules: Vec<u64>,
    /// Rows of the built-in ladder; none for another decider.
    pub rows: Option<Vec<u64>>,
}

impl Counts {
    pub fn new(rules: &[Rule]) -> Self {
        let built_in = rules == decider::describe().rules;
        Counts { rules: vec![0; rules.len()], rows: built_in.then(|| vec![0; LADDER.len()]) }
    }

    pub fn count(&mut self, facts: Option<Facts>, decision: &DecisionRow) {
        if let Some(count) = self.rules.get_mut(usize::from(decision.rule)) {
            *count += 1;
        }
        let (Some(rows), Some(facts)) = (&mut self.rows, facts) else { return };
        let row = first_match(facts);
        let verb = match row.then {
            Verdict::Act(verb) => verb,
            Verdict::Hold(..) => Verb::Hold,
        };
        let at = LADDER.iter().position(|known| std::ptr::eq(known, row));
        if row.rule == decision.rule
            && verb.code() == decision.verb
            && let Some(count) = at.and_then(|at| rows.get_mut(at))
        {
            *count += 1;
        }
    }

    pub fn total(&self) -> u64 {
        self.rules.iter().sum()
    }
}

/// How often something decided, and in how many cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Covered {
    /// The rule's id.
    pub rule: String,
    /// What it says; for a row of the ladder, when it matches.
    pub sentence: String,
    /// Decisions.
    pub decisions: u64,
    /// Cases in which it decided anything.
    pub cases: u64,
}

/// What a run of scenarios exercised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Each declared rule, in its order.
    pub rules: Vec<Covered>,
    /// For the built-in ladder, each row of its table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Vec<Covered>>,
}

impl Coverage {
    /// Nothing yet.
    pub fn new(rules: &[Rule]) -> Self {
        let none = |rule: &str, sentence: &str| Covered {
            rule: rule.into(),
            sentence: sentence.into(),
            decisions: 0,
            cases: 0,
        };
        let row = |row: &decider::ladder::Row| {
            let id = rules.get(usize::from(row.rule)).map_or("?", |rule| rule.id.as_str());
            let then = match row.then {
                Verdict::Act(verb) => verb.label(),
                Verdict::Hold(..) => Verb::Hold.label(),
            };
            none(id, &format!("{then}: {}", row.reason))
        };
        Coverage {
            rules: rules.iter().map(|rule| none(&rule.id, &rule.sentence)).collect(),
            rows: (rules == decider::describe().rules).then(|| LADDER.iter().map(row).collect()),
        }
    }

    pub(crate) fn add(&mut self, counts: &Counts) {
        let rows = self.rows.iter_mut().flatten().zip(counts.rows.iter().flatten());
        for (covered, count) in self.rules.iter_mut().zip(&counts.rules).chain(rows) {
            covered.decisions += count;
            covered.cases += u64::from(*count > 0);
        }
    }

    /// Ids of the rules that decided nothing.
    pub fn uncovered(&self) -> Vec<&str> {
        self.rules.iter().filter(|rule| rule.decisions == 0).map(|rule| rule.rule.as_str()).collect()
    }

    /// Rows of the ladder that decided nothing.
    pub fn uncovered_rows(&self) -> Vec<&Covered> {
        self.rows.iter().flatten().filter(|row| row.decisions == 0).collect()
    }

    /// The share of the rules that decided something, in per cent, rounded down; 100 when none are declared.
    pub fn percent(&self) -> u64 {
        let all = self.rules.len() as u64;
        let covered = all - self.uncovered().len() as u64;
        (covered * 100).checked_div(all).unwrap_or(100)
    }
}
