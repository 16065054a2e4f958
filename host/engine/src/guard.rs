//! Guards below the decider: how much may be made, kept and destroyed before a person is asked. A breach holds the effect;
//! all but the limit of live resources then pause until a person resumes.

use std::collections::{BTreeMap, VecDeque};

use decider::{OperationKind, Verb};
use serde::{Deserialize, Serialize};

use crate::driver::Driver;
use crate::id::{AttemptId, Millis, NodeId};
use crate::io::Notice;
use crate::mutation::Mutation;
use crate::pause::{By, Effect, Held, HeldBy, Only, Pause};
use crate::state::{ManagedNode, Slot, in_flight};

/// The length of the window of [`Guard::DestroysPerMinute`].
pub const DESTROYS_WINDOW_MS: u64 = 60_000;
/// The length of the window of [`Guard::CreatesPerHour`].
pub const CREATES_WINDOW_MS: u64 = 3_600_000;

/// What a guard counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// Deletions of attempts that hold or may hold a resource, reaps and destroys of orphans begun within a minute.
    DestroysPerMinute,
    /// First creates of attempts within an hour.
    CreatesPerHour,
    /// Resources that live or may live: leases, creates on their way or in doubt, reaps, orphans.
    LiveResources,
    /// Of a group's slots, wanted or still held, those whose resource was given up and that are not ready again.
    DestroyedShare,
}

impl Guard {
    /// Its name, as in a fleet file.
    pub const fn label(self) -> &'static str {
        match self {
            Guard::DestroysPerMinute => "destroys-per-minute",
            Guard::CreatesPerHour => "creates-per-hour",
            Guard::LiveResources => "live-resources",
            Guard::DestroyedShare => "destroyed-share-percent",
        }
    }
}

/// What the guards have counted; never longer than their limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// When destroys were begun.
    #[serde(default)]
    pub destroys: VecDeque<Millis>,
    /// When first creates left.
    #[serde(default)]
    pub creates: VecDeque<Millis>,
}

impl Windows {
    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.destroys.is_empty() && self.creates.is_empty()
    }
}

/// Takes one more into a window if there is room.
fn take(window: &mut VecDeque<Millis>, limit: u32, now: Millis, length_ms: u64) -> bool {
    while window.front().is_some_and(|at| at.saturating_add(length_ms) <= now) || window.len() > limit as usize {
        window.pop_front();
    }
    let room = window.len() < limit as usize;
    if room {
        window.push_back(now);
    }
    room
}

/// How many of `total` may be down at once: at least one.
pub(crate) fn allowed_share(total: u32, percent: u8) -> u32 {
    u32::try_from(u64::from(total) * u64::from(percent) / 100).unwrap_or(u32::MAX).max(1)
}

/// A part of a whole in per cent, rounded up.
pub(crate) fn percent_of(part: u32, total: u32) -> u32 {
    u32::try_from((u64::from(part) * 100).div_ceil(u64::from(total.max(1)))).unwrap_or(u32::MAX)
}

/// Whether an attempt holds or may hold a resource.
pub(crate) fn may_hold(node: &ManagedNode) -> bool {
    let creates = in_flight(node.pending.as_ref()) && node.pending_code() == OperationKind::CreateLease.code();
    node.lease.is_some() || creates || node.doubt() == Some(OperationKind::CreateLease)
}

/// What is counted once for the decisions that are applied together.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    live: Option<u32>,
    /// Of each group: slots, and those that are down.
    shares: BTreeMap<String, (u32, u32)>,
}

impl Driver {
    /// Whether a decision may be carried out; else what holds it. What is admitted is counted.
    pub(crate) fn admit(&mut self, gate: &mut Gate, node: NodeId, verb: Verb) -> Result<(), Held> {
        let Some(effect) = self.effect(node, verb) else { return Ok(()) };
        let now = self.now;
        let Some(slot) = self.state.slot(node) else { return Ok(()) };
        if let Some(pause) = self.pause_on(&slot.group, effect) {
            return Err(Held { effect, since_ms: pause.since_ms, by: HeldBy::Pause(pause.clone()) });
        }
        let Some(held) = &slot.node else { return Ok(()) };
        if verb.operation().is_some() && self.twin_pending(held.attempt) {
            return Err(Held { effect, since_ms: now, by: HeldBy::Twin });
        }
        let guards = self.policy.guards;
        match verb {
            Verb::BeginDelete if may_hold(held) => {
                let (group, down) = (slot.group.clone(), slot.down);
                if let Some(percent) = guards.destroyed_share_percent.filter(|_| !down) {
                    let slots = &self.state.slots;
                    let (total, down) = gate.shares.entry(group.clone()).or_insert_with(|| share(slots.iter(), &group));
                    if *down + 1 > allowed_share(*total, percent) {
                        let value = percent_of(*down + 1, *total);
                        return Err(self.trip(Guard::DestroyedShare, u32::from(percent), value, Some(group)));
                    }
                }
                self.count_destroy()?;
                if let Some((_, down)) = gate.shares.get_mut(&group).filter(|_| !down) {
                    *down += 1;
                }
            }
            Verb::CreateLease if effect == Effect::Create && !may_hold(held) => {
                let first = self.state.attempts.get(&held.attempt).is_none_or(|known| known.next_sequence <= 1);
                let live =
                    guards.live_resources.map(|limit| (limit, gate.live.unwrap_or_else(|| self.live_resources())));
                if let Some((limit, value)) = live {
                    gate.live = Some(value);
                    if value >= limit {
                        return Err(Held { effect, since_ms: now, by: HeldBy::LiveResources { limit, value } });
                    }
                }
                if let Some(limit) = guards.creates_per_hour.filter(|_| first) {
                    if !take(&mut self.state.windows.creates, limit, now, CREATES_WINDOW_MS) {
                        return Err(self.trip(Guard::CreatesPerHour, limit, limit.saturating_add(1), None));
                    }
                    if self.mutated(Mutation::GuardDoesNotCount) {
                        self.state.windows.creates.pop_back();
                    }
                }
                gate.live = gate.live.map(|live| live.saturating_add(1));
            }
            _ => {}
        }
        Ok(())
    }

    /// One more destroy begins, if the guard lets it.
    pub(crate) fn count_destroy(&mut self) -> Result<(), Held> {
        let Some(limit) = self.policy.guards.destroys_per_minute else { return Ok(()) };
        if take(&mut self.state.windows.destroys, limit, self.now, DESTROYS_WINDOW_MS) {
            if self.mutated(Mutation::GuardDoesNotCount) {
                self.state.windows.destroys.pop_back();
            }
            return Ok(());
        }
        Err(self.trip(Guard::DestroysPerMinute, limit, limit.saturating_add(1), None))
    }

    /// A guard is breached: what it guards is paused until a person resumes.
    fn trip(&mut self, guard: Guard, limit: u32, value: u32, scope: Option<String>) -> Held {
        let (only, effect) = match guard {
            Guard::CreatesPerHour | Guard::LiveResources => (Only::Create, Effect::Create),
            Guard::DestroysPerMinute | Guard::DestroyedShare => (Only::Destroy, Effect::Destroy),
        };
        let by = By::Guard { guard, limit, value };
        let pause = Pause { scope: scope.clone(), only, since_ms: self.now, by };
        self.state.pauses.push(pause.clone());
        self.notice(Notice::GuardTripped { guard, limit, group: scope });
        Held { effect, since_ms: self.now, by: HeldBy::Pause(pause) }
    }

    /// A person let go on what a guard had paused: what it counted until then does not count any more.
    pub(crate) fn allow_anew(&mut self, guard: Guard, scope: Option<&str>) {
        match guard {
            Guard::DestroysPerMinute => self.state.windows.destroys.clear(),
            Guard::CreatesPerHour => self.state.windows.creates.clear(),
            Guard::LiveResources => {}
            Guard::DestroyedShare => {
                let slots = self.state.slots.iter_mut();
                slots.filter(|slot| scope.is_none_or(|group| group == slot.group)).for_each(|slot| slot.down = false);
            }
        }
    }

    /// Resources that live or may live.
    pub fn live_resources(&self) -> u32 {
        if self.mutated(Mutation::LiveNotCounted) {
            return 0;
        }
        let nodes = self.state.slots.iter().filter_map(|slot| slot.node.as_ref());
        let held = nodes.filter(|node| may_hold(node)).count();
        u32::try_from(held + self.state.reaps.len() + self.state.orphans.len()).unwrap_or(u32::MAX)
    }

    /// A resource is gone: where their number is limited, somebody may wait for that.
    pub(crate) fn made_room(&mut self) {
        if self.policy.guards.live_resources.is_some() {
            self.queued = true;
        }
    }

    /// Whether a reap or an orphan's destroy of this attempt is on its way (S2: at most one running an attempt).
    pub(crate) fn twin_pending(&self, attempt: AttemptId) -> bool {
        let reap = self.state.reaps.get(&attempt).is_some_and(|reap| reap.pending.is_some());
        reap || self.state.orphans.values().any(|orphan| {
            orphan.key.attempt == attempt && orphan.destroying.as_ref().is_some_and(|reap| reap.pending.is_some())
        })
    }
}

/// A group's slots, wanted or held, and those that are down.
pub(crate) fn share<'a>(slots: impl Iterator<Item = &'a Slot>, group: &str) -> (u32, u32) {
    let slots = slots.filter(|slot| slot.group == group && (slot.desired.is_some() || slot.node.is_some()));
    slots.fold((0, 0), |(total, down), slot| (total + 1, down + u32::from(slot.down)))
}
