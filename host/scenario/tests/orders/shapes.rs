//! apply, scale, add-node, kill, destroy.

use engine::io::{Fault, Observation};
use engine::shape::ShapeError;
use engine::state::MAX_INDEX;

use super::*;

fn scale(group: &str, count: u32) -> Command {
    Command::Scale { group: group.into(), count }
}

#[test]
fn scale_takes_the_highest_and_says_so_before() {
    let mut s = up(&[("db", 1), ("web", 3)], Guards::default());
    let (said, _) = order(&mut s, scale("web", 5));
    assert_eq!((said.creates, said.keeps, said.generation), (names(&["web-3", "web-4"]), 4, 2));
    run(&mut s);
    let (said, _) = order(&mut s, scale("web", 1));
    assert_eq!((said.destroys, said.keeps), (names(&["web-1", "web-2", "web-3", "web-4"]), 2));
    run(&mut s);
    assert_eq!(desired(&s), ["db-0", "web-0"]);
    assert!(s.driver.is_converged());
    let (said, _) = order(&mut s, scale("web", 1));
    assert_eq!((said.generation, said.note.unwrap().as_str()), (3, "web has 1 slots already"));
    let (said, _) = order(&mut s, Command::AddNode { group: "web".into() });
    assert_eq!(said.creates, ["web-1"]);
    assert!(matches!(refused(&mut s, scale("cache", 1)), CommandError::UnknownGroup { .. }));
    let over = refused(&mut s, scale("web", 10_001));
    assert!(matches!(over, CommandError::Shape(ShapeError::OverLimit { value: 10_001, .. })));
    let mut empty = Session::new(driver(Policy::default()).unwrap());
    assert_eq!(refused(&mut empty, scale("web", 1)), CommandError::NoShape);
}

#[test]
fn apply_states_the_generation_it_is_based_on() {
    let mut s = up(&[("web", 2)], Guards::default());
    let apply = |base, generation, tag, count| Command::Apply {
        shape: shape(generation, &[("web", count, template("fake", tag))]),
        policy: None,
        base_generation: base,
    };
    assert_eq!(refused(&mut s, apply(0, 1, "v2", 2)), CommandError::WrongBase { base: 0, in_force: 1 });
    let wrong = CommandError::WrongGeneration { in_force: 1, expected: 2, found: 3 };
    assert_eq!(refused(&mut s, apply(1, 3, "v2", 2)), wrong);
    let (said, _) = order(&mut s, apply(1, 2, "v1", 2));
    assert_eq!((said.generation, said.keeps), (1, 2), "equal content is a no-op");
    let (said, _) = order(&mut s, apply(1, 2, "v2", 3));
    assert_eq!((said.replaces, said.creates), (names(&["web-0", "web-1"]), names(&["web-2"])));
    run(&mut s);
    assert!(s.driver.is_converged());
    let policy = Policy { backoff_cap_ms: 30_000, ..Policy::default() };
    let settings = Command::Apply {
        shape: shape(2, &[("web", 3, template("fake", "v2"))]),
        policy: Some(policy),
        base_generation: 2,
    };
    order(&mut s, settings);
    assert_eq!(s.driver.policy().backoff_cap_ms, 30_000);
    let mut first = Session::new(driver(Policy::default()).unwrap());
    let (said, _) = order(&mut first, apply(0, 1, "v1", 2));
    assert_eq!(said.creates, ["web-0", "web-1"]);
}

#[test]
fn a_killed_node_gets_a_new_attempt_and_no_growing_backoff() {
    let mut s = up(&[("web", 2)], Guards::default());
    let old = s.attempt("web-0").unwrap();
    let (said, _) = order(&mut s, Command::Kill { nodes: names(&["web-0"]) });
    assert_eq!((said.replaces, said.generation, said.keeps), (names(&["web-0"]), 1, 1));
    let node = s.driver.view().nodes.remove(0);
    assert_eq!((node.error.as_deref(), node.failures), (Some("killed by an operator"), 0));
    // Again, while it is being cleaned up: accepted, nothing to do.
    let (said, _) = order(&mut s, Command::Kill { nodes: names(&["web-0"]) });
    assert_eq!(said.note.as_deref(), Some("already being cleaned up: web-0"));
    let at = s.now_ms;
    run(&mut s);
    assert!(s.driver.is_converged());
    assert!(s.attempt("web-0").unwrap() > old);
    assert!(s.now_ms - at < 1_000, "no backoff");
    assert!(matches!(refused(&mut s, Command::Kill { nodes: names(&["web-7"]) }), CommandError::UnknownNode { .. }));
    assert!(matches!(refused(&mut s, Command::Kill { nodes: vec![] }), CommandError::Empty { .. }));
}

#[test]
fn a_kill_keeps_the_failures_there_were() {
    let mut s = up(&[("web", 1)], Guards::default());
    let dies = |s: &mut Session| {
        let attempt = s.attempt("web-0").unwrap();
        s.feed(Input::Observed { attempt, observation: Observation::Closed { exit: Some("exit status 1".into()) } });
    };
    dies(&mut s);
    while let Some(operation) = s.in_flight().first().cloned() {
        s.feed(Input::Completed { id: operation.id, result: Ok(natural(&operation)) });
    }
    s.wake();
    let create = s.in_flight().remove(0);
    order(&mut s, Command::Kill { nodes: names(&["web-0"]) });
    assert_eq!(s.driver.view().nodes[0].failures, 1);
    s.feed(Input::Completed { id: create.id, result: Err(Fault::retryable("busy")) });
    run(&mut s);
    assert!(s.driver.is_converged());
}

#[test]
fn a_vacant_or_destroyed_node_cannot_be_killed() {
    let mut s = up(&[("web", 1)], Guards::default());
    order(&mut s, pause(None, Only::Create));
    order(&mut s, Command::Kill { nodes: names(&["web-0"]) });
    run(&mut s);
    assert_eq!(stage(&s, "web-0"), Some(Stage::Destroyed));
    let error = refused(&mut s, Command::Kill { nodes: names(&["web-0"]) });
    assert_eq!(error, CommandError::NothingToKill { node: "web-0".into(), stage: "destroyed" });
    order(&mut s, scale("web", 2));
    let error = refused(&mut s, Command::Kill { nodes: names(&["web-1"]) });
    assert_eq!(error, CommandError::NothingToKill { node: "web-1".into(), stage: "vacant" });
    rests(&mut s);
}

#[test]
fn destroyed_names_never_come_back_and_nobody_is_renamed() {
    let mut s = up(&[("web", 3), ("db", 1)], Guards::default());
    let kept = (s.attempt("web-0"), s.attempt("web-2"));
    let (said, _) = order(&mut s, Command::Destroy { nodes: names(&["web-1"]), groups: vec![] });
    assert_eq!((said.destroys, said.keeps, said.generation), (names(&["web-1"]), 3, 2));
    run(&mut s);
    assert_eq!(desired(&s), ["web-0", "web-2", "db-0"]);
    assert_eq!((s.attempt("web-0"), s.attempt("web-2")), kept);
    order(&mut s, scale("web", 3));
    assert_eq!(desired(&s), ["web-0", "web-2", "web-3", "db-0"]);
    order(&mut s, scale("web", 1));
    assert_eq!(desired(&s), ["web-0", "db-0"]);
    // The group goes, and comes back: its indices go on where they ended.
    order(&mut s, Command::Destroy { nodes: vec![], groups: names(&["web"]) });
    assert_eq!(desired(&s), ["db-0"]);
    let error = refused(&mut s, Command::Destroy { nodes: names(&["web-0"]), groups: vec![] });
    assert!(matches!(error, CommandError::NotDesired { .. }), "{error}");
    run(&mut s);
    let back = shape(s.driver.view().generation + 1, &[("web", 2, template("fake", "v1"))]);
    s.feed(Input::Desired(back));
    assert_eq!(desired(&s), ["web-2", "web-3"]);
    // And after a restart from a checkpoint.
    run(&mut s);
    let restored = Driver::restore(&s.driver.checkpoint().unwrap()).unwrap();
    assert_eq!(restored.state(), s.driver.state());
    assert_eq!(restored.state().retired["web"].len(), 2);
}

#[test]
fn indices_can_be_exhausted() {
    let s = up(&[("web", 1)], Guards::default());
    let text = String::from_utf8(s.driver.checkpoint().unwrap()).unwrap();
    let all: Vec<String> = (1..=MAX_INDEX).map(|index| index.to_string()).collect();
    let retired = format!("\"orphans\":[],\"retired\":{{\"web\":[{}]}}", all.join(","));
    assert!(text.contains("\"orphans\":[]"));
    let driver = Driver::restore(text.replace("\"orphans\":[]", &retired).as_bytes()).unwrap();
    let error = driver.consequences(&scale("web", 2)).unwrap_err();
    assert!(matches!(error, CommandError::Shape(ShapeError::Exhausted { value: 2, limit: 1, .. })), "{error}");
}

#[test]
fn commands_are_json_by_their_names() {
    let text = r#"{"do":"scale","group":"web","count":3}"#;
    let command: Command = serde_json::from_str(text).unwrap();
    assert_eq!(command, scale("web", 3));
    assert_eq!(serde_json::to_string(&command).unwrap(), text);
    assert!(serde_json::from_str::<Command>(r#"{"do":"scale","group":"web","count":3,"now":true}"#).is_err());
    assert!(serde_json::from_str::<Command>(r#"{"do":"explode"}"#).is_err());
    let pause: Command = serde_json::from_str(r#"{"do":"pause","only":"create"}"#).unwrap();
    assert_eq!(pause, super::pause(None, Only::Create));
    let apply = Command::Apply {
        shape: shape(2, &[("web", 1, template("fake", "v1"))]),
        policy: Some(Policy::default()),
        base_generation: 1,
    };
    let text = serde_json::to_string(&apply).unwrap();
    assert_eq!(serde_json::from_str::<Command>(&text).unwrap(), apply);
}
