//! A daemon without a fleet, for the tests of what talks to one: nodes climb the ladder, fail and are replaced; commands
//! change them. Include it with `#[path]`.
#![allow(missing_docs, dead_code, clippy::expect_used)]

mod answers;
mod deciders;
mod world;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use api::control::{Control, Refusal};
use api::wire::{
    Change, Command, CommandRequest, CommandResult, DeciderCommand, DeciderDetail, DeciderName, DeciderRequest,
    DeciderResult, Deciders, Decisions, Diagnosis, Difference, Explanation, Export, History, HistoryQuery, Logs,
    LogsQuery, NodeDetail, Plan, PlanRequest, Status, SwapDetail, Swaps, Uploaded, What,
};
use tokio::sync::broadcast;
pub use world::{Options, World};

pub struct Fake {
    world: Mutex<World>,
    sender: broadcast::Sender<Arc<Change>>,
    status: Mutex<Arc<Status>>,
}

impl Fake {
    pub fn new(options: Options) -> Arc<Fake> {
        let (sender, _) = broadcast::channel(options.channel);
        let world = World::new(options);
        let status = Mutex::new(Arc::new(world.status.clone()));
        Arc::new(Fake { world: Mutex::new(world), sender, status })
    }

    fn world(&self) -> MutexGuard<'_, World> {
        locked(&self.world)
    }

    /// Lets time pass: what moves, moves one step.
    pub fn step(&self) {
        let mut world = self.world();
        world.step();
        self.publish(world);
    }

    /// Says something to those who watch.
    pub fn say(&self, what: What) {
        let mut world = self.world();
        world.tell(what);
        self.publish(world);
    }

    /// Has something done about a decider that does so.
    pub fn decide(&self, id: &str, does: &str, command: impl FnOnce(String) -> DeciderCommand) {
        let mut world = self.world();
        let Ok(sent) = world.registry.upload(format!("\0asm {does}").as_bytes()) else { return };
        let command = command(sent.entry.decider.digest);
        let request = DeciderRequest { id: id.into(), expect_revision: None, command };
        if let Err(refused) = world.decider_command(request) {
            eprintln!("{refused}");
        }
        self.publish(world);
    }

    /// The changes go out before the list that has them.
    fn publish(&self, mut world: MutexGuard<'_, World>) {
        world.refresh();
        for change in world.news.drain(..) {
            let _ = self.sender.send(change);
        }
        *locked(&self.status) = Arc::new(world.status.clone());
    }
}

fn locked<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[async_trait::async_trait]
impl Control for Fake {
    fn status(&self) -> Arc<Status> {
        locked(&self.status).clone()
    }

    fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.sender.subscribe()
    }

    fn changes_after(&self, revision: &str) -> Option<Vec<Arc<Change>>> {
        self.world().changes_after(revision)
    }

    async fn node(&self, name: &str) -> Result<NodeDetail, Refusal> {
        answers::node(&self.world(), name)
    }

    async fn explain(&self, name: &str) -> Result<Explanation, Refusal> {
        answers::explain(&self.world(), name)
    }

    async fn history(&self, query: HistoryQuery) -> Result<History, Refusal> {
        answers::history(&self.world(), &query)
    }

    async fn logs(&self, query: LogsQuery) -> Result<Logs, Refusal> {
        answers::logs(&self.world(), &query)
    }

    async fn decisions(&self, limit: usize) -> Result<Decisions, Refusal> {
        let decisions = self.world().decisions.iter().rev().take(limit).cloned().collect();
        Ok(Decisions { schema: "homeostat.decisions/v1".into(), decisions })
    }

    async fn plan(&self, request: PlanRequest) -> Result<Plan, Refusal> {
        let world = self.world();
        let consequences = world.consequences(&request.command)?;
        let differences = match request.command {
            Command::Apply { .. } => vec![Difference {
                field: "group web: boot.command[1]".into(),
                from: Some("\"--port=1\"".into()),
                to: Some("\"--port=2\"".into()),
            }],
            _ => Vec::new(),
        };
        let base_generation = world.status.generation;
        Ok(Plan {
            schema: "homeostat.consequences/v1".into(),
            base_generation,
            consequences,
            differences,
            beyond: None,
        })
    }

    async fn command(&self, request: CommandRequest) -> Result<CommandResult, Refusal> {
        let mut world = self.world();
        let result = world.command(request);
        self.publish(world);
        result
    }

    async fn export(&self) -> Result<Export, Refusal> {
        Ok(answers::export(&self.world()))
    }

    async fn diagnose(&self) -> Result<Diagnosis, Refusal> {
        Ok(answers::diagnosis())
    }

    async fn metrics(&self) -> Result<String, Refusal> {
        let ready = self.world().status.nodes.iter().filter(|node| node.ready).count();
        Ok(format!(
            "# HELP fake_ready_nodes Nodes that are ready.\n# TYPE fake_ready_nodes gauge\nfake_ready_nodes {ready}\n"
        ))
    }

    async fn upload(&self, component: api::Bytes) -> Result<Uploaded, Refusal> {
        self.world().registry.upload(&component)
    }

    async fn deciders(&self) -> Result<Deciders, Refusal> {
        Ok(self.world().registry.list())
    }

    async fn decider(&self, name: DeciderName) -> Result<DeciderDetail, Refusal> {
        self.world().registry.one(&name)
    }

    async fn decider_command(&self, request: DeciderRequest) -> Result<DeciderResult, Refusal> {
        let mut world = self.world();
        let result = world.decider_command(request);
        self.publish(world);
        result
    }

    async fn swaps(&self, limit: usize) -> Result<Swaps, Refusal> {
        Ok(self.world().registry.swaps(limit))
    }

    async fn swap(&self, id: &str) -> Result<SwapDetail, Refusal> {
        self.world().registry.swap(id)
    }
}
