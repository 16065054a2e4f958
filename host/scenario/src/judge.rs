//! What every plan of a scenario is held against, whatever the scenario expects: the engine would accept it (SPEC 9), the same
//! snapshot gives it again, and it keeps until the instant that it names itself (S11).

use decider::{Plan, Snapshot};
use engine::invariants::{Violation, check_same_plan};
use engine::io::DeciderFailure;
use engine::validate::check_plan;

/// Looks this far ahead when a plan says that time alone changes nothing.
const FAR_MS: u64 = 3_600_000;

/// The first property that a plan breaks.
pub(crate) fn judge(
    snapshot: &Snapshot,
    plan: &Plan,
    rules: usize,
    ask: &mut dyn FnMut(&Snapshot) -> Result<Plan, DeciderFailure>,
) -> Option<Violation> {
    if let Err(error) = check_plan(plan, snapshot, rules) {
        return Some(Violation { id: error.property(), what: format!("the plan is refused: {error}") });
    }
    if let Ok(again) = ask(snapshot)
        && let Some(violation) = check_same_plan(plan, &again).into_iter().next()
    {
        return Some(violation);
    }
    let now = snapshot.now_ms;
    let soonest = if plan.wake_at_ms == 0 { now.saturating_add(FAR_MS) } else { plan.wake_at_ms };
    for later in [now.saturating_add(1), now / 2 + soonest / 2, soonest.saturating_sub(1)] {
        if later <= now || later >= soonest {
            continue;
        }
        let moved = Snapshot { now_ms: later, ..snapshot.clone() };
        if let Ok(other) = ask(&moved)
            && other.decisions != plan.decisions
        {
            let what = format!(
                "the plan for the instant {now} differs at {later}, though it says nothing is due before {soonest}"
            );
            return Some(Violation { id: "S11", what });
        }
    }
    None
}
