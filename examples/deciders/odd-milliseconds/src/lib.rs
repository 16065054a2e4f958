//! A decider with a mistake. **It breaks S11**: while nothing changes, the answer stays the same.
//!
//! Its author thought: "When a large fleet starts, the provider gets all creates at once. Let a coin decide which nodes wait a
//! little. There is no randomness here, but the last bit of the clock is as good." It is not: which plan a node gets depends on
//! the millisecond in which somebody asks, and a host that is not asked again has no reason to ask. To spread creates, use
//! what is in the snapshot, such as the node's number and the group's `pending`.
#![cfg_attr(target_arch = "wasm32", no_std)]

use decider::{Decided, Description, HoldKind, NodeRow, Plan, Snapshot, Until, Verb, Verdict};

/// What the host shows of this decider. It cites the ladder's rules.
pub fn describe() -> Description {
    let (name, version) = (env!("CARGO_PKG_NAME").into(), env!("CARGO_PKG_VERSION").into());
    Description { name, version, ..decider::describe() }
}

/// The plan: `choose` for every node.
pub fn reconcile(snapshot: &Snapshot) -> Plan {
    decider::reconcile_with(snapshot, |row| choose(row, snapshot))
}

fn choose(row: &NodeRow, snapshot: &Snapshot) -> Decided {
    let ladder = decider::decide(row, snapshot);
    let heads = snapshot.now_ms % 2 == 1;
    if heads && ladder.then == Verdict::Act(Verb::CreateLease) {
        // The mistake: an instant may be compared with those of the row, and with nothing else.
        return Decided { rule: 10, then: Verdict::Hold(HoldKind::Instant, Until::Open) };
    }
    ladder
}

#[cfg(target_arch = "wasm32")]
decider_guest::export_decider!(describe, reconcile);
