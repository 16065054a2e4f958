//! What the decider will do with a shape: the real driver and the real decider, against providers that do at once, and
//! without fail, what they are asked. Nothing is touched; time is a number.

use std::collections::VecDeque;
use std::sync::Arc;

use decider::{NO_INDEX, Plan, Snapshot, Verb};
use engine::driver::{Driver, DriverConfig};
use engine::io::{Done, Input, Observation, Operation, Output, Promise, Request};
use engine::policy::{Guards, Policy};
use engine::shape::ClusterShape;

use crate::sandbox::LoadedDecider;

/// An action for one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The slot's group and index in it.
    pub slot: (String, u32),
    /// The rule that decides so.
    pub rule: String,
    /// What to do.
    pub verb: Verb,
}

/// All steps, until the fleet is settled.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    /// The steps of each plan that has any, in order.
    pub rounds: Vec<Vec<Step>>,
    /// Whether the fleet settles. The built-in decider always does; another one need not.
    pub settled: bool,
}

/// Bounds the work for a decider that never comes to rest.
const MAX_CALLS: u32 = 1_000;

/// Runs the decider over a shape until it is settled, as if there were no guards: what they hold is still to be done.
pub fn forecast(shape: &ClusterShape, policy: &Policy, decider: &LoadedDecider) -> anyhow::Result<Forecast> {
    let providers = shape.groups.iter().map(|group| (group.template.provider.clone(), Promise::Keyed));
    let identity = decider.identity();
    let mut driver = Driver::new(DriverConfig {
        run: shape.run.clone(),
        policy: Policy { guards: Guards::default(), ..*policy },
        providers: providers.collect(),
        decider: identity,
        next_attempt: 1,
        epoch: 0,
    })?;
    let mut inputs = VecDeque::from([Input::Desired(shape.clone())]);
    let mut now_ms = 1;
    let mut calls = 0;
    let mut forecast = Forecast::default();
    // Plans wait until all else has been folded, so that one call of the decider is for many nodes.
    let mut asked: VecDeque<(u64, Arc<Snapshot>)> = VecDeque::new();
    loop {
        let input = if let Some(input) = inputs.pop_front() {
            input
        } else if let Some((call, snapshot)) = asked.pop_front() {
            calls += 1;
            let plan = decider.decide(&snapshot).map_err(|failure| {
                anyhow::anyhow!("the decider {} ({}): {}", failure.decider, failure.class, failure.detail)
            })?;
            engine::validate::check_plan(&plan, &snapshot, decider.description().rules.len())?;
            note(&plan, &snapshot, decider, &mut forecast.rounds);
            Input::Decided { call, result: Ok(plan) }
        } else if driver.is_converged() {
            forecast.settled = true;
            return Ok(forecast);
        } else if let Some(at) = driver.requeue_at() {
            calls += 1;
            now_ms = at.max(now_ms + 1);
            Input::Tick
        } else {
            return Ok(forecast);
        };
        if calls > MAX_CALLS {
            return Ok(forecast);
        }
        driver.handle(input, now_ms)?;
        while let Some(output) = driver.poll_output() {
            match output {
                Output::Submit(operation) => inputs.extend(perform(&operation)),
                Output::Decide { call, snapshot } => asked.push_back((call, snapshot)),
                Output::Record(_) | Output::Ask(_) | Output::Notice(_) => {}
            }
        }
    }
}

/// A provider that does at once what it is asked.
fn perform(operation: &Operation) -> Vec<Input> {
    let attempt = operation.id.attempt;
    let lease = format!("simulated-{}", attempt.0);
    let done = match operation.request {
        Request::CreateLease(_) | Request::SettleCreate(_) => Done::Leased { lease, adopted: false },
        Request::LookupEndpoint { .. } => Done::Found { endpoint: format!("{lease}:1") },
        Request::StartBootstrap { .. } => Done::Started { session: lease, adopted: false },
        Request::CancelBootstrap { .. } => Done::Cancelled,
        Request::DestroyLease { .. } => Done::Destroyed,
    };
    let mut inputs = vec![Input::Completed { id: operation.id, result: Ok(done) }];
    if matches!(operation.request, Request::StartBootstrap { .. }) {
        inputs.push(Input::Observed { attempt, observation: Observation::Joined });
    }
    inputs
}

/// Notes a plan's actions: one round, if there are any.
fn note(plan: &Plan, snapshot: &Snapshot, decider: &LoadedDecider, rounds: &mut Vec<Vec<Step>>) {
    let mut round = Vec::new();
    for row in plan.decisions.rows() {
        let Some(verb) = Verb::from_code(row.verb).filter(|verb| *verb != Verb::Hold) else { continue };
        let Some(node) = snapshot.nodes.node.binary_search(&row.node).ok().and_then(|at| snapshot.nodes.row(at)) else {
            continue;
        };
        let group = match node.group {
            NO_INDEX => String::new(),
            at => snapshot.groups.get(at as usize).map(|group| group.name.clone()).unwrap_or_default(),
        };
        let slot = (group, node.slot);
        let rule =
            decider.description().rules.get(usize::from(row.rule)).map(|rule| rule.id.clone()).unwrap_or_default();
        round.push(Step { slot, rule, verb });
    }
    if !round.is_empty() {
        rounds.push(round);
    }
}
