//! A stated snapshot, and what the decider says to it.

use decider::{Group, Intent, NO_INDEX, NodeRow, Nodes, Plan, Settings, Snapshot, Stage, Template};
use engine::invariants::check_subset;
use engine::io::DeciderFailure;
use engine::policy::Policy;

use crate::build::RUN;
use crate::node::{NodeFacts, USUAL};

/// The instant of a snapshot that names none.
pub(crate) const NOW_MS: u64 = 100_000;
/// No stated snapshot has more nodes.
const MAX_NODES: usize = 10_000;

pub(crate) struct Picture {
    pub now_ms: u64,
    pub generation: u64,
    pub nodes: Vec<NodeFacts>,
    /// Counts that are stated, by group.
    pub counts: Vec<(String, u32)>,
    /// What the decider answered; none before it is asked.
    pub answer: Option<Result<Plan, DeciderFailure>>,
}

impl Picture {
    pub fn push(&mut self, facts: NodeFacts) -> Result<(), String> {
        if self.nodes.len() >= MAX_NODES {
            return Err(format!("a snapshot of more than {MAX_NODES} nodes"));
        }
        if self.row(&facts.name).is_some() {
            return Err(format!("{} is there already", facts.name));
        }
        self.nodes.push(facts);
        self.answer = None;
        Ok(())
    }

    pub fn row(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// The contract's snapshot; a node's number is its place in the file.
    pub fn snapshot(&self, policy: &Policy) -> Snapshot {
        let mut templates: Vec<String> = Vec::new();
        let mut groups: Vec<Group> = Vec::new();
        for (name, count) in &self.counts {
            groups.push(Group { name: name.clone(), count: *count, ..Group::default() });
        }
        let stated = groups.len();
        let mut nodes = Nodes::with_capacity(self.nodes.len());
        for (at, facts) in self.nodes.iter().enumerate() {
            let mut index = |tag: &str| {
                let known = templates.iter().position(|known| known == tag);
                known.unwrap_or_else(|| {
                    templates.push(tag.into());
                    templates.len() - 1
                }) as u32
            };
            let template = match &facts.template {
                Some(tag) => index(tag),
                None if facts.is_vacant() => NO_INDEX,
                None => index(USUAL),
            };
            let desired = match &facts.desired {
                Some(None) => NO_INDEX,
                Some(Some(tag)) => index(tag),
                None if template == NO_INDEX => index(USUAL),
                None => template,
            };
            let group = groups.iter().position(|group| group.name == facts.group).unwrap_or_else(|| {
                groups.push(Group { name: facts.group.clone(), ..Group::default() });
                groups.len() - 1
            });
            count(&mut groups[group], facts, group >= stated);
            nodes.push(NodeRow {
                node: at as u32,
                attempt: facts.attempt.unwrap_or(if facts.is_vacant() { 0 } else { at as u64 + 1 }),
                group: group as u32,
                slot: facts.slot,
                stage: facts.stage,
                intent: facts.intent,
                template,
                desired_template: desired,
                live: facts.live,
                progress: facts.progress,
                pending: facts.pending,
                pending_deadline: facts.pending_deadline,
                ambiguous: facts.ambiguous,
                failures: facts.failures,
                next_effect_at: facts.next_effect_at,
                probe_at: facts.probe_at,
                restart_at: facts.restart_at,
                stage_deadline: facts.stage_deadline,
                turn: NO_INDEX,
                marks: 0,
            });
        }
        let template = |tag: &String| {
            let (tag, provider) = tag.split_once(':').unwrap_or((tag, "fake"));
            Template { provider: provider.into(), role: String::new(), labels: vec![("template".into(), tag.into())] }
        };
        Snapshot {
            now_ms: self.now_ms,
            run: RUN.into(),
            generation: self.generation,
            settings: Settings {
                backoff_initial_ms: policy.backoff_initial_ms,
                backoff_cap_ms: policy.backoff_cap_ms,
                probe_interval_ms: policy.probe_interval_ms,
            },
            groups,
            templates: templates.iter().map(template).collect(),
            nodes,
        }
    }
}

fn count(group: &mut Group, facts: &NodeFacts, counted: bool) {
    if counted && facts.is_desired() {
        group.count += 1;
    }
    if facts.is_vacant() {
        return;
    }
    let stage = Stage::from_code(facts.stage);
    let deleting = facts.intent == Intent::Deleting.code();
    group.nodes += 1;
    group.ready += u32::from(stage.is_some_and(Stage::is_ready) && !deleting);
    group.failed += u32::from(stage == Some(Stage::Failed));
    group.deleting += u32::from(deleting);
    group.pending += u32::from(facts.pending != 0);
}

/// S12 for a stated snapshot: each node alone is decided as in company.
pub(crate) fn alone(
    snapshot: &Snapshot,
    plan: &Plan,
    ask: &mut dyn FnMut(&Snapshot) -> Result<Plan, DeciderFailure>,
) -> Option<engine::invariants::Violation> {
    let lone = |node: engine::id::NodeId| {
        let mut nodes = Nodes::with_capacity(1);
        if let Some(row) = snapshot.nodes.row(node.0 as usize) {
            nodes.push(row);
        }
        Snapshot { nodes, ..snapshot.clone() }
    };
    check_subset(snapshot, plan, lone, |part| ask(part).unwrap_or_default()).into_iter().next()
}
