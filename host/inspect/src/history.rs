//! What happened, from the journal: newest records first, until there is enough.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::wire::{Change, History, HistoryItem, HistoryQuery, What};
use decider::{Rule, Verb};
use engine::command::Command;
use engine::driver::Driver;
use engine::id::AttemptId;
use engine::io::Observation;
use journal::{Answer, Entry, Line, RecordedInput};
use step::{Words, became, ended, observed, verb};
use store::{SqliteReader, StoreError, records};

/// Items of an answer, unless told, and at most.
const USUAL: usize = 100;
const MOST: usize = 1_000;
/// Records that are read at once, and at most for one answer: a question about a node that rests must not read a month.
const CHUNK: u64 = 2_000;
const MOST_RECORDS: u64 = 100_000;

/// Who is who: records name slots and attempts by number.
#[derive(Clone, Debug)]
pub struct Roster {
    slots: Vec<String>,
    attempts: BTreeMap<AttemptId, u32>,
    /// The rules of each decider that is known, by its digest.
    rules: BTreeMap<String, Vec<Rule>>,
}

impl Roster {
    /// As a driver knows them.
    pub fn of(driver: &Driver) -> Self {
        let state = driver.state();
        Roster {
            slots: state.slots.iter().map(|slot| slot.name.clone()).collect(),
            attempts: state.attempts.iter().map(|(attempt, known)| (*attempt, known.node.0)).collect(),
            rules: BTreeMap::from([(driver.decider().digest.clone(), driver.decider().rules.clone())]),
        }
    }

    /// A decider that was in force at some time may cite these rules.
    pub fn learn(&mut self, digest: &str, rules: &[Rule]) {
        self.rules.entry(digest.into()).or_insert_with(|| rules.to_vec());
    }

    /// Whether there ever was a slot of that name.
    pub fn knows(&self, node: &str) -> bool {
        self.slots.iter().any(|slot| slot == node)
    }

    fn slot(&self, node: u32) -> Option<String> {
        self.slots.get(node as usize).cloned()
    }

    fn slot_of(&self, attempt: AttemptId) -> Option<String> {
        self.slot(*self.attempts.get(&attempt)?)
    }
}

/// What a query asks for.
///
/// # Errors
///
/// The journal cannot be read.
pub fn history(reader: &mut SqliteReader, roster: &Roster, query: &HistoryQuery) -> Result<History, StoreError> {
    let limit = query.limit.unwrap_or(USUAL).clamp(1, MOST);
    let (first, end) = (reader.first().next_seq, reader.head().next_seq);
    let mut to = query.before.unwrap_or(end).clamp(first, end);
    let least = to.saturating_sub(MOST_RECORDS).max(first);
    // Newest chunk first; within a chunk oldest first.
    let mut chunks: Vec<Vec<HistoryItem>> = Vec::new();
    let mut rules = roster.rules.clone();
    let mut found = 0;
    while to > least && found < limit {
        let from = to.saturating_sub(CHUNK).max(least);
        let mut items = Vec::new();
        let mut last_rule = BTreeMap::new();
        let mut order = None;
        // One more before it: the id of a command stands before the command.
        for line in records(reader, from.saturating_sub(1).max(first))? {
            let line = line?;
            if line.seq >= to {
                break;
            }
            let ordered = order.take();
            if let Entry::Order { id } = &line.entry {
                order = Some(id.clone());
            }
            if line.seq >= from {
                collect(&line, ordered, roster, &mut rules, query.node.as_deref(), &mut last_rule, &mut items);
            }
        }
        found += items.len();
        chunks.push(items);
        to = from;
    }
    let mut items: Vec<HistoryItem> = chunks.into_iter().rev().flatten().collect();
    let surplus = items.len().saturating_sub(limit);
    // All items of one record stay together, so that `before` loses none.
    let cut = items.get(surplus).map_or(0, |kept| items.partition_point(|item| item.seq < kept.seq));
    items.drain(..cut);
    let more = cut > 0 || to > first;
    if items.is_empty() && more {
        // So that whoever asks again gets further back.
        let text = format!("nothing between the records {to} and {}", query.before.unwrap_or(end));
        items.push(HistoryItem { seq: to, kind: "gap".into(), text, ..HistoryItem::default() });
    }
    Ok(History { schema: "homeostat.history/v1".into(), node: query.node.clone(), items, more, first_kept_seq: first })
}

/// Puts warnings and errors, the oldest first, among the items of the fleet's history by their instants: no record has their
/// words. Each has the number of the record before it, so that `before` goes on as it would without them.
pub fn with_notices(mut history: History, query: &HistoryQuery, notices: &[Arc<Change>]) -> History {
    let [Some(first), Some(last)] = [history.items.first(), history.items.last()] else { return history };
    let (from, newest) = (first.at_ms, last.at_ms);
    let within = |at_ms: u64| at_ms >= from && (query.before.is_none() || at_ms <= newest);
    for notice in notices.iter().filter(|notice| within(notice.at_ms)) {
        let What::Notice { level, text } = &notice.what else { continue };
        let at = history.items.partition_point(|item| item.at_ms <= notice.at_ms);
        let seq = at.checked_sub(1).and_then(|before| history.items.get(before)).map_or(0, |item| item.seq);
        let (kind, text) = (level.clone(), text.clone());
        history.items.insert(at, HistoryItem { seq, at_ms: notice.at_ms, kind, text, ..HistoryItem::default() });
    }
    // No more than was asked for; the records that go are those of the next page.
    let surplus = history.items.len().saturating_sub(query.limit.unwrap_or(USUAL).clamp(1, MOST));
    let cut = history.items.get(surplus).map_or(0, |kept| history.items.partition_point(|item| item.seq < kept.seq));
    history.more |= cut > 0;
    history.items.drain(..cut);
    history
}

/// What a record says, to whom it matters.
fn collect(
    line: &Line,
    // The id, where it is a command.
    order: Option<String>,
    roster: &Roster,
    rules: &mut BTreeMap<String, Vec<Rule>>,
    only: Option<&str>,
    last_rule: &mut BTreeMap<u32, u8>,
    items: &mut Vec<HistoryItem>,
) {
    let mut add = |kind: &str, node: Option<String>, attempt: Option<AttemptId>, text: String| {
        if only.is_none_or(|only| node.as_deref() == Some(only)) {
            let attempt = attempt.map(|attempt| attempt.0);
            let command = order.clone().filter(|_| kind == "command");
            items.push(HistoryItem {
                seq: line.seq,
                at_ms: line.at_ms,
                node,
                attempt,
                kind: kind.into(),
                text,
                command,
            });
        }
    };
    match &line.entry {
        Entry::Start(start) => {
            rules.insert(start.decider.digest.clone(), start.decider.rules.clone());
            add("restart", None, None, "a fresh run".into());
        }
        Entry::Dispatch { id, kind, key, provider } => {
            let text = format!("{id} {} at {provider}", kind.label());
            add("dispatch", Some(key.slot.clone()), Some(key.attempt), text);
        }
        Entry::Pass { decider, answer: Answer::Plan(plan), snapshot: Some(_), .. } => {
            // Numbers mean what the one that was asked declared.
            let cited = rules.get(decider).map_or(&[][..], Vec::as_slice);
            for row in plan.decisions.rows() {
                let same = last_rule.insert(row.node, row.rule) == Some(row.rule);
                let holds = row.verb == Verb::Hold.code();
                if holds && (same || only.is_none()) {
                    continue;
                }
                let text = match cited.get(usize::from(row.rule)) {
                    Some(rule) => format!("{} {}: {}", rule.id, verb(row.verb), rule.sentence),
                    None => format!("rule #{} {}", row.rule, verb(row.verb)),
                };
                add("decision", roster.slot(row.node), None, text);
            }
        }
        Entry::Pass { answer: Answer::Failure(failure), .. } => {
            add("decider", None, None, format!("no plan: {}: {}", failure.class, failure.detail));
        }
        Entry::Input { of, error } => {
            let refused = error.as_deref().map(|words| format!(" (refused: {words})")).unwrap_or_default();
            if let RecordedInput::DeciderChanged(identity) = of {
                rules.insert(identity.digest.clone(), identity.rules.clone());
            }
            let words = || Words { state: None, rules: &[] }.input(of) + &refused;
            match of {
                RecordedInput::Completed { id, result } => {
                    add("result", roster.slot_of(id.attempt), Some(id.attempt), format!("{id} {}", ended(result)));
                }
                RecordedInput::Answered { id, status } => {
                    let text = format!("{id} {}", became(*status));
                    add("result", roster.slot_of(id.attempt), Some(id.attempt), text);
                }
                // What a node writes is in its log.
                RecordedInput::Observed { observation: Observation::Output(_), .. } => {}
                RecordedInput::Observed { attempt, observation } => {
                    add("observation", roster.slot_of(*attempt), Some(*attempt), observed(observation));
                }
                RecordedInput::Command(command) => {
                    let names = match command {
                        Command::Kill { nodes } | Command::Destroy { nodes, .. } => nodes.as_slice(),
                        _ => &[],
                    };
                    match only.filter(|only| names.iter().any(|name| name == only)) {
                        Some(only) => add("command", Some(only.to_owned()), None, words()),
                        None => add("command", None, None, words()),
                    }
                }
                RecordedInput::Desired(_) => add("shape", None, None, words()),
                RecordedInput::PolicyChanged(_) => add("settings", None, None, words()),
                RecordedInput::DeciderChanged(_) => add("decider", None, None, words()),
                RecordedInput::Restarted => add("restart", None, None, words()),
                RecordedInput::Adopt { .. } | RecordedInput::Surveyed { .. } => add("listing", None, None, words()),
                RecordedInput::Listed { .. } | RecordedInput::Tick | RecordedInput::Resync => {}
            }
        }
        Entry::Swap(swap) => add("swap", None, None, step::swapped(swap)),
        Entry::Pass { .. } | Entry::Reserved { .. } | Entry::Order { .. } | Entry::End => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(at: &[(u64, u64)]) -> History {
        let item = |(seq, at_ms): &(u64, u64)| HistoryItem { seq: *seq, at_ms: *at_ms, ..HistoryItem::default() };
        History { items: at.iter().map(item).collect(), ..History::default() }
    }

    fn warning(at_ms: u64) -> Arc<Change> {
        let what = What::Notice { level: "warning".into(), text: format!("at {at_ms}") };
        Arc::new(Change { schema: String::new(), revision: String::new(), at_ms, what })
    }

    fn merged(at: &[(u64, u64)], query: &HistoryQuery, notices: &[u64]) -> Vec<(u64, u64, String)> {
        let notices: Vec<_> = notices.iter().map(|at| warning(*at)).collect();
        let found = with_notices(history(at), query, &notices);
        found.items.into_iter().map(|item| (item.seq, item.at_ms, item.kind)).collect()
    }

    #[test]
    fn warnings_stand_where_they_were_given() {
        let kinds = |of: Vec<(u64, u64, String)>| of.into_iter().map(|one| (one.0, one.1)).collect::<Vec<_>>();
        let all = HistoryQuery::default();
        let found = merged(&[(7, 100), (8, 200), (9, 200), (10, 300)], &all, &[50, 200, 400]);
        assert_eq!(found[3], (9, 200, "warning".into()));
        assert_eq!(
            kinds(found),
            [(7, 100), (8, 200), (9, 200), (9, 200), (10, 300), (10, 400)],
            "50 is of another page"
        );
        // An older page has no more than what is of its time.
        let older = HistoryQuery { before: Some(9), ..HistoryQuery::default() };
        assert_eq!(kinds(merged(&[(7, 100), (8, 200)], &older, &[150, 400])), [(7, 100), (7, 150), (8, 200)]);
        // No more than was asked for, and what goes is found by `before` again.
        let two = HistoryQuery { limit: Some(2), ..HistoryQuery::default() };
        assert_eq!(kinds(merged(&[(7, 100), (8, 200)], &two, &[300])), [(8, 200), (8, 300)]);
        assert!(merged(&[], &all, &[1]).is_empty());
    }
}
