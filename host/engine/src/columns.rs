//! Snapshots: columns written straight from the slots (SPEC 2, 3).

use decider::{NO_INDEX, NodeRow, Nodes, Snapshot, live, marks};

use crate::driver::Driver;
use crate::id::NodeId;
use crate::mutation::Mutation;
use crate::state::Slot;

impl Driver {
    /// What the decider would be asked about one slot now; `None` where there is none of that name.
    pub fn asked_about(&self, slot: &str) -> Option<Snapshot> {
        Some(self.snapshot(&[*self.state.names.get(slot)?]))
    }

    /// The snapshot of some nodes.
    pub(crate) fn snapshot(&self, nodes: &[NodeId]) -> Snapshot {
        self.snapshot_for(nodes, self.state.sees_rollouts, &[])
    }

    /// What a decider that is shown rollouts, or is not, would be asked about some nodes, and some slots that are not there yet, if
    /// it were in force. All are in ascending order.
    fn snapshot_for(&self, nodes: &[NodeId], rollouts: bool, offers: &[(NodeId, Slot)]) -> Snapshot {
        let state = &self.state;
        let mut groups = self.group_totals(rollouts);
        let turns = self.turns(rollouts);
        let mut templates = Vec::new();
        let mut local = vec![NO_INDEX; state.templates.len()];
        let mut columns = Nodes::with_capacity(nodes.len());
        let mut index = |id: crate::state::TemplateId| {
            let at = id.0 as usize;
            if local[at] == NO_INDEX {
                local[at] = u32::try_from(templates.len()).unwrap_or(NO_INDEX);
                templates.push(wire_template(&state.templates[at]));
            }
            local[at]
        };
        let mut add = |node: NodeId, slot: &Slot| {
            let is_surge = slot.desired.is_some_and(|desired| desired.surge);
            let mut row = match is_surge && !rollouts {
                // Whoever knows of no surge slots desires none.
                true if slot.node.is_none() => return,
                true => wire_row(node, &Slot { desired: None, ..slot.clone() }, &mut index),
                false => wire_row(node, slot, &mut index),
            };
            row.turn = turns.of(node.0 as usize);
            if row.group == NO_INDEX && rollouts {
                // Contract 1.0 was shown none for a slot that is scaled away.
                let at = groups.iter().position(|group| group.name == slot.group);
                row.group = at.and_then(|at| u32::try_from(at).ok()).unwrap_or(NO_INDEX);
            }
            columns.push(row);
        };
        let mut offers = offers.iter().peekable();
        for node in nodes {
            while let Some((offered, slot)) = offers.next_if(|(offered, _)| offered < node) {
                add(*offered, slot);
            }
            if let Some(slot) = state.slot(*node) {
                add(*node, slot);
            }
        }
        offers.for_each(|(offered, slot)| add(*offered, slot));
        let desired = state.desired.as_ref();
        if self.mutated(Mutation::DecideByCompany)
            && nodes.len() > 1
            && let Some(last) = columns.next_effect_at.last_mut()
        {
            *last = u64::MAX;
        }
        groups.truncate(desired.map_or(0, |shape| shape.groups.len()));
        Snapshot {
            now_ms: self.now,
            run: state.run.clone(),
            generation: desired.map_or(0, |shape| shape.generation),
            settings: decider::Settings {
                backoff_initial_ms: self.policy.backoff_initial_ms,
                backoff_cap_ms: self.policy.backoff_cap_ms,
                probe_interval_ms: self.policy.probe_interval_ms,
            },
            groups,
            templates,
            nodes: columns,
        }
    }

    /// What a decider of the other kind would be asked in place of a call that is made now: of those that are shown rollouts when
    /// the one in force is not, and the other way round. A `whole` call has the surge slots that would be offered.
    pub(crate) fn other_snapshot(&self, nodes: &[NodeId], whole: bool) -> Snapshot {
        let rollouts = !self.state.sees_rollouts;
        let offers = if rollouts && whole { self.vacant_offers() } else { Vec::new() };
        self.snapshot_for(nodes, rollouts, &offers)
    }

    /// The snapshot of one node, as an isolating pass would see it.
    pub fn lone_snapshot(&self, node: NodeId) -> Snapshot {
        self.snapshot(&[node])
    }

    /// The snapshot of the whole fleet at the last folded instant, as a full pass would see it.
    pub fn whole_snapshot(&self) -> Snapshot {
        let nodes: Vec<NodeId> = (0..self.state.slots.len())
            .filter(|at| self.state.slots[*at].desired.is_some() || self.state.slots[*at].node.is_some())
            .map(|at| NodeId(u32::try_from(at).unwrap_or(u32::MAX)))
            .collect();
        self.snapshot(&nodes)
    }
}

fn wire_template(template: &crate::shape::Template) -> decider::Template {
    decider::Template {
        provider: template.provider.clone(),
        role: template.role.clone(),
        labels: template.labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
    }
}

fn surge_mark(slot: &Slot) -> u8 {
    if slot.desired.is_some_and(|desired| desired.surge) { marks::SURGE } else { 0 }
}

fn wire_row(node: NodeId, slot: &Slot, index: &mut impl FnMut(crate::state::TemplateId) -> u32) -> NodeRow {
    let group = slot.desired.map_or(NO_INDEX, |desired| desired.group);
    let desired_template = slot.desired.map_or(NO_INDEX, |desired| index(desired.template));
    let Some(held) = &slot.node else {
        return NodeRow { marks: surge_mark(slot), ..NodeRow::vacant(node.0, group, slot.index, desired_template) };
    };
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    NodeRow {
        node: node.0,
        attempt: held.attempt.0,
        group,
        slot: slot.index,
        stage: held.stage.code(),
        intent: held.intent.code(),
        template: index(held.template),
        desired_template,
        live: bit(held.lease.is_some(), live::LEASE)
            | bit(held.endpoint.is_some(), live::ENDPOINT)
            | bit(held.session.is_some(), live::SESSION),
        progress: held.progress.code(),
        pending: held.pending_code(),
        pending_deadline: held.pending.as_ref().map_or(0, |pending| pending.deadline_ms),
        ambiguous: held.retry.ambiguous.as_ref().map_or(0, |doubt| doubt.kind.code()),
        failures: held.retry.failures,
        next_effect_at: held.retry.next_effect_at.unwrap_or(0),
        probe_at: held.retry.probe_at.unwrap_or(0),
        restart_at: held.retry.restart_at.unwrap_or(0),
        stage_deadline: held.stage_deadline.unwrap_or(0),
        turn: NO_INDEX,
        marks: surge_mark(slot),
    }
}
