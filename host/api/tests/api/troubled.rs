//! A daemon that fails in each way that it can.

use std::sync::Arc;
use std::time::Duration;

use api::Limits;
use api::control::{Control, Refusal};
use api::wire::*;
use tokio::sync::broadcast;

use crate::fake::{Fake, Options};
use crate::raw::{get, post};
use crate::serve;

struct Troubled(Arc<Fake>);

#[async_trait::async_trait]
impl Control for Troubled {
    fn status(&self) -> Arc<Status> {
        self.0.status()
    }

    fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.0.changes()
    }

    fn changes_after(&self, revision: &str) -> Option<Vec<Arc<Change>>> {
        self.0.changes_after(revision)
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
        self.0.plan(request).await
    }

    async fn command(&self, request: CommandRequest) -> Result<CommandResult, Refusal> {
        match request.id.as_str() {
            "panics" => panic!("a mistake in a command"),
            _ => {
                tokio::time::sleep(Duration::from_millis(400)).await;
                self.0.command(request).await
            }
        }
    }

    async fn export(&self) -> Result<Export, Refusal> {
        self.0.export().await
    }

    async fn diagnose(&self) -> Result<Diagnosis, Refusal> {
        self.0.diagnose().await
    }

    async fn metrics(&self) -> Result<String, Refusal> {
        self.0.metrics().await
    }
}

#[tokio::test]
async fn whatever_fails_is_an_answer() {
    let limits = Limits { answer_time: Duration::from_millis(100), ..Limits::default() };
    let (_server, socket, _dir) = serve(Arc::new(Troubled(Fake::new(Options::default()))), limits).await;
    // What a mistake says may be secret: it is not repeated.
    assert_eq!(get(&socket, "/v1/nodes/web-0").await.problem(500, "failed"), "a mistake in the daemon");
    let hangs = get(&socket, "/v1/nodes/web-0/explanation").await;
    assert!(hangs.problem(503, "unavailable").contains("0.1 s"));
    assert_eq!(hangs.header("retry-after"), Some("1"));
    assert_eq!(get(&socket, "/v1/history").await.problem(503, "unavailable"), "the daemon is starting");
    assert_eq!(get(&socket, "/v1/nodes/web-0/logs").await.problem(500, "failed"), "the output cannot be read");
    assert_eq!(get(&socket, "/v1/decisions").await.problem(500, "failed").chars().count(), 4_001);
    let panics = post(&socket, "/v1/commands", r#"{"id":"panics","command":{"do":"add-node","group":"web"}}"#).await;
    panics.problem(500, "failed");
    assert_eq!(get(&socket, "/healthz").await.status, 200, "and it goes on");
}

#[tokio::test]
async fn a_command_goes_on_when_nobody_waits_for_it() {
    let limits = Limits { answer_time: Duration::from_millis(50), ..Limits::default() };
    let fake = Fake::new(Options::default());
    let (_server, socket, _dir) = serve(Arc::new(Troubled(fake.clone())), limits).await;
    let slow = post(&socket, "/v1/commands", r#"{"id":"slow","command":{"do":"add-node","group":"web"}}"#).await;
    assert!(slow.problem(503, "unavailable").contains("same id"));
    // And one whose caller hangs up.
    let body = br#"{"id":"gone","command":{"do":"add-node","group":"db"}}"#;
    let bytes = crate::raw::request("POST", "/v1/commands", &[("Content-Type", "application/json")], body);
    let mut stream = crate::raw::connect(&socket).await;
    tokio::io::AsyncWriteExt::write_all(&mut stream, &bytes).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(stream);
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert_eq!(fake.status().generation, 3, "both were carried out");
}

#[tokio::test]
async fn what_was_begun_is_answered_before_the_server_ends() {
    let (server, socket, _dir) = serve(Arc::new(Troubled(Fake::new(Options::default()))), Limits::default()).await;
    let asked = tokio::spawn(async move {
        post(&socket, "/v1/commands", r#"{"id":"late","command":{"do":"add-node","group":"web"}}"#).await
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.shutdown(Duration::from_secs(5)).await;
    assert_eq!(asked.await.unwrap().status, 200);
}
