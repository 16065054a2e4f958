//! Replaces ready nodes in a maintenance window only. A group states it in the fleet file, in UTC:
//!
//! ```toml
//! [groups.parameters]
//! maintenance-window = "22:00-06:00"
//! ```
//!
//! All else is the ladder's: what failed is replaced at once, what is not desired goes at once, and a group without the
//! parameter is replaced whenever its template changes. Of a window that cannot be read nothing is guessed: nodes stay.
#![cfg_attr(target_arch = "wasm32", no_std)]

mod window;

use decider::ladder::RULES;
use decider::{Decided, Description, HoldKind, NodeRow, Plan, Rule, Snapshot, Stage, Until, Verb, Verdict};

use window::Window;

const PARAMETER: &str = "maintenance-window";
/// The rules of this policy come after the ladder's.
const OUTSIDE: u8 = RULES.len() as u8;
const UNREADABLE: u8 = OUTSIDE + 1;

/// What the host shows of this decider, and the rules that it may cite: the ladder's, and two of its own.
pub fn describe() -> Description {
    let mut rules = decider::describe().rules;
    let own = [
        ("W0", "A ready node whose template changed waits for its group's maintenance window."),
        ("W1", "A ready node whose template changed stays, as its group's maintenance window cannot be read."),
    ];
    rules.extend(own.map(|(id, sentence)| Rule { id: id.into(), sentence: sentence.into() }));
    Description {
        name: env!("CARGO_PKG_NAME").into(),
        version: env!("CARGO_PKG_VERSION").into(),
        contract: decider::CONTRACT.into(),
        rules,
    }
}

/// The plan: `choose` for every node, and the instants of the windows.
pub fn reconcile(snapshot: &Snapshot) -> Plan {
    let mut plan = decider::reconcile_with(snapshot, |row| choose(snapshot, row));
    let mut wake_at_ms = plan.wake_at_ms;
    for (at, row) in snapshot.nodes.rows().enumerate() {
        let replaced = plan.decisions.verb[at] == Verb::BeginDelete.code() && is_replacement(&row);
        let waits = plan.decisions.rule[at] == OUTSIDE;
        if !replaced && !waits {
            continue;
        }
        // When it opens, or when it closes: either way the decision is another one then.
        let Some(Ok(window)) = window_of(snapshot, &row) else { continue };
        let turns_at = window.next_turn(snapshot.now_ms);
        if waits {
            plan.decisions.until[at] = turns_at;
        }
        if turns_at != 0 && (wake_at_ms == 0 || turns_at < wake_at_ms) {
            wake_at_ms = turns_at;
        }
    }
    Plan { wake_at_ms, ..plan }
}

fn choose(snapshot: &Snapshot, row: &NodeRow) -> Decided {
    let ladder = decider::decide(row, snapshot);
    if ladder.then != Verdict::Act(Verb::BeginDelete) || !is_replacement(row) {
        return ladder;
    }
    match window_of(snapshot, row) {
        None => ladder,
        Some(Ok(window)) if window.is_open(snapshot.now_ms) => ladder,
        // `reconcile` writes the instant: it is none of those that the row has.
        Some(Ok(_)) => Decided { rule: OUTSIDE, then: Verdict::Hold(HoldKind::Instant, Until::Open) },
        Some(Err(_)) => Decided { rule: UNREADABLE, then: Verdict::Hold(HoldKind::Person, Until::Open) },
    }
}

/// A ready node of a desired slot. What is not ready yet serves nobody: it need not wait for a window.
fn is_replacement(row: &NodeRow) -> bool {
    row.desired_template != decider::NO_INDEX && Stage::from_code(row.stage).is_some_and(Stage::is_ready)
}

/// The group's window; `None` when it states none.
fn window_of(snapshot: &Snapshot, row: &NodeRow) -> Option<Result<Window, window::Unreadable>> {
    let group = snapshot.groups.get(row.group as usize)?;
    let (_, text) = group.parameters.iter().find(|(name, _)| name == PARAMETER)?;
    Some(Window::read(text))
}

#[cfg(target_arch = "wasm32")]
decider_guest::export_decider!(describe, reconcile);
