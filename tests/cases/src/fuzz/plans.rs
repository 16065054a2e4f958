//! Histories of a small fleet with bent plans in them: S1 to S15 after each step, and a plan that is refused does nothing.

use decider::{Decisions, Plan, Snapshot};
use engine::driver::Driver;
use engine::invariants::{Step, check_step};
use engine::io::{Input, Observation, Operation, Output};
use engine::policy::Policy;
use engine::validate::check_plan;
use scenario::build::{driver, native, shape, template};
use scenario::session::natural;

use super::Choices;
use crate::snapshots::Random;

/// The longest case.
pub const MOST_BYTES: usize = 3_000;

/// Cases to start from: a shape first, so that there is something to plan.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut random = Random::new(6);
    let mut fresh = |bytes: u64| (0..bytes).map(|_| random.number() as u8).collect::<Vec<u8>>();
    vec![vec![0, 0, 3, 3, 3], [vec![0, 0, 3], fresh(200)].concat(), [vec![0, 1, 4], fresh(900)].concat()]
}

/// Plays a case.
pub fn run(case: &[u8]) -> String {
    let driver = match driver(Policy::default()) {
        Ok(driver) => driver,
        Err(error) => return format!("no driver: {error}"),
    };
    let mut table = Table { driver, now_ms: 0, asked: None, flying: Vec::new(), shown: Vec::new() };
    table.play(&mut Choices::new(case));
    let mut shown = table.shown;
    shown.sort_unstable();
    shown.dedup();
    let stages: Vec<_> =
        table.driver.state().slots.iter().map(|slot| slot.node.as_ref().map(|node| node.stage)).take(3).collect();
    format!("{shown:?} {stages:?}")
}

/// A plan that nobody should make: the right one, bent here and there, or none of it right.
fn bent(choices: &mut Choices<'_>, snapshot: &Snapshot) -> Plan {
    let mut plan = decider::reconcile(snapshot);
    let now_ms = snapshot.now_ms;
    if choices.below(8) == 0 {
        plan = Plan { wake_at_ms: choices.number(now_ms), decisions: Decisions::default() };
    }
    for _ in 0..choices.below(5) {
        let decisions = &mut plan.decisions;
        if choices.below(5) == 0 || decisions.node.is_empty() {
            decisions.node.push(choices.number(1) as u32);
            decisions.attempt.push(choices.number(1));
            decisions.rule.push(choices.byte());
            decisions.verb.push(choices.byte());
            decisions.hold.push(choices.byte());
            decisions.until.push(choices.number(now_ms));
            continue;
        }
        let at = choices.below(decisions.node.len() as u32) as usize;
        match choices.below(10) {
            0 => decisions.node[at] = choices.number(1) as u32,
            1 => decisions.attempt[at] = choices.number(decisions.attempt[at]),
            2 => decisions.rule[at] = choices.byte(),
            3 => decisions.hold[at] = choices.byte(),
            4 => decisions.until[at] = choices.number(now_ms),
            5 => plan.wake_at_ms = choices.number(now_ms),
            // Most often another verb, which may be legal.
            _ => {
                decisions.verb[at] = choices.byte() % 13;
                decisions.hold[at] = if decisions.verb[at] == 0 { choices.byte() % 7 } else { 0 };
            }
        }
    }
    let decisions = &mut plan.decisions;
    match choices.below(32) {
        0 => decisions.node.truncate(1),
        1 => decisions.attempt.push(1),
        2 => decisions.rule.clear(),
        3 => drop(decisions.verb.pop()),
        4 => decisions.hold.push(0),
        5 => decisions.until.clear(),
        _ => {}
    }
    plan
}

/// A driver, what it asked for, and what it did.
struct Table {
    driver: Driver,
    now_ms: u64,
    asked: Option<(u64, std::sync::Arc<Snapshot>)>,
    flying: Vec<Operation>,
    shown: Vec<&'static str>,
}

impl Table {
    /// One input; every step is checked. A plan that is refused changes nothing.
    fn feed(&mut self, input: Input) {
        let before = self.driver.state().clone();
        let refused = match (&input, &self.asked) {
            (Input::Decided { call, result: Ok(plan) }, Some((asked, snapshot))) if call == asked => {
                let refused = check_plan(plan, snapshot, native().rules.len()).err();
                self.shown.push(refused.as_ref().map_or("applied", |error| error.property()));
                self.asked = None;
                refused
            }
            _ => None,
        };
        // An input may be refused, such as an older shape; that is its answer.
        let _ = self.driver.handle(input.clone(), self.now_ms);
        let outputs: Vec<Output> = std::iter::from_fn(|| self.driver.poll_output()).collect();
        let after = self.driver.state();
        let violations = check_step(&Step { before: &before, input: &input, outputs: &outputs, after });
        assert!(violations.is_empty(), "{violations:?} after {input:?}");
        if let Some(error) = refused {
            let nodes = |state: &engine::state::ClusterState| {
                state.slots.iter().map(|slot| slot.node.clone()).collect::<Vec<_>>()
            };
            assert!(nodes(&before) == nodes(after), "a plan that was refused changed a node: {error}");
            assert!(before.attempts == after.attempts && before.next_attempt == after.next_attempt, "{error}");
            assert!(before.reaps == after.reaps && before.orphans == after.orphans, "{error}");
            assert!(!outputs.iter().any(|output| matches!(output, Output::Submit(_))), "a refused plan acts: {error}");
        }
        for output in outputs {
            match output {
                Output::Decide { call, snapshot } => self.asked = Some((call, snapshot)),
                Output::Submit(operation) => self.flying.push(operation),
                _ => {}
            }
        }
    }

    fn play(&mut self, choices: &mut Choices<'_>) {
        let mut generation = 0;
        while !choices.is_empty() && generation < 200 {
            match (choices.below(10), self.asked.clone()) {
                (0, _) => {
                    generation += 1;
                    let web = template("fake", ["v1", "v2"][choices.below(2) as usize]);
                    self.feed(Input::Desired(shape(generation, &[("web", choices.below(5), web)])));
                }
                (1, _) => {
                    self.now_ms += u64::from(choices.below(60_000));
                    self.feed(Input::Tick);
                }
                (2..=6, Some((call, snapshot))) => {
                    let plan = bent(choices, &snapshot);
                    self.feed(Input::Decided { call, result: Ok(plan) });
                }
                (7, Some((call, snapshot))) => {
                    self.feed(Input::Decided { call, result: Ok(decider::reconcile(&snapshot)) });
                }
                (8, _) => {
                    let joined = self.driver.state().slots.iter().filter_map(|slot| slot.node.as_ref());
                    let Some(attempt) = joined.map(|node| node.attempt).nth(choices.below(5) as usize) else {
                        continue;
                    };
                    let closed = choices.below(4) == 0;
                    let observation = if closed { Observation::Closed { exit: None } } else { Observation::Joined };
                    self.feed(Input::Observed { attempt, observation });
                }
                _ if !self.flying.is_empty() => {
                    let at = choices.below(self.flying.len() as u32) as usize;
                    let operation = self.flying.swap_remove(at);
                    self.feed(Input::Completed { id: operation.id, result: Ok(natural(&operation)) });
                }
                _ => self.feed(Input::Tick),
            }
        }
    }
}
