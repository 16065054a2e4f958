//! What was decided lately, with the facts it rests on and what it changed. It is kept in memory, bounded: the journal has
//! all of it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::wire::{Decided, Decisions, FieldChange};
use decider::facts::Facts;
use decider::{Plan, Snapshot, Verb};
use engine::driver::Driver;
use engine::id::NodeId;
use engine::state::Slot;
use step::facts::facts_of;
use step::text::time_of_day;

/// How many decisions are kept.
const KEPT: usize = 2_000;
/// Of one pass, so many at most: the first pass of a large fleet must not wait for its own description.
const OF_ONE_PASS: usize = 200;

/// The latest decisions.
#[derive(Debug, Default)]
pub struct DecisionLog {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    last: u64,
    decisions: VecDeque<Decided>,
}

/// A decision that will be shown, before it is applied.
#[derive(Debug)]
pub struct Candidate {
    node: NodeId,
    rule: u8,
    verb: u8,
    until: u64,
    facts: Vec<(String, String)>,
    before: Vec<(&'static str, String)>,
}

impl DecisionLog {
    /// What of a plan is worth showing: whatever acts, and holds by another rule than before. To be called before the plan is
    /// folded, with the snapshot that it answers.
    pub fn candidates(driver: &Driver, snapshot: &Snapshot, plan: &Plan) -> Vec<Candidate> {
        let rules = &driver.decider().rules;
        let mut found = Vec::new();
        for (at, row) in plan.decisions.rows().enumerate() {
            let node = NodeId(row.node);
            let Some(slot) = driver.state().slot(node) else { continue };
            let known = slot.decision.as_ref().map(|decision| &*decision.rule);
            let same = known == rules.get(usize::from(row.rule)).map(|rule| rule.id.as_str());
            if row.verb == Verb::Hold.code() && same {
                continue;
            }
            let asked = snapshot.nodes.row(at).filter(|asked| asked.node == row.node);
            let Some(asked) = asked.or_else(|| snapshot.nodes.rows().find(|asked| asked.node == row.node)) else {
                continue;
            };
            let words = Facts::in_snapshot(&asked, snapshot).words();
            let facts = words.into_iter().map(|(column, word)| (column.label().to_lowercase(), word.to_owned()));
            found.push(Candidate {
                node,
                rule: row.rule,
                verb: row.verb,
                until: row.until,
                facts: facts.collect(),
                before: state(slot),
            });
            if found.len() == OF_ONE_PASS {
                break;
            }
        }
        found
    }

    /// The plan was folded: what of it was applied is kept. One that a node outran in the meantime was not.
    pub fn applied(&self, driver: &Driver, candidates: Vec<Candidate>) {
        let mut kept = self.kept();
        for candidate in candidates {
            let Some(slot) = driver.state().slot(candidate.node) else { continue };
            let Some(rule) = driver.decider().rules.get(usize::from(candidate.rule)) else { continue };
            // A slot that was reaped keeps no decision.
            let reaped = candidate.verb == Verb::Reap.code() && slot.node.is_none();
            let stands = slot.decision.as_ref().is_some_and(|it| it.at_ms == driver.now_ms() && *it.rule == *rule.id);
            if !stands && !reaped {
                continue;
            }
            let after = state(slot);
            let changes = candidate.before.iter().zip(&after).filter(|(before, after)| before != after);
            let changes = changes.map(|((field, from), (_, to))| FieldChange {
                field: (*field).to_owned(),
                from: from.clone(),
                to: to.clone(),
            });
            kept.last += 1;
            let decided = Decided {
                number: kept.last,
                at_ms: driver.now_ms(),
                node: slot.name.clone(),
                attempt: slot.node.as_ref().map(|held| held.attempt.0),
                rule: rule.id.clone(),
                reason: rule.sentence.clone(),
                verb: step::verb(candidate.verb).into(),
                until_ms: (candidate.until != 0).then_some(candidate.until),
                facts: candidate.facts,
                changes: changes.collect(),
            };
            if kept.decisions.len() == KEPT {
                kept.decisions.pop_front();
            }
            kept.decisions.push_back(decided);
        }
    }

    /// The latest, newest first.
    pub fn latest(&self, limit: usize) -> Decisions {
        let kept = self.kept();
        let decisions = kept.decisions.iter().rev().take(limit).cloned().collect();
        Decisions { schema: "homeostat.decisions/v1".into(), decisions }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Whatever panicked had finished with the one decision before.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn state(slot: &Slot) -> Vec<(&'static str, String)> {
    facts_of(Some(slot), time_of_day)
}
