//! The pure decider: one snapshot in, one plan out (SPEC 1, 4).
//!
//! **Purity contract**: [`reconcile`] is a function of its argument and of nothing else. It reads no clock, randomness,
//! environment, file or network, keeps nothing between calls, iterates no hash map, and never panics, whatever bytes the
//! columns hold. What it decides for a node depends on that node's row, its group's totals and `now` alone (S12).
#![cfg_attr(not(any(test, feature = "serde", feature = "component")), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod codes;
pub mod facts;
pub mod ladder;
#[cfg(test)]
mod tests;
mod types;
pub mod v1_0;

use alloc::{string::ToString, vec};

pub use codes::*;
pub use types::*;

use facts::Facts;
use ladder::{RULES, first_match};

pub use ladder::{Until, Verdict};

/// The version of the contract (`wit/decider.wit`) that these types speak.
pub const CONTRACT: &str = "1.1.0";

/// The version of the ladder; it rises with its rules.
pub const VERSION: &str = "1.1.0";

/// What is decided for one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The rule that it follows from: an index into the description's rules.
    pub rule: u8,
    /// What to do, or what to wait for.
    pub then: Verdict,
}

/// What the built-in decider says of itself.
pub fn describe() -> Description {
    Description {
        name: "ladder".to_string(),
        version: VERSION.to_string(),
        contract: CONTRACT.to_string(),
        rules: RULES
            .iter()
            .map(|(id, sentence)| Rule { id: (*id).to_string(), sentence: (*sentence).to_string() })
            .collect(),
    }
}

/// Decides every node of a snapshot, each by the first row of the ladder that matches its facts.
pub fn reconcile(snapshot: &Snapshot) -> Plan {
    reconcile_with(snapshot, |row| decide(row, snapshot))
}

/// The ladder's decision for one node of a snapshot: the first row that matches its facts.
#[inline]
pub fn decide(row: &NodeRow, snapshot: &Snapshot) -> Decided {
    let first = first_match(Facts::in_snapshot(row, snapshot));
    Decided { rule: first.rule, then: first.then }
}

/// The plan of another policy than the ladder: `choose` decides every node of the snapshot, mostly by asking [`decide`] and
/// changing what it wants otherwise. The plan wakes up at the earliest instant that ends one of its holds.
///
/// S12 is the policy's own to keep: what `choose` answers may depend on the row, the instant, the settings and the groups'
/// totals, but not on which other rows there are.
pub fn reconcile_with(snapshot: &Snapshot, mut choose: impl FnMut(&NodeRow) -> Decided) -> Plan {
    let nodes = &snapshot.nodes;
    let rows = nodes.len();
    let mut decisions = Decisions {
        node: nodes.node[..rows].to_vec(),
        attempt: nodes.attempt[..rows].to_vec(),
        rule: vec![0; rows],
        verb: vec![0; rows],
        hold: vec![0; rows],
        until: vec![0; rows],
    };
    let mut wake_at_ms = u64::MAX;
    let out = decisions.rule.iter_mut().zip(&mut decisions.verb).zip(&mut decisions.hold).zip(&mut decisions.until);
    for (row, (((rule, verb), hold), until)) in nodes.rows().zip(out) {
        let decided = choose(&row);
        *rule = decided.rule;
        match decided.then {
            Verdict::Act(act) => *verb = act.code(),
            Verdict::Hold(kind, ends) => {
                let at = ends.of(&row);
                *hold = kind.code();
                *until = at;
                if at != 0 && at < wake_at_ms {
                    wake_at_ms = at;
                }
            }
        }
    }
    Plan { wake_at_ms: if wake_at_ms == u64::MAX { 0 } else { wake_at_ms }, decisions }
}
