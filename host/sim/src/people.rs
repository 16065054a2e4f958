//! People: they edit the shape, sometimes wrongly.

use std::sync::Arc;

use engine::command::CommandError;
use engine::io::Input;
use engine::policy::Policy;
use engine::rollout::{Rollout, Share};
use engine::shape::{ClusterShape, GroupShape, Template};

use crate::faults::FaultKind;
use crate::run::Sim;

/// What people want, and what they will be refused.
pub(crate) struct People {
    fleet: ClusterShape,
    current: Arc<ClusterShape>,
    other: Vec<Arc<Template>>,
    pub policy: Policy,
    first_policy: Policy,
    most_slots: u64,
    /// What the next shape breaks; it must be refused for that.
    wrong: Option<(&'static str, String)>,
    /// Why the next order will be refused.
    pub refusal: Option<CommandError>,
}

impl People {
    /// They begin with this fleet. The limit of the simulation lies just above it, so that it can be reached.
    pub fn new(fleet: &ClusterShape, policy: &Policy) -> Self {
        let mut policy = *policy;
        let most = u32::try_from(fleet.slots()).unwrap_or(u32::MAX).saturating_add(4);
        policy.limits.max_nodes = most.min(policy.limits.max_nodes);
        policy.limits.max_group_count = policy.limits.max_group_count.min(policy.limits.max_nodes);
        let other = |group: &GroupShape| {
            let mut template = (*group.template).clone();
            template.labels.insert("simulated".into(), "v2".into());
            Arc::new(template)
        };
        let empty = ClusterShape { run: fleet.run.clone(), generation: 0, groups: Vec::new() };
        People {
            other: fleet.groups.iter().map(other).collect(),
            fleet: fleet.clone(),
            current: Arc::new(empty),
            policy,
            first_policy: policy,
            most_slots: 0,
            wrong: None,
            refusal: None,
        }
    }

    /// Slots of the shape in force.
    pub fn slots(&self) -> u64 {
        self.current.slots()
    }

    /// The most slots any shape had.
    pub fn most_slots(&self) -> u64 {
        self.most_slots
    }

    /// The shape in force.
    pub fn current(&self) -> Arc<ClusterShape> {
        self.current.clone()
    }

    /// A group's other template.
    fn other_template(&self, shape: &mut ClusterShape, at: usize) {
        let Some(group) = shape.groups.get_mut(at) else { return };
        let first = self.fleet.groups.iter().position(|known| known.id == group.id).unwrap_or(0);
        if let (Some(one), Some(other)) = (self.fleet.groups.get(first), self.other.get(first)) {
            group.template = if group.template == one.template { other.clone() } else { one.template.clone() };
        }
    }

    /// Whether a rollout is paused, which somebody has to end.
    pub fn pauses_rollout(&self) -> bool {
        self.current.groups.iter().any(|group| group.rollout.paused)
    }

    /// Whether nodes may have to be replaced, or tried, one after the other.
    pub fn is_serial(&self) -> bool {
        self.current.groups.iter().any(|group| !group.rollout.is_default())
    }

    fn take(&mut self, shape: ClusterShape) -> ClusterShape {
        self.most_slots += shape.slots();
        self.current = Arc::new(shape.clone());
        shape
    }

    /// Why the engine says that it will refuse the order that is given.
    pub fn refusal(&self) -> Option<&CommandError> {
        self.refusal.as_ref()
    }

    /// An order changed the shape: what is in force is what people go on from.
    pub fn ordered(&mut self, in_force: Option<&Arc<ClusterShape>>) {
        if let Some(shape) = in_force.filter(|shape| **shape != self.current) {
            self.most_slots += shape.slots();
            self.current = shape.clone();
        }
    }

    /// What was wrong with a shape that was accepted all the same.
    pub fn must_be_refused(&mut self, input: &Input) -> Option<(&'static str, String)> {
        matches!(input, Input::Desired(_)).then(|| self.wrong.take()).flatten()
    }

    /// Whether a shape was refused that should be.
    pub fn may_be_refused(&mut self, input: &Input) -> bool {
        matches!(input, Input::Desired(_)) && self.wrong.take().is_some()
    }
}

/// What people write about rollouts.
fn rollout(which: u32) -> Rollout {
    let none = Rollout::default();
    match which {
        0 => none,
        1 => Rollout { paused: true, ..none },
        2 => Rollout { max_surge: Some(Share::Nodes(1)), ..none },
        3 => Rollout { max_unavailable: Some(Share::Percent(50)), max_surge: Some(Share::Percent(50)), ..none },
        4 => Rollout { max_failing: Some(Share::Nodes(0)), ..none },
        5 => Rollout { max_unavailable: Some(Share::Nodes(2)), max_failing: Some(Share::Percent(40)), ..none },
        _ => Rollout { max_unavailable: Some(Share::Nodes(1)), ..none },
    }
}

impl Sim<'_> {
    /// People let a paused rollout go on.
    pub(crate) fn unpause_rollouts(&mut self) {
        let mut shape = (*self.people.current).clone();
        shape.generation += 1;
        shape.groups.iter_mut().for_each(|group| group.rollout.paused = false);
        let shape = self.people.take(shape);
        self.feed(Input::Desired(shape));
    }

    /// What people declare first: each group whole, or with one slot, or not yet.
    pub(crate) fn first_shape(&mut self) -> ClusterShape {
        let mut groups = Vec::new();
        for (at, group) in self.people.fleet.groups.iter().enumerate() {
            // The plainest fleet is one node.
            let count = match (self.choices.below(6), at) {
                (0, 0) | (1, 1..) => group.count.min(1),
                (0, 1..) | (1, 0) => 0,
                _ => group.count,
            };
            groups.push(GroupShape { count, ..group.clone() });
        }
        let shape = ClusterShape { run: self.people.fleet.run.clone(), generation: 1, groups };
        self.people.take(shape)
    }

    /// People edit.
    pub(crate) fn edit(&mut self, fault: FaultKind) {
        let mut shape = (*self.people.current).clone();
        shape.generation += 1;
        let groups = u32::try_from(shape.groups.len()).unwrap_or(0);
        let at = self.choices.below(groups) as usize;
        let room = u64::from(self.people.policy.limits.max_nodes).saturating_sub(shape.slots());
        let limit = self.people.policy.limits.max_group_count;
        match fault {
            FaultKind::CountUp => {
                let more = 1 + self.choices.below(3);
                if let Some(group) = shape.groups.get_mut(at) {
                    group.count =
                        (group.count + more.min(u32::try_from(room).unwrap_or(0))).min(limit.max(group.count));
                }
            }
            FaultKind::CountDown => {
                let less = 1 + self.choices.below(3);
                if let Some(group) = shape.groups.get_mut(at) {
                    group.count = group.count.saturating_sub(less);
                }
            }
            FaultKind::TemplateChanges => {
                self.people.other_template(&mut shape, at);
            }
            FaultKind::RolloutChanges => {
                let (settings, drifts) = (self.choices.below(8), self.choices.below(2) == 1);
                if let Some(group) = shape.groups.get_mut(at) {
                    group.rollout = rollout(settings);
                }
                if drifts {
                    self.people.other_template(&mut shape, at);
                }
            }
            FaultKind::GroupRemoved => {
                let absent = |known: &&GroupShape| shape.groups.iter().all(|group| group.id != known.id);
                match self.people.fleet.groups.iter().find(absent) {
                    Some(back) => {
                        let count = back.count.min(u32::try_from(room).unwrap_or(0));
                        shape.groups.push(GroupShape { count, ..back.clone() });
                    }
                    None if at < shape.groups.len() => {
                        shape.groups.remove(at);
                    }
                    None => {}
                }
            }
            FaultKind::GenerationSkipped => shape.generation += u64::from(self.choices.below(1_000)),
            FaultKind::AtLimit => {
                if let Some(group) = shape.groups.get_mut(at) {
                    group.count += u32::try_from(room).unwrap_or(0);
                }
            }
            FaultKind::PolicyChanges => return self.change_policy(),
            _ => return self.err(shape, at),
        }
        let shape = self.people.take(shape);
        self.feed(Input::Desired(shape));
    }

    fn change_policy(&mut self) {
        let first = Policy { guards: self.people.policy.guards, ..self.people.first_policy };
        self.people.policy = match self.choices.below(3) {
            0 => first,
            1 => Policy { backoff_jitter_percent: 50, ..first },
            _ => Policy { backoff_initial_ms: (first.backoff_initial_ms / 2).max(1), ..first },
        };
        let policy = self.people.policy;
        self.feed(Input::PolicyChanged(policy));
    }

    /// A shape that must be refused whole, and change nothing.
    fn err(&mut self, mut shape: ClusterShape, at: usize) {
        let Some(first) = self.people.fleet.groups.first().cloned() else { return };
        let wrong = match self.choices.below(6) {
            0 => {
                shape.generation = shape.generation.saturating_sub(2);
                shape.groups.clear();
                ("S10", "a lower generation was accepted".to_string())
            }
            1 => {
                shape.generation -= 1;
                shape.groups.push(GroupShape { id: "unheard-of".into(), ..first });
                ("S10", "changed content at the same generation was accepted".to_string())
            }
            2 => {
                shape.run = "another-run".into();
                ("S15", "a shape of another run was accepted".to_string())
            }
            3 => {
                let again = shape.groups.get(at).unwrap_or(&first).clone();
                shape.groups.extend([again.clone(), again]);
                ("S8", "two groups of one id were accepted".to_string())
            }
            4 => {
                shape.groups = vec![GroupShape { count: u32::MAX, ..first }];
                ("L1", "a shape over its limit was accepted".to_string())
            }
            _ => {
                shape.groups = vec![GroupShape { id: "Not An Id".into(), ..first }];
                ("S15", "a malformed id was accepted".to_string())
            }
        };
        self.people.wrong = Some(wrong);
        let before = self.driver.state().desired.clone();
        self.feed(Input::Desired(shape));
        self.people.wrong = None;
        if self.found.is_none() && self.up && before != self.driver.state().desired {
            self.broken("S10", "a refused shape changed something".into());
        }
    }
}
