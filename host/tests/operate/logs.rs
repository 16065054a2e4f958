//! What a node wrote, also after it failed and its directory was removed.

use crate::fixture::{Place, fleet, group, until};
use crate::lab::{ask, daemon, nodes, over};

#[test]
fn the_last_words_of_a_failed_attempt_are_kept() {
    let place = Place::with("");
    let script =
        "echo beginning; if test -e $STOP; then echo ready; exec sleep 1000; fi; echo no such device >&2; exit 3";
    let stop = place.path().join("stop");
    let script = script.replace("$STOP", stop.to_str().unwrap());
    place.write(&fleet(&[group("web", 1, &script)]).replace("cap = \"400ms\"", "cap = \"20s\""));
    let up = daemon(&place, &[]);
    // Between two attempts nothing is there but what is kept.
    let last = until("the output of an attempt that is gone", || {
        let said = ask(&place, &["logs", "web-0"]);
        (said.code == 0).then(|| said.json()).filter(|logs| logs["is_gone"] == true)
    });
    let text = |logs: &serde_json::Value| -> Vec<String> {
        logs["lines"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(text(&last), ["beginning", "no such device"], "{last}");
    assert!(last["attempt"].as_u64() >= Some(1));
    let again = ask(&place, &["logs", "web-0", "--previous", "-n", "1"]).ok();
    assert_eq!(text(&again), ["no such device"]);
    let files = || std::fs::read_dir(place.state().join("demo/last-output")).map_or(0, |found| found.flatten().count());
    until("several attempts", || (nodes(&place)[0].1 >= 3).then_some(()));
    // For an instant there are two, the new one under another name.
    until("one a slot, however often it fails", || (files() == 1).then_some(()));

    // It works at last: the one before is still there, and what is there now is not mixed with it.
    std::fs::write(&stop, "").unwrap();
    up.converged(0);
    assert_eq!(text(&ask(&place, &["logs", "web-0"]).ok()), ["beginning", "ready"]);
    let before = ask(&place, &["logs", "web-0", "--previous"]).ok();
    assert_eq!((text(&before), &before["is_gone"]), (vec!["beginning".into(), "no such device".into()], &true.into()));
    let none = ask(&place, &["logs", "web-7", "--previous"]);
    assert!(none.code == 1 && none.err.contains("no node"), "{}", none.err);
    over(&place, up);
}
