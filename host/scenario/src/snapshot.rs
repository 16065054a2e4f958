//! A stated snapshot, and what the decider says to it.

use std::collections::BTreeMap;

use decider::{Group, Intent, NO_INDEX, NodeRow, Nodes, Plan, Settings, Snapshot, Stage, Template, pauses};
use engine::invariants::check_subset;
use engine::io::DeciderFailure;
use engine::policy::Policy;
use engine::rollout::Rollout;

use crate::build::RUN;
use crate::node::{NodeFacts, USUAL};
use crate::words::{number, rollout};

/// The instant of a snapshot that names none.
pub(crate) const NOW_MS: u64 = 100_000;
/// No stated snapshot has more nodes.
const MAX_NODES: usize = 10_000;

/// What is stated of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stated {
    count: u32,
    rollout: Rollout,
    /// Of the contract's pause bits those that no rollout setting is.
    held: u8,
    parameters: BTreeMap<String, String>,
}

impl Stated {
    /// A count, then settings after commas.
    pub fn parse(text: &str) -> Result<Stated, String> {
        let (count, settings) = text.split_once(',').unwrap_or((text, ""));
        let mut stated = Stated { count: number(count, "count")?, ..Stated::default() };
        for setting in settings.split_terminator(',') {
            match (setting, setting.split_once(':')) {
                ("creates-held", _) => stated.held |= pauses::CREATES,
                ("destroys-held", _) => stated.held |= pauses::DESTROYS,
                (_, Some((name, value))) => _ = stated.parameters.insert(name.into(), value.into()),
                _ => rollout(&mut stated.rollout, setting)?,
            }
        }
        Ok(stated)
    }

    fn group(&self, name: &str) -> Group {
        let limits = self.rollout.limits(self.count);
        Group {
            name: name.into(),
            count: self.count,
            max_unavailable: limits.max_unavailable,
            max_surge: limits.max_surge,
            max_failing: limits.max_failing,
            parameters: self.parameters.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            pauses: self.held | if self.rollout.paused { pauses::ROLLOUT } else { 0 },
            ..Group::default()
        }
    }
}

pub(crate) struct Picture {
    pub now_ms: u64,
    pub generation: u64,
    pub nodes: Vec<NodeFacts>,
    /// What is stated of groups.
    pub counts: Vec<(String, Stated)>,
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
        for (name, stated) in &self.counts {
            groups.push(stated.group(name));
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
        take_turns(&mut groups, &mut nodes);
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

/// Totals and turns as the engine counts them.
fn take_turns(groups: &mut [Group], nodes: &mut Nodes) {
    let mut waiting = Vec::new();
    for (at, row) in nodes.rows().enumerate() {
        let Some(group) = groups.get_mut(row.group as usize) else { continue };
        let (wanted, stage) = (row.desired_template != NO_INDEX, Stage::from_code(row.stage));
        if !wanted || row.attempt == 0 {
            continue;
        }
        let active = row.intent == Intent::Active.code();
        let available = active && stage.is_some_and(Stage::is_ready);
        let drifted = row.template != row.desired_template;
        let failing = !drifted && !available && row.failures > 0;
        let tries = active && !matches!(stage, None | Some(Stage::Failed | Stage::Destroyed));
        group.available += u32::from(available);
        group.failing += u32::from(failing);
        group.trying += u32::from(failing && tries);
        if stage == Some(Stage::Destroyed) {
            waiting.push((row.group, 1, row.restart_at, row.attempt, at));
        } else if available && drifted {
            waiting.push((row.group, 0, row.attempt, 0, at));
        }
    }
    waiting.sort_unstable();
    let mut last = (NO_INDEX, 0, 0);
    for (group, queue, _, _, at) in waiting {
        let turn = if (last.0, last.1) == (group, queue) { last.2 + 1 } else { 0 };
        last = (group, queue, turn);
        nodes.turn[at] = turn;
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
