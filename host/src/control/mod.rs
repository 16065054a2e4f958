//! The daemon's side of its interface (crate `api`): answers from the loop, the journal and the backends.

mod carried;
mod convert;
mod deciders;
mod diagnose;
mod follow;
mod swaps;

use std::path::PathBuf;
use std::sync::Arc;

use api::metrics::Metrics;
use api::wire::{
    Change, CommandRequest, CommandResult, DeciderDetail, DeciderName, DeciderRequest, DeciderResult, Deciders,
    Decisions, Diagnosis, Explanation, Export, History, HistoryQuery, LogLine, Logs, LogsQuery, NodeDetail, Plan,
    PlanRequest, Status, SwapDetail, Swaps, Uploaded,
};
use api::{Bytes, Control, Refusal};
use engine::command::Command;
use inspect::{About, DecisionLog, Feed, Roster};
use store::SqliteReader;
use tokio::sync::broadcast;

use crate::backends::{Backend, ExternalKey, OutputPage, OutputQuery};
use crate::runtime::{HostError, HostHandle, Order};

/// The decider in force, as the interface shows it.
pub(crate) fn decider_status(document: &crate::registry::Document) -> api::wire::DeciderStatus {
    deciders::status(document)
}

/// Lines of a log, unless told, and at most.
const USUAL_LINES: usize = 200;
const MOST_LINES: usize = 10_000;
/// Decisions of an answer at most.
const MOST_DECISIONS: usize = 1_000;
/// What a description of a node has of its history.
const RECENT: usize = 20;

/// What the interface is answered from.
#[derive(Clone)]
pub struct Desk {
    host: HostHandle,
    feed: Arc<Feed>,
    decisions: Arc<DecisionLog>,
    about: Arc<About>,
    /// The state directory: the journal is read from there, beside the loop.
    dir: PathBuf,
    backends: Arc<std::collections::BTreeMap<String, Arc<dyn Backend>>>,
    metrics: Arc<Metrics>,
}

/// What a [`Desk`] is put together from.
pub struct Parts {
    /// The host.
    pub host: HostHandle,
    /// What the host's builder was given.
    pub decisions: Arc<DecisionLog>,
    /// What the view does not know.
    pub about: About,
    /// The state directory of the run.
    pub dir: PathBuf,
    /// The backends, by name.
    pub backends: std::collections::BTreeMap<String, Arc<dyn Backend>>,
    /// What the host's builder was given.
    pub metrics: Arc<Metrics>,
}

impl Desk {
    /// Opens it: from now on every view that the host publishes is told to whoever watches. Must be called inside a tokio
    /// runtime.
    pub fn open(parts: Parts) -> Self {
        let Parts { host, decisions, about, dir, backends, metrics } = parts;
        // Revisions of another start must not look like ones of this.
        let feed = Arc::new(Feed::new(format!("{:x}", about.started_ms)));
        let desk = Desk { host, feed, decisions, about: Arc::new(about), dir, backends: Arc::new(backends), metrics };
        desk.feed.publish(inspect::status(&desk.host.view(), &desk.about, String::new()));
        tokio::spawn(follow::follow(desk.clone()));
        tokio::spawn(deciders::follow(desk.clone()));
        desk
    }

    /// The fleet and its changes.
    pub fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    async fn roster(&self) -> Result<Roster, Refusal> {
        let mut roster = self.host.look(Roster::of).await.map_err(|error| unavailable(&error))?;
        let known = self.host.deciders().await.map_err(|error| unavailable(&error))?;
        known.document.entries.iter().for_each(|entry| roster.learn(&entry.digest, &entry.rules));
        Ok(roster)
    }

    async fn carry_out(&self, request: CommandRequest) -> Result<CommandResult, Refusal> {
        let CommandRequest { id, expect_generation, command } = request;
        let order = Order { id: id.clone(), expect_generation, command: convert::command(command) };
        let words = order.command.to_string();
        let report = self.host.command(order).await.map_err(|error| refused(&error))?;
        let consequences = report.outcome.map_err(|why| convert::refusal(&why))?;
        if !report.replayed {
            self.feed.say(report.at_ms, api::wire::What::Command { id: id.clone(), text: words });
        }
        Ok(CommandResult {
            schema: "homeostat.command/v1".into(),
            id,
            replayed: report.replayed,
            at_ms: report.at_ms,
            consequences: convert::consequences(&consequences, report.base_generation),
        })
    }

    /// What is kept of the last attempt that is gone.
    async fn last_logs(&self, query: &LogsQuery) -> Result<Option<Logs>, Refusal> {
        let run = self.feed.status().run.clone();
        for backend in self.backends.values() {
            let found = backend.last_output(&run, &query.node, output_query(query)).await;
            let found =
                found.map_err(|fault| Refusal::Failed(format!("the last output of {}: {fault}", query.node)))?;
            if let Some(last) = found {
                return Ok(Some(logs(query.node.clone(), last.attempt, true, last.page)));
            }
        }
        Ok(None)
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut SqliteReader) -> Result<T, store::StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let dir = self.dir.clone();
        let read = tokio::task::spawn_blocking(move || read(&mut SqliteReader::open(&dir)?));
        let read = read.await.map_err(|gone| Refusal::Failed(format!("reading the journal: {gone}")))?;
        read.map_err(|error| Refusal::Failed(error.to_string()))
    }
}

#[async_trait::async_trait]
impl Control for Desk {
    fn status(&self) -> Arc<Status> {
        self.feed.status_at(self.host.now_ms())
    }

    fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.feed.changes()
    }

    fn changes_after(&self, revision: &str) -> Option<Vec<Arc<Change>>> {
        self.feed.changes_after(revision)
    }

    async fn node(&self, name: &str) -> Result<NodeDetail, Refusal> {
        let query = HistoryQuery { node: Some(name.into()), before: None, limit: Some(RECENT) };
        let roster = self.roster().await?;
        if !roster.knows(name) {
            return Err(no_node(name));
        }
        let recent = self.read(move |reader| inspect::history(reader, &roster, &query)).await?.items;
        let wanted = name.to_owned();
        let found = self.host.look(move |driver| inspect::node(driver, &wanted, recent)).await;
        found.map_err(|error| unavailable(&error))?.ok_or_else(|| gone(name))
    }

    async fn explain(&self, name: &str) -> Result<Explanation, Refusal> {
        let wanted = name.to_owned();
        let found = self.host.look(move |driver| inspect::explain(driver, &wanted)).await;
        found.map_err(|error| unavailable(&error))?.ok_or_else(|| no_node(name))
    }

    async fn history(&self, query: HistoryQuery) -> Result<History, Refusal> {
        let roster = self.roster().await?;
        if let Some(node) = query.node.as_deref().filter(|node| !roster.knows(node)) {
            return Err(no_node(node));
        }
        let asked = query.clone();
        let found = self.read(move |reader| inspect::history(reader, &roster, &asked)).await?;
        Ok(match query.node {
            Some(_) => found,
            None => inspect::with_notices(found, &query, &self.feed.notices()),
        })
    }

    async fn logs(&self, query: LogsQuery) -> Result<Logs, Refusal> {
        let name = query.node.clone();
        let held = self.host.look(move |driver| whose(driver, &name)).await.map_err(|error| unavailable(&error))?;
        let held = match (held.ok_or_else(|| no_node(&query.node))?, query.previous) {
            (held, Some(true)) => {
                if let Some(logs) = self.last_logs(&query).await? {
                    return Ok(logs);
                }
                let now = match held {
                    Ok((_, key, _)) => {
                        format!("; `homeostat logs {}` has what attempt {} writes", query.node, key.attempt.0)
                    }
                    Err(_) => String::new(),
                };
                return Err(Refusal::NotFound(format!(
                    "no output of an attempt of {} that is gone is kept{now}",
                    query.node
                )));
            }
            (Ok(held), _) => held,
            (Err(nothing), _) => return self.last_logs(&query).await?.ok_or(nothing),
        };
        let (provider, key, lease) = held;
        let Some(backend) = self.backends.get(&provider) else {
            return Err(Refusal::Failed(format!("no backend {provider:?}")));
        };
        let page = backend.output(&key, &lease, output_query(&query)).await;
        let page = page.map_err(|fault| Refusal::Failed(format!("the output of {}: {fault}", query.node)))?;
        Ok(logs(query.node, key.attempt, false, page))
    }

    async fn decisions(&self, limit: usize) -> Result<Decisions, Refusal> {
        Ok(self.decisions.latest(limit.min(MOST_DECISIONS)))
    }

    async fn plan(&self, request: PlanRequest) -> Result<Plan, Refusal> {
        let command = convert::command(request.command);
        let differences = match &command {
            Command::Apply { shape, policy, .. } => {
                let (shape, policy) = (shape.clone(), *policy);
                let look = self.host.look(move |driver| inspect::differences(driver, &shape, policy.as_ref()));
                look.await.map_err(|error| unavailable(&error))?
            }
            _ => Vec::new(),
        };
        let foreseen = self.host.foresee(command).await.map_err(|error| refused(&error))?;
        let (base_generation, outcome) = foreseen;
        let mut foreseen = outcome.map_err(|why| convert::refusal(&why))?;
        let beyond = foreseen.beyond.take();
        let consequences = convert::consequences(&foreseen, base_generation);
        Ok(Plan { schema: "homeostat.consequences/v1".into(), base_generation, consequences, differences, beyond })
    }

    async fn command(&self, request: CommandRequest) -> Result<CommandResult, Refusal> {
        let command = request.command.clone();
        let answer = self.carry_out(request).await;
        self.metrics.command(&command, answer.as_ref());
        answer
    }

    async fn export(&self) -> Result<Export, Refusal> {
        let taken = self.host.export().await.map_err(|error| refused(&error))?;
        let checkpoint = serde_json::from_slice(&taken.checkpoint)
            .map_err(|error| Refusal::Failed(format!("the checkpoint cannot be read: {error}")))?;
        let deciders = self.carried_deciders(taken.deciders).await?;
        Ok(Export {
            schema: "homeostat.snapshot/v1".into(),
            run: self.feed.status().run.clone(),
            at_ms: taken.at_ms,
            next_seq: taken.head.next_seq,
            hash: taken.head.last.to_string(),
            declared: taken.declared.map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
            checkpoint,
            deciders,
        })
    }

    async fn diagnose(&self) -> Result<Diagnosis, Refusal> {
        Ok(Diagnosis { schema: "homeostat.diagnosis/v1".into(), checks: diagnose::checks(self).await })
    }

    async fn metrics(&self) -> Result<String, Refusal> {
        let bytes = std::fs::metadata(self.dir.join("state.db")).map_or(0, |file| file.len());
        let kept = self.read(|reader| Ok(reader.head().next_seq - reader.first().next_seq)).await.unwrap_or(0);
        self.metrics.journal(bytes, kept);
        self.metrics.watchers(self.feed.watchers());
        let rendered = self.metrics.render(&self.feed.status());
        rendered.map_err(|error| Refusal::Failed(error.to_string()))
    }

    async fn upload(&self, component: Bytes) -> Result<Uploaded, Refusal> {
        self.upload_decider(&component).await
    }

    async fn deciders(&self) -> Result<Deciders, Refusal> {
        Ok(Deciders { now_ms: self.host.now_ms(), ..self.list_deciders().await? })
    }

    async fn decider(&self, name: DeciderName) -> Result<DeciderDetail, Refusal> {
        Ok(DeciderDetail { now_ms: self.host.now_ms(), ..self.one_decider(&name).await? })
    }

    async fn decider_command(&self, request: DeciderRequest) -> Result<DeciderResult, Refusal> {
        let command = request.command.clone();
        let answer = self.command_deciders(request).await;
        self.metrics.decider_command(&command, answer.as_ref());
        answer
    }

    async fn swaps(&self, limit: usize) -> Result<Swaps, Refusal> {
        Ok(Swaps { now_ms: self.host.now_ms(), ..self.list_swaps(limit).await? })
    }

    async fn swap(&self, id: &str) -> Result<SwapDetail, Refusal> {
        Ok(SwapDetail { now_ms: self.host.now_ms(), ..self.one_swap(id).await? })
    }
}

fn output_query(query: &LogsQuery) -> OutputQuery {
    OutputQuery { after: query.after, lines: query.lines.unwrap_or(USUAL_LINES).clamp(1, MOST_LINES) }
}

fn logs(node: String, attempt: engine::id::AttemptId, is_gone: bool, page: OutputPage) -> Logs {
    Logs {
        schema: "homeostat.logs/v1".into(),
        node,
        attempt: Some(attempt.0),
        is_gone,
        lines: page.lines.into_iter().map(|(at, text)| LogLine { at, at_ms: None, text }).collect(),
        next: page.next,
    }
}

/// What holds a slot: the backend, the label, the lease.
type Held = Result<(String, ExternalKey, String), Refusal>;

fn whose(driver: &engine::driver::Driver, name: &str) -> Option<Held> {
    let state = driver.state();
    let slot = state.slot(*state.names.get(name)?)?;
    let Some(node) = &slot.node else {
        return Some(Err(Refusal::NotFound(format!("{name} is vacant: there is no output"))));
    };
    let template = state.templates.get(node.template.0 as usize)?;
    let Some(lease) = node.lease.clone() else {
        let text =
            format!("{name} (attempt {}) has no resource yet, or none any more: there is no output", node.attempt.0);
        return Some(Err(Refusal::NotFound(text)));
    };
    Some(Ok((template.provider.clone(), state.key(&slot.name, node.attempt), lease)))
}

fn no_node(name: &str) -> Refusal {
    Refusal::NotFound(format!("there is no node {name:?}: `homeostat status` lists them"))
}

fn gone(name: &str) -> Refusal {
    Refusal::NotFound(format!(
        "{name} is not desired any more, and nothing is left of it: `homeostat history {name}` has its past"
    ))
}

fn unavailable(error: &HostError) -> Refusal {
    Refusal::Unavailable(error.to_string())
}

fn refused(error: &HostError) -> Refusal {
    match error {
        HostError::Ended(_) => unavailable(error),
        HostError::IdTaken { .. } => Refusal::Conflict(error.to_string()),
        HostError::Order(_) | HostError::Shape(_) | HostError::Command(_) => Refusal::Invalid(error.to_string()),
        _ => Refusal::Failed(error.to_string()),
    }
}
