//! SPEC 9 with a fleet behind it: whatever a decider does, state is unchanged, the operator is told once, the host goes on,
//! and the next decider takes over.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::rc::Rc;
use std::sync::Arc;

use engine::io::{DeciderIdentity, Input, Notice, Output};
use engine::policy::Policy;
use homeostat::sandbox::{Limits, LoadedDecider, Sandbox};
use hostile_guests_artifact as guests;
use scenario::{Bounds, Script, Subject, play};
use tests::build::{driver, native, shape, template};
use tests::session::{Came, Session};

fn load(bytes: &[u8]) -> Arc<LoadedDecider> {
    let limits = Limits::default();
    Arc::new(Sandbox::new(limits).unwrap().load(bytes).unwrap_or_else(|error| panic!("{error}")))
}

fn obey(s: &mut Session, decider: &Arc<LoadedDecider>) -> Came {
    let asked = decider.clone();
    s.decide = Box::new(move |snapshot| asked.decide(snapshot));
    let identity = decider.identity();
    s.feed(Input::DeciderChanged(identity))
}

fn failures(came: &Came) -> Vec<(Vec<String>, String)> {
    came.outputs
        .iter()
        .filter_map(|output| match output {
            Output::Notice(Notice::DeciderFailed { nodes, failure }) => Some((nodes.clone(), failure.class.clone())),
            _ => None,
        })
        .collect()
}

#[test]
fn a_hostile_decider_changes_nothing_and_the_next_one_takes_over() {
    let cases = [
        (guests::SPIN, "out-of-fuel"),
        (guests::MEMORY, "out-of-memory"),
        (guests::RECURSION, "memory-out-of-bounds"),
        (guests::PANICS, "panicked"),
        (guests::UNKNOWN_NODES, "invalid-plan"),
        (guests::STALE_ATTEMPTS, "invalid-plan"),
        (guests::TWO_DECISIONS, "invalid-plan"),
        (guests::ILLEGAL_VERB, "invalid-plan"),
        (guests::NO_DECISIONS, "invalid-plan"),
        (guests::UNEVEN_COLUMNS, "invalid-plan"),
        (guests::UNKNOWN_VERB, "invalid-plan"),
        (guests::UNKNOWN_HOLD, "invalid-plan"),
        (guests::UNKNOWN_RULE, "invalid-plan"),
    ];
    for (bytes, class) in cases {
        let hostile = load(bytes);
        let mut s = Session::new(driver(Policy::default()).unwrap());
        s.feed(Input::Desired(shape(1, &[("web", 3, template("fake", "v1"))])));
        s.bring_up();
        // One node is to be replaced: there is something to decide.
        s.feed(Input::Desired(shape(2, &[("web", 3, template("fake", "v2")), ("db", 1, template("fake", "v1"))])));
        let name = hostile.description().name.clone();
        let before: Vec<_> = s.driver.state().slots.iter().map(|slot| slot.node.clone()).collect();
        let came = obey(&mut s, &hostile);
        let told = failures(&came);
        assert!(!told.is_empty(), "{name}: nobody is told");
        assert!(told.iter().all(|(_, of)| of == class), "{name}: {told:?}");
        let after: Vec<_> = s.driver.state().slots.iter().map(|slot| slot.node.clone()).collect();
        assert_eq!(before, after, "{name}: state changed");
        // Retries say nothing new.
        let later = s.wait(200_000);
        assert_eq!(failures(&later), [], "{name}: told again");
        assert!(later.errors.is_empty(), "{name}: {:?}", later.errors);
        s.decide = Box::new(|snapshot| Ok(decider::reconcile(snapshot)));
        s.feed(Input::DeciderChanged(native()));
        s.bring_up();
        assert!(s.driver.is_converged(), "{name}: {:?}", s.driver.view());
        assert_eq!(s.violations, [], "{name}");
    }
}

#[test]
fn a_decider_that_panics_for_one_node_keeps_the_others() {
    // It panics for node 7, which is web-7.
    let hostile = load(guests::PANICS_FOR_ONE);
    let mut s = Session::new(driver(Policy::default()).unwrap());
    obey(&mut s, &hostile);
    let came = s.feed(Input::Desired(shape(1, &[("web", 20, template("fake", "v1"))])));
    assert_eq!(failures(&came), [(vec!["web-7".to_string()], "panicked".to_string())]);
    s.bring_up();
    let view = s.driver.view();
    let waiting: Vec<_> = view.nodes.iter().filter(|node| !node.ready).map(|node| node.node.as_str()).collect();
    assert_eq!(waiting, ["web-7"]);
    let held = view.nodes.iter().find(|node| node.node == "web-7").unwrap();
    assert!(held.waits_for.contains("panicked") && held.until_ms.is_some(), "{held:?}");
}

/// The scenarios come out the same, letter for letter, when the component decides.
#[test]
fn scenarios_are_the_same_through_the_component() {
    let built_in = load(decider_component());
    let identity = built_in.identity();
    let subject = Subject { identity, ask: Rc::new(move |snapshot| built_in.decide(snapshot)) };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    let mut played = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let script = Script::parse(&text).unwrap();
        for case in &script.cases {
            let came = play(&script, case, &subject, &Bounds::default()).unwrap();
            assert!(came.misses.is_empty(), "{:#?}", came.misses);
            assert_eq!(came.text.trim_end(), text.trim_end());
        }
        played += 1;
    }
    assert!(played > 50, "{played}");
}

fn decider_component() -> &'static [u8] {
    homeostat::sandbox::BUILT_IN
}

/// Whatever a decider does, its policy tests come to an end and say what is wrong.
#[test]
fn a_hostile_decider_fails_its_policy_tests() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/policy-tests");
    let texts = ["rules.txt", "failures.txt"].map(|file| std::fs::read_to_string(format!("{folder}/{file}")).unwrap());
    let cases = [
        guests::SPIN,
        guests::MEMORY,
        guests::RECURSION,
        guests::PANICS,
        guests::UNKNOWN_NODES,
        guests::STALE_ATTEMPTS,
        guests::TWO_DECISIONS,
        guests::ILLEGAL_VERB,
        guests::NO_DECISIONS,
        guests::UNEVEN_COLUMNS,
        guests::UNKNOWN_VERB,
        guests::UNKNOWN_HOLD,
        guests::UNKNOWN_RULE,
    ];
    for bytes in cases {
        let hostile = load(bytes);
        let name = hostile.description().name.clone();
        let identity = DeciderIdentity { rules: native().rules, ..hostile.identity() };
        let subject = Subject { identity, ask: Rc::new(move |snapshot| hostile.decide(snapshot)) };
        for text in &texts {
            let script = Script::parse(text).unwrap();
            for case in &script.cases {
                let bounds = Bounds { steps: 2_000, in_time: None };
                let came = play(&script, case, &subject, &bounds).unwrap();
                assert!(!came.misses.is_empty(), "{name} passes {:?}", case.name);
            }
        }
    }
}
