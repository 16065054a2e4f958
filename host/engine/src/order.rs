//! How operator commands are judged and folded (SPEC 10). An order is worked out whole before anything changes, so that one
//! that is refused changes nothing, and one that is accepted cannot fail half way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use decider::{Intent, Stage};

use crate::command::{Command, CommandError, Consequences};
use crate::driver::Driver;
use crate::folding::Folding;
use crate::guard::{Guard, allowed_share, may_hold, percent_of, share};
use crate::id::NodeId;
use crate::io::Input;
use crate::mutation::Mutation;
use crate::pause::{Effect, Only};
use crate::policy::{Guards, Policy};
use crate::rollout::changes;
use crate::schedule::{after, backoff_ms};
use crate::shape::{ClusterShape, GroupShape, Template, slot_name};
use crate::state::{ManagedNode, Slot};

/// An order that may be carried out.
#[derive(Debug)]
pub(crate) struct Order {
    /// What it does, for people.
    pub consequences: Consequences,
    /// The shape that follows, if one does.
    shape: Option<ClusterShape>,
    /// Indices to retire.
    retires: Vec<(String, u32)>,
    /// The guard that refuses it.
    beyond: Option<CommandError>,
}

impl Order {
    pub(crate) fn plain(consequences: Consequences) -> Self {
        Order { consequences, shape: None, retires: Vec::new(), beyond: None }
    }
}

impl Driver {
    /// What a command would do. Changes nothing.
    ///
    /// # Errors
    ///
    /// It would be refused.
    pub fn consequences(&self, command: &Command) -> Result<Consequences, CommandError> {
        self.order(command).map(|order| order.consequences)
    }

    /// What a command would do, also where a guard refuses it: then [`Consequences::beyond`] says which. Changes nothing.
    ///
    /// # Errors
    ///
    /// Something else than a guard stands against it.
    pub fn foresee(&self, command: &Command) -> Result<Consequences, CommandError> {
        let Order { consequences, beyond, .. } = self.work_out(command)?;
        Ok(Consequences { beyond: beyond.map(|guard| guard.to_string()), ..consequences })
    }

    pub(crate) fn order(&self, command: &Command) -> Result<Order, CommandError> {
        let mut order = self.work_out(command)?;
        order.beyond.take().map_or(Ok(order), Err)
    }

    fn work_out(&self, command: &Command) -> Result<Order, CommandError> {
        match command {
            Command::Apply { shape, policy, base_generation } => {
                self.order_apply(shape, policy.as_ref(), *base_generation)
            }
            Command::Scale { group, count } => self.order_scale(group, |_| Some(*count)),
            Command::AddNode { group } => self.order_scale(group, |count| count.checked_add(1)),
            Command::Kill { nodes } => self.order_kill(nodes),
            Command::Destroy { nodes, groups } => self.order_destroy(nodes, groups),
            Command::Pause { group, .. } => {
                self.known_scope(group.as_deref())?;
                Ok(Order::plain(self.untouched(None)))
            }
            Command::Resume { group, only } => self.order_resume(group.as_deref(), *only),
            Command::AdoptOrphan { provider, lease } => self.order_adopt(provider, lease),
            Command::DestroyOrphan { provider, lease } => self.order_destroy_orphan(provider, lease),
        }
    }

    /// Carries out what was worked out for the command just now.
    pub(crate) fn fold_command(&mut self, command: Command, order: Order) {
        for (group, index) in order.retires {
            // The mutation forgets which: the shape has one slot less, and that is its highest.
            if !self.mutated(Mutation::DestroyTakesHighest) {
                self.state.retired.entry(group).or_default().insert(index);
            }
        }
        if let Command::Scale { group, .. } | Command::AddNode { group } = &command
            && self.mutated(Mutation::RetiredReused)
        {
            self.state.retired.remove(group);
        }
        if let Some(shape) = order.shape {
            self.take_over(shape);
        }
        match command {
            Command::Apply { policy: Some(policy), .. } => {
                self.policy = policy;
                self.queued = true;
            }
            Command::Apply { .. } | Command::Scale { .. } | Command::AddNode { .. } | Command::Destroy { .. } => {}
            Command::Kill { nodes } => nodes.iter().for_each(|name| self.kill(name)),
            Command::Pause { group, only } => self.pause(group, only),
            Command::Resume { group, only } => self.resume(group, only),
            Command::AdoptOrphan { provider, lease } => self.adopt_orphan(provider, lease),
            Command::DestroyOrphan { provider, lease } => self.destroy_orphan(provider, lease),
        }
    }

    fn in_force(&self) -> Result<&Arc<ClusterShape>, CommandError> {
        self.state.desired.as_ref().ok_or(CommandError::NoShape)
    }

    pub(crate) fn generation(&self) -> u64 {
        self.state.desired.as_ref().map_or(0, |shape| shape.generation)
    }

    fn next_generation(&self) -> Result<u64, CommandError> {
        let exhausted = CommandError::Exhausted { what: "generations", value: u64::MAX };
        self.generation().checked_add(1).ok_or(exhausted)
    }

    fn unknown_group(&self, group: &str) -> CommandError {
        let shape = self.state.desired.iter();
        let known: Vec<&str> = shape.flat_map(|shape| &shape.groups).map(|group| group.id.as_str()).collect();
        CommandError::UnknownGroup { group: group.into(), known: known.join(", ") }
    }

    /// A group may be paused while it is in the shape, and while something of it is left.
    fn known_scope(&self, group: Option<&str>) -> Result<(), CommandError> {
        let Some(group) = group else { return Ok(()) };
        let declared = self.state.desired.iter().flat_map(|shape| &shape.groups).any(|known| known.id == group);
        let held = || self.state.slots.iter().any(|slot| slot.group == group && slot.node.is_some());
        if declared || held() { Ok(()) } else { Err(self.unknown_group(group)) }
    }

    fn named(&self, name: &str) -> Result<(NodeId, &Slot), CommandError> {
        let found = self.state.names.get(name).and_then(|node| Some((*node, self.state.slot(*node)?)));
        found.ok_or_else(|| CommandError::UnknownNode { node: name.into() })
    }

    /// Nothing changes but what the note says.
    pub(crate) fn untouched(&self, note: Option<String>) -> Consequences {
        let regular = |slot: &&Slot| slot.desired.is_some_and(|desired| !desired.surge);
        let keeps = self.state.slots.iter().filter(regular).count();
        let keeps = u32::try_from(keeps).unwrap_or(u32::MAX);
        Consequences { generation: self.generation(), keeps, note, ..Consequences::default() }
    }

    fn order_apply(&self, shape: &ClusterShape, policy: Option<&Policy>, base: u64) -> Result<Order, CommandError> {
        let in_force = self.generation();
        if base != in_force {
            return Err(CommandError::WrongBase { base, in_force });
        }
        let limits = policy.unwrap_or(&self.policy).limits;
        shape.check(&limits, &self.provider_names)?;
        let same = self.state.desired.as_ref().is_some_and(|current| current.groups == shape.groups);
        if same && shape.run == self.state.run {
            let note = match policy {
                Some(policy) if *policy != self.policy => "the shape is in force already; the settings change",
                _ => "it is in force already",
            };
            return Ok(Order::plain(self.untouched(Some(note.into()))));
        }
        let expected = self.next_generation()?;
        if shape.generation != expected && shape.run == self.state.run {
            return Err(CommandError::WrongGeneration { in_force, expected, found: shape.generation });
        }
        let guards = policy.unwrap_or(&self.policy).guards;
        self.order_shape(shape.clone(), Vec::new(), false, guards)
    }

    fn order_scale(&self, id: &str, count: impl Fn(u32) -> Option<u32>) -> Result<Order, CommandError> {
        let current = self.in_force()?;
        let mut shape = (**current).clone();
        let known = shape.groups.iter_mut().find(|group| group.id == id);
        let group = known.ok_or_else(|| self.unknown_group(id))?;
        let exhausted = CommandError::Exhausted { what: "indices", value: u64::from(group.count) + 1 };
        let count = count(group.count).ok_or(exhausted)?;
        if count == group.count {
            let note = format!("{id} has {count} slots already");
            return Ok(Order::plain(self.untouched(Some(note))));
        }
        let more = count > group.count;
        group.count = count;
        shape.generation = self.next_generation()?;
        self.order_shape(shape, Vec::new(), more, self.policy.guards)
    }

    fn order_destroy(&self, nodes: &[String], groups: &[String]) -> Result<Order, CommandError> {
        if nodes.is_empty() && groups.is_empty() {
            return Err(CommandError::Empty { command: "destroy" });
        }
        let mut shape = (**self.in_force()?).clone();
        let mut retires = BTreeSet::new();
        for id in groups {
            if !shape.groups.iter().any(|group| group.id == *id) {
                return Err(self.unknown_group(id));
            }
            let slots = self.state.slots.iter().filter(|slot| slot.group == *id && slot.desired.is_some());
            retires.extend(slots.map(|slot| (slot.group.clone(), slot.index)));
        }
        for name in nodes {
            let (_, slot) = self.named(name)?;
            if slot.desired.is_none() {
                let standing = match &slot.node {
                    Some(node) => format!("{} {} is cleaned up", node.attempt, node.stage.label()),
                    None => "nothing is left of it".into(),
                };
                return Err(CommandError::NotDesired { node: name.clone(), standing });
            }
            retires.insert((slot.group.clone(), slot.index));
        }
        shape.groups.retain(|group| !groups.contains(&group.id));
        for group in &mut shape.groups {
            let regular = |index: u32| {
                let slot = self.named(&slot_name(&group.id, index)).ok();
                slot.is_some_and(|(_, slot)| slot.desired.is_some_and(|desired| !desired.surge))
            };
            let gone = retires.iter().filter(|(of, index)| *of == group.id && regular(*index)).count();
            group.count = group.count.saturating_sub(u32::try_from(gone).unwrap_or(u32::MAX));
        }
        shape.generation = self.next_generation()?;
        self.order_shape(shape, retires.into_iter().collect(), false, self.policy.guards)
    }

    /// Another shape: what follows from it, if nothing stands against it.
    fn order_shape(
        &self,
        shape: ClusterShape,
        retires: Vec<(String, u32)>,
        more: bool,
        guards: Guards,
    ) -> Result<Order, CommandError> {
        self.check_desired(&shape, more)?;
        let mut wanted: BTreeMap<String, &Arc<Template>> = BTreeMap::new();
        for group in &shape.groups {
            let gone: BTreeSet<u32> =
                retires.iter().filter(|(of, _)| *of == group.id).map(|(_, index)| *index).collect();
            let count = group.count.saturating_add(u32::try_from(gone.len()).unwrap_or(u32::MAX));
            let indices = self.state.indices(&group.id, count).filter(|index| !gone.contains(index));
            wanted.extend(indices.map(|index| (slot_name(&group.id, index), &group.template)));
        }
        let mut consequences = Consequences { generation: shape.generation, ..Consequences::default() };
        for slot in &self.state.slots {
            let holds = slot.node.as_ref().filter(|node| node.stage != Stage::Destroyed);
            let Some(template) = wanted.remove(&slot.name) else {
                // Surge nodes come and go with the rollout.
                if slot.desired.is_some_and(|desired| !desired.surge) {
                    consequences.destroys.push(slot.name.clone());
                }
                continue;
            };
            let drifts = |node: &ManagedNode| {
                let made_from = self.state.templates.get(node.template.0 as usize);
                node.intent == Intent::Active && made_from.is_none_or(|made_from| made_from != template)
            };
            match (slot.desired, holds) {
                (None, _) => consequences.creates.push(slot.name.clone()),
                (Some(_), Some(node)) if drifts(node) => consequences.replaces.push(slot.name.clone()),
                (Some(_), _) => consequences.keeps = consequences.keeps.saturating_add(1),
            }
        }
        consequences.creates.extend(wanted.into_keys());
        self.in_order(&mut consequences);
        let beyond = self.within_guards(&consequences, &shape, guards).err();
        consequences.note = self.held_note(&consequences).or_else(|| self.changed_note(&shape));
        Ok(Order { consequences, shape: Some(shape), retires, beyond })
    }

    /// By group and index, as everywhere.
    fn in_order(&self, consequences: &mut Consequences) {
        let place = |name: &String| {
            let (group, index) = name.rsplit_once('-').unwrap_or((name, ""));
            (group.to_string(), index.parse::<u64>().unwrap_or(u64::MAX))
        };
        for names in [&mut consequences.creates, &mut consequences.destroys, &mut consequences.replaces] {
            names.sort_by_cached_key(place);
        }
    }

    /// What an order does by itself must not be more than a guard allows.
    fn within_guards(
        &self,
        consequences: &Consequences,
        shape: &ClusterShape,
        guards: Guards,
    ) -> Result<(), CommandError> {
        let beyond = |guard: Guard, limit: u32, would_be: usize| {
            let would_be = u32::try_from(would_be).unwrap_or(u32::MAX);
            match would_be > limit {
                true => Err(CommandError::BeyondGuard { guard, limit, would_be, group: None }),
                false => Ok(()),
            }
        };
        let ends = consequences.destroys.iter().chain(&consequences.replaces);
        let victims: Vec<&Slot> = ends
            .filter_map(|name| Some(self.named(name).ok()?.1))
            .filter(|slot| slot.node.as_ref().is_some_and(|node| node.intent == Intent::Active && may_hold(node)))
            .collect();
        if let Some(limit) = guards.destroys_per_minute {
            beyond(Guard::DestroysPerMinute, limit, victims.len())?;
        }
        if let Some(percent) = guards.destroyed_share_percent {
            let mut by_group: BTreeMap<&str, u32> = BTreeMap::new();
            victims.iter().for_each(|slot| *by_group.entry(&slot.group).or_default() += 1);
            for (group, down) in by_group {
                let (total, _) = share(self.state.slots.iter(), group);
                if down > allowed_share(total, percent) {
                    return Err(CommandError::BeyondGuard {
                        guard: Guard::DestroyedShare,
                        limit: u32::from(percent),
                        would_be: percent_of(down, total),
                        group: Some(group.into()),
                    });
                }
            }
        }
        let creates = consequences.creates.len() + consequences.replaces.len();
        if let Some(limit) = guards.creates_per_hour {
            beyond(Guard::CreatesPerHour, limit, creates)?;
        }
        if let Some(limit) = guards.live_resources.filter(|_| !consequences.creates.is_empty()) {
            let others = self.state.reaps.len() + self.state.orphans.len();
            let slots = usize::try_from(shape.slots()).unwrap_or(usize::MAX);
            beyond(Guard::LiveResources, limit, slots.saturating_add(others))?;
        }
        Ok(())
    }

    /// What changes of groups that stay, beside counts and templates.
    fn changed_note(&self, shape: &ClusterShape) -> Option<String> {
        let current = self.state.desired.as_ref()?;
        let before = |group: &GroupShape| current.groups.iter().find(|known| known.id == group.id);
        let stay = shape.groups.iter().filter_map(|group| Some((before(group)?, group)));
        let changes: Vec<String> = stay.flat_map(|(before, after)| changes(before, after)).collect();
        (!changes.is_empty()).then(|| changes.join("; "))
    }

    /// What will not happen before somebody resumes.
    fn held_note(&self, consequences: &Consequences) -> Option<String> {
        let group = |name: &String| crate::pause::group_of(name).to_string();
        let held = |names: &[String], effect: Effect| {
            names.iter().find_map(|name| self.pause_on(&group(name), effect)).map(ToString::to_string)
        };
        held(&consequences.destroys, Effect::Destroy)
            .or_else(|| held(&consequences.replaces, Effect::Destroy))
            .or_else(|| held(&consequences.creates, Effect::Create))
            .or_else(|| held(&consequences.replaces, Effect::Create))
    }

    fn order_kill(&self, nodes: &[String]) -> Result<Order, CommandError> {
        if nodes.is_empty() {
            return Err(CommandError::Empty { command: "kill" });
        }
        let mut consequences = self.untouched(None);
        let mut idle = Vec::new();
        for name in nodes.iter().collect::<BTreeSet<_>>() {
            let (_, slot) = self.named(name)?;
            let Some(node) = slot.node.as_ref().filter(|node| node.stage != Stage::Destroyed) else {
                let stage = slot.node.as_ref().map_or(Stage::Vacant, |node| node.stage).label();
                return Err(CommandError::NothingToKill { node: name.clone(), stage });
            };
            if !node.climbs() {
                idle.push(name.as_str());
                continue;
            }
            if let Some(pause) = self.pause_on(&slot.group, Effect::Destroy) {
                return Err(CommandError::Paused { node: name.clone(), pause: pause.to_string() });
            }
            match slot.desired {
                Some(_) => consequences.replaces.push(name.clone()),
                None => consequences.destroys.push(name.clone()),
            }
        }
        self.in_order(&mut consequences);
        let replaced = u32::try_from(consequences.replaces.len()).unwrap_or(u32::MAX);
        consequences.keeps = consequences.keeps.saturating_sub(replaced);
        let shape = self.state.desired.as_ref();
        let beyond = shape.and_then(|shape| self.within_guards(&consequences, shape, self.policy.guards).err());
        let already = (!idle.is_empty()).then(|| format!("already being cleaned up: {}", idle.join(", ")));
        consequences.note = already.or_else(|| self.held_note(&consequences));
        Ok(Order { beyond, ..Order::plain(consequences) })
    }

    fn kill(&mut self, name: &str) {
        let Some(node) = self.state.names.get(name).copied() else { return };
        let (policy, now, mutation) = (self.policy, self.now, self.mutation);
        let counts = self.mutated(Mutation::KillCounts);
        let Some(held) = self.node_mut(node) else { return };
        if held.climbs() {
            let failures = held.retry.failures;
            Folding { policy: &policy, now, settles: None, mutation }.fail(held, KILLED.into(), false);
            // It is no fault of the node's: the next attempt waits as after its last failure, if there was one.
            held.retry.failures = failures.saturating_add(u32::from(counts));
            let wait = if failures == 0 { 0 } else { backoff_ms(&policy, held.attempt, failures) };
            held.retry.restart_at = Some(after(now, wait).max(held.retry.provider_wait.unwrap_or(0)));
            self.touch(node);
        }
    }

    fn order_resume(&self, group: Option<&str>, only: Only) -> Result<Order, CommandError> {
        if self.state.pauses.iter().any(|pause| pause.ends_with(group, only)) {
            return Ok(Order::plain(self.untouched(None)));
        }
        let there: Vec<String> = self.state.pauses.iter().map(ToString::to_string).collect();
        let there = if there.is_empty() { "nothing is paused".into() } else { there.join("; ") };
        Err(CommandError::NotPaused { scope: group.unwrap_or("the whole run").into(), only, there })
    }
}

/// Why an attempt failed that an operator killed.
pub const KILLED: &str = "killed by an operator";

/// Whether a step is a kill of that slot.
pub(crate) fn kills(input: &Input, slot: &str) -> bool {
    matches!(input, Input::Command(Command::Kill { nodes }) if nodes.iter().any(|node| node == slot))
}
