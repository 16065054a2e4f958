//! SPEC 9: no component, no snapshot and no plan brings the host down. The corpus is replayed and a few hundred cases are made;
//! `make fuzz` makes cases for as long as it is told to (see `corpus/README.md`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::time::Duration;

use decider::{Decisions, Group, NO_INDEX, NodeRow, Nodes, Plan, Settings, Snapshot, Template};
use engine::driver::Driver;
use engine::invariants::{Step, check_step};
use engine::io::{Input, Observation, Operation, Output};
use engine::policy::Policy;
use engine::validate::check_plan;
use homeostat::sandbox::{BUILT_IN, Limits, LoadError, Sandbox};
use hostile_guests_artifact as guests;
use tests::build::{driver, native, shape, template};
use tests::fuzz::{Choices, Target, change_bytes, change_component};
use tests::session::natural;
use tests::snapshots::{Random, plausible};

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Words without the numbers and names in them: two refusals for one reason are one.
fn shape_of(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).take(140).collect()
}

// Components.

#[test]
fn components() {
    let limits = Limits { fuel_base: 5_000_000, wall_clock_ms: 2_000, memory_bytes: 16 << 20, ..Limits::default() };
    let sandbox = Sandbox::new(limits).unwrap();
    let snapshot = plausible(&mut Random::new(1), 5);
    let run = |case: &[u8]| match sandbox.load(case) {
        Err(error @ (LoadError::Describe(_) | LoadError::Trial(_))) => shape_of(&error.to_string()),
        Err(error) => format!("{} {}", error.class(), shape_of(&error.to_string())),
        Ok(decider) => match decider.reconcile(&snapshot) {
            Err(failure) => format!("admitted, {}", failure.class()),
            Ok(plan) => match check_plan(&plan, &snapshot, decider.description().rules.len()) {
                Ok(()) => "admitted".into(),
                Err(error) => format!("admitted, {}", error.property()),
            },
        },
    };
    let target = Target {
        name: "components",
        seeds: [guests::COUNTS_ELSEWHERE, guests::NAN_GAMES, guests::LIST_OUTSIDE, guests::POST_RETURN_TRAPS]
            .into_iter()
            .chain([guests::IMPORTS_TYPES, guests::GROWS_TABLE, BUILT_IN])
            .map(<[u8]>::to_vec)
            .collect(),
        change: change_component,
        run: Box::new(run),
        patience: Duration::from_secs(20),
        most_bytes: 64 << 10,
    };
    // The first cases fill what is kept for ever: pools, thread stacks, the allocator's own.
    target.fuzz(100).unwrap();
    let before = resident_kb();
    println!("{:?}", target.fuzz(400).unwrap());
    let after = resident_kb();
    assert!(after < before + (64 << 10), "resident memory went from {before} to {after} kB");
}

// Snapshots.

fn snapshot(choices: &mut Choices<'_>) -> Snapshot {
    let now_ms = choices.number(1_700_000_000_000);
    let perhaps = |choices: &mut Choices<'_>| (choices.byte() & 1 != 0).then(|| choices.below(300));
    let group = |choices: &mut Choices<'_>| Group {
        name: choices.text(),
        count: choices.below(1 << 16),
        nodes: choices.below(300),
        ready: choices.below(300),
        failed: choices.below(300),
        deleting: choices.below(300),
        pending: choices.below(300),
        max_unavailable: perhaps(choices),
        max_surge: choices.below(4),
        available: choices.below(300),
        failing: choices.below(300),
        trying: choices.below(3),
        max_failing: perhaps(choices),
        pauses: choices.byte(),
        parameters: (0..choices.below(2)).map(|_| (choices.text(), choices.text())).collect(),
    };
    let template = |choices: &mut Choices<'_>| Template {
        provider: choices.text(),
        role: choices.text(),
        labels: (0..choices.below(3)).map(|_| (choices.text(), choices.text())).collect(),
    };
    let mut whole = Snapshot {
        now_ms,
        run: choices.text(),
        generation: choices.number(0),
        settings: Settings {
            backoff_initial_ms: choices.number(1_000),
            backoff_cap_ms: choices.number(60_000),
            probe_interval_ms: choices.number(1_000),
        },
        groups: (0..choices.below(4)).map(|_| group(choices)).collect(),
        templates: (0..choices.below(4)).map(|_| template(choices)).collect(),
        nodes: Nodes::default(),
    };
    while !choices.is_empty() && whole.nodes.len() < 200 {
        let node = whole.nodes.len() as u32;
        whole.nodes.push(row(choices, node, now_ms));
    }
    whole
}

fn row(choices: &mut Choices<'_>, node: u32, now_ms: u64) -> NodeRow {
    // One byte says which columns are of the rarer kind.
    let rare = choices.byte();
    let code = |choices: &mut Choices<'_>, known: u32, bit: u8| {
        if rare & bit != 0 { choices.byte() } else { choices.below(known) as u8 }
    };
    let index = |choices: &mut Choices<'_>| match choices.below(6) {
        4 => NO_INDEX,
        5 => choices.number(0) as u32,
        small => small,
    };
    let own = index(choices);
    NodeRow {
        node: if rare & 128 != 0 { choices.number(0) as u32 } else { node },
        attempt: choices.number(0),
        group: index(choices),
        slot: choices.number(0) as u32,
        stage: code(choices, 11, 1),
        intent: code(choices, 2, 2),
        template: own,
        desired_template: if rare & 64 != 0 { index(choices) } else { own },
        live: code(choices, 8, 4),
        progress: code(choices, 11, 8),
        pending: code(choices, 6, 16),
        pending_deadline: choices.number(now_ms),
        ambiguous: code(choices, 6, 32),
        failures: choices.number(0) as u32,
        next_effect_at: choices.number(now_ms),
        probe_at: choices.number(now_ms),
        restart_at: choices.number(now_ms),
        stage_deadline: choices.number(now_ms),
        turn: index(choices),
        marks: if rare & 128 != 0 { choices.byte() } else { 0 },
    }
}

#[test]
fn snapshots() {
    let component = Sandbox::new(Limits::default()).unwrap().built_in().unwrap();
    let rules = component.description().rules.len();
    let run = |case: &[u8]| {
        let snapshot = snapshot(&mut Choices::new(case));
        let native = decider::reconcile(&snapshot);
        let plan = component.reconcile(&snapshot).unwrap();
        assert!(native == plan, "the two decide differently on {}", serde_json::to_string(&snapshot).unwrap());
        // Facts that contradict each other can make a plan that is refused; whether it is, is for the validator to say.
        let checked = check_plan(&plan, &snapshot, rules).map_err(|error| error.property());
        let mut last = plan.decisions.rule.iter().zip(&plan.decisions.verb).map(|(r, v)| (*r, *v)).collect::<Vec<_>>();
        last.sort_unstable();
        last.dedup();
        last.truncate(3);
        format!("{checked:?} {last:?}")
    };
    let mut random = Random::new(5);
    let mut fresh = |bytes: u64| (0..bytes).map(|_| random.number() as u8).collect::<Vec<u8>>();
    let target = Target {
        name: "snapshots",
        seeds: vec![Vec::new(), fresh(100), fresh(400), fresh(2_000)],
        change: change_bytes,
        run: Box::new(run),
        patience: Duration::from_secs(10),
        most_bytes: 6_000,
    };
    println!("{:?}", target.fuzz(3_000).unwrap());
}

// Plans.

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

#[test]
fn plans() {
    let run = |case: &[u8]| {
        let driver = driver(Policy::default()).unwrap();
        let mut table = Table { driver, now_ms: 0, asked: None, flying: Vec::new(), shown: Vec::new() };
        table.play(&mut Choices::new(case));
        let mut shown = table.shown;
        shown.sort_unstable();
        shown.dedup();
        let stages: Vec<_> =
            table.driver.state().slots.iter().map(|slot| slot.node.as_ref().map(|node| node.stage)).take(3).collect();
        format!("{shown:?} {stages:?}")
    };
    let mut random = Random::new(6);
    let mut fresh = |bytes: u64| (0..bytes).map(|_| random.number() as u8).collect::<Vec<u8>>();
    let target = Target {
        name: "plans",
        // A shape first, so that there is something to plan.
        seeds: vec![vec![0, 0, 3, 3, 3], [vec![0, 0, 3], fresh(200)].concat(), [vec![0, 1, 4], fresh(900)].concat()],
        change: change_bytes,
        run: Box::new(run),
        patience: Duration::from_secs(10),
        most_bytes: 3_000,
    };
    println!("{:?}", target.fuzz(3_000).unwrap());
}
