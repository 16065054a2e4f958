//! Guards: what they hold, what they refuse, what ends it.

use engine::guard::Guard;

use super::*;

fn edit(s: &mut Session, groups: &[(&str, u32, &str)]) -> Came {
    let made: Vec<_> = groups.iter().map(|(id, count, tag)| (*id, *count, template("fake", tag))).collect();
    s.feed(Input::Desired(shape(s.driver.view().generation + 1, &made)))
}

fn scale(group: &str, count: u32) -> Command {
    Command::Scale { group: group.into(), count }
}

#[test]
fn destroys_per_minute_trip_and_wait_for_a_person() {
    let mut s = up(&[("web", 5)], Guards { destroys_per_minute: Some(2), ..Guards::default() });
    let error = refused(&mut s, scale("web", 2));
    assert_eq!(error.guard(), Some(Guard::DestroysPerMinute));
    assert_eq!(error.to_string(), "the guard destroys-per-minute allows 2, and this would be 3");
    let came = edit(&mut s, &[("web", 2, "v1")]);
    let tripped = Notice::GuardTripped { guard: Guard::DestroysPerMinute, limit: 2, group: None };
    assert!(notices(&came).contains(&tripped));
    let deleting = s.driver.view().nodes.iter().filter(|node| node.deleting).count();
    assert_eq!(deleting, 2);
    s.wait(600_000);
    run(&mut s);
    assert_eq!(
        s.driver.view().nodes.len(),
        3,
        "what it let through has ended; the rest waits for a person, however long"
    );
    let pause = s.driver.view().pauses.remove(0);
    assert_eq!((pause.by, pause.only), ("destroys-per-minute", "destroy"));
    order(&mut s, resume(None, Only::Destroy));
    run(&mut s);
    assert!(s.driver.is_converged(), "the next burst has its allowance anew");
    // Within its allowance nothing trips, and the window moves on.
    order(&mut s, scale("web", 1));
    s.wait(60_000);
    order(&mut s, scale("web", 0));
    run(&mut s);
    assert!(s.driver.view().nodes.is_empty() && s.driver.view().pauses.is_empty());
}

#[test]
fn creates_per_hour_count_first_creates() {
    let mut s = up(&[("web", 1)], Guards { creates_per_hour: Some(3), ..Guards::default() });
    assert_eq!(refused(&mut s, scale("web", 5)).guard(), Some(Guard::CreatesPerHour));
    edit(&mut s, &[("web", 4, "v1")]);
    assert_eq!(s.in_flight().len(), 2);
    run(&mut s);
    assert_eq!(s.driver.view().nodes.iter().filter(|node| node.ready).count(), 3);
    let pause = s.driver.view().pauses.remove(0);
    let words = "paused: create, by the guard creates-per-hour (4 of 3); `homeostat resume --only create` ends it";
    assert_eq!(pause.words, words);
    assert_eq!(held(&s, "web-3").as_deref(), Some(words));
    rests(&mut s);
    order(&mut s, resume(None, Only::Create));
    run(&mut s);
    assert!(s.driver.is_converged());
}

#[test]
fn live_resources_hold_and_go_on_by_themselves() {
    let mut s = up(&[("web", 2)], Guards { live_resources: Some(3), ..Guards::default() });
    assert_eq!(refused(&mut s, scale("web", 4)).guard(), Some(Guard::LiveResources));
    edit(&mut s, &[("web", 2, "v1"), ("db", 2, "v1")]);
    run(&mut s);
    assert_eq!(held(&s, "db-1").as_deref(), Some("guard live-resources: 3 of 3"));
    assert!(s.driver.view().pauses.is_empty(), "it only holds");
    rests(&mut s);
    edit(&mut s, &[("web", 1, "v1"), ("db", 2, "v1")]);
    run(&mut s);
    assert!(s.driver.is_converged());
    assert_eq!(s.driver.live_resources(), 3);
    // A higher limit ends it too.
    edit(&mut s, &[("web", 2, "v1"), ("db", 2, "v1")]);
    assert!(held(&s, "web-1").is_some());
    let guards = Guards { live_resources: Some(4), ..Guards::default() };
    s.feed(Input::PolicyChanged(Policy { guards, ..Policy::default() }));
    run(&mut s);
    assert!(s.driver.is_converged());
}

#[test]
fn a_share_of_a_group_is_down_at_once_and_no_more() {
    let guards = Guards { destroyed_share_percent: Some(50), ..Guards::default() };
    let mut s = up(&[("web", 4), ("db", 1)], guards);
    let all = Command::Kill { nodes: names(&["web-0", "web-1", "web-2"]) };
    let error = refused(&mut s, all);
    assert_eq!(error.to_string(), "the guard destroyed-share-percent allows 50 per cent of web, and this would be 75");
    // Drift of all: two of four, and the only one of db.
    edit(&mut s, &[("web", 4, "v2"), ("db", 1, "v2")]);
    let down = |s: &Session| s.driver.view().nodes.iter().filter(|node| node.deleting && node.group == "web").count();
    assert_eq!(down(&s), 2);
    run(&mut s);
    assert_eq!(stage(&s, "db-0"), Some(Stage::Dormant), "one is always allowed");
    let pause = s.driver.view().pauses.remove(0);
    assert_eq!((pause.scope.as_deref(), pause.by), (Some("web"), "destroyed-share-percent"));
    rests(&mut s);
    order(&mut s, resume(Some("web"), Only::Destroy));
    assert_eq!(down(&s), 2, "the other two: what had begun has ended meanwhile, and is ready again");
    run(&mut s);
    assert!(s.driver.is_converged());
    order(&mut s, Command::Kill { nodes: names(&["web-0", "web-1"]) });
    run(&mut s);
    assert!(s.driver.is_converged() && s.driver.view().pauses.is_empty());
}

#[test]
fn old_settings_have_no_guards() {
    let mut value = serde_json::to_value(Policy::default()).unwrap();
    assert!(value.get("guards").is_none(), "no guard, no bytes");
    assert_eq!(serde_json::from_value::<Policy>(value.clone()).unwrap(), Policy::default());
    value["guards"] = serde_json::json!({ "live_resources": 3 });
    assert_eq!(serde_json::from_value::<Policy>(value.clone()).unwrap().guards.live_resources, Some(3));
    value["guards"] = serde_json::json!({ "live": 3 });
    assert!(serde_json::from_value::<Policy>(value).is_err());
}

#[test]
fn what_a_guard_refuses_can_be_looked_at() {
    let mut s = up(&[("web", 5)], Guards { destroys_per_minute: Some(2), ..Guards::default() });
    let command = scale("web", 1);
    let foreseen = s.driver.foresee(&command).unwrap();
    assert_eq!(foreseen.destroys, names(&["web-1", "web-2", "web-3", "web-4"]));
    assert_eq!(foreseen.beyond.as_deref(), Some("the guard destroys-per-minute allows 2, and this would be 4"));
    let error = refused(&mut s, command);
    assert_eq!(Some(error.to_string()), foreseen.beyond);
    let kill = Command::Kill { nodes: names(&["web-0", "web-1", "web-2"]) };
    assert!(s.driver.foresee(&kill).unwrap().beyond.is_some());
    refused(&mut s, kill);
    assert_eq!(s.driver.foresee(&scale("web", 4)).unwrap().beyond, None);
    assert!(s.driver.foresee(&scale("cache", 4)).is_err(), "only a guard's refusal has something to show");
}
