//! A driver under its checkers: every input is one step, every step is checked against S1–S15.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use decider::{Plan, Snapshot};
use engine::driver::{Driver, DriverConfig, DriverError};
use engine::id::{AttemptId, NodeId, OperationId};
use engine::invariants::{Step, Violation, check_settled, check_step, check_subset};
use engine::io::{DeciderFailure, Done, Input, Operation, Output, Request};
use journal::{Draft, Recorder, WriteError, Writer};

/// How plans are made.
pub type Decide = Box<dyn FnMut(&Snapshot) -> Result<Plan, DeciderFailure>>;

/// What one input brought.
#[derive(Debug, Default)]
pub struct Came {
    /// The outputs, those of the passes it set off included; decisions asked for apart.
    pub outputs: Vec<Output>,
    /// Each plan applied, with its snapshot.
    pub plans: Vec<(Arc<Snapshot>, Plan)>,
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
    waiting: VecDeque<(u64, Arc<Snapshot>)>,
    recording: Option<Recording>,
}

/// The journal of a session. Clones share it.
#[derive(Clone)]
pub struct Recording {
    recorder: Rc<RefCell<Recorder>>,
    writer: Rc<RefCell<Writer<Vec<u8>>>>,
    last_ms: Rc<Cell<u64>>,
}

impl Recording {
    /// The journal of a driver that was just made with this configuration.
    pub fn of(config: &DriverConfig) -> Result<Self, WriteError> {
        let (recorder, start) = Recorder::start(config, &decider::describe());
        let mut writer = Writer::new(Vec::new());
        writer.append(0, &start.entry())?;
        Ok(Recording {
            recorder: Rc::new(RefCell::new(recorder)),
            writer: Rc::new(RefCell::new(writer)),
            last_ms: Rc::default(),
        })
    }

    fn append(&self, at_ms: u64, draft: Option<Draft>) {
        self.last_ms.set(at_ms);
        if let Some(draft) = draft {
            // A record of a test is never too long, and memory does not fail.
            let _ = self.writer.borrow_mut().append(at_ms, &draft.entry());
        }
    }

    /// Its bytes so far, with an end mark.
    pub fn ended(&self) -> Vec<u8> {
        let end = self.recorder.borrow().end();
        self.append(self.last_ms.get(), Some(end));
        self.writer.borrow_mut().get_mut().clone()
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
            waiting: VecDeque::new(),
            recording: None,
        }
    }

    /// Writes from now on what is folded and decided.
    pub fn record(&mut self, recording: &Recording) {
        self.recording = Some(recording.clone());
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
                came.plans.push((snapshot.clone(), plan.clone()));
            }
            self.step(Input::Decided { call, result }, came);
            return true;
        }
        false
    }

    fn step(&mut self, input: Input, came: &mut Came) {
        let before = self.driver.state().clone();
        let folded = self.driver.handle(input.clone(), self.now_ms);
        if let Some(recording) = &self.recording {
            let draft = recording.recorder.borrow_mut().folded(input.clone(), folded.as_ref().err());
            recording.append(self.now_ms, draft);
        }
        came.errors.extend(folded.err());
        let mut outputs = Vec::new();
        while let Some(output) = self.driver.poll_output() {
            if let Some(recording) = &self.recording {
                let draft = recording.recorder.borrow_mut().output(&output);
                recording.append(self.now_ms, draft);
            }
            outputs.push(output);
        }
        let step = Step { before: &before, input: &input, outputs: &outputs, after: self.driver.state() };
        self.violations.extend(check_step(&step));
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
        for _ in 0..5_000 {
            if let Some(operation) = self.in_flight().first() {
                let result = Ok(natural(operation));
                self.feed(Input::Completed { id: operation.id, result });
                continue;
            }
            let booting = self.driver.state().slots.iter().find_map(|slot| {
                slot.node
                    .as_ref()
                    .filter(|node| node.stage == decider::Stage::BootstrapRunning)
                    .map(|node| node.attempt)
            });
            match booting {
                Some(attempt) => {
                    self.feed(Input::Observed { attempt, observation: engine::io::Observation::Joined });
                }
                None => return,
            }
        }
    }

    /// Two minutes and another pass over a settled cluster change nothing (S11).
    pub fn check_rest(&mut self) {
        let before = self.driver.state().clone();
        self.now_ms += 120_000;
        let came = self.feed(Input::Resync);
        self.violations.extend(check_settled(&before, self.driver.state(), &came.outputs));
    }
}

impl Came {
    fn join(&mut self, mut other: Came) {
        self.outputs.append(&mut other.outputs);
        self.plans.append(&mut other.plans);
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
