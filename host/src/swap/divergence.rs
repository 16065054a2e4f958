//! Compares two plans for one snapshot, and gathers the differences by rule and direction (SPEC 11).

use std::collections::{BTreeMap, BTreeSet};

use decider::{
    DecisionRow, HoldKind, Intent, NodeRow, OperationKind, Plan, Progress, Rule, Snapshot, Stage, Verb, live,
};
use engine::id::Millis;
use engine::io::DeciderFailure;
use engine::validate::check_plan;
use journal::{Cited, Direction, Divergence, Example, Reasoned};

use super::report::Compared;

/// Kinds of differences that are kept apart.
const MOST_KINDS: usize = 200;
/// What stands for the step of a decider that is not shown the slot.
const UNSEEN: &str = "not-shown";

/// All that was compared so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    passes: u64,
    equal: u64,
    failed: u64,
    decisions: u64,
    differing: u64,
    not_judged: u64,
    from_ms: Option<Millis>,
    to_ms: Option<Millis>,
    kinds: BTreeMap<(Cited, Cited, Direction), Kind>,
    more: BTreeSet<(Cited, Cited, Direction)>,
}

#[derive(Clone, Debug)]
struct Kind {
    decisions: u64,
    slots: BTreeSet<u32>,
    first: Example,
}

/// One of the two, asked about a pass.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    /// What it was shown, in its own contract: slots can be missing in one of the two.
    pub shown: &'a Snapshot,
    pub answer: Result<&'a Plan, &'a DeciderFailure>,
    /// The rules that it may cite.
    pub rules: &'a [Rule],
}

/// A pass that both were asked about.
pub(crate) struct Pass<'a> {
    /// The record, where it has one.
    pub seq: Option<u64>,
    pub active: Side<'a>,
    pub candidate: Side<'a>,
}

impl Side<'_> {
    /// What was wrong with the answer.
    fn failure(&self) -> Option<(String, String)> {
        match self.answer {
            Err(failure) => Some((failure.class.clone(), failure.detail.clone())),
            Ok(plan) => {
                let invalid = check_plan(plan, self.shown, self.rules.len()).err();
                invalid.map(|error| ("invalid-plan".into(), error.to_string()))
            }
        }
    }

    fn facts(&self, node: u32) -> Vec<(String, String)> {
        let nodes = &self.shown.nodes;
        let row = nodes.node.binary_search(&node).ok().and_then(|at| nodes.row(at));
        row.map(|row| facts_of(&row)).unwrap_or_default()
    }
}

impl Tally {
    /// Compares one pass. `name` gives a slot's name.
    pub fn add(&mut self, pass: &Pass<'_>, name: impl Fn(u32) -> Option<String>) {
        let Pass { active, candidate, .. } = pass;
        let failures = (active.failure(), candidate.failure());
        let at_ms = active.shown.now_ms;
        if let (Some(_), Some(_)) = failures {
            self.not_judged += 1;
            return;
        }
        self.passes += 1;
        self.from_ms.get_or_insert(at_ms);
        self.to_ms = Some(at_ms);
        match (active.answer, candidate.answer, failures) {
            (Ok(plan), Ok(other), (None, None)) => {
                self.decisions += plan.decisions.len() as u64;
                let same = (plan == other && active.rules == candidate.rules) || self.rows(pass, plan, other, &name);
                self.equal += u64::from(same);
            }
            (_, _, (None, Some(failure))) => {
                self.failed += 1;
                self.whole(pass, Direction::MoreFailures, planned(), failed(failure));
            }
            (_, _, (Some(failure), _)) => self.whole(pass, Direction::FewerFailures, failed(failure), planned()),
            _ => {}
        }
    }

    /// Two valid plans have each node of their snapshots once. Whether they are equal.
    fn rows(
        &mut self,
        pass: &Pass<'_>,
        active: &Plan,
        candidate: &Plan,
        name: &impl Fn(u32) -> Option<String>,
    ) -> bool {
        let (rules, other_rules) = (pass.active.rules, pass.candidate.rules);
        let in_order = active.decisions.node == candidate.decisions.node;
        let places = |plan: &Plan| -> BTreeMap<u32, usize> {
            plan.decisions.node.iter().enumerate().map(|(at, node)| (*node, at)).collect()
        };
        let others = if in_order { BTreeMap::new() } else { places(candidate) };
        let mut equal = true;
        for (at, row) in active.decisions.rows().enumerate() {
            let place = if in_order { Some(at) } else { others.get(&row.node).copied() };
            let Some(other) = place.and_then(|place| candidate.decisions.row(place)) else {
                equal &= !self.one_sided(pass, &row, (reasoned(&row, rules), unseen()), name);
                continue;
            };
            let same_rule = id(row.rule, rules) == id(other.rule, other_rules);
            let Some(direction) = direction(&row, &other, same_rule) else { continue };
            equal = false;
            self.one(pass, &row, direction, (reasoned(&row, rules), reasoned(&other, other_rules)), name);
        }
        if !in_order {
            let asked = places(active);
            for row in candidate.decisions.rows().filter(|row| !asked.contains_key(&row.node)) {
                equal &= !self.one_sided(pass, &row, (unseen(), reasoned(&row, other_rules)), name);
            }
        }
        if active.wake_at_ms != candidate.wake_at_ms {
            equal = false;
            let at = |plan: &Plan| Reasoned {
                verb: "wake-at".into(),
                until_ms: Some(plan.wake_at_ms).filter(|at| *at != 0),
                ..Reasoned::default()
            };
            self.whole(pass, Direction::OtherWait, at(active), at(candidate));
        }
        equal
    }

    /// A slot that only one of them is shown. Whether that makes a difference: to hold what the other does not know makes none.
    fn one_sided(
        &mut self,
        pass: &Pass<'_>,
        row: &DecisionRow,
        (active, candidate): (Reasoned, Reasoned),
        name: &impl Fn(u32) -> Option<String>,
    ) -> bool {
        if row.verb == Verb::Hold.code() {
            return false;
        }
        let direction = match (weight(row.verb), candidate.verb == UNSEEN) {
            (Weight::Destroy, true) => Direction::FewerDestroys,
            (Weight::Destroy, false) => Direction::MoreDestroys,
            (Weight::Create, true) => Direction::FewerCreates,
            (Weight::Create, false) => Direction::MoreCreates,
            (Weight::Other, _) => Direction::OtherAction,
        };
        self.one(pass, row, direction, (active, candidate), name);
        true
    }

    /// One decision that differs.
    fn one(
        &mut self,
        pass: &Pass<'_>,
        row: &DecisionRow,
        direction: Direction,
        (active, candidate): (Reasoned, Reasoned),
        name: &impl Fn(u32) -> Option<String>,
    ) {
        self.differing += 1;
        self.tally((cited(&active), cited(&candidate), direction), Some(row.node), || {
            let side = if candidate.verb == UNSEEN { pass.active } else { pass.candidate };
            Example {
                at_ms: pass.active.shown.now_ms,
                seq: pass.seq,
                node: Some(row.node),
                name: name(row.node),
                attempt: Some(row.attempt),
                facts: side.facts(row.node),
                active,
                candidate,
            }
        });
    }

    /// A difference that is about the pass as a whole.
    fn whole(&mut self, pass: &Pass<'_>, direction: Direction, active: Reasoned, candidate: Reasoned) {
        let key = (cited(&active), cited(&candidate), direction);
        self.tally(key, None, || Example {
            at_ms: pass.active.shown.now_ms,
            seq: pass.seq,
            node: None,
            name: None,
            attempt: None,
            facts: Vec::new(),
            active,
            candidate,
        });
    }

    fn tally(&mut self, key: (Cited, Cited, Direction), node: Option<u32>, first: impl FnOnce() -> Example) {
        // What refuses a candidate is never left out.
        let refuses = matches!(key.2, Direction::MoreDestroys | Direction::MoreFailures);
        if self.kinds.len() >= MOST_KINDS && !refuses && !self.kinds.contains_key(&key) {
            if self.more.len() < MOST_KINDS {
                self.more.insert(key);
            }
            return;
        }
        let kind =
            self.kinds.entry(key).or_insert_with(|| Kind { decisions: 0, slots: BTreeSet::new(), first: first() });
        kind.decisions += 1;
        kind.slots.extend(node);
    }

    /// How many passes were looked at, failures of either side included.
    pub fn looked_at(&self) -> u64 {
        self.passes + self.not_judged
    }

    /// What was found: what weighs most first, then the most frequent.
    pub fn compared(&self, skipped: u64) -> Compared {
        let one = |((active, candidate, direction), kind): (&(Cited, Cited, Direction), &Kind)| Divergence {
            active: active.clone(),
            candidate: candidate.clone(),
            direction: *direction,
            decisions: kind.decisions,
            slots: kind.slots.len() as u64,
            first: kind.first.clone(),
        };
        let mut divergences: Vec<Divergence> = self.kinds.iter().map(one).collect();
        let place = |one: &Divergence| match one.direction {
            Direction::MoreDestroys => 0,
            Direction::MoreFailures => 1,
            _ => 2,
        };
        divergences.sort_by(|a, b| place(a).cmp(&place(b)).then(b.decisions.cmp(&a.decisions)));
        Compared {
            passes: self.passes,
            equal: self.equal,
            failed: self.failed,
            skipped,
            decisions: self.decisions,
            differing_decisions: self.differing,
            not_judged: self.not_judged,
            from_ms: self.from_ms,
            to_ms: self.to_ms,
            divergences,
            more_kinds: self.more.len() as u64,
        }
    }
}

fn planned() -> Reasoned {
    Reasoned { verb: "plan".into(), ..Reasoned::default() }
}

fn failed((class, detail): (String, String)) -> Reasoned {
    Reasoned { verb: class, reason: detail, ..Reasoned::default() }
}

/// Which way a decision differs; `None` where it is the same.
fn direction(active: &DecisionRow, candidate: &DecisionRow, same_rule: bool) -> Option<Direction> {
    let (was, is) = (weight(active.verb), weight(candidate.verb));
    if active.verb != candidate.verb {
        return Some(match (was, is) {
            (Weight::Destroy, Weight::Destroy) | (Weight::Create, Weight::Create) | (Weight::Other, Weight::Other) => {
                Direction::OtherAction
            }
            (_, Weight::Destroy) => Direction::MoreDestroys,
            (Weight::Destroy, _) => Direction::FewerDestroys,
            (_, Weight::Create) => Direction::MoreCreates,
            (Weight::Create, _) => Direction::FewerCreates,
        });
    }
    if active.hold != candidate.hold || active.until != candidate.until {
        return Some(Direction::OtherWait);
    }
    (!same_rule).then_some(Direction::OtherRuleOnly)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    Destroy,
    Create,
    Other,
}

/// What a verb leads to. A step of a clean-up is part of a destruction.
fn weight(verb: u8) -> Weight {
    let Some(verb) = Verb::from_code(verb) else { return Weight::Other };
    match verb {
        Verb::BeginDelete | Verb::CancelBootstrap | Verb::DestroyLease | Verb::MarkDestroyed | Verb::Reap => {
            Weight::Destroy
        }
        Verb::Insert | Verb::Restart | Verb::CreateLease | Verb::StartBootstrap => Weight::Create,
        Verb::Hold | Verb::ConvergenceObserved | Verb::LookupEndpoint => Weight::Other,
    }
}

fn id(index: u8, rules: &[Rule]) -> &str {
    rules.get(usize::from(index)).map_or("?", |rule| rule.id.as_str())
}

fn verb(code: u8) -> String {
    Verb::from_code(code).map_or("?", Verb::label).into()
}

fn cited(side: &Reasoned) -> Cited {
    Cited { rule: side.rule.clone(), verb: side.verb.clone() }
}

/// The decision about a slot that is not shown.
fn unseen() -> Reasoned {
    let reason = "its contract does not show the slot".into();
    Reasoned { verb: UNSEEN.into(), reason, ..Reasoned::default() }
}

fn reasoned(row: &DecisionRow, rules: &[Rule]) -> Reasoned {
    Reasoned {
        rule: id(row.rule, rules).into(),
        verb: verb(row.verb),
        reason: rules.get(usize::from(row.rule)).map(|rule| rule.sentence.clone()).unwrap_or_default(),
        waits_for: HoldKind::from_code(row.hold).map_or("", HoldKind::label).into(),
        until_ms: Some(row.until).filter(|until| *until != 0),
    }
}

/// What a decider was told of a node; what is not there is left out.
fn facts_of(row: &NodeRow) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: String| facts.push((name.to_owned(), value));
    add("stage", Stage::from_code(row.stage).map_or("?", Stage::label).into());
    add("intent", Intent::from_code(row.intent).map_or("?", Intent::label).into());
    let desired = match row.desired_template {
        decider::NO_INDEX => "no",
        wanted if row.attempt != 0 && wanted != row.template => "with another template",
        _ => "yes",
    };
    add("desired", desired.into());
    for (bit, name) in [(live::LEASE, "lease"), (live::ENDPOINT, "endpoint"), (live::SESSION, "session")] {
        if row.live & bit != 0 {
            add(name, "live".into());
        }
    }
    if row.progress != Progress::None.code() {
        add("progress", Progress::from_code(row.progress).map_or("?", Progress::label).into());
    }
    for (name, code) in [("in flight", row.pending), ("in doubt", row.ambiguous)] {
        if code != 0 {
            add(name, OperationKind::from_code(code).map_or("?", OperationKind::label).into());
        }
    }
    if row.failures > 0 {
        add("failures in a row", row.failures.to_string());
    }
    for (name, at) in [
        ("its deadline", row.pending_deadline),
        ("no operation before", row.next_effect_at),
        ("no look before", row.probe_at),
        ("no attempt before", row.restart_at),
        ("stage ends at", row.stage_deadline),
    ] {
        if at != 0 {
            add(name, step::text::time_of_day(at));
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn row(rule: u8, verb: Verb, hold: Option<HoldKind>, until: u64) -> DecisionRow {
        DecisionRow { node: 0, attempt: 1, rule, verb: verb.code(), hold: hold.map_or(0, HoldKind::code), until }
    }

    #[test]
    fn each_pair_of_verbs_has_a_direction() {
        use Direction::{FewerCreates, FewerDestroys, MoreCreates, MoreDestroys, OtherAction};
        let steady = row(0, Verb::Hold, Some(HoldKind::Steady), 0);
        for (active, candidate, expected) in [
            (Verb::Hold, Verb::BeginDelete, MoreDestroys),
            (Verb::Hold, Verb::Reap, MoreDestroys),
            (Verb::CreateLease, Verb::MarkDestroyed, MoreDestroys),
            (Verb::DestroyLease, Verb::Hold, FewerDestroys),
            (Verb::CancelBootstrap, Verb::CreateLease, FewerDestroys),
            (Verb::CancelBootstrap, Verb::DestroyLease, OtherAction),
            (Verb::Hold, Verb::Insert, MoreCreates),
            (Verb::LookupEndpoint, Verb::StartBootstrap, MoreCreates),
            (Verb::Restart, Verb::Hold, FewerCreates),
            (Verb::Insert, Verb::Restart, OtherAction),
            (Verb::LookupEndpoint, Verb::ConvergenceObserved, OtherAction),
        ] {
            let (active, candidate) = (row(0, active, None, 0), row(0, candidate, None, 0));
            assert_eq!(direction(&active, &candidate, true), Some(expected), "{active:?} {candidate:?}");
        }
        assert_eq!(direction(&steady, &steady, true), None);
        assert_eq!(direction(&steady, &steady, false), Some(Direction::OtherRuleOnly));
        let waiting = row(0, Verb::Hold, Some(HoldKind::Instant), 9);
        assert_eq!(direction(&steady, &waiting, true), Some(Direction::OtherWait));
    }

    /// A failed node that is wanted, and a vacant slot.
    fn snapshot() -> Snapshot {
        let mut snapshot = decider::Snapshot { now_ms: 1_000, ..Snapshot::default() };
        let vacant = NodeRow {
            node: 3,
            attempt: 0,
            group: 0,
            slot: 0,
            stage: Stage::Vacant.code(),
            intent: Intent::Active.code(),
            template: decider::NO_INDEX,
            desired_template: 0,
            live: 0,
            progress: 0,
            pending: 0,
            pending_deadline: 0,
            ambiguous: 0,
            failures: 0,
            next_effect_at: 0,
            probe_at: 0,
            restart_at: 0,
            stage_deadline: 0,
            marks: 0,
            turn: decider::NO_INDEX,
        };
        let failed = NodeRow {
            node: 7,
            attempt: 5,
            stage: Stage::Failed.code(),
            template: 0,
            live: live::LEASE,
            failures: 2,
            ..vacant
        };
        for row in [vacant, failed] {
            snapshot.nodes.push(row);
        }
        snapshot.templates.push(decider::Template::default());
        snapshot.groups.push(decider::Group { name: "web".into(), count: 2, ..decider::Group::default() });
        snapshot
    }

    #[test]
    fn differences_are_grouped_and_the_first_of_each_is_kept() {
        let snapshot = snapshot();
        let rules = decider::describe().rules;
        let active = decider::reconcile(&snapshot);
        let mut candidate = active.clone();
        // It does not begin to delete the failed node, and wakes at another instant.
        candidate.decisions.verb[1] = Verb::Hold.code();
        candidate.decisions.hold[1] = HoldKind::Steady.code();
        candidate.wake_at_ms = 5_000;
        let mut tally = Tally::default();
        let failing = DeciderFailure { decider: "x".into(), class: "out-of-fuel".into(), detail: "d".into() };
        let mut broken = active.clone();
        broken.decisions.attempt[1] = 99;
        let mut add = |active: Result<&Plan, &DeciderFailure>, candidate: Result<&Plan, &DeciderFailure>| {
            let side = |answer| Side { shown: &snapshot, answer, rules: &rules };
            let pass = Pass { seq: Some(4), active: side(active), candidate: side(candidate) };
            tally.add(&pass, |node| Some(format!("web-{node}")));
        };
        for _ in 0..3 {
            add(Ok(&active), Ok(&candidate));
        }
        add(Ok(&candidate), Ok(&active));
        add(Ok(&active), Ok(&active));
        add(Ok(&active), Ok(&broken));
        add(Err(&failing), Ok(&active));
        add(Err(&failing), Err(&failing));
        let found = tally.compared(4);
        assert_eq!((found.passes, found.equal, found.failed, found.decisions), (7, 1, 1, 10));
        assert_eq!((found.skipped, found.differing_decisions, found.not_judged), (4, 4, 1));
        assert_eq!((found.from_ms, found.to_ms), (Some(1_000), Some(1_000)));
        let kinds: Vec<_> = found
            .divergences
            .iter()
            .map(|one| (one.active.verb.as_str(), one.candidate.verb.as_str(), one.direction, one.decisions, one.slots))
            .collect();
        assert_eq!(
            kinds,
            [
                ("hold", "begin-delete", Direction::MoreDestroys, 1, 1),
                ("plan", "invalid-plan", Direction::MoreFailures, 1, 0),
                ("wake-at", "wake-at", Direction::OtherWait, 4, 0),
                ("begin-delete", "hold", Direction::FewerDestroys, 3, 1),
                ("out-of-fuel", "plan", Direction::FewerFailures, 1, 0),
            ]
        );
        let first = &found.divergences[3].first;
        assert_eq!((first.name.as_deref(), first.seq, first.attempt), (Some("web-7"), Some(4), Some(5)));
        assert!(first.facts.contains(&("stage".into(), "failed".into())), "{first:?}");
        assert_eq!((first.active.rule.as_str(), first.candidate.waits_for.as_str()), ("R4", "a change"));
    }

    #[test]
    fn the_order_of_rows_and_the_numbering_of_rules_are_no_difference() {
        let snapshot = snapshot();
        let rules = decider::describe().rules;
        let active = decider::reconcile(&snapshot);
        let mut other = active.clone();
        let mut renamed = rules.clone();
        renamed.reverse();
        for rule in &mut other.decisions.rule {
            *rule = u8::try_from(rules.len()).unwrap() - 1 - *rule;
        }
        for column in [&mut other.decisions.rule, &mut other.decisions.verb, &mut other.decisions.hold] {
            column.reverse();
        }
        other.decisions.node.reverse();
        other.decisions.attempt.reverse();
        other.decisions.until.reverse();
        let mut tally = Tally::default();
        let active = Side { shown: &snapshot, answer: Ok(&active), rules: &rules };
        let candidate = Side { answer: Ok(&other), rules: &renamed, ..active };
        tally.add(&Pass { seq: None, active, candidate }, |_| None);
        assert_eq!(tally.compared(0).equal, 1, "{tally:?}");
    }

    #[test]
    fn a_slot_that_one_contract_does_not_show_differs_where_it_is_acted_on() {
        let rules = decider::describe().rules;
        let whole = snapshot();
        let mut part = whole.clone();
        part.nodes = decider::Nodes::default();
        part.nodes.push(whole.nodes.row(1).unwrap());
        let plans = [decider::reconcile(&whole), decider::reconcile(&part)];
        let whole_side = |plan| Side { shown: &whole, answer: Ok(plan), rules: &rules };
        let part_side = Side { shown: &part, answer: Ok(&plans[1]), rules: &rules };
        let mut tally = Tally::default();
        tally.add(&Pass { seq: None, active: part_side, candidate: whole_side(&plans[0]) }, |_| None);
        tally.add(&Pass { seq: None, active: whole_side(&plans[0]), candidate: part_side }, |_| None);
        let mut holds = plans[0].clone();
        (holds.decisions.verb[0], holds.decisions.hold[0]) = (Verb::Hold.code(), HoldKind::Steady.code());
        tally.add(&Pass { seq: None, active: part_side, candidate: whole_side(&holds) }, |_| None);
        let found = tally.compared(0);
        assert_eq!((found.passes, found.equal, found.failed, found.differing_decisions), (3, 1, 0, 2), "{found:?}");
        let kinds: Vec<_> = found
            .divergences
            .iter()
            .map(|one| (one.active.verb.as_str(), one.candidate.verb.as_str(), one.direction, one.first.node))
            .collect();
        let expected = [
            ("insert", "not-shown", Direction::FewerCreates, Some(3)),
            ("not-shown", "insert", Direction::MoreCreates, Some(3)),
        ];
        assert!(expected.iter().all(|one| kinds.contains(one)) && kinds.len() == 2, "{kinds:?}");
        for one in &found.divergences {
            assert!(one.first.facts.contains(&("stage".into(), "vacant".into())), "{one:?}");
        }
    }
}
