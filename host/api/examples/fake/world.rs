use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use api::control::Refusal;
use api::wire::{
    Change, Command, CommandRequest, CommandResult, Consequences, Decided, DeciderRef, DeciderRequest, DeciderResult,
    FieldChange, GroupStatus, HistoryItem, Node, Only, Orphan, Pause, Reaping, Status, What,
};

use super::deciders::Registry;
use super::now_ms;

/// More than so many nodes at once are not destroyed.
pub const GUARD: usize = 5;

const LADDER: &[(&str, &str, &str)] = &[
    ("new", "R7", "nothing is requested yet: a lease is requested"),
    ("lease-requested", "R8", "the lease was requested: its answer is waited for"),
    ("lease-created", "R9", "the lease is there: its endpoint is waited for"),
    ("endpoint-known", "R12", "the endpoint is known: the bootstrap starts"),
    ("bootstrap-running", "R13", "the bootstrap runs: its convergence is waited for"),
    ("dormant", "R16", "it has converged: nothing to do"),
];

#[derive(Clone, Debug)]
pub struct Options {
    pub run: String,
    pub groups: Vec<(String, u32)>,
    /// How many changes are remembered for those who come back.
    pub remembered: usize,
    /// How many changes wait for a slow reader.
    pub channel: usize,
    /// Errors and names of orphans that try to break what shows them.
    pub hostile: bool,
    /// Tells starts apart.
    pub epoch: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            run: "demo".into(),
            groups: [("web", 3), ("worker", 6), ("db", 2)].map(|(id, count)| (id.to_owned(), count)).into(),
            remembered: 1_000,
            channel: 256,
            hostile: false,
            epoch: format!("{:x}", now_ms()),
        }
    }
}

pub struct World {
    pub options: Options,
    pub status: Status,
    pub news: Vec<Arc<Change>>,
    pub history: Vec<HistoryItem>,
    pub decisions: VecDeque<Decided>,
    pub registry: Registry,
    ring: VecDeque<Arc<Change>>,
    number: u64,
    steps: u64,
    next_attempt: u64,
    seq: u64,
    commands: BTreeMap<String, (Command, Result<CommandResult, Refusal>)>,
}

impl World {
    pub fn new(options: Options) -> World {
        let now = now_ms();
        let built_in = DeciderRef {
            digest: "sha256:".to_owned() + &"5f0c1b7e9a".repeat(6) + "beef",
            name: "built-in".into(),
            version: "0.1.0".into(),
            contract: "1.0.0".into(),
        };
        let registry = Registry::new(built_in, now);
        let status = Status {
            schema: "homeostat.status/v1".into(),
            run: options.run.clone(),
            revision: format!("{}-0", options.epoch),
            generation: 1,
            observed_generation: 1,
            started_ms: now,
            version: "0.1.0".into(),
            decider: registry.in_force.clone(),
            groups: options.groups.iter().map(|(id, count)| group(id, *count)).collect(),
            orphans: vec![
                orphan("proc-4711", "web-9", 2, now),
                orphan(
                    if options.hostile { "<img src=x onerror=alert(1)>\u{202e}" } else { "proc-4712" },
                    "db-7",
                    5,
                    now,
                ),
            ],
            reaping: vec![Reaping {
                provider: "process".into(),
                lease: "proc-4600".into(),
                node: "worker-1".into(),
                attempt: 1,
                failures: 2,
                next_at_ms: Some(now + 30_000),
            }],
            pauses: vec![Pause {
                group: Some("db".into()),
                only: "destroy".into(),
                by: "operator".into(),
                since_ms: now - 60_000,
                reason: "destroy of db, by an operator".into(),
                resume: "homeostat resume db --only destroy".into(),
            }],
            ..Status::default()
        };
        let mut world = World {
            status,
            news: Vec::new(),
            history: Vec::new(),
            decisions: VecDeque::new(),
            registry,
            ring: VecDeque::new(),
            number: 0,
            steps: 0,
            next_attempt: 10,
            seq: 0,
            commands: BTreeMap::new(),
            options,
        };
        for (id, count) in world.options.groups.clone() {
            (0..count).for_each(|index| world.slot(&id, index));
        }
        world.news.clear();
        world.refresh();
        world
    }

    fn slot(&mut self, group: &str, index: u32) {
        let node =
            Node { node: format!("{group}-{index}"), group: group.to_owned(), index, desired: true, ..Node::default() };
        self.status.nodes.push(node);
        let at = self.status.nodes.len() - 1;
        self.incarnate(at);
    }

    fn incarnate(&mut self, at: usize) {
        let node = &mut self.status.nodes[at];
        node.attempt = Some(self.next_attempt);
        self.next_attempt += 1;
        node.endpoint = None;
        node.error = None;
        node.ready = false;
        node.progress = "none".into();
        self.stand(at, 0);
    }

    /// Puts a node on a step of the ladder, and says so.
    fn stand(&mut self, at: usize, step: usize) {
        let (stage, rule, reason) = LADDER[step];
        let node = &mut self.status.nodes[at];
        let before = std::mem::replace(&mut node.stage, stage.to_owned());
        node.rule = Some(rule.to_owned());
        node.ready = stage == "dormant";
        if step >= 3 {
            node.endpoint = Some(format!("127.0.0.1:{}", 9_000 + at));
        }
        node.progress = ["none", "none", "none", "connect", "join", "converged"][step].into();
        node.waits_for = if node.ready { String::new() } else { reason.to_owned() };
        node.until_ms = (!node.ready).then(|| now_ms() + 80_000);
        self.decided(at, rule, reason, if node_is_new(step) { "create-lease" } else { "hold" }, &before);
    }

    fn decided(&mut self, at: usize, rule: &str, reason: &str, verb: &str, before: &str) {
        let node = self.status.nodes[at].clone();
        self.seq += 1;
        self.history.push(HistoryItem {
            seq: self.seq,
            at_ms: now_ms(),
            node: Some(node.node.clone()),
            attempt: node.attempt,
            kind: "decision".into(),
            text: format!("{rule}: {reason}"),
            command: None,
        });
        self.decisions.push_back(Decided {
            number: self.seq,
            at_ms: now_ms(),
            node: node.node.clone(),
            attempt: node.attempt,
            rule: rule.to_owned(),
            reason: reason.to_owned(),
            verb: verb.to_owned(),
            until_ms: node.until_ms,
            facts: [("intent", "active"), ("stage", before), ("pending", "none")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            changes: vec![FieldChange { field: "stage".into(), from: before.to_owned(), to: node.stage.clone() }],
        });
        if self.decisions.len() > 2_000 {
            self.decisions.pop_front();
        }
        self.tell(What::Node(Box::new(node)));
    }

    pub fn tell(&mut self, what: What) {
        self.number += 1;
        self.status.revision = format!("{}-{}", self.options.epoch, self.number);
        match &what {
            What::FileRefused(refused) => self.status.refused_file = Some(refused.clone()),
            What::FileTaken { .. } => self.status.refused_file = None,
            _ => {}
        }
        let change = Arc::new(Change {
            schema: "homeostat.event/v1".into(),
            revision: self.status.revision.clone(),
            at_ms: now_ms(),
            what,
        });
        self.ring.push_back(change.clone());
        if self.ring.len() > self.options.remembered {
            self.ring.pop_front();
        }
        self.news.push(change);
    }

    pub fn changes_after(&self, revision: &str) -> Option<Vec<Arc<Change>>> {
        let number: u64 = revision.strip_prefix(&self.options.epoch)?.strip_prefix('-')?.parse().ok()?;
        let first = self.number + 1 - self.ring.len() as u64;
        if number > self.number || number + 1 < first {
            return None;
        }
        Some(self.ring.iter().skip((number + 1 - first) as usize).cloned().collect())
    }

    pub fn decider_command(&mut self, request: DeciderRequest) -> Result<DeciderResult, Refusal> {
        if self.commands.contains_key(&request.id) {
            return Err(Refusal::Conflict(format!("the id {:?} was used for another command", request.id)));
        }
        self.registry.command(request)
    }

    pub fn step(&mut self) {
        self.steps += 1;
        self.registry.step();
        let count = self.status.nodes.len();
        for at in 0..count {
            let node = &self.status.nodes[at];
            match LADDER.iter().position(|(stage, ..)| *stage == node.stage) {
                Some(step) if step + 1 < LADDER.len() && (self.steps + at as u64).is_multiple_of(2) => {
                    self.stand(at, step + 1)
                }
                Some(_) => {}
                None if node.until_ms.is_some_and(|until| until <= now_ms()) => self.incarnate(at),
                None => {}
            }
        }
        if self.steps.is_multiple_of(9) && count > 0 {
            self.fail((self.steps / 9) as usize % count);
        }
    }

    fn fail(&mut self, at: usize) {
        let hostile = self.options.hostile;
        let node = &mut self.status.nodes[at];
        let before = std::mem::replace(&mut node.stage, "failed".into());
        node.ready = false;
        node.failures += 1;
        node.rule = Some("R5".into());
        node.error = Some(match hostile {
            true => "<script>alert('x')</script> \u{202e}txt.exe ".to_owned() + &"long ".repeat(200),
            false => "the process exited with status 1: bind: address already in use".into(),
        });
        node.waits_for = "backing off after a failure".into();
        node.until_ms = Some(now_ms() + 3_000);
        self.decided(at, "R5", "it failed: a new attempt after a pause", "hold", &before);
    }

    /// What follows from the nodes.
    pub fn refresh(&mut self) {
        if std::mem::take(&mut self.registry.news) {
            let swaps = self.registry.swaps(12).swaps;
            let before = std::mem::replace(&mut self.status.swaps, swaps.clone());
            for swap in swaps.into_iter().rev().filter(|swap| !before.contains(swap)) {
                self.tell(What::Swap(Box::new(swap)));
            }
            if self.status.decider != self.registry.in_force {
                self.status.decider.clone_from(&self.registry.in_force);
                self.tell(What::Decider(Box::new(self.status.decider.clone())));
            }
        }
        let status = &mut self.status;
        status.now_ms = now_ms();
        for group in &mut status.groups {
            let of = |test: fn(&Node) -> bool| {
                status.nodes.iter().filter(|node| node.group == group.group && test(node)).count() as u32
            };
            group.desired = of(|node| node.desired);
            group.ready = of(|node| node.ready);
            group.failing = of(|node| node.stage == "failed");
            group.deleting = of(|node| node.deleting);
        }
        let waiting = status.nodes.iter().find(|node| !node.ready);
        let converged = waiting.is_none();
        status.reason =
            waiting.map_or_else(String::new, |node| format!("{} is {}: {}", node.node, node.stage, node.waits_for));
        let became = converged && !status.converged;
        status.converged = converged;
        let generation = status.generation;
        if became {
            self.tell(What::Converged { generation });
        }
    }

    pub fn at(&self, name: &str) -> Result<usize, Refusal> {
        let found = self.status.nodes.iter().position(|node| node.node == name);
        found.ok_or_else(|| Refusal::NotFound(format!("there is no node {name:?}")))
    }

    fn named(&self, group: &str) -> Result<u32, Refusal> {
        let found = self.status.groups.iter().find(|known| known.group == group);
        found.map(|found| found.desired).ok_or_else(|| Refusal::NotFound(format!("there is no group {group:?}")))
    }

    /// The new names, and those that go.
    fn sized(&self, group: &str, count: u32) -> Result<(Vec<String>, Vec<String>), Refusal> {
        self.named(group)?;
        let there: Vec<&Node> = self.status.nodes.iter().filter(|node| node.group == group).collect();
        let next = there.iter().map(|node| node.index + 1).max().unwrap_or(0);
        let more = count.saturating_sub(there.len() as u32);
        let creates = (next..next + more).map(|index| format!("{group}-{index}")).collect();
        let destroys = there.iter().skip(count as usize).map(|node| node.node.clone()).collect();
        Ok((creates, destroys))
    }

    pub fn consequences(&self, command: &Command) -> Result<Consequences, Refusal> {
        let (mut creates, mut destroys, mut replaces, mut text) = (vec![], vec![], vec![], None);
        match command {
            Command::Apply { shape, base_generation, .. } => {
                if *base_generation != self.status.generation {
                    let now = self.status.generation;
                    return Err(Refusal::Conflict(format!("generation {now} is in force, not {base_generation}")));
                }
                for group in &shape.groups {
                    let (new, gone) = self.sized(&group.id, group.count)?;
                    creates.extend(new);
                    destroys.extend(gone);
                }
            }
            Command::Scale { group, count } => (creates, destroys) = self.sized(group, *count)?,
            Command::AddNode { group } => (creates, destroys) = self.sized(group, self.named(group)? + 1)?,
            Command::Kill { nodes } => {
                nodes.iter().try_for_each(|name| self.at(name).map(|_| ()))?;
                replaces = nodes.clone();
            }
            Command::Destroy { nodes, groups } => {
                nodes.iter().try_for_each(|name| self.at(name).map(|_| ()))?;
                destroys = nodes.clone();
                for group in groups {
                    destroys.extend(self.sized(group, 0)?.1);
                }
            }
            Command::Pause { group, only } => text = Some(format!("pauses {} of {}", word(*only), scope(group))),
            Command::Resume { group, only } => text = Some(format!("resumes {} of {}", word(*only), scope(group))),
            Command::AdoptOrphan { lease, .. } | Command::DestroyOrphan { lease, .. } => {
                let found = self.status.orphans.iter().find(|orphan| orphan.lease == *lease);
                let found = found.ok_or_else(|| Refusal::NotFound(format!("there is no orphan {lease:?}")))?;
                text = Some(format!("the orphan {} of {}", found.lease, found.node));
            }
        }
        if destroys.len() > GUARD {
            let victims = destroys.len();
            return Err(Refusal::Guard(format!(
                "destroys {victims} nodes, and the guard destroys-per-minute allows {GUARD}"
            )));
        }
        let changes = !creates.is_empty() || !destroys.is_empty();
        let touched = destroys.len() + replaces.len();
        Ok(Consequences {
            text: text.unwrap_or_else(|| {
                format!("{} to create, {} to destroy, {} to replace", creates.len(), destroys.len(), replaces.len())
            }),
            generation: self.status.generation + u64::from(changes),
            changes,
            keeps: self.status.nodes.len().saturating_sub(touched) as u32,
            creates,
            destroys,
            replaces,
        })
    }

    pub fn command(&mut self, request: CommandRequest) -> Result<CommandResult, Refusal> {
        if let Some((before, result)) = self.commands.get(&request.id) {
            if *before != request.command {
                return Err(Refusal::Conflict(format!("the id {:?} was used for another command", request.id)));
            }
            return result.clone().map(|result| CommandResult { replayed: true, ..result });
        }
        let now = self.status.generation;
        if let Some(expected) = request.expect_generation.filter(|expected| *expected != now) {
            return Err(Refusal::Conflict(format!("generation {now} is in force, not {expected}")));
        }
        let consequences = self.consequences(&request.command)?;
        self.carry_out(&request.command, &consequences);
        let result = CommandResult {
            schema: "homeostat.command/v1".into(),
            id: request.id.clone(),
            replayed: false,
            at_ms: now_ms(),
            consequences,
        };
        self.tell(What::Command { id: request.id.clone(), text: result.consequences.text.clone() });
        self.commands.insert(request.id, (request.command, Ok(result.clone())));
        Ok(result)
    }

    fn carry_out(&mut self, command: &Command, consequences: &Consequences) {
        for name in &consequences.destroys {
            self.status.nodes.retain(|node| node.node != *name);
            self.tell(What::Gone { node: name.clone() });
        }
        for name in &consequences.creates {
            if let Some((group, index)) = name.rsplit_once('-') {
                self.slot(group, index.parse().unwrap_or_default());
            }
        }
        for name in &consequences.replaces {
            if let Ok(at) = self.at(name) {
                self.fail(at);
                self.status.nodes[at].error = Some("killed by an operator".into());
            }
        }
        let order: Vec<String> = self.status.groups.iter().map(|group| group.group.clone()).collect();
        self.status.nodes.sort_by_key(|node| (order.iter().position(|group| *group == node.group), node.index));
        if consequences.generation != self.status.generation {
            self.status.generation = consequences.generation;
            self.status.observed_generation = consequences.generation;
            self.tell(What::Generation { generation: consequences.generation });
        }
        match command {
            Command::Pause { group, only } => {
                let named = |before: &str| group.as_ref().map(|group| format!("{before}{group}")).unwrap_or_default();
                let pause = Pause {
                    group: group.clone(),
                    only: word(*only).into(),
                    by: "operator".into(),
                    since_ms: now_ms(),
                    reason: format!("{}{}, by an operator", word(*only), named(" of ")),
                    resume: format!("homeostat resume{} --only {}", named(" "), word(*only)),
                };
                self.status.pauses.push(pause.clone());
                self.tell(What::Paused(pause));
            }
            Command::Resume { group, only } => {
                let word = word(*only);
                self.status.pauses.retain(|pause| pause.group != *group || (word != "all" && pause.only != word));
                self.tell(What::Resumed { group: group.clone(), only: word.into() });
            }
            Command::AdoptOrphan { provider, lease } | Command::DestroyOrphan { provider, lease } => {
                self.status.orphans.retain(|orphan| orphan.lease != *lease);
                self.tell(What::OrphanGone { provider: provider.clone(), lease: lease.clone() });
            }
            _ => {}
        }
    }
}

fn node_is_new(step: usize) -> bool {
    step == 0
}

fn group(id: &str, count: u32) -> GroupStatus {
    GroupStatus { group: id.to_owned(), desired: count, ..GroupStatus::default() }
}

fn orphan(lease: &str, node: &str, attempt: u64, now: u64) -> Orphan {
    Orphan {
        provider: "process".into(),
        lease: lease.into(),
        node: node.into(),
        attempt,
        seen_ms: now - 5_000,
        destroying: false,
    }
}

fn word(only: Only) -> &'static str {
    match only {
        Only::All => "all",
        Only::Create => "create",
        Only::Destroy => "destroy",
    }
}

fn scope(group: &Option<String>) -> String {
    group.clone().unwrap_or_else(|| "the run".into())
}
