//! A driver under its checkers: every input is one step, every step is checked against S1–S15.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use decider::{Plan, Snapshot};
use engine::driver::{Driver, DriverError};
use engine::id::{AttemptId, NodeId, OperationId};
use engine::invariants::{Step, Violation, check_settled, check_step, check_subset};
use engine::io::{DeciderFailure, DeciderIdentity, Done, Input, Operation, Output, Request};

use crate::log::Log;

/// How plans are made.
pub type Decide = Box<dyn FnMut(&Snapshot) -> Result<Plan, DeciderFailure>>;

/// What one input brought.
#[derive(Debug, Default)]
pub struct Came {
    /// The outputs, those of the passes it set off included; decisions asked for apart.
    pub outputs: Vec<Output>,
    /// Each plan applied, with its snapshot.
    pub plans: Vec<(Arc<Snapshot>, Plan)>,
    /// Of each of them, the slots whose decision was not carried out, and whether that was so before.
    pub held: Vec<BTreeMap<u32, bool>>,
    /// What the driver refused.
    pub errors: Vec<DriverError>,
}

/// A driver, a clock, a decider, and every violation seen so far.
pub struct Session {
    /// The driver.
    pub driver: Driver,
    /// The clock, in milliseconds.
    pub now_ms: u64,
    /// The decider.
    pub decide: Decide,
    /// Every violation seen.
    pub violations: Vec<Violation>,
    /// Decisions wait until [`Session::answer`].
    pub slow: bool,
    /// How much it may still do.
    pub budget: Budget,
    /// What is kept of each decision.
    pub(crate) log: Option<Rc<RefCell<Log>>>,
    waiting: VecDeque<(u64, Arc<Snapshot>)>,
    recording: Option<Box<dyn Record>>,
}

/// Writes down what is folded and decided.
pub trait Record {
    /// An input was given to the driver, and what it refused of it.
    fn folded(&mut self, at_ms: u64, input: &Input, refused: Option<&DriverError>);
    /// The driver put something out.
    fn output(&mut self, at_ms: u64, output: &Output);
}

/// How a decider is asked.
pub type Ask = Rc<dyn Fn(&Snapshot) -> Result<Plan, DeciderFailure>>;

/// The decider that a scenario is about.
#[derive(Clone)]
pub struct Subject {
    /// Its digest and its rules.
    pub identity: DeciderIdentity,
    /// How it is asked.
    pub ask: Ask,
}

impl Subject {
    /// The built-in decider outside the sandbox.
    pub fn native() -> Self {
        Subject { identity: crate::build::native(), ask: Rc::new(|snapshot| Ok(decider::reconcile(snapshot))) }
    }

    /// The id of a rule, by its index.
    pub fn rule(&self, index: u8) -> &str {
        self.identity.rules.get(usize::from(index)).map_or("?", |rule| rule.id.as_str())
    }
}

/// What is said when the time is over.
pub(crate) const TOO_LATE: &str = "it takes too long: the time for a scenario is over";

/// How much a scenario may do. A step costs the more the larger the fleet is.
#[derive(Clone)]
pub struct Budget {
    /// What is left.
    pub left: u64,
    /// Asked now and then whether there is still time; time is measured outside.
    pub in_time: Option<Rc<dyn Fn() -> bool>>,
    /// Why it was cut, if it was.
    pub cut: Option<&'static str>,
}

impl Budget {
    /// No bound: for tests that bound themselves.
    pub fn endless() -> Self {
        Budget { left: u64::MAX, in_time: None, cut: None }
    }

    fn spend(&mut self, slots: usize) -> bool {
        let cost = 1 + slots as u64 / 8;
        if self.left < cost {
            self.cut.get_or_insert("it goes on for too long: more steps than a scenario may have");
        }
        self.left = self.left.saturating_sub(cost);
        if let Some(in_time) = &self.in_time
            && !in_time()
        {
            self.cut.get_or_insert(TOO_LATE);
        }
        self.cut.is_none()
    }
}

impl Session {
    /// A session with the native decider.
    pub fn new(driver: Driver) -> Self {
        let decide: Decide = Box::new(|snapshot| Ok(decider::reconcile(snapshot)));
        Session {
            driver,
            now_ms: 0,
            decide,
            violations: Vec::new(),
            slow: false,
            budget: Budget::endless(),
            log: None,
            waiting: VecDeque::new(),
            recording: None,
        }
    }

    /// Writes from now on what is folded and decided.
    pub fn record(&mut self, recording: impl Record + 'static) {
        self.recording = Some(Box::new(recording));
    }

    /// Whether it was cut because its budget is used up: nothing happens any more.
    pub fn is_cut(&self) -> bool {
        self.budget.cut.is_some()
    }

    /// Feeds one input, and the decisions it asks for.
    pub fn feed(&mut self, input: Input) -> Came {
        let mut came = Came::default();
        self.step(input, &mut came);
        if !self.slow {
            self.answer_into(&mut came);
        }
        came
    }

    /// Answers the decisions that wait.
    pub fn answer(&mut self) -> Came {
        let mut came = Came::default();
        self.answer_into(&mut came);
        came
    }

    /// Answers the decision that has waited longest; those that follow wait.
    pub fn answer_one(&mut self) -> Came {
        let mut came = Came::default();
        self.answer_next(&mut came);
        came
    }

    fn answer_into(&mut self, came: &mut Came) {
        while self.answer_next(came) {}
    }

    fn answer_next(&mut self, came: &mut Came) -> bool {
        if let Some((call, snapshot)) = self.waiting.pop_front() {
            let result = (self.decide)(&snapshot);
            if let Ok(plan) = &result {
                let alone = |node: NodeId| self.driver.lone_snapshot(node);
                let unchanged = *snapshot == self.driver.whole_snapshot();
                if unchanged {
                    let decide = &mut self.decide;
                    // A failing decider has no plan to compare.
                    let lone = |part: &Snapshot| decide(part).unwrap_or_default();
                    self.violations.extend(check_subset(&snapshot, plan, alone, lone));
                }
                if let Some(log) = &self.log {
                    let names = |node: u32| self.driver.state().slots.get(node as usize).map(|slot| slot.name.clone());
                    log.borrow_mut().decided(&snapshot, plan, &mut *self.decide, &names);
                }
                came.plans.push((snapshot.clone(), plan.clone()));
            }
            let (planned, before) = (result.is_ok(), self.held());
            self.step(Input::Decided { call, result }, came);
            if planned {
                let held = self.held();
                came.held.push(held.into_iter().map(|node| (node, before.contains(&node))).collect());
            }
            return true;
        }
        false
    }

    /// Slots whose decision is not carried out.
    fn held(&self) -> BTreeSet<u32> {
        let held = (0..).zip(&self.driver.state().slots).filter(|(_, slot)| slot.held.is_some());
        held.map(|(node, _)| node).collect()
    }

    fn step(&mut self, input: Input, came: &mut Came) {
        if !self.budget.spend(self.driver.state().slots.len()) {
            self.waiting.clear();
            return;
        }
        let before = self.driver.state().clone();
        let folded = self.driver.handle(input.clone(), self.now_ms);
        if let Some(recording) = &mut self.recording {
            recording.folded(self.now_ms, &input, folded.as_ref().err());
        }
        came.errors.extend(folded.err());
        let mut outputs = Vec::new();
        while let Some(output) = self.driver.poll_output() {
            if let Some(recording) = &mut self.recording {
                recording.output(self.now_ms, &output);
            }
            outputs.push(output);
        }
        let step = Step { before: &before, input: &input, outputs: &outputs, after: self.driver.state() };
        self.violations.extend(check_step(&step));
        if let Some(log) = &self.log {
            log.borrow_mut().stands(self.now_ms, self.driver.state());
        }
        for output in outputs {
            match output {
                Output::Decide { call, snapshot } => self.waiting.push_back((call, snapshot)),
                output => came.outputs.push(output),
            }
        }
    }

    /// Moves the clock to the driver's next wake-up and fires it; `None` when it waits for inputs only.
    pub fn wake(&mut self) -> Option<Came> {
        let at = self.driver.requeue_at()?;
        self.now_ms = self.now_ms.max(at);
        Some(self.feed(Input::Tick))
    }

    /// Moves the clock, firing every wake-up on the way at its instant.
    pub fn wait(&mut self, span_ms: u64) -> Came {
        let end = self.now_ms.saturating_add(span_ms);
        let mut all = Came::default();
        while let Some(at) = self.driver.requeue_at().filter(|at| *at <= end) {
            if self.is_cut() {
                break;
            }
            self.now_ms = self.now_ms.max(at);
            all.join(self.feed(Input::Tick));
        }
        self.now_ms = end;
        all.join(self.feed(Input::Tick));
        all
    }

    /// The operation in flight for an attempt, its own or its reap's.
    pub fn pending(&self, attempt: AttemptId) -> Option<Operation> {
        let state = self.driver.state();
        let held = state.holder(attempt).and_then(|node| state.slot(node)?.node.as_ref()?.pending.as_ref());
        let reap = state.reaps.get(&attempt).and_then(|reap| reap.pending.as_ref());
        held.or(reap).map(|pending| pending.operation.clone())
    }

    /// The attempt that holds a slot.
    pub fn attempt(&self, slot: &str) -> Option<AttemptId> {
        let state = self.driver.state();
        Some(state.slot(*state.names.get(slot)?)?.node.as_ref()?.attempt)
    }

    /// Every operation in flight, by id.
    pub fn in_flight(&self) -> Vec<Operation> {
        let state = self.driver.state();
        let held = state.slots.iter().filter_map(|slot| slot.node.as_ref()?.pending.as_ref());
        let reaps = state.reaps.values().filter_map(|reap| reap.pending.as_ref());
        let mut all: Vec<Operation> = held.chain(reaps).map(|pending| pending.operation.clone()).collect();
        all.sort_by_key(|operation| operation.id);
        all
    }

    /// Every operation succeeds and every bootstrap joins, until nothing is in flight; bounded.
    pub fn bring_up(&mut self) {
        // Each node takes a handful of steps; a decider that never gets anywhere is cut.
        for _ in 0..5_000 + 100 * self.driver.state().slots.len() {
            if self.is_cut() {
                return;
            }
            if let Some(operation) = self.in_flight().first() {
                let result = Ok(natural(operation));
                self.feed(Input::Completed { id: operation.id, result });
                continue;
            }
            match self.booting() {
                Some(attempt) => {
                    self.feed(Input::Observed { attempt, observation: engine::io::Observation::Joined });
                }
                None => return,
            }
        }
    }

    /// The first attempt whose bootstrap runs.
    fn booting(&self) -> Option<AttemptId> {
        let nodes = self.driver.state().slots.iter().filter_map(|slot| slot.node.as_ref());
        let mut booting = nodes.filter(|node| node.stage == decider::Stage::BootstrapRunning);
        booting.next().map(|node| node.attempt)
    }

    /// Every operation succeeds, every bootstrap joins and every wake-up fires at its instant, until the fleet has converged; whether
    /// it did within the time.
    pub fn settle(&mut self, within_ms: u64) -> bool {
        let end = self.now_ms.saturating_add(within_ms);
        while !self.is_cut() {
            self.bring_up();
            if self.driver.is_converged() {
                return true;
            }
            match self.driver.requeue_at().filter(|at| *at <= end) {
                Some(at) => {
                    self.now_ms = self.now_ms.max(at);
                    self.feed(Input::Tick);
                }
                None => break,
            }
        }
        false
    }

    /// Two minutes and another pass over a settled cluster change nothing (S11).
    pub fn check_rest(&mut self) {
        let before = self.driver.state().clone();
        self.now_ms = self.now_ms.saturating_add(120_000);
        let came = self.feed(Input::Resync);
        self.violations.extend(check_settled(&before, self.driver.state(), &came.outputs));
    }
}

impl Came {
    fn join(&mut self, mut other: Came) {
        self.outputs.append(&mut other.outputs);
        self.plans.append(&mut other.plans);
        self.held.append(&mut other.held);
        self.errors.append(&mut other.errors);
    }
}

/// What a provider that works answers to an operation.
pub fn natural(operation: &Operation) -> Done {
    let key = &operation.key;
    match &operation.request {
        Request::CreateLease(_) => Done::Leased { lease: lease_of(&key.slot, key.attempt), adopted: false },
        Request::SettleCreate(_) => Done::Absent,
        Request::LookupEndpoint { .. } => Done::Found { endpoint: format!("10.0.0.{}:80", key.attempt.0) },
        Request::StartBootstrap { .. } => Done::Started { session: format!("S-{}", key.attempt), adopted: false },
        Request::CancelBootstrap { .. } => Done::Cancelled,
        Request::DestroyLease { .. } => Done::Destroyed,
    }
}

/// The lease that [`natural`] answers.
pub fn lease_of(slot: &str, attempt: AttemptId) -> String {
    format!("L-{slot}-{attempt}")
}

/// Parses `a3.2`.
pub fn operation_id(text: &str) -> Option<OperationId> {
    let (attempt, sequence) = text.strip_prefix('a')?.split_once('.')?;
    Some(OperationId { attempt: AttemptId(attempt.parse().ok()?), sequence: sequence.parse().ok()? })
}
