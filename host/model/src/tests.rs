//! The table of forms against drivers that go on under their own names: whatever the walk, both are in the same state.
#![allow(clippy::unwrap_used, missing_docs)]

pub(crate) mod twins;

use engine::io::DeciderIdentity;

use crate::machine::Machine;
use crate::scope::{Kind, Scope};
use crate::search::first;

/// A walk of moves drawn from a seed; at each step the table's driver, which mostly has another history, and the walker's own
/// one must come to the same normal form and the same world.
fn walk(machine: &Machine<'_>, mut seed: u64, steps: usize) {
    let mut tabled = first(machine, false).unwrap().0;
    let mut alone = first(machine, true).unwrap().0;
    let (mut moves, mut own) = (Vec::new(), Vec::new());
    for step in 0..steps {
        machine.moves(&tabled, &mut moves);
        machine.moves(&alone, &mut own);
        assert_eq!(moves, own, "step {step}: other things can happen");
        if moves.is_empty() {
            return;
        }
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let to = moves[(seed >> 33) as usize % moves.len()];
        let (one, other) = (machine.go(&tabled, to, false), machine.go(&alone, to, true));
        assert_eq!(one.violation.is_some(), other.violation.is_some(), "step {step}: {to:?}");
        assert_eq!(one.state.form.hash, other.state.form.hash, "step {step}: {to:?} leads to another form");
        assert_eq!(one.state.world, other.state.world, "step {step}: {to:?} leads to another world");
        assert_eq!(one.state.is_settled(), other.state.is_settled(), "step {step}: {to:?}");
        (tabled, alone) = (one.state, other.state);
    }
}

#[test]
fn equal_forms_have_equal_successors() {
    let identity = DeciderIdentity::native();
    let decide = |snapshot: &decider::Snapshot| Ok(decider::reconcile(snapshot));
    for kind in Kind::ALL {
        for exact in [false, true] {
            let scope = Scope { nodes: 2, faults: 3, crashes: 2, kind, ..Scope::default() };
            let machine = Machine::new(scope, identity.clone(), &decide, exact);
            // The first walks fill the table; the later ones meet drivers of other walks in it.
            for seed in 0..1_000 {
                walk(&machine, seed, 80);
            }
            assert!(machine.forms() > 1_000, "{}", machine.forms());
        }
    }
}
