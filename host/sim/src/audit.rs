//! What pauses, guards and destroyed slots promise (SPEC 10), recounted without the engine's own books: from the orders that
//! it accepted, from what then left, and from the deletions that began.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use decider::{Intent, OperationKind, Stage};
use engine::command::Command;
use engine::driver::Driver;
use engine::guard::{CREATES_WINDOW_MS, DESTROYS_WINDOW_MS, Guard};
use engine::id::{AttemptId, Millis};
use engine::invariants::Violation;
use engine::io::{Input, LeaseId, Notice, Operation, Output, Request};
use engine::pause::Only;
use engine::policy::Guards;
use engine::state::{ClusterState, Slot};

/// What is paused.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Paused {
    scope: Option<String>,
    only: Only,
    /// `None`: an operator paused.
    by: Option<Guard>,
}

/// What was seen of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    attempt: AttemptId,
    deleting: bool,
}

/// The books of whoever looks on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audit {
    pauses: Vec<Paused>,
    guards: Guards,
    /// When deletions and other destroys began, and first creates left.
    destroys: VecDeque<Millis>,
    creates: VecDeque<Millis>,
    /// Slots that were given up and are not ready again.
    down: BTreeSet<String>,
    /// Slots that were not ready when the count began: they may have been given up before, and are left out until they are.
    unknown: BTreeSet<String>,
    /// What was destroyed that no slot held.
    swept: BTreeSet<(AttemptId, LeaseId)>,
    /// By the number of the slot; empty while nothing has to be counted.
    seen: Vec<Option<Seen>>,
    /// Slots that were destroyed for good: no attempt from this one on may be made for them.
    retired: BTreeMap<String, AttemptId>,
    /// Guards that tripped in the step before: what left in it was let through first.
    tripped: Vec<Paused>,
    /// Slots that are about to be killed, and their failures in a row.
    killed: Vec<(String, AttemptId, u32)>,
    /// Slots that are about to be destroyed for good.
    victims: Vec<String>,
}

fn group_of(slot: &str) -> &str {
    slot.rsplit_once('-').map_or(slot, |(group, _)| group)
}

fn broken(id: &'static str, what: String) -> Option<Violation> {
    Some(Violation { id, what })
}

/// Whether a deletion of what holds a slot may have to destroy something.
fn holds(slot: &Slot) -> bool {
    slot.node.as_ref().is_some_and(|node| {
        let creates =
            |operation: &Operation| matches!(operation.request, Request::CreateLease(_) | Request::SettleCreate(_));
        let pending = node.pending.as_ref().is_some_and(|pending| creates(&pending.operation));
        node.lease.is_some() || pending || node.doubt() == Some(OperationKind::CreateLease)
    })
}

impl Audit {
    /// Nothing is paused, nothing counted.
    pub fn new(guards: Guards) -> Self {
        Audit { guards, ..Audit::default() }
    }

    /// An input is about to be folded.
    pub fn before(&mut self, input: &Input, state: &ClusterState) {
        self.pauses.append(&mut self.tripped);
        self.killed.clear();
        self.victims.clear();
        match input {
            Input::Command(Command::Kill { nodes }) => {
                let held = |name: &String| {
                    let node = state.slot(*state.names.get(name)?)?.node.as_ref()?;
                    Some((name.clone(), node.attempt, node.retry.failures))
                };
                self.killed = nodes.iter().filter_map(held).collect();
            }
            Input::Command(Command::Destroy { nodes, groups }) => {
                let named = |slot: &&Slot| {
                    slot.desired.is_some() && (nodes.contains(&slot.name) || groups.contains(&slot.group))
                };
                self.victims = state.slots.iter().filter(named).map(|slot| slot.name.clone()).collect();
            }
            _ => {}
        }
    }

    /// An input was folded, or refused.
    pub fn folded(&mut self, input: &Input, accepted: bool, driver: &Driver, outputs: &[Output]) -> Option<Violation> {
        match input {
            Input::Command(command) if accepted => self.ordered(command, AttemptId(driver.state().next_attempt)),
            Input::PolicyChanged(policy) => self.guarded(policy.guards),
            _ => {}
        }
        let found = self.failures(driver.state()).or_else(|| self.deletions(driver));
        self.tripped.extend(outputs.iter().filter_map(|output| match output {
            Output::Notice(Notice::GuardTripped { guard, group, .. }) => {
                let only = if *guard == Guard::CreatesPerHour { Only::Create } else { Only::Destroy };
                Some(Paused { scope: group.clone(), only, by: Some(*guard) })
            }
            _ => None,
        }));
        found
    }

    fn ordered(&mut self, command: &Command, next: AttemptId) {
        match command {
            Command::Destroy { .. } => {
                self.retired.extend(std::mem::take(&mut self.victims).into_iter().map(|slot| (slot, next)));
            }
            Command::Apply { policy: Some(policy), .. } => self.guarded(policy.guards),
            Command::Pause { group, only } => {
                self.pauses.push(Paused { scope: group.clone(), only: *only, by: None });
            }
            Command::Resume { group, only } => self.resumed(group.as_ref(), *only),
            _ => {}
        }
    }

    fn resumed(&mut self, group: Option<&String>, only: Only) {
        let everything = group.is_none() && only == Only::All;
        let mut left = Vec::new();
        for pause in std::mem::take(&mut self.pauses) {
            let in_scope = everything || pause.scope.as_ref() == group;
            match (pause.only, only) {
                _ if !in_scope => left.push(pause),
                (Only::All, Only::Create) => left.push(Paused { only: Only::Destroy, ..pause }),
                (Only::All, Only::Destroy) => left.push(Paused { only: Only::Create, ..pause }),
                (paused, resumed) if resumed != Only::All && paused != resumed => left.push(pause),
                _ => match pause.by {
                    Some(Guard::DestroysPerMinute) => self.destroys.clear(),
                    Some(Guard::CreatesPerHour) => self.creates.clear(),
                    Some(Guard::DestroyedShare) => {
                        self.down.retain(|slot| pause.scope.as_deref().is_some_and(|scope| scope != group_of(slot)));
                    }
                    Some(Guard::LiveResources) | None => {}
                },
            }
        }
        self.pauses = left;
    }

    fn guarded(&mut self, guards: Guards) {
        let watches = |guards: &Guards| guards.destroys_per_minute.or(guards.destroyed_share_percent.map(u32::from));
        if watches(&self.guards).is_none() || watches(&guards).is_none() {
            self.seen.clear();
            self.down.clear();
            self.unknown.clear();
        }
        if self.guards.destroys_per_minute.is_none() {
            self.destroys.clear();
        }
        if self.guards.creates_per_hour.is_none() {
            self.creates.clear();
        }
        self.guards = guards;
    }

    /// A kill is no failure of the node's.
    fn failures(&mut self, state: &ClusterState) -> Option<Violation> {
        let killed = std::mem::take(&mut self.killed);
        killed.into_iter().find_map(|(name, attempt, failures)| {
            let node = state.slot(*state.names.get(&name)?)?.node.as_ref()?;
            let raised = node.attempt == attempt && node.retry.failures > failures;
            if raised { broken("SPEC 10", format!("{name} was killed and that counts as a failure")) } else { None }
        })
    }

    /// Deletions that began in this step.
    fn deletions(&mut self, driver: &Driver) -> Option<Violation> {
        if self.guards.destroys_per_minute.is_none() && self.guards.destroyed_share_percent.is_none() {
            return None;
        }
        let state = driver.state();
        let earlier = std::mem::take(&mut self.seen);
        let mut begun = Vec::new();
        for (at, slot) in state.slots.iter().enumerate() {
            let seen = slot
                .node
                .as_ref()
                .map(|node| Seen { attempt: node.attempt, deleting: node.intent == Intent::Deleting });
            self.seen.push(seen);
            let before = earlier.get(at).copied().flatten();
            let ready =
                slot.node.as_ref().is_none_or(|node| node.stage == Stage::Dormant && node.intent == Intent::Active);
            if ready {
                self.down.remove(&slot.name);
                self.unknown.remove(&slot.name);
            } else if earlier.is_empty() {
                self.unknown.insert(slot.name.clone());
            }
            if !earlier.is_empty() && seen.is_some_and(|seen| seen.deleting) && seen != before && holds(slot) {
                begun.push(slot);
            }
        }
        for slot in begun {
            let ends = |pause: &&Paused| {
                pause.only != Only::Create && pause.scope.as_deref().is_none_or(|scope| scope == slot.group)
            };
            if self.pauses.iter().any(|pause| ends(&pause)) {
                return broken("SPEC 10", format!("the deletion of {} begins while destroys are paused", slot.name));
            }
            let found = self.destroy(driver.now_ms(), &slot.name);
            let Some(percent) = self.guards.destroyed_share_percent.filter(|_| found.is_none()) else {
                if found.is_some() {
                    return found;
                }
                continue;
            };
            if self.unknown.contains(&slot.name) || !self.down.insert(slot.name.clone()) {
                continue;
            }
            let of_group = state.slots.iter().enumerate().filter(|(_, other)| other.group == slot.group);
            let counted = |at: usize, other: &Slot| {
                other.desired.is_some() || other.node.is_some() || earlier.get(at).copied().flatten().is_some()
            };
            let total = of_group.filter(|(at, other)| counted(*at, other)).count() as u64;
            let down = self.down.iter().filter(|name| group_of(name) == slot.group).count() as u64;
            if down > 1 && down * 100 > total * u64::from(percent) {
                let what = format!("{down} of {total} slots of {} are down; {percent} per cent may be", slot.group);
                return broken("SPEC 10", what);
            }
        }
        None
    }

    fn destroy(&mut self, now: Millis, what: &str) -> Option<Violation> {
        let limit = self.guards.destroys_per_minute?;
        self.destroys.retain(|at| *at + DESTROYS_WINDOW_MS > now);
        self.destroys.push_back(now);
        let count = self.destroys.len();
        if count <= limit as usize {
            return None;
        }
        broken("SPEC 10", format!("the destroy of {what} is number {count} within a minute; {limit} may be"))
    }

    /// An operation leaves. `first`: the first one of its attempt; `live`: resources that live or are on their way.
    pub fn leaves(
        &mut self,
        operation: &Operation,
        driver: &Driver,
        first: bool,
        live: impl Fn() -> usize,
    ) -> Option<Violation> {
        let (id, slot) = (operation.id, operation.key.slot.as_str());
        let creates = first && matches!(operation.request, Request::CreateLease(_));
        let lease = match &operation.request {
            Request::DestroyLease { lease } => Some(lease),
            _ => None,
        };
        let destroys = lease.is_some() || matches!(operation.request, Request::CancelBootstrap { .. });
        let state = driver.state();
        let holder = state.holder(id.attempt).and_then(|node| state.slot(node)?.node.as_ref());
        let sweeps = lease.filter(|lease| holder.is_none_or(|node| node.lease.as_ref() != Some(*lease)));
        let begins = sweeps.is_some_and(|lease| !self.swept.contains(&(id.attempt, lease.clone())));
        let holds = |pause: &&Paused| {
            let here = pause.scope.as_deref().is_none_or(|scope| scope == group_of(slot));
            here && match pause.only {
                Only::All => true,
                Only::Create => creates,
                // What a guard let through ends.
                Only::Destroy => destroys && (pause.by.is_none() || begins),
            }
        };
        if let Some(pause) = self.pauses.iter().find(holds) {
            let scope = pause.scope.as_deref().unwrap_or("the whole run");
            let kind = operation.request.kind().label();
            return broken(
                "SPEC 10",
                format!("{id} ({kind}) leaves while {} of {scope} is paused", pause.only.label()),
            );
        }
        let now = driver.now_ms();
        if creates {
            if self.retired.get(slot).is_some_and(|since| id.attempt >= *since) {
                return broken("S9", format!("{id} makes {slot}, which was destroyed for good"));
            }
            if let Some(limit) = self.guards.creates_per_hour {
                self.creates.retain(|at| *at + CREATES_WINDOW_MS > now);
                self.creates.push_back(now);
                let count = self.creates.len();
                if count > limit as usize {
                    let what = format!("the create of {slot} is number {count} within an hour; {limit} may be");
                    return broken("SPEC 10", what);
                }
            }
            if let Some(limit) = self.guards.live_resources {
                let live = live();
                if live > limit as usize {
                    return broken("SPEC 10", format!("with {id} {live} resources live; {limit} may"));
                }
            }
        }
        let lease = sweeps.filter(|_| begins)?;
        self.swept.insert((id.attempt, lease.clone()));
        self.destroy(now, lease)
    }
}
