use decider::{Plan, Snapshot, Verb};
use engine::io::DeciderFailure;
use journal::{Against, Leaning, Mismatch, Reader, ReplayError, Walk, Writer};

use crate::fixture::{again, native, story};

fn other(rules: Vec<decider::Rule>) -> Against {
    let description = decider::Description { rules, ..decider::describe() };
    Against::Other(engine::io::DeciderIdentity::new("other", description))
}

fn rules() -> Vec<decider::Rule> {
    decider::describe().rules
}

fn failure(class: &str) -> DeciderFailure {
    DeciderFailure { decider: "other".into(), class: class.into(), detail: "it failed".into() }
}

/// Scales down to nothing: every active node is deleted. Such a plan is refused by the engine for desired nodes.
fn reaper(snapshot: &Snapshot) -> Plan {
    let mut plan = decider::reconcile(snapshot);
    for (at, row) in snapshot.nodes.rows().enumerate() {
        if plan.decisions.verb[at] == Verb::LookupEndpoint.code() {
            assert!(row.attempt > 0);
            plan.decisions.rule[at] = 10;
            plan.decisions.verb[at] = Verb::Hold.code();
            plan.decisions.hold[at] = 2;
            plan.decisions.until[at] = snapshot.now_ms + 5;
        }
    }
    plan
}

#[test]
fn a_run_is_the_same_again() {
    let bytes = story(native);
    assert_eq!(bytes, story(native), "the same run gives the same bytes");
    let replay = again(&bytes, &Against::Recorded, native).unwrap();
    let contrast = &replay.contrast;
    assert!(contrast.is_same() && contrast.differences.is_empty() && contrast.groups().is_empty());
    assert!(contrast.passes > 20 && contrast.decisions > 40 && replay.dispatches > 8, "{replay:?}");
    assert_eq!((replay.starts, replay.unrecorded, replay.stale_answers, replay.torn_bytes), (1, 0, 0, 0));
    assert_eq!(contrast.recorded, contrast.other);
    assert!(contrast.recorded.creates > 0 && contrast.recorded.destroys > 0);
    // The same decider by another name is no other decider.
    assert!(again(&bytes, &other(rules()), native).unwrap().contrast.is_same());
}

#[test]
fn another_decider_is_judged_field_by_field_on_the_recorded_history() {
    let bytes = story(native);
    let replay = again(&bytes, &other(rules()), |snapshot| Ok(reaper(snapshot))).unwrap();
    let contrast = &replay.contrast;
    assert!(!contrast.is_same());
    let first = &contrast.differences[0];
    assert_eq!((first.name.as_deref(), first.node.map(|node| node.attempt)), (Some("web-1"), Some(2)));
    let fields: Vec<_> =
        first.fields.iter().map(|field| (field.field, field.recorded.as_str(), field.other.as_str())).collect();
    let until = (first.asked_ms + 5).to_string();
    let hold = decider::HoldKind::from_code(2).unwrap().label();
    assert_eq!(
        fields,
        [("rule", "R13", "R10"), ("verb", "lookup-endpoint", "hold"), ("hold", "-", hold), ("until", "-", &until)]
    );
    let groups = contrast.groups();
    assert_eq!((groups[0].recorded.as_str(), groups[0].other.as_str()), ("R13 lookup-endpoint", "R10 hold"));
    assert_eq!((groups[0].leaning, groups[0].decisions, groups[0].slots), (Leaning::OtherStep, 3, 2));
    assert_eq!(contrast.differing_decisions, 3);
    assert_eq!(groups[0].first_seq, first.seq);
}

#[test]
fn rules_are_compared_by_their_ids() {
    let bytes = story(native);
    let mut renamed = rules();
    renamed[12].id = "X12".into();
    let contrast = again(&bytes, &other(renamed), native).unwrap().contrast;
    let groups = contrast.groups();
    assert_eq!(groups.len(), 1);
    assert_eq!((groups[0].recorded.as_str(), groups[0].other.as_str()), ("R12 create-lease", "X12 create-lease"));
    assert_eq!(groups[0].leaning, Leaning::SameStep);
    // Rules in another order are the same rules.
    let mut turned = rules();
    turned.rotate_left(1);
    let turn = |snapshot: &Snapshot| {
        let mut plan = decider::reconcile(snapshot);
        let count = turned.len() as u8;
        plan.decisions.rule.iter_mut().for_each(|rule| *rule = (*rule + count - 1) % count);
        Ok(plan)
    };
    assert!(again(&bytes, &other(turned.clone()), turn).unwrap().contrast.is_same());
    // Bit for bit they are not.
    assert!(!again(&bytes, &Against::Recorded, turn).unwrap().contrast.is_same());
}

#[test]
fn directions_are_named() {
    let bytes = story(native);
    let with = |from: Verb, to: Verb, rule: u8| {
        let answer = move |snapshot: &Snapshot| {
            let mut plan = decider::reconcile(snapshot);
            for at in 0..plan.decisions.verb.len() {
                if plan.decisions.verb[at] == from.code() {
                    plan.decisions.verb[at] = to.code();
                    plan.decisions.rule[at] = rule;
                    plan.decisions.hold[at] = u8::from(to == Verb::Hold);
                }
            }
            Ok(plan)
        };
        again(&bytes, &other(rules()), answer).unwrap().contrast
    };
    let lazy = with(Verb::DestroyLease, Verb::Hold, 5);
    assert_eq!(lazy.groups()[0].leaning, Leaning::FewerDestroys);
    assert!(lazy.other.destroys < lazy.recorded.destroys);
    let shy = with(Verb::Insert, Verb::Hold, 5);
    assert_eq!(shy.groups()[0].leaning, Leaning::FewerCreates);
    // What the engine would refuse is a failure of that pass.
    let rash = with(Verb::CreateLease, Verb::DestroyLease, 8);
    assert_eq!(
        (rash.groups()[0].leaning, rash.groups()[0].other.as_str()),
        (Leaning::MoreFailures, "failure invalid-plan")
    );
    assert!(rash.other.failures > 0);
}

#[test]
fn failures_are_compared_by_their_class() {
    let failing = |snapshot: &Snapshot| match snapshot.nodes.node.contains(&1) {
        true => Err(failure("trap")),
        false => native(snapshot),
    };
    let bytes = story(failing);
    assert!(again(&bytes, &Against::Recorded, failing).unwrap().contrast.is_same());
    let healed = again(&bytes, &Against::Recorded, native).unwrap().contrast;
    let groups = healed.groups();
    assert_eq!((groups[0].recorded.as_str(), groups[0].other.as_str()), ("failure trap", "a plan"));
    assert_eq!(groups[0].leaning, Leaning::FewerFailures);
    assert_eq!(healed.differences[0].node, None);
    // What the clock of another machine decided is not held against anybody.
    let late = |snapshot: &Snapshot| match snapshot.nodes.node.contains(&1) {
        true => Err(failure("wall-clock")),
        false => native(snapshot),
    };
    let contrast = again(&story(late), &Against::Recorded, native).unwrap().contrast;
    assert!(contrast.is_same() && contrast.unrepeatable > 0);
}

#[test]
fn invalid_plans_are_recorded_as_they_came() {
    let uneven = |snapshot: &Snapshot| {
        let mut plan = decider::reconcile(snapshot);
        plan.decisions.until.pop();
        Ok(plan)
    };
    let bytes = story(uneven);
    let same = again(&bytes, &Against::Recorded, uneven).unwrap();
    assert!(same.contrast.is_same() && same.contrast.passes > 0);
    let found = again(&bytes, &Against::Recorded, native).unwrap().contrast;
    assert_eq!(found.differences[0].fields[0].field, "columns");
    let judged = again(&bytes, &other(rules()), native).unwrap().contrast;
    assert_eq!(judged.groups()[0].recorded, "failure invalid-plan");
}

/// Rewrites a journal with sound hashes: what only a forger does, or another engine.
fn forged(bytes: &[u8], edit: impl Fn(u64, &mut journal::Entry, &mut u64) -> bool) -> Vec<u8> {
    let mut reader = Reader::new(bytes);
    let mut writer = Writer::new(Vec::new());
    while let Some(mut line) = reader.next_line().unwrap() {
        if edit(line.seq, &mut line.entry, &mut line.at_ms) {
            writer.append(line.at_ms, &line.entry).unwrap();
        }
    }
    writer.into_inner()
}

#[track_caller]
fn mismatch(bytes: &[u8]) -> (u64, Mismatch) {
    match again(bytes, &Against::Recorded, native) {
        Err(ReplayError::Engine { seq, mismatch }) => (seq, mismatch),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_engine_that_does_something_else_is_noticed() {
    use journal::Entry;
    let bytes = story(native);
    assert_eq!(forged(&bytes, |_, _, _| true), bytes);
    let mut first = None;
    let mut walk = Walk::new();
    let mut reader = Reader::new(bytes.as_slice());
    while let Some(line) = reader.next_line().unwrap() {
        walk.follow(&line).unwrap();
        if let Entry::Dispatch { .. } = line.entry {
            first.get_or_insert(line.seq);
        }
    }
    let first = first.unwrap();
    let without = forged(&bytes, |seq, _, _| seq != first);
    assert!(matches!(mismatch(&without).1, Mismatch::Output { .. }));
    let renumbered = forged(&bytes, |_, entry, _| {
        if let Entry::Dispatch { id, .. } = entry {
            id.sequence += 1;
        }
        true
    });
    assert_eq!(mismatch(&renumbered).0, first);
    let later = forged(&bytes, |seq, _, at_ms| {
        *at_ms += u64::from(seq > 3) * 40_000_000;
        true
    });
    assert!(matches!(mismatch(&later).1, Mismatch::Snapshot { .. } | Mismatch::Output { .. } | Mismatch::Call { .. }));
    let taken = forged(&bytes, |_, entry, _| {
        if let Entry::Input { error, .. } = entry {
            *error = None;
        }
        true
    });
    let (_, found) = mismatch(&taken);
    assert!(found.to_string().contains("the recorded engine took it, this one said: generation"), "{found}");
    let unasked = forged(&bytes, |_, entry, _| {
        if let Entry::Pass { snapshot, .. } = entry {
            *snapshot = None;
        }
        true
    });
    assert!(matches!(mismatch(&unasked).1, Mismatch::Call { .. }));
    let after = forged(&bytes, |_, entry, _| {
        if matches!(entry, Entry::Input { .. }) {
            *entry = Entry::End;
        }
        true
    });
    assert!(matches!(mismatch(&after).1, Mismatch::Ended { .. } | Mismatch::Call { .. }));
}

/// The folded plan decides what follows: a changed plan is a changed history.
#[test]
fn a_recorded_plan_that_was_changed_is_noticed() {
    let bytes = story(native);
    let forged = forged(&bytes, |_, entry, _| {
        if let journal::Entry::Pass { answer: journal::Answer::Plan(plan), .. } = entry {
            plan.wake_at_ms += 1;
        }
        true
    });
    let contrast = match again(&forged, &Against::Recorded, native) {
        Ok(replay) => replay.contrast,
        Err(ReplayError::Engine { .. }) => return,
        Err(other) => panic!("{other}"),
    };
    assert!(!contrast.is_same());
    assert_eq!(contrast.differences[0].fields[0].field, "wake-at");
}
