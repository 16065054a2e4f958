//! Decisions: the decider is asked, troubled, and judged; what it decided is booked for the table.

use std::collections::VecDeque;
use std::sync::Arc;

use decider::{DecisionRow, HoldKind, Plan, Snapshot, Stage, Verb};
use engine::id::{Millis, NodeId};
use engine::invariants::{Violation, check_same_plan, check_subset};
use engine::io::{DeciderFailure, DeciderIdentity, Input};
use engine::validate::check_plan;

use crate::event::{Event, Phase};
use crate::faults::{FaultKind, Place};
use crate::run::Sim;

/// What is wrong with the decider, until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    Trap { node: u32, until: Millis },
    Fuel { until: Millis },
    Invalid { kind: u32, until: Millis },
}

/// So often a decider may fail in a run without a fault.
const MOST_FAILURES: u32 = 200;

/// How far ahead the decider is asked when it says that nothing is due.
const DAY_MS: Millis = 86_400_000;

/// What the digest of the other decider has at its end: the one that a swap brings, which decides the same and numbers its
/// rules the other way round.
pub const OTHER: &str = "-other";

/// Makes a plan of a decider with so many rules one of [the other](OTHER), or the reverse.
pub fn renumber(plan: &mut Plan, rules: usize) {
    let last = rules.saturating_sub(1);
    for rule in &mut plan.decisions.rule {
        // One that is out of range stays so.
        if let Some(other) = last.checked_sub(usize::from(*rule)).and_then(|other| u8::try_from(other).ok()) {
            *rule = other;
        }
    }
}

impl Sim<'_> {
    /// The driver asks for a plan.
    pub(crate) fn decide_on(&mut self, call: u64, snapshot: Arc<Snapshot>, inputs: &mut VecDeque<Input>) {
        if self.driver.decider().digest.ends_with(OTHER) != self.renumbered {
            // A host that starts again with another decider: it is told next, and asks that one.
            return;
        }
        self.plans = self.plans.wrapping_add(1);
        let asked = self.renumbered;
        self.asked = (call, asked);
        let fault = self.strike(Place::Plan);
        if let Some(fault) = fault {
            self.count(fault, None);
            self.trouble(fault, &snapshot, inputs);
        }
        let result = match self.troubled(&snapshot) {
            Some(failure) => {
                self.not_the_decider(call);
                Err(failure)
            }
            None => {
                let answer = (self.decide)(&snapshot);
                if let Err(failure) = &answer {
                    self.failed_by_itself(failure);
                }
                answer
            }
        };
        let result = match (result, self.trouble) {
            (Ok(plan), Trouble::Invalid { kind, until }) if until > self.now => {
                self.not_the_decider(call);
                Ok(spoil(plan, kind))
            }
            (Ok(plan), _) => {
                self.judge_plan(&snapshot, &plan);
                // Nothing can be read from the columns of a plan that is refused: they may be of unequal lengths.
                if self.found.is_none() {
                    self.book(&snapshot, &plan);
                }
                Ok(plan)
            }
            (Err(failure), _) => Err(failure),
        };
        let result = result.map(|plan| if asked { self.renumber(plan) } else { plan });
        if fault != Some(FaultKind::DeciderSlow) || self.found.is_some() {
            self.keep_answer(call, &result);
        }
        if fault == Some(FaultKind::DeciderSlow) {
            let (late, host) = (self.choices.span_ms(20_000), self.host);
            return self.after(late, Event::Answer { call, result, host });
        }
        self.answered();
        inputs.push_back(Input::Decided { call, result });
    }

    /// One that fails on and on is not waited for until it had its time to settle: each call may use up all that a call may use.
    fn failed_by_itself(&mut self, failure: &DeciderFailure) {
        self.failures = self.failures.saturating_add(1);
        if self.failures == MOST_FAILURES {
            let DeciderFailure { class, detail, .. } = failure;
            self.broken("L1", format!("it failed {MOST_FAILURES} times by itself, at last with {class}: {detail}"));
        }
    }

    fn trouble(&mut self, fault: FaultKind, snapshot: &Snapshot, inputs: &mut VecDeque<Input>) {
        match fault {
            FaultKind::DeciderTrap => {
                let rows = u32::try_from(snapshot.nodes.len()).unwrap_or(0);
                let row = self.choices.below(rows) as usize;
                let node = snapshot.nodes.node.get(row).copied().unwrap_or(0);
                self.trouble = Trouble::Trap { node, until: self.now + self.choices.span_ms(300_000) };
            }
            FaultKind::DeciderFuel => self.trouble = Trouble::Fuel { until: self.now + self.choices.span_ms(120_000) },
            FaultKind::DeciderInvalid => {
                let kind = self.choices.below(8);
                self.trouble = Trouble::Invalid { kind, until: self.now + self.choices.span_ms(60_000) };
            }
            FaultKind::DeciderSwap => {
                self.renumbered = !self.renumbered;
                inputs.push_back(Input::DeciderChanged(self.in_force()));
            }
            _ => {}
        }
    }

    /// The decider in force. The other one decides the same, as far as it is shown the same, and numbers its rules the other way round, so that a plan
    /// that is taken for the other's cites the wrong rules.
    pub(crate) fn in_force(&self) -> DeciderIdentity {
        let mut identity = self.setup.identity.clone();
        if self.renumbered {
            identity.digest.push_str(OTHER);
            identity.rules.reverse();
            // It is of the contract's first version, too, and shown nothing of rollouts.
            identity.contract = decider::v1_0::CONTRACT.into();
        }
        identity
    }

    /// A plan as the other decider gives it.
    pub(crate) fn renumber(&self, mut plan: Plan) -> Plan {
        renumber(&mut plan, self.setup.identity.rules.len());
        plan
    }

    fn troubled(&mut self, snapshot: &Snapshot) -> Option<DeciderFailure> {
        let failure = |class: &str, detail: &str| DeciderFailure {
            decider: self.setup.identity.digest.clone(),
            class: class.into(),
            detail: detail.into(),
        };
        match self.trouble {
            Trouble::Trap { node, until } if until > self.now => {
                snapshot.nodes.node.contains(&node).then(|| failure("trap", "it trapped"))
            }
            Trouble::Fuel { until } if until > self.now => Some(failure("out-of-fuel", "the budget is used up")),
            Trouble::Invalid { until, .. } if until > self.now => None,
            Trouble::None => None,
            _ => {
                self.trouble = Trouble::None;
                None
            }
        }
    }

    /// A plan that breaks a property is a violation, though the engine refuses it: what the operator would see is a decider
    /// that does not keep its contract. Every so many plans the decider is asked again.
    fn judge_plan(&mut self, snapshot: &Snapshot, plan: &Plan) {
        if let Err(error) = check_plan(plan, snapshot, self.setup.identity.rules.len()) {
            let whose = error.node().map_or_else(String::new, |node| format!(" for {}", self.slot_name(node)));
            self.broken(error.property(), format!("the plan is refused{whose}: {error}"));
            return;
        }
        let every = self.setup.scrutiny;
        if every == 0 || !self.plans.is_multiple_of(every) {
            return;
        }
        let mut found = Vec::new();
        if let Ok(again) = (self.decide)(snapshot) {
            found.extend(check_same_plan(plan, &again));
        }
        // Of a day without anything due, another instant each time: a decision may hang on the time of day.
        let soonest = if plan.wake_at_ms == 0 { snapshot.now_ms + DAY_MS } else { plan.wake_at_ms };
        let span = soonest.saturating_sub(snapshot.now_ms).max(1);
        let anywhere = snapshot.now_ms + u64::from(self.plans).wrapping_mul(0x9E37_79B9) % span;
        for later in [snapshot.now_ms + 1, anywhere, soonest.saturating_sub(1)] {
            if later <= snapshot.now_ms || later >= soonest {
                continue;
            }
            let moved = Snapshot { now_ms: later, ..snapshot.clone() };
            if let Ok(other) = (self.decide)(&moved)
                && other.decisions != plan.decisions
            {
                let changed = (0..).zip(plan.decisions.rows()).find(|(at, was)| other.decisions.row(*at) != Some(*was));
                let (at, was) = changed.unzip();
                let now = at.and_then(|at| other.decisions.row(at));
                let whose = was.map_or_else(String::new, |was| self.slot_name(was.node));
                let (was, now, ms) = (self.worded(was), self.worded(now), later - snapshot.now_ms);
                self.broken(
                    "S11",
                    format!("for {whose} it decides {was}; {ms} ms later, nothing changed and nothing due, {now}"),
                );
                break;
            }
        }
        let driver = &self.driver;
        let decide = &mut self.decide;
        let lone = |part: &Snapshot| decide(part).unwrap_or_default();
        found.extend(check_subset(snapshot, plan, |node: NodeId| driver.lone_snapshot(node), lone));
        if let Some(first) = found.into_iter().next() {
            let first = if first.id == "S12" { self.alone(snapshot, plan).unwrap_or(first) } else { first };
            self.found.get_or_insert(first);
        }
    }

    /// The first node that is decided otherwise alone, in words.
    fn alone(&mut self, snapshot: &Snapshot, plan: &Plan) -> Option<Violation> {
        snapshot.nodes.node.iter().enumerate().find_map(|(at, node)| {
            let lone = self.driver.lone_snapshot(NodeId(*node));
            let (alone, whole) = ((self.decide)(&lone).ok()?.decisions.row(0), plan.decisions.row(at));
            let (slot, others) = (self.slot_name(*node), snapshot.nodes.len().saturating_sub(1));
            let what = format!(
                "for {slot} it decides {}; asked about {slot} alone, without the {others} others, {}",
                self.worded(whole),
                self.worded(alone)
            );
            (alone != whole).then_some(Violation { id: "S12", what })
        })
    }

    fn slot_name(&self, node: u32) -> String {
        self.driver.state().slot(NodeId(node)).map_or_else(|| format!("node {node}"), |slot| slot.name.clone())
    }

    /// A decision as `R12 create-lease`.
    fn worded(&self, decision: Option<DecisionRow>) -> String {
        let Some(decision) = decision else { return "nothing".into() };
        let rule = self.setup.identity.rules.get(usize::from(decision.rule)).map_or("?", |rule| rule.id.as_str());
        let verb = match HoldKind::from_code(decision.hold) {
            Some(hold) => format!("to hold until {}", hold.label()),
            None => Verb::from_code(decision.verb).map_or("?", Verb::label).to_string(),
        };
        format!("{verb} ({rule})")
    }

    /// Books decisions that are new for their node, under the fault that hit it last.
    fn book(&mut self, snapshot: &Snapshot, plan: &Plan) {
        let decisions = &plan.decisions;
        for (at, node) in decisions.node.iter().enumerate() {
            let node = *node as usize;
            if self.last_rule.len() <= node {
                self.last_rule.resize(node + 1, u8::MAX);
                self.blame.resize(self.blame.len().max(node + 1), 0);
            }
            let rule = decisions.rule[at];
            let holds = decisions.verb[at] == Verb::Hold.code();
            if holds && self.last_rule[node] == rule {
                continue;
            }
            self.last_rule[node] = rule;
            let row = snapshot.nodes.row(at);
            let paused = row.and_then(|row| snapshot.group_of(&row)).is_some_and(|group| group.pauses != 0);
            if holds && decisions.hold[at] == HoldKind::Person.code() && !paused {
                let id = self.setup.identity.rules.get(usize::from(rule)).map_or("?", |rule| rule.id.as_str());
                let stage = snapshot.nodes.stage.get(at).and_then(|code| Stage::from_code(*code));
                let stage = stage.map_or("unknown", Stage::label);
                let whom = self.slot_name(decisions.node[at]);
                let what = format!("{id} lets {whom} ({stage}) wait for a person, and nothing will end that");
                self.broken("L4", what);
                return;
            }
            let blame = self.blame.get(node).copied().unwrap_or(0);
            if let Some(count) =
                self.tally.rules.get_mut(usize::from(rule)).and_then(|row| row.get_mut(usize::from(blame)))
            {
                *count += 1;
            }
            if holds && decisions.hold[at] == HoldKind::Steady.code() && self.phase == Phase::Faulty {
                self.blame[node] = 0;
            }
        }
    }
}

/// A plan that is not valid, in one of several ways.
fn spoil(mut plan: Plan, kind: u32) -> Plan {
    let decisions = &mut plan.decisions;
    match kind {
        0 => {
            decisions.rule.pop();
        }
        1 => {
            if let Some(node) = decisions.node.first_mut() {
                *node = u32::MAX;
            }
        }
        2 => {
            if let Some(attempt) = decisions.attempt.last_mut() {
                *attempt = attempt.wrapping_add(1);
            }
        }
        3 => decisions.rule.iter_mut().for_each(|rule| *rule = u8::MAX),
        4 => decisions.verb.iter_mut().for_each(|verb| *verb = 200),
        5 => decisions.verb.iter_mut().for_each(|verb| *verb = Verb::Reap.code()),
        6 => {
            decisions.node.pop();
            decisions.attempt.pop();
            decisions.rule.pop();
            decisions.verb.pop();
            decisions.hold.pop();
            decisions.until.pop();
        }
        _ => decisions.hold.iter_mut().for_each(|hold| *hold = 99),
    }
    plan
}
