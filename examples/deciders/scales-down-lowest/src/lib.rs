//! A decider with a mistake. **It breaks S9**: scale-down removes only the highest indices.
//!
//! Its author thought: "When a group has more nodes than it should, the oldest go: they have leaked the most. The lowest
//! indices are the oldest." But which slots are desired is not the decider's choice: `count = 2` means the indices 0 and 1.
//! This one deletes healthy nodes that the operator wants, and keeps those that he does not.
#![cfg_attr(target_arch = "wasm32", no_std)]

use decider::{Decided, Description, HoldKind, NodeRow, Plan, Snapshot, Until, Verb, Verdict};

/// What the host shows of this decider. It cites the ladder's rules.
pub fn describe() -> Description {
    let (name, version) = (env!("CARGO_PKG_NAME").into(), env!("CARGO_PKG_VERSION").into());
    Description { name, version, ..decider::describe() }
}

/// The plan: `choose` for every node.
pub fn reconcile(snapshot: &Snapshot) -> Plan {
    decider::reconcile_with(snapshot, |row| choose(snapshot, row))
}

/// The rule of the ladder that holds a ready node.
const READY: u8 = 11;

fn choose(snapshot: &Snapshot, row: &NodeRow) -> Decided {
    let ladder = decider::decide(row, snapshot);
    let wanted = row.desired_template != decider::NO_INDEX;
    // The mistake: the first nodes of a group that has too many go …
    if wanted && ladder.rule == READY && row.slot < surplus(snapshot, row.group) {
        return Decided { rule: 4, then: Verdict::Act(Verb::BeginDelete) };
    }
    // … and the last ones stay, though R4 would delete them.
    let shrinking = (0..).zip(&snapshot.groups).any(|(group, _)| surplus(snapshot, group) > 0);
    if !wanted && shrinking && ladder.then == Verdict::Act(Verb::BeginDelete) {
        return Decided { rule: READY, then: Verdict::Hold(HoldKind::Steady, Until::Open) };
    }
    ladder
}

/// How many nodes a group has too many, where some are to stay.
fn surplus(snapshot: &Snapshot, group: u32) -> u32 {
    let group = snapshot.groups.get(group as usize).filter(|group| group.count > 0);
    group.map_or(0, |group| group.nodes.saturating_sub(group.count))
}

#[cfg(target_arch = "wasm32")]
decider_guest::export_decider!(describe, reconcile);
