//! Decisions, remembered: a decider is asked once for each snapshot, told in a normal form. What it answers is then the
//! same for all snapshots of that form, whatever their instants and attempt ids are.

use std::collections::HashMap;
use std::sync::Mutex;

use decider::{Plan, Snapshot};
use engine::io::DeciderFailure;

use crate::hash::{Mix, PlainBuild};
use crate::machine::{Decide, lock};

/// The instant of every snapshot in normal form.
const BASE_MS: u64 = 1_000_000_000;

/// A decider that is asked once for each normal form.
pub struct Memo<'a> {
    decide: &'a Decide<'a>,
    plans: Mutex<HashMap<u128, Result<Plan, DeciderFailure>, PlainBuild>>,
}

impl<'a> Memo<'a> {
    /// Remembers what this decider answers.
    pub fn new(decide: &'a Decide<'a>) -> Self {
        Memo { decide, plans: Mutex::default() }
    }

    /// How many snapshots there were.
    pub fn len(&self) -> usize {
        lock(&self.plans).len()
    }

    /// Whether nothing was asked yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The plan for a snapshot.
    pub fn decide(&self, snapshot: &Snapshot) -> Result<Plan, DeciderFailure> {
        let (normal, attempts) = normal(snapshot);
        let key = key(&normal);
        let known = lock(&self.plans).get(&key).cloned();
        let answer = match known {
            Some(answer) => answer,
            None => {
                let answer = (self.decide)(&normal);
                lock(&self.plans).entry(key).or_insert(answer).clone()
            }
        };
        answer.map(|plan| as_asked(plan, snapshot.now_ms, &attempts))
    }
}

/// The same snapshot at the base instant, what has passed just passed, attempts numbered from 1 by age; and the attempts.
fn normal(snapshot: &Snapshot) -> (Snapshot, Vec<u64>) {
    let mut normal = snapshot.clone();
    let now = snapshot.now_ms;
    let mut attempts: Vec<u64> = snapshot.nodes.attempt.iter().copied().filter(|attempt| *attempt != 0).collect();
    attempts.sort_unstable();
    attempts.dedup();
    normal.now_ms = BASE_MS;
    let nodes = &mut normal.nodes;
    for attempt in nodes.attempt.iter_mut().filter(|attempt| **attempt != 0) {
        *attempt = attempts.binary_search(attempt).map_or(u64::MAX, |at| at as u64 + 1);
    }
    let columns = [
        &mut nodes.pending_deadline,
        &mut nodes.next_effect_at,
        &mut nodes.probe_at,
        &mut nodes.restart_at,
        &mut nodes.stage_deadline,
    ];
    for at in columns.into_iter().flatten().filter(|at| **at != 0) {
        *at = BASE_MS + at.saturating_sub(now).min(u64::MAX / 2);
    }
    (normal, attempts)
}

/// The plan in the asked snapshot's instants and attempts. What names no attempt of it stays wrong.
fn as_asked(mut plan: Plan, now: u64, attempts: &[u64]) -> Plan {
    let instant = |at: &mut u64| {
        // One that is past stays past: it must neither become "none" nor wrap into the far future.
        if *at != 0 {
            *at = match at.checked_sub(BASE_MS) {
                Some(ahead) => now.saturating_add(ahead),
                None => now.saturating_sub(BASE_MS - *at).max(1),
            };
        }
    };
    instant(&mut plan.wake_at_ms);
    plan.decisions.until.iter_mut().for_each(instant);
    for attempt in plan.decisions.attempt.iter_mut().filter(|attempt| **attempt != 0) {
        let known = attempts.get((*attempt - 1) as usize).copied();
        *attempt = known.unwrap_or(u64::MAX);
    }
    plan
}

fn key(snapshot: &Snapshot) -> u128 {
    let mut mix = Mix::new();
    let text = |mix: &mut Mix, text: &str| {
        mix.word(text.len() as u64);
        text.bytes().for_each(|byte| mix.word(u64::from(byte)));
    };
    let Snapshot { now_ms: _, run, generation, settings, groups, templates, nodes } = snapshot;
    text(&mut mix, run);
    for word in [*generation, settings.backoff_initial_ms, settings.backoff_cap_ms, settings.probe_interval_ms] {
        mix.word(word);
    }
    mix.word(groups.len() as u64);
    for group in groups {
        text(&mut mix, &group.name);
        let counts = [group.count, group.nodes, group.ready, group.failed, group.deleting, group.pending];
        let rollout = [group.max_surge, group.available, group.failing, group.trying, u32::from(group.pauses)];
        for count in counts.into_iter().chain(rollout) {
            mix.word(u64::from(count));
        }
        for limit in [group.max_unavailable, group.max_failing] {
            mix.word(limit.map_or(u64::MAX, u64::from));
        }
        mix.word(group.parameters.len() as u64);
        for (key, value) in &group.parameters {
            text(&mut mix, key);
            text(&mut mix, value);
        }
    }
    mix.word(templates.len() as u64);
    for template in templates {
        text(&mut mix, &template.provider);
        text(&mut mix, &template.role);
        mix.word(template.labels.len() as u64);
        for (key, value) in &template.labels {
            text(&mut mix, key);
            text(&mut mix, value);
        }
    }
    mix.word(nodes.len() as u64);
    for row in nodes.rows() {
        let codes = [row.stage, row.intent, row.live, row.progress, row.pending, row.ambiguous];
        mix.word(codes.iter().fold(0, |word, code| word << 8 | u64::from(*code)));
        let marks = u32::from(row.marks);
        for word in [row.node, row.group, row.slot, row.template, row.desired_template, row.failures, row.turn, marks] {
            mix.word(u64::from(word));
        }
        let instants = [row.next_effect_at, row.probe_at, row.restart_at, row.stage_deadline, row.pending_deadline];
        instants.into_iter().chain([row.attempt]).for_each(|word| mix.word(word));
    }
    mix.finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]
    use super::*;
    use decider::{NodeRow, Nodes, reconcile};

    fn snapshot(now_ms: u64, attempt: u64, waits_ms: u64) -> Snapshot {
        let mut nodes = Nodes::default();
        let row = NodeRow {
            attempt,
            stage: 1,
            template: 0,
            next_effect_at: now_ms + waits_ms,
            ..NodeRow::vacant(0, 0, 0, 0)
        };
        nodes.push(row);
        nodes.push(NodeRow {
            attempt: attempt + 7,
            stage: 10,
            restart_at: 5,
            template: 0,
            ..NodeRow::vacant(1, 0, 1, 0)
        });
        Snapshot { now_ms, nodes, ..Snapshot::default() }
    }

    #[test]
    fn an_answer_is_given_again_in_the_terms_of_the_question() {
        let asked = std::sync::atomic::AtomicU32::new(0);
        let decide = |snapshot: &Snapshot| {
            asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(reconcile(snapshot))
        };
        let memo = Memo::new(&decide);
        for (now, attempt, waits) in [(1_000, 1, 0), (9_000, 4, 0), (1_000, 1, 500), (77_000, 9, 500), (5_000, 2, 501)]
        {
            let snapshot = snapshot(now, attempt, waits);
            assert_eq!(memo.decide(&snapshot).unwrap(), reconcile(&snapshot));
        }
        assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 3);
        assert_eq!(memo.len(), 3);
    }

    #[test]
    fn a_wake_up_that_is_past_is_not_one_of_the_far_future() {
        let decide = |snapshot: &Snapshot| Ok(Plan { wake_at_ms: 1, ..reconcile(snapshot) });
        let memo = Memo::new(&decide);
        for now in [1_000, 5, 1, BASE_MS, BASE_MS + 9] {
            let wake = memo.decide(&snapshot(now, 1, 0)).unwrap().wake_at_ms;
            assert!((1..=now).contains(&wake), "asked at {now}: {wake}");
        }
    }
}
