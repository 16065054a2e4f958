//! Starts the groups of a fleet in the order of the file: a new node waits until every group before its own is ready.
//!
//! This one is correct, and a place to start from: copy the folder, give the package the folder's name, change `choose`,
//! and run `make deciders`. All else is the ladder's: a node that runs is not touched when a group before it is not ready.
#![cfg_attr(target_arch = "wasm32", no_std)]

use decider::{Decided, Description, HoldKind, NodeRow, Plan, Rule, Snapshot, Until, Verb, Verdict};

/// What the host shows of this decider, and the rules that it may cite: the ladder's, and one of its own.
pub fn describe() -> Description {
    let mut rules = decider::describe().rules;
    rules
        .push(Rule { id: "G0".into(), sentence: "A new node waits until every group before its own is ready.".into() });
    Description {
        name: env!("CARGO_PKG_NAME").into(),
        version: env!("CARGO_PKG_VERSION").into(),
        contract: decider::CONTRACT.into(),
        rules,
    }
}

/// The plan: `choose` for every node.
pub fn reconcile(snapshot: &Snapshot) -> Plan {
    decider::reconcile_with(snapshot, |row| choose(snapshot, row))
}

fn choose(snapshot: &Snapshot, row: &NodeRow) -> Decided {
    let ladder = decider::decide(row, snapshot);
    if ladder.then == Verdict::Act(Verb::Insert) && !groups_before_are_ready(snapshot, row) {
        // G0 comes after the ladder's rules. What ends this hold is a change: a node of another group gets ready.
        let rule = u8::try_from(decider::ladder::RULES.len()).unwrap_or(u8::MAX);
        return Decided { rule, then: Verdict::Hold(HoldKind::Steady, Until::Open) };
    }
    ladder
}

/// Groups carry totals over the whole fleet, whichever nodes the snapshot has: so the answer for a node does not depend on
/// which others are asked about (S12).
fn groups_before_are_ready(snapshot: &Snapshot, row: &NodeRow) -> bool {
    snapshot.groups.iter().take(row.group as usize).all(|group| group.ready >= group.count)
}

#[cfg(target_arch = "wasm32")]
decider_guest::export_decider!(describe, reconcile);
