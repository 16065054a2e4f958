//! A driver that is recorded, and what it goes through.

use std::collections::BTreeMap;

use decider::{Plan, Snapshot};
use engine::driver::{Driver, DriverConfig};
use engine::io::{DeciderFailure, DeciderIdentity, Done, Input, Observation, Operation, Output, Promise, Request};
use engine::policy::Policy;
use engine::shape::ClusterShape;
use journal::{Against, Reader, Recorder, Replay, ReplayError, Writer, replay};

pub type Decide = fn(&Snapshot) -> Result<Plan, DeciderFailure>;

pub fn native(snapshot: &Snapshot) -> Result<Plan, DeciderFailure> {
    Ok(decider::reconcile(snapshot))
}

pub fn config() -> DriverConfig {
    DriverConfig {
        run: "demo".into(),
        policy: Policy::default(),
        providers: BTreeMap::from([("fake".into(), Promise::Keyed)]),
        decider: DeciderIdentity::native(),
        next_attempt: 1,
        epoch: 0,
    }
}

pub fn shape(generation: u64, count: u32) -> ClusterShape {
    serde_json::from_value(serde_json::json!({
        "run": "demo", "generation": generation,
        "groups": [{ "id": "web", "count": count, "template": {
            "provider": "fake", "settings": { "ratio": 0.1, "big": 1e300 },
            "boot": { "command": ["serve", "„ü“\n\u{1}"] },
            "join": { "probe": { "tcp": "{endpoint}" }, "interval_ms": 200, "timeout_ms": 1_000 },
        }}],
    }))
    .unwrap()
}

pub struct Recorded {
    pub driver: Driver,
    pub now_ms: u64,
    decide: Decide,
    recorder: Recorder,
    pub writer: Writer<Vec<u8>>,
    flying: Vec<Operation>,
}

impl Recorded {
    pub fn new(decide: Decide) -> Self {
        Recorded::with(decide, Writer::new(Vec::new()), config())
    }

    pub fn with(decide: Decide, mut writer: Writer<Vec<u8>>, config: DriverConfig) -> Self {
        let (recorder, start) = Recorder::start(&config, &decider::describe());
        writer.append(0, &start.entry()).unwrap();
        Recorded { driver: Driver::new(config).unwrap(), now_ms: 0, decide, recorder, writer, flying: Vec::new() }
    }

    pub fn feed(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let folded = self.driver.handle(input.clone(), self.now_ms);
            if let Some(draft) = self.recorder.folded(input, folded.as_ref().err()) {
                self.writer.append(self.now_ms, &draft.entry()).unwrap();
            }
            while let Some(output) = self.driver.poll_output() {
                if let Some(draft) = self.recorder.output(&output) {
                    self.writer.append(self.now_ms, &draft.entry()).unwrap();
                }
                match output {
                    Output::Submit(operation) => self.flying.push(operation),
                    Output::Decide { call, snapshot } => {
                        inputs.push(Input::Decided { call, result: (self.decide)(&snapshot) });
                    }
                    _ => {}
                }
            }
        }
    }

    /// Everything in flight succeeds, until nothing is.
    pub fn settle(&mut self) {
        while let Some(operation) = self.flying.pop() {
            self.now_ms += 7;
            let attempt = operation.id.attempt;
            let done = match &operation.request {
                Request::CreateLease(_) => Done::Leased { lease: format!("L-{attempt}"), adopted: false },
                Request::SettleCreate(_) => Done::Absent,
                Request::LookupEndpoint { .. } => Done::Found { endpoint: "10.0.0.1:80".into() },
                Request::StartBootstrap { .. } => Done::Started { session: format!("S-{attempt}"), adopted: false },
                Request::CancelBootstrap { .. } => Done::Cancelled,
                Request::DestroyLease { .. } => Done::Destroyed,
            };
            let boots = matches!(done, Done::Started { .. });
            self.feed(Input::Completed { id: operation.id, result: Ok(done) });
            if boots {
                self.feed(Input::Observed { attempt, observation: Observation::Joined });
            }
        }
    }

    pub fn end(mut self) -> Writer<Vec<u8>> {
        self.writer.append(self.now_ms, &self.recorder.end().entry()).unwrap();
        self.writer
    }
}

/// Up, a death, a replacement, a refused shape, down.
pub fn story(decide: Decide) -> Vec<u8> {
    let mut r = Recorded::new(decide);
    r.feed(Input::Desired(shape(1, 2)));
    r.settle();
    r.feed(Input::Observed {
        attempt: engine::id::AttemptId(1),
        observation: Observation::Closed { exit: Some("exit status 1".into()) },
    });
    r.settle();
    r.now_ms += 1_500;
    r.feed(Input::Tick);
    r.settle();
    r.feed(Input::Desired(shape(0, 5))); // refused
    r.feed(Input::Desired(shape(2, 1)));
    r.settle();
    r.end().into_inner()
}

pub fn again(
    bytes: &[u8],
    against: &Against,
    mut ask: impl FnMut(&Snapshot) -> Result<Plan, DeciderFailure>,
) -> Result<Replay, ReplayError> {
    replay(&mut Reader::new(bytes), against, |_, snapshot| ask(snapshot))
}
