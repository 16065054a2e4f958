//! SPEC 7, as far as it concerns the executor and its backends, in paused time over the scripted fake.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use decider::Progress;
use engine::id::{AttemptId, ExternalKey, OperationId};
use engine::io::{CreateRequest, Done, Fault, Input, Observation, Operation, OperationStatus, Promise, Request};
use engine::shape::{Boot, Join, Probe, Template};
use homeostat::backends::Backend;
use homeostat::backends::fake::{Beat, Call, Commit, FakeBackend, Nth, Script, Step, View};
use homeostat::executor::{Executor, ExecutorEvent, SubmitError};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

const WINDOWED: Promise = Promise::Windowed { window_ms: 60_000, listings: 3 };

struct Bench {
    fake: FakeBackend,
    executor: Executor,
    events: mpsc::Receiver<ExecutorEvent>,
}

fn bench(promise: Promise, script: Script) -> Bench {
    let fake = FakeBackend::new(promise, script);
    let (sender, events) = mpsc::channel(64);
    let backend: Arc<dyn Backend> = Arc::new(fake.clone());
    Bench { fake, executor: Executor::new(BTreeMap::from([("fake".to_owned(), backend)]), sender), events }
}

impl Bench {
    /// The next completion within a minute; nothing else may come before it.
    async fn completed(&mut self) -> (OperationId, Result<Done, Fault>) {
        match timeout(Duration::from_secs(60), self.events.recv()).await.expect("a completion").unwrap() {
            ExecutorEvent::Input(Input::Completed { id, result }) => (id, result),
            other => panic!("not a completion: {other:?}"),
        }
    }

    async fn observed(&mut self) -> (AttemptId, Observation) {
        loop {
            match timeout(Duration::from_secs(60), self.events.recv()).await.expect("an observation").unwrap() {
                ExecutorEvent::Input(Input::Observed { attempt, observation }) => return (attempt, observation),
                ExecutorEvent::Input(Input::Completed { .. }) => {}
                other => panic!("not an observation: {other:?}"),
            }
        }
    }

    async fn silent(&mut self, seconds: u64) {
        let next = timeout(Duration::from_secs(seconds), self.events.recv()).await;
        assert!(next.is_err(), "unexpected: {next:?}");
    }

    /// Submits and waits for the result.
    async fn perform(&mut self, operation: Operation) -> Result<Done, Fault> {
        let id = operation.id;
        self.executor.submit(operation).unwrap();
        let (which, result) = self.completed().await;
        assert_eq!(which, id);
        result
    }

    async fn lease(&mut self, slot: &str, attempt: u64) -> String {
        match self.perform(create(slot, attempt, 1)).await.unwrap() {
            Done::Leased { lease, .. } => lease,
            other => panic!("{other:?}"),
        }
    }
}

fn template() -> Arc<Template> {
    let boot = Boot { command: vec!["true".into()], env: BTreeMap::new(), files: BTreeMap::new() };
    let join = Join { probe: Probe::Tcp("{endpoint}".into()), interval_ms: 100, timeout_ms: 1_000 };
    let (settings, labels) = (BTreeMap::new(), BTreeMap::new());
    Arc::new(Template { provider: "fake".into(), settings, image: None, role: String::new(), boot, join, labels })
}

fn key(slot: &str, attempt: u64) -> ExternalKey {
    ExternalKey { run: "demo".into(), slot: slot.into(), attempt: AttemptId(attempt) }
}

fn id(attempt: u64, sequence: u64) -> OperationId {
    OperationId { attempt: AttemptId(attempt), sequence }
}

fn operation(slot: &str, attempt: u64, sequence: u64, request: Request) -> Operation {
    let (id, key) = (id(attempt, sequence), key(slot, attempt));
    Operation { id, key, provider: "fake".into(), request, deadline_ms: 0 }
}

fn create(slot: &str, attempt: u64, sequence: u64) -> Operation {
    let request = Arc::new(CreateRequest { key: key(slot, attempt), template: template() });
    operation(slot, attempt, sequence, Request::CreateLease(request))
}

fn settle(slot: &str, attempt: u64, sequence: u64) -> Operation {
    let request = Arc::new(CreateRequest { key: key(slot, attempt), template: template() });
    operation(slot, attempt, sequence, Request::SettleCreate(request))
}

fn start(slot: &str, attempt: u64, sequence: u64, lease: &str) -> Operation {
    let request = Request::StartBootstrap { lease: lease.into(), endpoint: "fake:1".into(), template: template() };
    operation(slot, attempt, sequence, request)
}

fn destroy(slot: &str, attempt: u64, sequence: u64, lease: &str) -> Operation {
    operation(slot, attempt, sequence, Request::DestroyLease { lease: lease.into() })
}

#[tokio::test(start_paused = true)]
async fn every_kind_reaches_its_call() {
    let mut bench = bench(Promise::Keyed, Script::new().bootstrap("*", Nth::Every, vec![]));
    let made = bench.perform(create("web-0", 7, 1)).await.unwrap();
    assert_eq!(made, Done::Leased { lease: "lease-001".into(), adopted: false });
    let lookup = operation("web-0", 7, 2, Request::LookupEndpoint { lease: "lease-001".into() });
    assert_eq!(bench.perform(lookup).await.unwrap(), Done::Found { endpoint: "fake:1".into() });
    let Done::Started { session, adopted: false } = bench.perform(start("web-0", 7, 3, "lease-001")).await.unwrap()
    else {
        panic!("not started");
    };
    let cancel = Request::CancelBootstrap { lease: "lease-001".into(), session };
    assert_eq!(bench.perform(operation("web-0", 7, 4, cancel)).await.unwrap(), Done::Cancelled);
    let (attempt, closed) = bench.observed().await;
    assert_eq!((attempt, closed), (AttemptId(7), Observation::Closed { exit: Some("cancelled".into()) }));
    assert_eq!(bench.perform(destroy("web-0", 7, 5, "lease-001")).await.unwrap(), Done::Destroyed);
    assert_eq!(bench.fake.resources(), []);
    assert_eq!(bench.fake.violations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_completed_operation_replays_its_result() {
    let mut bench = bench(Promise::Keyed, Script::new().on("*", Call::Create, Nth::Only(1), Step::permanent()));
    let first = bench.perform(create("web-0", 1, 1)).await;
    let again = bench.perform(create("web-0", 1, 1)).await;
    assert_eq!(first, again);
    assert!(matches!(first, Err(Fault::Permanent { .. })));
    assert_eq!(bench.fake.calls("web-0", Call::Create), 1, "{}", bench.fake.transcript());
    assert_eq!(bench.executor.stats().replayed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_running_operation_is_joined() {
    let mut bench = bench(Promise::Keyed, Script::new().on("*", Call::Create, Nth::Every, Step::done().after(5_000)));
    bench.executor.submit(create("web-0", 1, 1)).unwrap();
    sleep(Duration::from_secs(1)).await;
    let mut same = create("web-0", 1, 1);
    same.deadline_ms = 99; // the driver's business, no input of the effect
    bench.executor.submit(same).unwrap();
    assert!(bench.completed().await.1.is_ok());
    bench.silent(30).await;
    assert_eq!(bench.fake.calls("web-0", Call::Create), 1);
    assert_eq!(bench.executor.stats().joined, 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_id_with_another_input_is_refused() {
    let mut bench = bench(Promise::Keyed, Script::new().on("*", Call::Create, Nth::Every, Step::done().after(10)));
    bench.executor.submit(create("web-0", 1, 1)).unwrap();
    for running in [true, false] {
        let mut other_key = create("web-0", 1, 1);
        other_key.key.slot = "web-1".into();
        let mut other_request = create("web-0", 1, 1);
        other_request.request = Request::DestroyLease { lease: "lease-001".into() };
        for (operation, field) in [(other_key, "key"), (other_request, "request")] {
            let refused = bench.executor.submit(operation).unwrap_err();
            assert_eq!(refused, SubmitError::OtherInput { id: id(1, 1), field }, "running: {running}");
        }
        if running {
            assert!(bench.completed().await.1.is_ok());
        }
    }
    assert_eq!(bench.executor.stats().refused, 4);
    bench.silent(30).await;
}

#[tokio::test(start_paused = true)]
async fn a_second_operation_of_a_busy_attempt_is_refused() {
    let mut bench = bench(Promise::Keyed, Script::new().on("*", Call::Create, Nth::Every, Step::done().after(10)));
    bench.executor.submit(create("web-0", 1, 1)).unwrap();
    let refused = bench.executor.submit(destroy("web-0", 1, 2, "lease-001")).unwrap_err();
    assert_eq!(refused, SubmitError::Busy { id: id(1, 2), running: id(1, 1) });
    assert!(refused.to_string().contains("a1.2") && refused.to_string().contains("a1.1"), "{refused}");
    assert!(bench.completed().await.1.is_ok());
    assert!(bench.perform(destroy("web-0", 1, 2, "lease-001")).await.is_ok());
    let old = bench.executor.submit(create("web-0", 1, 1)).unwrap_err();
    assert_eq!(old, SubmitError::Superseded { id: id(1, 1), latest: id(1, 2) });
}

#[tokio::test(start_paused = true)]
async fn an_unknown_provider_is_refused() {
    let bench = bench(Promise::Keyed, Script::new());
    let mut lost = create("web-0", 1, 1);
    lost.provider = "nowhere".into();
    let refused = bench.executor.submit(lost).unwrap_err();
    assert_eq!(refused, SubmitError::UnknownProvider { id: id(1, 1), provider: "nowhere".into() });
    assert_eq!(bench.executor.remembered(), 0);
}

#[tokio::test(start_paused = true)]
async fn asking_about_a_completed_operation_delivers_its_result_again() {
    let mut bench = bench(Promise::Keyed, Script::new());
    let first = bench.perform(create("web-0", 1, 1)).await;
    assert_eq!(bench.executor.ask(id(1, 1)), OperationStatus::Completed);
    assert_eq!(bench.completed().await, (id(1, 1), first));
}

#[tokio::test(start_paused = true)]
async fn asking_about_an_unknown_operation_is_ambiguous() {
    let mut bench = bench(Promise::Keyed, Script::new());
    bench.lease("web-0", 1).await;
    for unknown in [id(1, 2), id(2, 1)] {
        assert_eq!(bench.executor.ask(unknown), OperationStatus::Ambiguous);
    }
    bench.silent(30).await;
}

#[tokio::test(start_paused = true)]
async fn asking_about_a_running_operation_gives_it_up() {
    let hang = Step::hang(Commit::After { ms: 5_000 });
    let mut bench = bench(Promise::Keyed, Script::new().on("*", Call::Create, Nth::Only(1), hang));
    bench.executor.submit(create("web-0", 1, 1)).unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.executor.ask(id(1, 1)), OperationStatus::Ambiguous);
    assert_eq!(bench.executor.ask(id(1, 1)), OperationStatus::Ambiguous);
    bench.silent(10).await; // it happens at 5 s, and nobody hears of it
    assert_eq!(bench.fake.live(&key("web-0", 1)), 1);
    // Its id stays ambiguous; the same request under the next id adopts.
    let again = bench.perform(create("web-0", 1, 1)).await;
    assert!(matches!(again, Err(Fault::Ambiguous { .. })), "{again:?}");
    let retry = bench.perform(create("web-0", 1, 2)).await.unwrap();
    assert_eq!(retry, Done::Leased { lease: "lease-001".into(), adopted: true });
    assert_eq!(bench.fake.peak(), 1);
    assert_eq!(bench.executor.stats().given_up, 1);
    assert_eq!(bench.fake.violations(), Vec::<String>::new());
}

/// A call that blocks its thread cannot be dropped; it ends after it was given up.
struct Blocking {
    running: Arc<Mutex<u32>>,
    beside: Arc<Mutex<u32>>,
    /// Each call waits for a word from here.
    goes_on: Arc<Mutex<std::sync::mpsc::Receiver<()>>>,
}

#[async_trait::async_trait]
impl Backend for Blocking {
    fn promise(&self) -> Promise {
        Promise::Keyed
    }
    async fn create(&self, _: &CreateRequest) -> Result<homeostat::backends::Leased, Fault> {
        *self.running.lock().unwrap() += 1;
        let running = *self.running.lock().unwrap();
        let mut beside = self.beside.lock().unwrap();
        *beside = (*beside).max(running);
        drop(beside);
        self.goes_on.lock().unwrap().recv().unwrap();
        *self.running.lock().unwrap() -= 1;
        Ok(homeostat::backends::Leased { lease: "l".into(), adopted: false })
    }
    async fn lookup(&self, _: &ExternalKey, _: &String) -> Result<String, Fault> {
        Err(Fault::permanent("not here"))
    }
    async fn start(
        &self,
        _: homeostat::backends::StartRequest<'_>,
        _: homeostat::backends::ObservationSink,
    ) -> Result<homeostat::backends::Started, Fault> {
        Err(Fault::permanent("not here"))
    }
    async fn cancel(&self, _: &ExternalKey, _: &String, _: &String) -> Result<(), Fault> {
        Err(Fault::permanent("not here"))
    }
    async fn destroy(&self, _: &ExternalKey, _: &String) -> Result<(), Fault> {
        Err(Fault::permanent("not here"))
    }
    async fn list(&self, _: &str) -> Result<engine::io::Listing, Fault> {
        Err(Fault::permanent("not here"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_late_completion_is_discarded_and_counted_and_never_runs_beside_the_next() {
    let (running, beside) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let (go_on, goes_on) = std::sync::mpsc::channel();
    let goes_on = Arc::new(Mutex::new(goes_on));
    let backend = Blocking { running: running.clone(), beside: beside.clone(), goes_on };
    let (sender, mut events) = mpsc::channel(64);
    let backend: Arc<dyn Backend> = Arc::new(backend);
    let executor = Executor::new(BTreeMap::from([("fake".to_owned(), backend)]), sender);
    executor.submit(create("web-0", 1, 1)).unwrap();
    let began = std::time::Instant::now();
    while *running.lock().unwrap() == 0 {
        assert!(began.elapsed() < Duration::from_secs(120), "it never begins");
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(executor.ask(id(1, 1)), OperationStatus::Ambiguous);
    executor.forget(AttemptId(1)); // not yet: its call is still there
    assert_eq!(executor.remembered(), 1);
    executor.submit(create("web-0", 1, 2)).unwrap();
    // Time in which it would begin, if it did not wait for the one before.
    sleep(Duration::from_millis(200)).await;
    (0..2).for_each(|_| go_on.send(()).unwrap());
    let Some(ExecutorEvent::Input(Input::Completed { id: which, .. })) = events.recv().await else { panic!("closed") };
    assert_eq!(which, id(1, 2));
    assert_eq!(*beside.lock().unwrap(), 1, "S2: two calls of one attempt at once");
    assert_eq!(executor.stats().late_discarded, 1);
    assert_eq!(executor.stats().completed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_ambiguous_and_stays_in_its_call() {
    let script = Script::new().on("web-0", Call::Create, Nth::Only(1), Step::panic("boom"));
    let mut bench = bench(Promise::Keyed, script.on("*", Call::List, Nth::Only(1), Step::panic("bang")));
    let Err(Fault::Ambiguous { reason }) = bench.perform(create("web-0", 1, 1)).await else { panic!("not ambiguous") };
    assert!(reason.contains("boom"), "{reason}");
    assert!(bench.perform(create("web-0", 1, 2)).await.is_ok());
    assert!(bench.executor.list("fake", "demo"));
    let Some(ExecutorEvent::ListingFailed { provider, fault }) = bench.events.recv().await else { panic!("listed") };
    assert!(provider == "fake" && fault.to_string().contains("bang"), "{fault}");
    assert!(bench.executor.listing("fake", "demo").await.is_ok());
    assert_eq!(bench.executor.stats().panicked, 1);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_call_delays_no_other_attempt() {
    let mut bench =
        bench(Promise::Keyed, Script::new().on("web-0", Call::Create, Nth::Every, Step::hang(Commit::Never)));
    bench.executor.submit(create("web-0", 1, 1)).unwrap();
    let began = Instant::now();
    let others: BTreeSet<u64> = (2..200).collect();
    for attempt in &others {
        bench.executor.submit(create(&format!("web-{attempt}"), *attempt, 1)).unwrap();
    }
    let mut done = BTreeSet::new();
    for _ in &others {
        let (id, result) = bench.completed().await;
        assert!(result.is_ok());
        done.insert(id.attempt.0);
    }
    assert_eq!((done, began.elapsed()), (others, Duration::ZERO));
    assert_eq!(bench.executor.running(), [id(1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn settling_finds_the_label_and_makes_nothing() {
    let late = Step::ambiguous(Commit::After { ms: 2_000 });
    let mut bench = bench(WINDOWED, Script::new().on("*", Call::Create, Nth::Only(1), late));
    assert!(matches!(bench.perform(create("web-0", 1, 1)).await, Err(Fault::Ambiguous { .. })));
    // A name-alike of another attempt is not it (S15).
    bench.fake.plant(Some(key("web-0", 2)), None);
    bench.fake.plant(None, None);
    assert_eq!(bench.perform(settle("web-0", 1, 2)).await, Ok(Done::Absent));
    sleep(Duration::from_secs(3)).await;
    let found = bench.perform(settle("web-0", 1, 3)).await.unwrap();
    assert_eq!(found, Done::Leased { lease: "lease-003".into(), adopted: true });
    assert_eq!(bench.fake.calls("web-0", Call::Create), 1);
    assert_eq!(bench.fake.peak(), 1);
}

#[tokio::test(start_paused = true)]
async fn settling_by_a_bad_listing_says_nothing() {
    let script = Script::new()
        .on("*", Call::List, Nth::Only(1), Step::listing(View::Nothing, false))
        .on("*", Call::List, Nth::Only(2), Step::permanent())
        .on("*", Call::List, Nth::Only(3), Step::not_ready())
        .on("*", Call::List, Nth::Only(4), Step::retry_after(7_000))
        .on("*", Call::List, Nth::Only(5), Step::listing(View::First(0), false));
    let mut bench = bench(WINDOWED, script);
    for sequence in 1..=5 {
        let result = bench.perform(settle("web-0", 1, sequence)).await;
        let Err(Fault::Retryable { retry_after_ms, reason }) = result else { panic!("{sequence}: {result:?}") };
        assert_eq!(retry_after_ms, (sequence == 4).then_some(7_000), "{reason}");
    }
    assert_eq!(bench.perform(settle("web-0", 1, 6)).await, Ok(Done::Absent));
}

#[tokio::test(start_paused = true)]
async fn a_keyed_create_adopts_what_bears_its_key() {
    let mut bench =
        bench(Promise::Keyed, Script::new().on("*", Call::Create, Nth::Only(1), Step::ambiguous(Commit::AtOnce)));
    assert!(matches!(bench.perform(create("web-0", 1, 1)).await, Err(Fault::Ambiguous { .. })));
    let again = bench.perform(create("web-0", 1, 2)).await.unwrap();
    assert_eq!(again, Done::Leased { lease: "lease-001".into(), adopted: true });
    assert_eq!(bench.fake.peak(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_create_may_land_after_its_key_was_destroyed() {
    let late = Step::ambiguous(Commit::After { ms: 30_000 });
    let mut bench = bench(Promise::Keyed, Script::new().on("*", Call::Create, Nth::Only(1), late));
    assert!(bench.perform(create("web-0", 1, 1)).await.is_err());
    assert!(bench.perform(create("web-0", 1, 2)).await.is_ok());
    assert!(bench.perform(destroy("web-0", 1, 3, "lease-001")).await.is_ok());
    assert_eq!(bench.fake.live(&key("web-0", 1)), 0);
    sleep(Duration::from_secs(31)).await;
    assert_eq!(bench.fake.live(&key("web-0", 1)), 1);
    assert_eq!(bench.fake.peak(), 1);
}

#[tokio::test(start_paused = true)]
async fn already_gone_is_success_and_a_foreign_label_is_never_touched() {
    let mut bench = bench(Promise::Keyed, Script::new());
    assert_eq!(bench.perform(destroy("web-0", 1, 1, "lease-001")).await, Ok(Done::Destroyed));
    let cancel = Request::CancelBootstrap { lease: "lease-001".into(), session: "session-001".into() };
    assert_eq!(bench.perform(operation("web-0", 1, 2, cancel)).await, Ok(Done::Cancelled));
    let foreign = bench.fake.plant(Some(key("db-0", 9)), None);
    let refused = bench.perform(destroy("web-0", 1, 3, &foreign)).await;
    assert!(matches!(refused, Err(Fault::Permanent { .. })), "{refused:?}");
    assert_eq!(bench.fake.resources().len(), 1);
    assert_eq!(bench.fake.violations().len(), 1, "the fake reports the touch itself");
}

#[tokio::test(start_paused = true)]
async fn observations_arrive_in_order_also_after_the_attempt_was_given_up() {
    let beats = vec![
        Beat::after(1_000, Observation::Progress(Progress::Start)),
        Beat::after(1_000, Observation::Joined),
        Beat::after(1_000, Observation::Closed { exit: Some("exit status 3".into()) }),
    ];
    let script = Script::new().bootstrap("*", Nth::Every, beats.clone());
    let mut bench = bench(Promise::Keyed, script.on("*", Call::Start, Nth::Every, Step::hang(Commit::AtOnce)));
    let lease = bench.lease("web-0", 1).await;
    bench.executor.submit(start("web-0", 1, 2, &lease)).unwrap();
    sleep(Duration::from_millis(500)).await;
    assert_eq!(bench.executor.ask(id(1, 2)), OperationStatus::Ambiguous);
    for beat in beats {
        assert_eq!(bench.observed().await, (AttemptId(1), beat.observation));
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_made_again_adopts_the_session_and_hears_that_it_joined() {
    let mut bench =
        bench(Promise::Keyed, Script::new().bootstrap("*", Nth::Every, vec![Beat::after(10, Observation::Joined)]));
    let lease = bench.lease("web-0", 1).await;
    let first = bench.perform(start("web-0", 1, 2, &lease)).await.unwrap();
    assert_eq!(bench.observed().await.1, Observation::Joined);
    let again = bench.perform(start("web-0", 1, 3, &lease)).await.unwrap();
    let (Done::Started { session: one, .. }, Done::Started { session: other, adopted: true }) = (first, again) else {
        panic!("not adopted");
    };
    assert_eq!(one, other);
    assert_eq!(bench.observed().await.1, Observation::Joined);
}

#[tokio::test(start_paused = true)]
async fn output_is_thinned_out_for_the_driver_and_whole_for_the_watcher() {
    let mut beats: Vec<_> = (0..35).map(|at| Beat::after(100, Observation::Output(format!("line {at}")))).collect();
    beats.push(Beat::after(0, Observation::Joined));
    let fake = FakeBackend::new(Promise::Keyed, Script::new().bootstrap("*", Nth::Every, beats));
    let (sender, events) = mpsc::channel(64);
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let lines = seen.clone();
    let backend: Arc<dyn Backend> = Arc::new(fake.clone());
    let executor = Executor::with(
        BTreeMap::from([("fake".to_owned(), backend)]),
        sender,
        Some(Arc::new(move |_, line| lines.lock().unwrap().push(line.to_owned()))),
        Duration::from_secs(60),
    );
    let mut bench = Bench { fake, executor, events };
    let lease = bench.lease("web-0", 1).await;
    let began = Instant::now();
    bench.executor.submit(start("web-0", 1, 2, &lease)).unwrap();
    let mut arrived = Vec::new();
    let mut joined = None;
    while arrived.len() < 5 {
        match bench.observed().await.1 {
            Observation::Output(line) => arrived.push((began.elapsed().as_millis(), line)),
            Observation::Joined => joined = Some(began.elapsed().as_millis()),
            other => panic!("{other:?}"),
        }
    }
    let told: Vec<_> = arrived.iter().map(|(at, line)| format!("{at} {line}")).collect();
    assert_eq!(told, ["100 line 0", "1100 line 10", "2100 line 20", "3100 line 30", "4100 line 34"]);
    assert_eq!(joined, Some(3_500), "nothing but output waits");
    assert_eq!(seen.lock().unwrap().len(), 35);
}

#[tokio::test(start_paused = true)]
async fn listing_is_single_flight_and_a_hanging_one_ends() {
    let script = Script::new().on("*", Call::List, Nth::Only(1), Step::hang(Commit::Never));
    let mut bench = bench(Promise::Keyed, script);
    bench.fake.plant(Some(key("web-0", 1)), None);
    assert!(!bench.executor.list("nowhere", "demo"));
    assert!(bench.executor.list("fake", "demo"));
    assert!(!bench.executor.list("fake", "demo"), "one at a time");
    assert!(bench.perform(create("web-1", 2, 1)).await.is_ok(), "a hanging listing blocks nothing");
    let event = timeout(Duration::from_secs(61), bench.events.recv()).await.unwrap().unwrap();
    assert!(matches!(event, ExecutorEvent::ListingFailed { .. }), "{event:?}");
    assert!(bench.executor.list("fake", "demo"));
    let Some(ExecutorEvent::Input(Input::Listed { provider, listing })) = bench.events.recv().await else {
        panic!("not listed");
    };
    assert_eq!((provider.as_str(), listing.complete, listing.resources.len()), ("fake", true, 2));
    assert_eq!(bench.executor.stats().listings_failed, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_folded_is_forgotten() {
    let mut bench =
        bench(Promise::Keyed, Script::new().on("web-0", Call::Create, Nth::Every, Step::hang(Commit::Never)));
    bench.executor.submit(create("web-0", 1, 1)).unwrap();
    for attempt in 2..=50 {
        let lease = bench.lease("web-1", attempt).await;
        assert!(bench.perform(destroy("web-1", attempt, 2, &lease)).await.is_ok());
        assert_eq!(bench.executor.remembered(), 2, "one operation an attempt");
        bench.executor.forget(AttemptId(attempt));
    }
    bench.executor.forget(AttemptId(1));
    assert_eq!(bench.executor.remembered(), 1, "what runs is kept");
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_and_says_what_is_left() {
    let script = Script::new().on("web-0", Call::Create, Nth::Every, Step::done().after(2_000)).on(
        "web-1",
        Call::Create,
        Nth::Every,
        Step::hang(Commit::Never),
    );
    let mut bench = bench(Promise::Keyed, script);
    bench.executor.submit(create("web-0", 1, 1)).unwrap();
    bench.executor.submit(create("web-1", 2, 1)).unwrap();
    let began = Instant::now();
    assert_eq!(bench.executor.shutdown(Duration::from_secs(5)).await, [id(2, 1)]);
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert!(bench.completed().await.1.is_ok());
    assert_eq!(bench.executor.shutdown(Duration::from_secs(5)).await, []);
    assert_eq!(began.elapsed(), Duration::from_secs(5), "nothing left, no wait");
    let refused = bench.executor.submit(create("web-2", 3, 1)).unwrap_err();
    assert_eq!(refused, SubmitError::ShuttingDown { id: id(3, 1) });
}

#[tokio::test(start_paused = true)]
async fn a_full_channel_loses_nothing_and_blocks_no_submission() {
    let fake = FakeBackend::keyed();
    let (sender, events) = mpsc::channel(1);
    let backend: Arc<dyn Backend> = Arc::new(fake.clone());
    let executor = Executor::new(BTreeMap::from([("fake".to_owned(), backend)]), sender);
    let mut bench = Bench { fake, executor, events };
    for attempt in 1..=20 {
        bench.executor.submit(create(&format!("web-{attempt}"), attempt, 1)).unwrap();
    }
    sleep(Duration::from_secs(1)).await;
    for attempt in 1..=20 {
        bench.executor.submit(create(&format!("web-{attempt}"), attempt, 1)).unwrap();
    }
    let mut seen = BTreeMap::new();
    for _ in 0..40 {
        *seen.entry(bench.completed().await.0.attempt.0).or_insert(0) += 1;
    }
    assert!(seen.len() == 20 && seen.values().all(|times| *times == 2), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn the_log_of_the_fake_is_the_same_every_time() {
    let run = async || {
        let script = Script::new().on("web-0", Call::Create, Nth::Only(1), Step::retryable().after(20)).on(
            "web-1",
            Call::Create,
            Nth::Only(1),
            Step::hang(Commit::After { ms: 50 }),
        );
        let mut bench = bench(Promise::Keyed, script);
        bench.executor.submit(create("web-0", 1, 1)).unwrap();
        bench.executor.submit(create("web-1", 2, 1)).unwrap();
        let _ = bench.completed().await;
        assert_eq!(bench.executor.ask(id(2, 1)), OperationStatus::Ambiguous);
        sleep(Duration::from_millis(100)).await;
        bench.fake.transcript()
    };
    let first = run().await;
    assert_eq!(first, run().await);
    assert_eq!(
        first.lines().map(str::trim_start).collect::<Vec<_>>(),
        [
            "0 ms  create #1  web-0/a1  begins",
            "0 ms  create #1  web-1/a2  begins",
            "20 ms  create #1  web-0/a1  fails: scripted: try again",
            "20 ms  create #1  web-1/a2  is dropped",
            "50 ms  create #1  web-1/a2  takes effect: makes lease-001",
        ]
    );
}
