//! The built-in decider as it was under contract 1.0: what a component that was built then does, for ever. It shares no
//! code with today's; nothing here follows what changes there. Compiled by `hostile-guests-artifact`; elsewhere than on
//! wasm it is empty.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]
// It is kept as it was, with what only other callers used.
#![allow(dead_code)]

extern crate alloc;

mod allocator;
mod codes;
mod convert;
mod facts;
mod ladder;
mod types;

use alloc::{string::ToString, vec};

pub use codes::*;
pub use types::*;

use facts::Facts;
use ladder::{RULES, Verdict, first_match};

/// Generated from `wit/1.0/decider.wit`.
#[allow(missing_docs)]
mod bindings {
    wit_bindgen::generate!({ path: "../../../wit/1.0", world: "decider" });
}

/// The decider's own types, as `convert` names them.
mod own {
    pub use crate::types::*;
}

#[global_allocator]
static ALLOCATOR: allocator::Rising = allocator::Rising;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

fn describe() -> Description {
    Description {
        name: "ladder".to_string(),
        version: "0.1.0".to_string(),
        contract: "1.0.0".to_string(),
        rules: RULES
            .iter()
            .map(|(id, sentence)| Rule { id: (*id).to_string(), sentence: (*sentence).to_string() })
            .collect(),
    }
}

fn reconcile(snapshot: &Snapshot) -> Plan {
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
        let first = first_match(Facts::of(&row, snapshot.now_ms));
        *rule = first.rule;
        match first.then {
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

struct Exported;

impl bindings::exports::homeostat::decider::policy::Guest for Exported {
    fn describe() -> bindings::exports::homeostat::decider::policy::Description {
        convert::description(describe())
    }

    fn reconcile(
        snapshot: bindings::exports::homeostat::decider::policy::Snapshot,
    ) -> bindings::exports::homeostat::decider::policy::Plan {
        convert::plan(reconcile(&convert::snapshot(snapshot)))
    }
}

bindings::export!(Exported with_types_in bindings);
