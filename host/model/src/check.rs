//! One check: the search, the judgement of what it saw, and the path to what is wrong.

use std::sync::atomic::Ordering;

use engine::driver::DriverError;
use engine::invariants::Violation;
use engine::io::DeciderIdentity;

use crate::machine::{Decide, Machine};
use crate::path::{WalkError, unsettled, walk};
use crate::scope::{MAX_NODES, Scope};
use crate::search::{Limit, NO_STATE, Progress, Seens, search};
use crate::settle::{End, stuck};

/// What is checked, and how.
pub struct Check<'a> {
    /// The scope.
    pub scope: Scope,
    /// The decider.
    pub identity: DeciderIdentity,
    /// How it is asked.
    pub decide: &'a Decide<'a>,
    /// It is not the built-in one: what only a decider could tell apart is told apart.
    pub exact: bool,
    /// Threads.
    pub jobs: usize,
    /// Distinct states, at most.
    pub most: u64,
    /// The rule of the engine that is broken on purpose (tests only: without the feature `mutations` nothing is).
    pub mutation: Option<engine::mutation::Mutation>,
}

/// Why nothing can be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// Without nodes there is nothing to check; with many, nobody lives long enough.
    #[error("{nodes} nodes: from 1 to {MAX_NODES} can be checked")]
    Nodes {
        /// How many were asked for.
        nodes: u32,
    },
    /// The engine refuses to start.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The search itself is at fault.
    #[error(transparent)]
    Walk(#[from] WalkError),
}

/// What a check found.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// States, transitions, depth.
    pub progress: Progress,
    /// Normal forms of the driver among the states.
    pub forms: u64,
    /// Steps of the engine that were computed; all others were looked up.
    pub computed: u64,
    /// States in which the fleet has settled.
    pub settled: u64,
    /// Decisions by rule, in the steps that were computed.
    pub rules: Vec<(String, u64)>,
    /// What came of it.
    pub verdict: Verdict,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// All was seen, and all is as it should be.
    Holds,
    /// A limit was reached first. What was seen breaks no safety property.
    Unfinished(Limit),
    /// Something is broken.
    Broken(Broken),
}

/// What is broken.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// Which property, and how.
    pub violation: Violation,
    /// The shortest path to it, a line a step.
    pub path: Vec<String>,
    /// How many of the path's steps are what follows at last, once no fault and no edit disturbs it.
    pub tail: usize,
    /// How many states can never settle, where that is what is broken.
    pub never_settle: u64,
}

impl Check<'_> {
    /// Searches, and judges. `watch` is told now and then how far it is.
    pub fn run(&self, watch: &mut dyn FnMut(Progress)) -> Result<Outcome, CheckError> {
        let nodes = self.scope.nodes;
        if nodes == 0 || nodes > MAX_NODES {
            return Err(CheckError::Nodes { nodes });
        }
        let mut machine = Machine::new(self.scope, self.identity.clone(), self.decide, self.exact);
        machine.mutation = self.mutation;
        let seens = search(&machine, self.jobs, self.most, watch)?;
        let verdict = self.judge(&machine, &seens)?;
        let ids = self.identity.rules.iter().map(|rule| rule.id.clone());
        Ok(Outcome {
            progress: seens.progress,
            forms: machine.forms(),
            computed: machine.computed.load(Ordering::Relaxed),
            settled: seens.all.iter().filter(|seen| seen.settled).count() as u64,
            rules: ids.zip(machine.rules.iter().map(|count| count.load(Ordering::Relaxed))).collect(),
            verdict,
        })
    }

    fn judge(&self, machine: &Machine<'_>, seens: &Seens) -> Result<Verdict, CheckError> {
        if let Some((at, by, violation)) = &seens.broken {
            // The first shape itself breaks it.
            let (at, by) = if *at == NO_STATE { (0, None) } else { (*at, Some(*by)) };
            let walked = walk(machine, seens, at, &[], by)?;
            let violation = walked.violation.unwrap_or_else(|| violation.clone());
            return Ok(Verdict::Broken(Broken { violation, path: walked.lines, tail: 0, never_settle: 0 }));
        }
        if let Some(limit) = seens.limit {
            return Ok(Verdict::Unfinished(limit));
        }
        let Some(stuck) = stuck(seens) else { return Ok(Verdict::Holds) };
        let walked = walk(machine, seens, stuck.first, &stuck.way, None)?;
        let why = unsettled(&walked.state);
        let (id, what) = match stuck.end {
            End::Leaks => ("L3", format!("all is quiet and never settles: {why}")),
            End::Stands => ("L4", format!("nothing will ever happen again: {why}")),
            End::Churns => ("L1", format!("from here on it never converges, whatever happens: {why}")),
        };
        let violation = Violation { id, what };
        let (path, tail) = (walked.lines, stuck.way.len());
        Ok(Verdict::Broken(Broken { violation, path, tail, never_settle: stuck.states }))
    }
}
