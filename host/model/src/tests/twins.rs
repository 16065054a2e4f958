//! The normal form against itself: of each form a few drivers are kept that came to it on other ways, and what every input
//! made of the first one, it must make of them.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::collections::HashMap;
use std::sync::Mutex;

use engine::driver::Driver;
use engine::id::AttemptId;
use engine::io::DeciderIdentity;

use crate::machine::{Form, In, Machine, Step, form, lock};
use crate::scope::{Kind, Scope};
use crate::search::search;

/// Drivers of one form that are kept.
const MOST: usize = 2;

/// A driver, and its attempts by their number in the form.
type Twin = (Driver, Vec<AttemptId>);

/// Drivers that came to a form that was known.
#[derive(Default)]
pub(crate) struct Twins(Mutex<HashMap<u128, Vec<Twin>>>);

impl Twins {
    pub fn keep(&self, hash: u128, driver: &Driver, attempts: &[AttemptId]) {
        let mut all = lock(&self.0);
        let known = all.entry(hash).or_default();
        // First of all those in which the slots' attempts are of another age.
        let fresh = known.iter().all(|(_, known)| order(known) != order(attempts));
        if known.len() < MOST || (fresh && known.len() < 2 * MOST) {
            known.push((driver.clone(), attempts.to_vec()));
        }
    }
}

/// The places of the attempts by age.
fn order(attempts: &[AttemptId]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..attempts.len()).collect();
    places.sort_by_key(|at| attempts[*at]);
    places
}

/// What the search can see of a form.
fn seen(form: &Form) -> String {
    let Form { hash: _, driver: _, attempts: _, known, wake_ms, converged, whole, steps: _ } = form;
    format!("wake {wake_ms:?} converged {converged} whole {whole} {known:?}")
}

/// What the search can see of a step.
fn outcome(step: &Step) -> String {
    let Step { next, renumbered, sent, doubt_kept, doubt_new, violation } = step;
    let mut sent: Vec<String> = sent.iter().map(|sent| format!("{sent:?}")).collect();
    sent.sort();
    let violation = violation.as_ref().map(|violation| violation.id);
    let next = format!("{:x} {}", next.hash, seen(next));
    format!("{next}\n{renumbered:?} {sent:?} doubts {doubt_kept} {doubt_new} {violation:?}")
}

/// How many steps were compared; and where two drivers of one form differ.
fn compare(machine: &Machine<'_>) -> (u64, Vec<String>) {
    let twins = lock(&machine.twins.as_ref().unwrap().0);
    let (mut compared, mut found) = (0, Vec::new());
    for shard in &machine.forms {
        for (hash, first) in lock(shard).iter() {
            for (driver, attempts) in twins.get(hash).into_iter().flatten() {
                let twin = form(*hash, driver.clone(), attempts.clone(), true);
                if seen(first) != seen(&twin) {
                    found.push(report(first, &twin, None, &seen(first), &seen(&twin)));
                }
                for (input, step) in lock(&first.steps).iter() {
                    let mut rules = vec![0; machine.rules.len()];
                    let other = machine.compute(&twin, *input, &mut rules, &|driver, kept| machine.apart(driver, kept));
                    compared += 1;
                    let (one, other) = (outcome(step), outcome(&other));
                    if one != other {
                        found.push(report(first, &twin, Some(*input), &one, &other));
                    }
                }
            }
        }
    }
    (compared, found)
}

fn report(first: &Form, twin: &Form, input: Option<In>, one: &str, other: &str) -> String {
    let (left, right) = (format!("{:#?}", first.driver), format!("{:#?}", twin.driver));
    let lines = left.lines().zip(right.lines()).filter(|(one, other)| one != other);
    let lines: Vec<String> = lines.map(|(one, other)| format!("  {} | {}", one.trim(), other.trim())).collect();
    format!("{input:?} of two drivers of one form\n{one}\n{other}\nin which differ\n{}", lines.join("\n"))
}

/// How many steps were compared.
fn search_twins(scope: Scope, exact: bool, most: u64) -> u64 {
    let identity = DeciderIdentity::native();
    let decide = |snapshot: &decider::Snapshot| Ok(decider::reconcile(snapshot));
    let mut machine = Machine::new(scope, identity, &decide, exact);
    machine.twins = Some(Twins::default());
    search(&machine, 1, most, &mut |_| {}).unwrap();
    let (compared, found) = compare(&machine);
    if let Some(first) = found.iter().min_by_key(|text| text.len()) {
        panic!("{} of {compared} steps differ, such as\n{first}", found.len());
    }
    compared
}

#[test]
fn drivers_of_one_form_do_the_same() {
    // One slot has begun anew, so that its attempts are younger than the other's, and of each one is reaped: so deep that it
    // is reached soon only without scaling. Reaps were once written by age, though which slot's attempt is older is not.
    let deep = Scope { scaling: false, ..Scope::default() };
    let compared = search_twins(deep, false, 300_000);
    assert!(compared > 150_000, "{compared}");
}

#[test]
fn drivers_of_one_windowed_form_do_the_same() {
    let scope = Scope { kind: Kind::Windowed, ..Scope::default() };
    for exact in [false, true] {
        let compared = search_twins(scope, exact, 40_000);
        assert!(compared > 20_000, "{compared}");
    }
}
