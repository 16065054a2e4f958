//! What is kept of the decisions of a case: the latest of each node, how often each rule decided, what must never be.

use std::collections::BTreeMap;

use decider::facts::Facts;
use decider::{DecisionRow, Plan, Snapshot, Verb};
use engine::invariants::Violation;
use engine::io::DeciderFailure;
use engine::state::ClusterState;

use crate::cover::Counts;
use crate::expect::{Never, What, decision_text, like, slot_text, standing_text, stands};
use crate::judge::judge;
use crate::session::Subject;

/// Of each kind, so many are kept.
const KEPT: usize = 50;
/// So many decisions of a node are kept since the last event.
const MAX_SEEN: usize = 1_000;

/// A decision and its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub at_ms: u64,
    pub row: DecisionRow,
}

/// What must not happen from its line on.
struct Watch {
    line: usize,
    text: String,
    never: Never,
    tripped: bool,
}

/// A `never` that happened.
pub(crate) struct Tripped {
    pub line: usize,
    pub text: String,
    pub at_ms: u64,
    pub node: String,
    pub expected: String,
    pub got: String,
}

pub(crate) struct Log {
    subject: Subject,
    pub counts: Counts,
    /// Since the last event; a decision that is the same as the one before it is one.
    pub seen: BTreeMap<String, Vec<Seen>>,
    /// The latest of each node.
    pub standing: BTreeMap<String, Seen>,
    /// How far the expectations have come in `seen`.
    pub reached: BTreeMap<String, usize>,
    watches: Vec<Watch>,
    pub tripped: Vec<Tripped>,
    pub violations: Vec<Violation>,
}

impl Log {
    pub fn new(subject: Subject) -> Self {
        let counts = Counts::new(&subject.identity.rules);
        Log {
            subject,
            counts,
            seen: BTreeMap::new(),
            standing: BTreeMap::new(),
            reached: BTreeMap::new(),
            watches: Vec::new(),
            tripped: Vec::new(),
            violations: Vec::new(),
        }
    }

    /// Something happens: what was decided before it is history.
    pub fn event(&mut self) {
        self.seen.clear();
        self.reached.clear();
    }

    pub fn forget(&mut self) {
        self.event();
        self.standing.clear();
    }

    pub fn watch(&mut self, line: usize, text: &str, never: Never) {
        self.watches.push(Watch { line, text: text.into(), never, tripped: false });
    }

    pub fn violated(&mut self, violation: Violation) {
        if self.violations.len() < KEPT && !self.violations.iter().any(|known| known.id == violation.id) {
            self.violations.push(violation);
        }
    }

    /// A plan, before the engine has seen it.
    pub fn decided(
        &mut self,
        snapshot: &Snapshot,
        plan: &Plan,
        ask: &mut dyn FnMut(&Snapshot) -> Result<Plan, DeciderFailure>,
        name: &dyn Fn(u32) -> Option<String>,
    ) {
        if let Some(violation) = judge(snapshot, plan, self.subject.identity.rules.len(), ask) {
            self.violated(violation);
        }
        let at_ms = snapshot.now_ms;
        for row in plan.decisions.rows() {
            let known = snapshot.nodes.node.binary_search(&row.node).ok();
            let asked = known.and_then(|at| snapshot.nodes.row(at));
            self.counts.count(asked.map(|asked| Facts::in_snapshot(&asked, snapshot)), &row);
            let node = name(row.node).unwrap_or_else(|| format!("node {}", row.node));
            self.trip(&node, &row, at_ms);
            let seen = Seen { at_ms, row };
            self.standing.insert(node.clone(), seen);
            let all = self.seen.entry(node).or_default();
            if all.last().is_none_or(|last| last.row != row) && all.len() < MAX_SEEN {
                all.push(seen);
            }
        }
    }

    fn trip(&mut self, node: &str, row: &DecisionRow, at_ms: u64) {
        let rule = self.subject.rule(row.rule).to_owned();
        for watch in &mut self.watches {
            let What::Decision(demand) = &watch.never.what else { continue };
            if !watch.tripped && like(&watch.never.who, node) && demand.matches(row, &rule) {
                watch.tripped = true;
                let (expected, got) = (format!("never {}", demand.text()), decision_text(row, &rule));
                self.tripped.push(watch.tripped(node, at_ms, expected, got));
            }
        }
    }

    /// Where the nodes stand after a step.
    pub fn stands(&mut self, at_ms: u64, state: &ClusterState) {
        for watch in &mut self.watches {
            let What::Stands { all, not } = &watch.never.what else { continue };
            if watch.tripped {
                continue;
            }
            let slots = state.slots.iter().filter(|slot| like(&watch.never.who, &slot.name));
            if let Some(slot) = slots.into_iter().find(|slot| stands(all, *not, Some(slot))) {
                watch.tripped = true;
                let expected = format!("never {}", standing_text(all, *not));
                self.tripped.push(watch.tripped(&slot.name, at_ms, expected, slot_text(Some(slot))));
            }
        }
    }

    /// Decisions since the last event from where the expectations have come to; else the hold that still stands.
    pub fn latest(&self, node: &str) -> &[Seen] {
        let reached = self.reached.get(node).copied().unwrap_or(0);
        match (self.seen.get(node), self.standing.get(node)) {
            (Some(seen), _) => seen.get(reached..).unwrap_or_default(),
            (None, Some(standing)) if standing.row.verb == Verb::Hold.code() => std::slice::from_ref(standing),
            _ => &[],
        }
    }

    pub fn text(&self, seen: &Seen) -> String {
        decision_text(&seen.row, self.subject.rule(seen.row.rule))
    }
}

impl Watch {
    fn tripped(&self, node: &str, at_ms: u64, expected: String, got: String) -> Tripped {
        Tripped { line: self.line, text: self.text.clone(), at_ms, node: node.into(), expected, got }
    }
}
