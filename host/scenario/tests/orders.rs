//! Operator commands, pauses and guards, each under all checkers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "orders/guards.rs"]
mod guards;
#[path = "orders/orphans.rs"]
mod orphans;
#[path = "orders/pauses.rs"]
mod pauses;
#[path = "orders/shapes.rs"]
mod shapes;
#[path = "orders/start.rs"]
mod start;

use decider::{HoldKind, Stage};
use engine::command::{Command, CommandError, Consequences};
use engine::driver::{Driver, DriverError};
use engine::io::{Input, Notice, Output};
use engine::pause::Only;
use engine::policy::{Guards, Policy};
use scenario::build::{driver, shape, template};
use scenario::session::{Came, Session, natural};

/// A fleet that is up.
fn up(groups: &[(&str, u32)], guards: Guards) -> Session {
    let mut s = Session::new(driver(Policy { guards, ..Policy::default() }).unwrap());
    let made: Vec<_> = groups.iter().map(|(id, count)| (*id, *count, template("fake", "v1"))).collect();
    s.feed(Input::Desired(shape(1, &made)));
    s.bring_up();
    assert!(s.driver.is_converged());
    clean(&s);
    s
}

fn clean(s: &Session) {
    assert!(s.violations.is_empty(), "{:?}", s.violations);
}

/// Gives an order that is accepted; what it was said to do.
fn order(s: &mut Session, command: Command) -> (Consequences, Came) {
    let said = s.driver.consequences(&command).unwrap();
    let came = s.feed(Input::Command(command));
    assert!(came.errors.is_empty(), "{:?}", came.errors);
    clean(s);
    assert_eq!(s.driver.view().generation, said.generation);
    (said, came)
}

/// Gives an order that is refused: nothing changes, and no time passes.
fn refused(s: &mut Session, command: Command) -> CommandError {
    let before = s.driver.checkpoint().unwrap();
    let error = s.driver.consequences(&command).unwrap_err();
    s.now_ms += 5_000;
    let came = s.feed(Input::Command(command));
    assert_eq!(came.errors, [DriverError::Command(error.clone())]);
    assert!(came.outputs.is_empty());
    assert_eq!(s.driver.checkpoint().unwrap(), before);
    s.now_ms -= 5_000;
    error
}

/// Every operation succeeds until nothing is in flight and nothing is due within a minute.
fn run(s: &mut Session) {
    for _ in 0..400 {
        match s.in_flight().first().cloned() {
            Some(operation) => {
                s.feed(Input::Completed { id: operation.id, result: Ok(natural(&operation)) });
            }
            None => {
                s.bring_up();
                if s.driver.requeue_at().is_none_or(|at| at > s.now_ms + 60_000) {
                    break;
                }
                s.wake();
            }
        }
    }
    clean(s);
}

/// Desired slots, in the order of the view.
fn desired(s: &Session) -> Vec<String> {
    let nodes = s.driver.view().nodes;
    nodes.into_iter().filter(|node| node.desired).map(|node| node.node).collect()
}

fn stage(s: &Session, name: &str) -> Option<Stage> {
    let state = s.driver.state();
    state.slot(*state.names.get(name)?)?.node.as_ref().map(|node| node.stage)
}

fn held(s: &Session, name: &str) -> Option<String> {
    s.driver.view().nodes.into_iter().find(|node| node.node == name).and_then(|node| node.held)
}

fn pause(group: Option<&str>, only: Only) -> Command {
    Command::Pause { group: group.map(Into::into), only }
}

fn resume(group: Option<&str>, only: Only) -> Command {
    Command::Resume { group: group.map(Into::into), only }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).into()).collect()
}

fn notices(came: &Came) -> Vec<Notice> {
    let notice = |output: &Output| if let Output::Notice(notice) = output { Some(notice.clone()) } else { None };
    came.outputs.iter().filter_map(notice).collect()
}

/// Nothing is asked and nothing is due: a pass over what is held is a no-op.
fn rests(s: &mut Session) {
    assert!(s.in_flight().is_empty());
    let passes = s.driver.stats().passes;
    let before = s.driver.checkpoint().unwrap();
    assert_eq!(s.driver.requeue_at(), None, "what is held must not wake anybody");
    let came = s.feed(Input::Resync);
    assert!(came.outputs.iter().all(|output| !matches!(output, Output::Submit(_))));
    assert_eq!(s.driver.stats().passes, passes + 1);
    let (before, after) = (Driver::restore(&before).unwrap(), &s.driver);
    let nodes = |driver: &Driver| driver.state().slots.iter().map(|slot| slot.node.clone()).collect::<Vec<_>>();
    assert_eq!(nodes(&before), nodes(after));
    clean(s);
}
