//! The boot join: what the state knows, compared with what is there. It takes no action.

use engine::id::{AttemptId, ExternalKey};
use engine::io::{Listing, Resource};

use super::*;

fn resource(lease: &str, run: &str, slot: &str, attempt: u64) -> Resource {
    let key = ExternalKey { run: run.into(), slot: slot.into(), attempt: AttemptId(attempt) };
    Resource { lease: lease.into(), key: Some(key), template: Some(template("fake", "v1")) }
}

/// What the fleet holds.
fn held(s: &Session) -> Vec<Resource> {
    let state = s.driver.state();
    let nodes = state.slots.iter().filter_map(|slot| Some((slot, slot.node.as_ref()?)));
    let leases = nodes.filter_map(|(slot, node)| Some((slot, node.attempt.0, node.lease.clone()?)));
    leases.map(|(slot, attempt, lease)| resource(&lease, &state.run, &slot.name, attempt)).collect()
}

fn survey(s: &mut Session, complete: bool, resources: Vec<Resource>) -> Came {
    s.feed(Input::Restarted);
    let came = s.feed(Input::Surveyed { provider: "fake".into(), listing: Listing { complete, resources } });
    clean(s);
    came
}

fn fleet() -> (Session, String) {
    let s = up(&[("web", 2)], Guards::default());
    let run = s.driver.state().run.clone();
    (s, run)
}

#[test]
fn what_is_as_it_was_goes_on() {
    let (mut s, _) = fleet();
    let there = held(&s);
    let came = survey(&mut s, true, there);
    assert!(notices(&came).is_empty(), "{:?}", notices(&came));
    run(&mut s);
    assert!(s.driver.is_converged() && s.driver.view().pauses.is_empty());
}

#[test]
fn a_state_that_is_older_than_the_world_makes_nothing_and_uses_no_id_again() {
    let (mut s, run_id) = fleet();
    let mut there = held(&s);
    // Since the copy was made web-1 was replaced, and the fleet grew.
    there.retain(|one| one.key.as_ref().unwrap().slot != "web-1");
    there.extend([resource("L-new", &run_id, "web-1", 7), resource("L-more", &run_id, "web-2", 9)]);
    let came = survey(&mut s, true, there.clone());
    let said = notices(&came);
    assert!(said.contains(&Notice::StateIsOlder { orphans: 2 }), "{said:?}");
    assert!(said.iter().any(|one| matches!(one, Notice::Missing { node, .. } if node == "web-1")), "{said:?}");
    assert!(came.outputs.iter().all(|output| !matches!(output, Output::Submit(_))), "it takes no action");
    // The wish that was in force by then.
    s.feed(Input::Desired(shape(2, &[("web", 3, template("fake", "v1"))])));
    rests(&mut s);
    assert!(super::held(&s, "web-2").unwrap().contains("by the start"), "{:?}", s.driver.view().nodes);
    // A second start knows what it knows.
    survey(&mut s, true, there.clone());
    assert_eq!(s.driver.view().pauses.len(), 1);

    order(&mut s, Command::AdoptOrphan { provider: "fake".into(), lease: "L-more".into() });
    run(&mut s);
    assert_eq!(s.attempt("web-2"), Some(AttemptId(9)));
    order(&mut s, Command::Kill { nodes: names(&["web-1"]) });
    run(&mut s);
    assert_eq!(stage(&s, "web-1"), Some(Stage::Destroyed));
    order(&mut s, Command::AdoptOrphan { provider: "fake".into(), lease: "L-new".into() });
    run(&mut s);
    assert!(s.driver.is_converged() && s.driver.view().pauses.is_empty(), "{:?}", s.driver.view());
    order(&mut s, Command::Kill { nodes: names(&["web-0"]) });
    run(&mut s);
    assert!(s.attempt("web-0").unwrap() > AttemptId(9), "S3");
}

#[test]
fn somebody_may_go_on_beside_the_orphans() {
    let (mut s, run_id) = fleet();
    let mut there = held(&s);
    there.push(resource("L-more", &run_id, "web-2", 9));
    survey(&mut s, true, there.clone());
    s.feed(Input::Desired(shape(2, &[("web", 3, template("fake", "v1"))])));
    rests(&mut s);
    order(&mut s, resume(None, Only::Create));
    run(&mut s);
    assert!(s.driver.is_converged() && s.attempt("web-2").unwrap() > AttemptId(9));
    // The orphan is known: the next start waits for nobody.
    let mut there = held(&s);
    there.push(resource("L-more", &run_id, "web-2", 9));
    survey(&mut s, true, there);
    assert!(s.driver.view().pauses.is_empty());
}

#[test]
fn what_is_not_shown_is_said_and_nothing_else() {
    for complete in [true, false] {
        let (mut s, run_id) = fleet();
        let strangers =
            vec![resource("L-theirs", "another-run", "web-0", 99), resource("L-liar", &run_id, "web-0", u64::MAX)];
        let came = survey(&mut s, complete, strangers);
        let missing = notices(&came).iter().filter(|one| matches!(one, Notice::Missing { .. })).count();
        assert_eq!(missing, if complete { 2 } else { 0 });
        run(&mut s);
        assert!(s.driver.is_converged(), "S14: absence is no evidence");
        let said = s.driver.view().nodes[0].error.clone();
        assert_eq!(said.is_some_and(|said| said.contains("homeostat kill web-0")), complete);
        // Ids are not used up by a label that lies.
        assert!(s.driver.state().next_attempt < 1_000);
    }
}
