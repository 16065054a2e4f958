//! A fleet comes up, follows its shape, and survives.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use decider::Progress;
use engine::io::{Observation, Promise};
use engine::shape::{ShapeError, Template};
use homeostat::backends::fake::{Beat, Call, Commit, FakeBackend, Nth, Script, Step};
use homeostat::backends::{Backend, TemplateError};
use homeostat::{HostError, HostEvent};
use tokio::time::Instant;

use crate::bench::*;

#[tokio::test(start_paused = true)]
async fn a_fleet_converges_and_stays() {
    let fake = FakeBackend::keyed();
    let host = host(&fake).await;
    let mut events = host.events();
    host.update_shape(shape(1, &[("web", 3, "a"), ("db", 2, "b"), ("none", 0, "c")])).await.unwrap();
    let view = converged(&host, 5).await;
    assert_eq!(slots(&fake), ["db-0", "db-1", "web-0", "web-1", "web-2"]);
    assert!(view.nodes.iter().all(|node| node.ready && node.endpoint.is_some()));
    assert_eq!((view.generation, view.observed_generation), (1, 1));
    let calls = fake.log().len();
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(fake.log().len(), calls, "a settled fleet asks for nothing:\n{}", fake.transcript());
    let mut said = Vec::new();
    while let Ok(event) = events.try_recv() {
        said.push(event);
    }
    assert_eq!(said.iter().filter(|event| **event == HostEvent::Converged { generation: 1 }).count(), 1);
    assert!(said.iter().any(|event| matches!(event, HostEvent::Node(node) if node.node == "db-1" && node.ready)));
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_delays_no_other_node() {
    for call in [Call::Create, Call::Lookup, Call::Start] {
        let script = Script::new().on("web-1", call, Nth::Every, Step::hang(Commit::Never));
        let fake =
            FakeBackend::new(Promise::Keyed, script.on("*", Call::List, Nth::From(2), Step::hang(Commit::Never)));
        let host = host(&fake).await;
        let began = Instant::now();
        host.update_shape(shape(1, &[("web", 40, "a")])).await.unwrap();
        let view = until(&host, 5, |view| view.nodes.iter().filter(|node| node.ready).count() == 39).await;
        assert!(began.elapsed() <= Duration::from_millis(2), "{call:?}: nothing to wait for but the next view");
        assert!(!view.nodes[1].ready && view.nodes[1].node == "web-1");
        // And it is never stuck: it is asked about, settled and tried again (L4).
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!(fake.calls("web-1", call) > 3, "{call:?}:\n{}", fake.transcript());
        assert_eq!(host.view().nodes.iter().filter(|node| node.ready).count(), 39);
        clean(&fake);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_dies_is_replaced() {
    let fake = FakeBackend::keyed();
    let host = host(&fake).await;
    host.update_shape(shape(1, &[("web", 3, "a")])).await.unwrap();
    let before = converged(&host, 5).await;
    let began = Instant::now();
    assert!(fake.die(&fake.lease_of("web-1").unwrap(), "exit status 9"));
    until(&host, 5, |view| !view.converged).await;
    let after = converged(&host, 5).await;
    assert!(attempt(&after, "web-1") > attempt(&before, "web-1"));
    assert_eq!(attempt(&after, "web-0"), attempt(&before, "web-0"));
    assert_eq!(began.elapsed(), Duration::from_secs(1), "one backoff");
    assert_eq!(fake.live(&key("web-1", attempt(&before, "web-1"))), 0);
    assert_eq!(slots(&fake), ["web-0", "web-1", "web-2"]);
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn the_fleet_follows_its_shape() {
    let fake = FakeBackend::keyed();
    let host = host(&fake).await;
    host.update_shape(shape(1, &[("web", 2, "a"), ("db", 1, "b")])).await.unwrap();
    let first = converged(&host, 5).await;
    host.update_shape(shape(2, &[("web", 4, "a"), ("db", 1, "b")])).await.unwrap();
    let grown = converged(&host, 5).await;
    assert_eq!(grown.nodes.len(), 5);
    host.update_shape(shape(3, &[("web", 1, "a"), ("db", 1, "b")])).await.unwrap();
    let shrunk = converged(&host, 5).await;
    assert_eq!(slots(&fake), ["db-0", "web-0"]);
    assert_eq!(attempt(&shrunk, "web-0"), attempt(&first, "web-0"), "only the highest go (S9)");
    host.update_shape(shape(4, &[("web", 1, "z"), ("db", 1, "b")])).await.unwrap();
    let drifted = converged(&host, 5).await;
    assert!(attempt(&drifted, "web-0") > attempt(&first, "web-0"), "drift replaces");
    assert_eq!(attempt(&drifted, "db-0"), attempt(&first, "db-0"));
    let gone = when(&fake, "web-0", Call::Destroy, "destroys it");
    let log = fake.log();
    let of = |attempt, what: &str| {
        log.iter().position(|entry| entry.key == Some(key("web-0", attempt)) && entry.what.contains(what)).unwrap()
    };
    let old = of(attempt(&first, "web-0"), "destroys it");
    assert!(old < of(attempt(&drifted, "web-0"), "begins"), "the old one is gone before the new one starts; {gone}");
    host.update_shape(shape(5, &[("web", 1, "z")])).await.unwrap();
    converged(&host, 5).await;
    assert_eq!(slots(&fake), ["web-0"]);
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_refused_shape_changes_nothing() {
    let fake = FakeBackend::keyed();
    let host = host(&fake).await;
    host.update_shape(shape(2, &[("web", 1, "a")])).await.unwrap();
    let before = converged(&host, 5).await;
    let mut elsewhere = shape(3, &[("web", 2, "a")]);
    Arc::make_mut(&mut elsewhere.groups[0].template).provider = "nowhere".into();
    let mut foreign = shape(3, &[("web", 2, "a")]);
    foreign.run = "other".into();
    for refused in [
        shape(1, &[("web", 2, "a")]),
        shape(2, &[("web", 2, "a")]),
        shape(3, &[("web", 2, "a"), ("web", 1, "a")]),
        shape(3, &[("Web", 2, "a")]),
        shape(3, &[("web", 1_000_000_000, "a")]),
        elsewhere,
        foreign,
    ] {
        let error = host.update_shape(refused.clone()).await.unwrap_err();
        assert!(matches!(error, HostError::Shape(_)), "{refused:?}: {error}");
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(host.view().nodes, before.nodes);
    host.update_shape(shape(2, &[("web", 1, "a")])).await.unwrap(); // the same again is no change
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_component_decides_in_real_time() {
    let fake = FakeBackend::keyed();
    let decider = homeostat::decide::SandboxedDecider::built_in().unwrap();
    let host = homeostat::Host::builder(RUN).backend("fake", fake.clone()).decider(decider).start().await.unwrap();
    host.update_shape(shape(1, &[("web", 20, "a")])).await.unwrap();
    let before = converged(&host, 180).await;
    assert!(fake.die(&fake.lease_of("web-7").unwrap(), "signal 9"));
    let replaced =
        |node: &engine::view::NodeView| node.node == "web-7" && node.attempt > Some(attempt(&before, "web-7"));
    until(&host, 180, |view| view.converged && view.nodes.iter().any(replaced)).await;
    assert!(host.shutdown(homeostat::Shutdown::TakeDown).await.unwrap().is_clean());
    assert_eq!(fake.resources(), []);
    clean(&fake);
}

/// Refuses one command.
struct Choosy(FakeBackend);

#[async_trait::async_trait]
impl Backend for Choosy {
    fn promise(&self) -> Promise {
        self.0.promise()
    }
    fn check(&self, template: &Template) -> Result<(), TemplateError> {
        match template.boot.command[0].as_str() {
            "never" => Err(TemplateError {
                field: "boot.command".into(),
                value: "never".into(),
                reason: "there is no such program".into(),
            }),
            _ => Ok(()),
        }
    }
    async fn create(
        &self,
        request: &engine::io::CreateRequest,
    ) -> Result<homeostat::backends::Leased, engine::io::Fault> {
        self.0.create(request).await
    }
    async fn lookup(&self, key: &engine::id::ExternalKey, lease: &String) -> Result<String, engine::io::Fault> {
        self.0.lookup(key, lease).await
    }
    async fn start(
        &self,
        request: homeostat::backends::StartRequest<'_>,
        observations: homeostat::backends::ObservationSink,
    ) -> Result<homeostat::backends::Started, engine::io::Fault> {
        self.0.start(request, observations).await
    }
    async fn cancel(
        &self,
        key: &engine::id::ExternalKey,
        lease: &String,
        session: &String,
    ) -> Result<(), engine::io::Fault> {
        self.0.cancel(key, lease, session).await
    }
    async fn destroy(&self, key: &engine::id::ExternalKey, lease: &String) -> Result<(), engine::io::Fault> {
        self.0.destroy(key, lease).await
    }
    async fn list(&self, run: &str) -> Result<engine::io::Listing, engine::io::Fault> {
        self.0.list(run).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_backend_can_refuse_a_template_with_its_field() {
    let host = homeostat::Host::builder(RUN)
        .backend("fake", Choosy(FakeBackend::keyed()))
        .decider(homeostat::decide::NativeDecider)
        .start()
        .await
        .unwrap();
    let error = host.update_shape(shape(1, &[("web", 1, "a"), ("db", 1, "never")])).await.unwrap_err();
    let HostError::Shape(ShapeError::Invalid { field, value, .. }) = error else { panic!("{error}") };
    assert_eq!((field.as_str(), value.as_str()), ("group[1].boot.command", "never"));
    assert!(host.view().nodes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn output_reaches_the_watcher() {
    let beats = vec![Beat::after(5, Observation::Output("hello".into())), Beat::after(5, Observation::Joined)];
    let fake = FakeBackend::new(Promise::Keyed, Script::new().bootstrap("*", Nth::Every, beats));
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = lines.clone();
    let watcher = move |attempt, line: &str| seen.lock().unwrap().push(format!("{attempt} {line}"));
    let host = builder(&fake).output_watcher(Arc::new(watcher)).start().await.unwrap();
    host.update_shape(shape(1, &[("web", 2, "a")])).await.unwrap();
    converged(&host, 5).await;
    let mut lines = lines.lock().unwrap().clone();
    lines.sort();
    assert_eq!(lines, ["a1 hello", "a2 hello"]);
}

#[tokio::test(start_paused = true)]
async fn a_bootstrap_that_fails_twice_backs_off_twice() {
    let failing = vec![Beat::after(
        10,
        Observation::Failed { progress: Progress::StartFailed, reason: "exit status 1".into(), permanent: false },
    )];
    let fake = FakeBackend::new(Promise::Keyed, Script::new().bootstrap("web-0", Nth::UpTo(2), failing));
    let host = host(&fake).await;
    let began = Instant::now();
    host.update_shape(shape(1, &[("web", 1, "a")])).await.unwrap();
    let view = converged(&host, 10).await;
    assert_eq!(attempt(&view, "web-0"), 3);
    assert_eq!(began.elapsed(), Duration::from_millis(10 + 1_000 + 10 + 2_000));
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_large_fleet_comes_up() {
    let fake = FakeBackend::keyed();
    let host = host(&fake).await;
    host.update_shape(shape(1, &[("web", 2_000, "a")])).await.unwrap();
    let view = converged(&host, 10).await;
    assert_eq!(view.nodes.len(), 2_000);
    clean(&fake);
}
