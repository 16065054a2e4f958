//! Surge slots: those beyond a group's count that a rollout may use. Whether one is desired is a function of the state, worked
//! out anew before each pass: offered while there is something to replace, kept until what it stands in for is ready, then taken
//! back.

use std::collections::BTreeSet;

use decider::Stage;

use crate::driver::Driver;
use crate::id::NodeId;
use crate::mutation::Mutation;
use crate::shape::{ClusterShape, GroupShape, slot_name};
use crate::state::{ClusterState, DesiredSlot, Slot};
use crate::totals::{is_available, is_failing};

/// How far a group's rollout is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    /// Regular slots whose node is still to be replaced.
    to_replace: u32,
    /// Regular slots whose node, or what is left of it, has another template.
    drifted: u32,
    /// Regular slots that are available.
    available: u32,
    /// Nodes that fail, surge ones included.
    failing: u32,
}

impl Progress {
    fn of(state: &ClusterState, at: u32) -> Progress {
        let mut progress = Progress::default();
        for slot in &state.slots {
            let Some(desired) = slot.desired.filter(|desired| desired.group == at) else { continue };
            progress.failing += u32::from(is_failing(slot));
            if desired.surge {
                continue;
            }
            progress.available += u32::from(is_available(slot));
            let Some(node) = slot.node.as_ref().filter(|node| node.template != desired.template) else { continue };
            progress.drifted += 1;
            progress.to_replace += u32::from(node.climbs());
        }
        progress
    }
}

/// A surge slot that is to be desired; one that was never seen has no number.
struct Offer {
    node: Option<NodeId>,
    name: String,
    index: u32,
}

/// What a surge slot is to be.
fn wanted(slot: &Slot, offered: bool, done: bool) -> bool {
    match &slot.node {
        None => offered,
        // What is there stays until it is not needed any more; what was taken back is cleaned up first.
        Some(_) if slot.desired.is_none_or(|desired| !desired.surge) => false,
        Some(node) if node.stage == Stage::Destroyed => offered,
        Some(_) => !done,
    }
}

impl Driver {
    /// Offers and takes back surge slots. Before a pass.
    pub(crate) fn offer_surge(&mut self) {
        let Some(shape) = self.state.desired.clone() else { return };
        let surges = |group: &GroupShape| group.rollout.limits(group.count).max_surge > 0;
        let used = self.state.slots.iter().any(|slot| slot.desired.is_some_and(|desired| desired.surge));
        if !used && !shape.groups.iter().any(surges) {
            return;
        }
        let mut kept = BTreeSet::new();
        if self.state.sees_rollouts {
            for (at, group) in shape.groups.iter().enumerate().filter(|(_, group)| surges(group)) {
                self.offer_in(u32::try_from(at).unwrap_or(u32::MAX), group, &mut kept);
            }
        }
        for at in 0..self.state.slots.len() {
            let node = NodeId(u32::try_from(at).unwrap_or(u32::MAX));
            if self.state.slots[at].desired.is_some_and(|desired| desired.surge) && !kept.contains(&node) {
                self.set_desired(node, None);
            }
        }
    }

    fn offer_in(&mut self, at: u32, group: &GroupShape, kept: &mut BTreeSet<NodeId>) {
        let offers = self.offers_in(at, group);
        let template = self.intern(&group.template);
        for Offer { node, name, index } in offers {
            let node = node.unwrap_or_else(|| self.node_id(&name, &group.id, index));
            self.set_desired(node, Some(DesiredSlot { group: at, template, surge: true }));
            kept.insert(node);
        }
    }

    /// The surge slots of a group that are to be desired.
    fn offers_in(&self, at: u32, group: &GroupShape) -> Vec<Offer> {
        let limits = group.rollout.limits(group.count);
        let progress = Progress::of(&self.state, at);
        let least = group.count.saturating_sub(limits.max_unavailable.unwrap_or(0));
        let done = progress.drifted == 0 && progress.available >= least && !self.mutated(Mutation::SurgeStays);
        let stops = group.rollout.paused || limits.max_failing.is_some_and(|most| progress.failing > most);
        let mut room = if stops { 0 } else { limits.max_surge.min(progress.to_replace) };
        let beyond = group.count.saturating_add(limits.max_surge);
        let mut offers = Vec::new();
        for index in self.state.indices(&group.id, beyond).skip(group.count as usize) {
            let name = slot_name(&group.id, index);
            // A slot that was never seen is made only when it is needed.
            let node = self.state.names.get(&name).copied();
            let offered = room > 0;
            if !node.and_then(|node| self.state.slot(node)).map_or(offered, |slot| wanted(slot, offered, done)) {
                continue;
            }
            room = room.saturating_sub(1);
            offers.push(Offer { node, name, index });
        }
        offers
    }

    /// The surge slots without a node that would be offered to a decider that is shown them, as they would be, under the numbers
    /// that they would have.
    pub(crate) fn vacant_offers(&self) -> Vec<(NodeId, Slot)> {
        let Some(shape) = &self.state.desired else { return Vec::new() };
        let numbered = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let mut next = self.state.slots.len();
        let mut found = Vec::new();
        for (at, group) in shape.groups.iter().enumerate() {
            let at = numbered(at);
            if group.rollout.limits(group.count).max_surge == 0 {
                continue;
            }
            // Where nothing is desired, nothing is replaced.
            let mut regular = self.state.slots.iter().filter_map(|slot| slot.desired);
            let Some(desired) = regular.find(|desired| desired.group == at && !desired.surge) else { continue };
            for Offer { node, name, index } in self.offers_in(at, group) {
                if node.and_then(|node| self.state.slot(node)).is_some_and(|slot| slot.node.is_some()) {
                    continue;
                }
                let node = node.unwrap_or_else(|| {
                    next += 1;
                    NodeId(numbered(next - 1))
                });
                let slot = Slot::vacant(name, group.id.clone(), index);
                found.push((node, Slot { desired: Some(DesiredSlot { surge: true, ..desired }), ..slot }));
            }
        }
        found.sort_by_key(|(node, _)| *node);
        found
    }

    fn set_desired(&mut self, node: NodeId, desired: Option<DesiredSlot>) {
        if let Some(slot) = self.slot_mut(node)
            && slot.desired != desired
        {
            slot.desired = desired;
            slot.revision += 1;
            self.arm(node);
        }
    }

    /// A surge slot that stays one under another shape, as far as can be said before the next pass.
    pub(crate) fn still_surges(&self, node: NodeId, shape: &ClusterShape) -> Option<DesiredSlot> {
        let slot = self.state.slot(node)?;
        let desired = slot.desired.filter(|desired| desired.surge && slot.node.is_some())?;
        let at = shape.groups.iter().position(|group| group.id == slot.group)?;
        Some(DesiredSlot { group: u32::try_from(at).unwrap_or(u32::MAX), ..desired })
    }
}
