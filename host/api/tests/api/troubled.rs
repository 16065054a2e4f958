//! A daemon that fails in each way that it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api::Limits;
use api::control::{Control, Refusal};
use api::wire::*;
use tokio::sync::{Semaphore, broadcast};
use tokio::time::{sleep, timeout};

use crate::fake::{Fake, Options};
use crate::raw::{PATIENCE, get, post};
use crate::serve;

struct Troubled {
    fake: Arc<Fake>,
    /// Commands are begun, and go on when there is a permit.
    begun: AtomicUsize,
    gate: Semaphore,
}

impl Troubled {
    fn new() -> Arc<Self> {
        let (begun, gate) = (AtomicUsize::new(0), Semaphore::new(0));
        Arc::new(Troubled { fake: Fake::new(Options::default()), begun, gate })
    }

    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let held = async {
            while !holds(self) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, held).await.unwrap_or_else(|_| panic!("not in time: {what}"));
    }

    async fn begun(&self, commands: usize) {
        self.until("commands are begun", |daemon| daemon.begun.load(Ordering::SeqCst) == commands).await;
    }
}

#[async_trait::async_trait]
impl Control for Troubled {
    fn status(&self) -> Arc<Status> {
        self.fake.status()
    }

    fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.fake.changes()
    }

    fn changes_after(&self, revision: &str) -> Option<Vec<Arc<Change>>> {
        self.fake.changes_after(revision)
    }

    async fn node(&self, name: &str) -> Result<NodeDetail, Refusal> {
        panic!("a mistake about {name}")
    }

    async fn explain(&self, _: &str) -> Result<Explanation, Refusal> {
        std::future::pending().await
    }

    async fn history(&self, _: HistoryQuery) -> Result<History, Refusal> {
        Err(Refusal::Unavailable("the daemon is starting".into()))
    }

    async fn logs(&self, _: LogsQuery) -> Result<Logs, Refusal> {
        Err(Refusal::Failed("the output cannot be read".into()))
    }

    async fn decisions(&self, _: usize) -> Result<Decisions, Refusal> {
        Err(Refusal::Failed("x".repeat(100_000)))
    }

    async fn plan(&self, request: PlanRequest) -> Result<Plan, Refusal> {
        self.fake.plan(request).await
    }

    async fn command(&self, request: CommandRequest) -> Result<CommandResult, Refusal> {
        match request.id.as_str() {
            "panics" => panic!("a mistake in a command"),
            _ => {
                self.begun.fetch_add(1, Ordering::SeqCst);
                self.gate.acquire().await.unwrap().forget();
                self.fake.command(request).await
            }
        }
    }

    async fn export(&self) -> Result<Export, Refusal> {
        self.fake.export().await
    }

    async fn diagnose(&self) -> Result<Diagnosis, Refusal> {
        self.fake.diagnose().await
    }

    async fn metrics(&self) -> Result<String, Refusal> {
        self.fake.metrics().await
    }
}

#[tokio::test]
async fn whatever_fails_is_an_answer() {
    let (_server, socket, _dir) = serve(Troubled::new(), Limits::default()).await;
    // What a mistake says may be secret: it is not repeated.
    assert_eq!(get(&socket, "/v1/nodes/web-0").await.problem(500, "failed"), "a mistake in the daemon");
    assert_eq!(get(&socket, "/v1/history").await.problem(503, "unavailable"), "the daemon is starting");
    assert_eq!(get(&socket, "/v1/nodes/web-0/logs").await.problem(500, "failed"), "the output cannot be read");
    assert_eq!(get(&socket, "/v1/decisions").await.problem(500, "failed").chars().count(), 4_001);
    let panics = post(&socket, "/v1/commands", r#"{"id":"panics","command":{"do":"add-node","group":"web"}}"#).await;
    panics.problem(500, "failed");
    assert_eq!(get(&socket, "/healthz").await.status, 200, "and it goes on");
}

#[tokio::test]
async fn whatever_hangs_is_an_answer() {
    let limits = Limits { answer_time: Duration::from_millis(100), ..Limits::default() };
    let (_server, socket, _dir) = serve(Troubled::new(), limits).await;
    let hangs = get(&socket, "/v1/nodes/web-0/explanation").await;
    assert!(hangs.problem(503, "unavailable").contains("0.1 s"));
    assert_eq!(hangs.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn a_command_goes_on_when_nobody_waits_for_it() {
    let limits = Limits { answer_time: Duration::from_millis(50), ..Limits::default() };
    let daemon = Troubled::new();
    let (_server, socket, _dir) = serve(daemon.clone(), limits).await;
    let slow = post(&socket, "/v1/commands", r#"{"id":"slow","command":{"do":"add-node","group":"web"}}"#).await;
    assert!(slow.problem(503, "unavailable").contains("same id"));
    // And one whose caller hangs up.
    let body = br#"{"id":"gone","command":{"do":"add-node","group":"db"}}"#;
    let bytes = crate::raw::request("POST", "/v1/commands", &[("Content-Type", "application/json")], body);
    let mut stream = crate::raw::connect(&socket).await;
    tokio::io::AsyncWriteExt::write_all(&mut stream, &bytes).await.unwrap();
    daemon.begun(2).await;
    drop(stream);
    // A moment in which whoever gives a command up with its caller would do so.
    sleep(Duration::from_millis(100)).await;
    daemon.gate.add_permits(2);
    daemon.until("both were carried out", |daemon| daemon.fake.status().generation == 3).await;
}

#[tokio::test]
async fn what_was_begun_is_answered_before_the_server_ends() {
    let daemon = Troubled::new();
    let (server, socket, _dir) = serve(daemon.clone(), Limits::default()).await;
    let asked = tokio::spawn(async move {
        post(&socket, "/v1/commands", r#"{"id":"late","command":{"do":"add-node","group":"web"}}"#).await
    });
    daemon.begun(1).await;
    let ending = tokio::spawn(server.shutdown(PATIENCE));
    sleep(Duration::from_millis(100)).await;
    assert!(!ending.is_finished(), "it waits for what was begun");
    daemon.gate.add_permits(1);
    ending.await.unwrap();
    assert_eq!(asked.await.unwrap().status, 200);
}
