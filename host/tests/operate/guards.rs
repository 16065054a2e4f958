//! Guards: a command beyond one is refused with exit code 5; an edit beyond one is held until a person resumes.

use crate::fixture::{Place, until};
use crate::lab::{ask, daemon, nodes, over, web};

fn guarded(count: u32) -> String {
    web(count).replace("[policy]\n", "[guards]\ndestroys-per-minute = 2\nlive-resources = 6\n[policy]\n")
}

#[test]
fn a_guard_refuses_a_command_and_holds_an_edit() {
    let place = Place::with(&guarded(5));
    let up = daemon(&place, &[]);
    up.converged(0);
    for args in [&["scale", "web=1", "--yes"][..], &["destroy", "web", "--yes"], &["scale", "web=9", "--yes"]] {
        let refused = ask(&place, args);
        assert!(refused.code == 5 && refused.err.contains("guard"), "{args:?}: {} {}", refused.code, refused.err);
    }
    assert_eq!(nodes(&place).len(), 5);
    // What it refuses can be looked at all the same.
    let other = place.path().join("other.toml");
    std::fs::write(&other, guarded(1)).unwrap();
    let other = other.to_str().unwrap();
    let differs = ask(&place, &["diff", other]);
    let document = differs.json();
    assert_eq!((differs.code, document["destroys"].as_array().map(Vec::len)), (6, Some(4)), "{}", differs.err);
    assert!(document["beyond"].as_str().unwrap().contains("destroys-per-minute"));
    let applied = ask(&place, &["apply", other, "--yes"]);
    assert!(applied.code == 5 && applied.err.contains("4 destroyed"), "{}: {}", applied.code, applied.err);
    place.write(&guarded(1));
    let status = until("the guard trips", || {
        let status = ask(&place, &["status"]).ok();
        let tripped = status["pauses"].as_array().unwrap().iter().any(|pause| pause["by"] == "destroys-per-minute");
        tripped.then_some(status)
    });
    assert!(!status["converged"].as_bool().unwrap() && !status["reason"].as_str().unwrap().is_empty());
    assert!(place.pids().len() >= 3, "no more than it allows is gone");
    let events = ask(&place, &["events"]).ok();
    let said = |item: &serde_json::Value| item["text"].as_str().is_some_and(|text| text.contains("is breached"));
    assert!(events["items"].as_array().unwrap().iter().any(said), "the breach is among the events");
    until("resumed", || {
        ask(&place, &["resume"]);
        (place.pids().len() == 1).then_some(())
    });
    over(&place, up);
}
