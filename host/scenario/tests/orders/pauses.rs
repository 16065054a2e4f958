//! pause and resume.

use super::*;

#[test]
fn paused_creates_hold_replacements_and_go_on_at_once() {
    let mut s = up(&[("web", 2), ("db", 1)], Guards::default());
    let (_, came) = order(&mut s, pause(Some("web"), Only::Create));
    assert_eq!(notices(&came), [Notice::Paused { scope: Some("web".into()), only: Only::Create }]);
    order(&mut s, Command::Kill { nodes: names(&["web-0", "db-0"]) });
    run(&mut s);
    assert_eq!(stage(&s, "web-0"), Some(Stage::Destroyed));
    assert_eq!(stage(&s, "db-0"), Some(Stage::Dormant), "the other group goes on");
    let node = s.driver.view().nodes.remove(0);
    let words = "paused: create of web, by an operator; `homeostat resume web --only create` ends it";
    assert_eq!(node.held.as_deref(), Some(words));
    assert_eq!(node.waits_for, format!("a person ({words})"));
    rests(&mut s);
    assert!(matches!(refused(&mut s, resume(None, Only::Create)), CommandError::NotPaused { .. }));
    assert!(matches!(refused(&mut s, resume(Some("web"), Only::Destroy)), CommandError::NotPaused { .. }));
    assert!(matches!(refused(&mut s, pause(Some("cache"), Only::All)), CommandError::UnknownGroup { .. }));
    order(&mut s, resume(Some("web"), Only::Create));
    assert_eq!(s.in_flight().len(), 1, "it goes on at once");
    run(&mut s);
    assert!(s.driver.is_converged());
    assert_eq!(s.driver.view().pauses, []);
}

#[test]
fn paused_destroys_hold_deletions_wherever_they_are() {
    let mut s = up(&[("web", 3)], Guards::default());
    // web-2 is in the middle of its clean-up.
    order(&mut s, Command::Scale { group: "web".into(), count: 2 });
    let cancel = s.in_flight().remove(0);
    order(&mut s, pause(None, Only::Destroy));
    s.feed(Input::Completed { id: cancel.id, result: Ok(natural(&cancel)) });
    assert!(held(&s, "web-2").is_some(), "its result is folded, the next step is held");
    // A wish is held; a kill would leave it failed and running, so it is refused.
    let (said, _) = order(&mut s, Command::Scale { group: "web".into(), count: 1 });
    assert!(said.note.unwrap().starts_with("paused: destroy"));
    assert!(held(&s, "web-1").is_some());
    let error = refused(&mut s, Command::Kill { nodes: names(&["web-0"]) });
    assert!(matches!(error, CommandError::Paused { .. }), "{error}");
    rests(&mut s);
    order(&mut s, resume(None, Only::All));
    run(&mut s);
    assert_eq!(desired(&s), ["web-0"]);
    assert!(s.driver.is_converged());
}

#[test]
fn a_full_pause_stops_everything_but_the_books() {
    let mut s = up(&[("web", 1)], Guards::default());
    order(&mut s, Command::Scale { group: "web".into(), count: 2 });
    let create = s.in_flight().remove(0);
    order(&mut s, pause(None, Only::All));
    // What is on its way is folded; nobody looks for its endpoint.
    s.feed(Input::Completed { id: create.id, result: Ok(natural(&create)) });
    assert!(s.in_flight().is_empty());
    assert_eq!(stage(&s, "web-1"), Some(Stage::LeaseCreated));
    // However long: that nobody looked is no failure.
    s.wait(3_600_000);
    assert_eq!(stage(&s, "web-1"), Some(Stage::LeaseCreated));
    assert!(held(&s, "web-1").unwrap().contains("`homeostat resume` ends it"));
    // A part of it can go on.
    order(&mut s, resume(None, Only::Destroy));
    assert_eq!(s.driver.view().pauses[0].only, "create");
    order(&mut s, resume(None, Only::All));
    run(&mut s);
    assert!(s.driver.is_converged());
}

#[test]
fn pausing_twice_is_one_pause() {
    let mut s = up(&[("web", 1)], Guards::default());
    order(&mut s, pause(None, Only::Create));
    order(&mut s, pause(None, Only::Create));
    order(&mut s, pause(None, Only::Destroy));
    assert_eq!(s.driver.view().pauses.len(), 2);
    order(&mut s, pause(None, Only::All));
    assert_eq!(s.driver.view().pauses.len(), 1);
    order(&mut s, pause(None, Only::Create));
    assert_eq!(s.driver.view().pauses.len(), 1);
    let restored = Driver::restore(&s.driver.checkpoint().unwrap()).unwrap();
    assert_eq!(restored.view(), s.driver.view());
}

#[test]
fn resuming_everything_ends_every_pause_and_less_only_what_it_names() {
    let mut s = up(&[("web", 2), ("db", 1)], Guards { destroyed_share_percent: Some(50), ..Guards::default() });
    // A guard's pause of web, and an operator's of each scope.
    s.feed(Input::Desired(shape(2, &[("web", 0, template("fake", "v1")), ("db", 1, template("fake", "v1"))])));
    run(&mut s);
    for scope in [None, Some("db"), Some("web")] {
        order(&mut s, pause(scope, Only::Create));
    }
    order(&mut s, pause(None, Only::Destroy));
    let paused = |s: &Session| -> Vec<String> {
        let pauses = s.driver.view().pauses;
        pauses.into_iter().map(|pause| format!("{} {}", pause.scope.unwrap_or("run".into()), pause.only)).collect()
    };
    assert_eq!(paused(&s), ["web destroy", "run create", "db create", "web create", "run destroy"]);
    order(&mut s, resume(Some("web"), Only::All));
    assert_eq!(paused(&s), ["run create", "db create", "run destroy"]);
    let error = refused(&mut s, resume(Some("web"), Only::All)).to_string();
    assert!(error.contains("`homeostat resume --only create` ends it"), "{error}");
    assert!(error.contains("`homeostat resume db --only create` ends it"), "{error}");
    order(&mut s, resume(None, Only::Create));
    assert_eq!(paused(&s), ["db create", "run destroy"]);
    let (_, came) = order(&mut s, resume(None, Only::All));
    assert_eq!(notices(&came), [Notice::Resumed { scope: None, only: Only::All }]);
    assert!(paused(&s).is_empty());
    refused(&mut s, resume(None, Only::All));
    run(&mut s);
    assert_eq!(desired(&s), ["db-0"]);
    assert!(s.driver.is_converged());
}

#[test]
fn who_waits_for_a_person_says_by_which_rule() {
    let mut s = up(&[("web", 1)], Guards::default());
    // A policy of one's own: nothing contradicts itself, and yet a person is asked.
    s.decide = Box::new(|snapshot| {
        Ok(decider::reconcile_with(snapshot, |row| {
            let decided = decider::decide(row, snapshot);
            let then = decider::ladder::Verdict::Hold(HoldKind::Person, decider::ladder::Until::Open);
            decider::Decided { then, ..decided }
        }))
    });
    let came = s.feed(Input::Resync);
    let said = notices(&came);
    let [Notice::AwaitsPerson { node, rule, facts }] = &said[..] else { panic!("{said:?}") };
    assert_eq!((node.as_str(), rule.as_str()), ("web-0", "R11"));
    assert!(facts.contains("stage dormant"), "{facts}");
    assert_eq!(notices(&s.feed(Input::Resync)), [], "once");
}
