//! The stream of changes, over lost connections.

use std::time::Duration;

use api::wire::{Change, Status, What};
use client::{Follow, Place, Session, Update, Waits};

use super::troubled::Stand;
use super::{WAITS, fake::Options};

fn stream(events: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}").into_bytes()
}

fn list(revision: &str) -> String {
    let status = Status { run: "demo".into(), revision: revision.into(), ..Status::default() };
    format!("event: list\nid: {revision}\ndata: {}\n\n", serde_json::to_string(&status).unwrap())
}

fn change(revision: &str, generation: u64) -> String {
    let what = What::Generation { generation };
    let change = Change { schema: "homeostat.event/v1".into(), revision: revision.into(), at_ms: 1, what };
    format!("event: change\nid: {revision}\ndata: {}\n\n", serde_json::to_string(&change).unwrap())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn follow(socket: &str, waits: Waits) -> Follow {
    Follow::new(Session::new(Place::Socket { path: socket.into(), run: None }, waits))
}

#[test]
fn half_an_event_is_none_and_the_stream_goes_on_where_it_was() {
    let half = &change("e-2", 8)[..30];
    let relist =
        "event: relist\ndata: {\"schema\":\"homeostat.relist/v1\",\"reason\":\"lagged\",\"text\":\"too slow\"}\n\n";
    let stand = Stand::new(vec![
        stream(&format!("{}{}{half}", list("e-0"), change("e 1", 7))),
        stream(": alive\n\n"),
        stream(&format!("{}{relist}{}", change("e-2", 8), list("f-0"))),
    ]);
    let seen = runtime().block_on(async {
        let mut follow = follow(&stand.socket(), WAITS);
        let mut seen = Vec::new();
        while seen.len() < 8 {
            seen.push(match follow.next().await.unwrap() {
                Update::List(status) => format!("list {}", status.revision),
                Update::Change(change) => format!("change {}", change.revision),
                Update::Relist(why) => format!("relist {why}"),
                Update::Lost(_) => "lost".into(),
                Update::Back => "back".into(),
            });
        }
        seen
    });
    let expected = ["list e-0", "change e 1", "lost", "back", "lost", "back", "change e-2", "relist too slow"];
    assert_eq!(seen, expected);
    let paths: Vec<String> = stand.requests.try_iter().map(|text| text.lines().next().unwrap().into()).collect();
    assert_eq!(
        paths,
        ["GET /v1/watch HTTP/1.1", "GET /v1/watch?from=e%201 HTTP/1.1", "GET /v1/watch?from=e%201 HTTP/1.1",]
    );
}

#[test]
fn silence_is_a_lost_connection_and_no_daemon_at_the_beginning_is_an_error() {
    let waits = Waits { silence: Duration::from_millis(100), answer: Duration::from_millis(100), ..WAITS };
    let stand = Stand::new(Vec::new());
    let error = runtime().block_on(follow(&stand.socket(), waits).next()).unwrap_err();
    assert_eq!(error.class(), client::Class::Unreachable);
    // What cannot be read is not waited for.
    let stand = Stand::new(vec![stream("event: list\ndata: {\n\n")]);
    let error = runtime().block_on(follow(&stand.socket(), WAITS).next()).unwrap_err();
    assert!(error.to_string().contains("a \"list\" event"), "{error}");
}

#[test]
fn a_fleet_that_is_folded_is_the_fleet_that_is_listed() {
    let daemon = super::Daemon::after(0, Options::default());
    let socket = daemon.folder.path().join("demo/api.sock");
    runtime().block_on(async {
        let mut follow = follow(socket.to_str().unwrap(), WAITS);
        let mut status = Status::default();
        for _ in 0..30 {
            daemon.fake.step();
        }
        let last = {
            use api::Control;
            daemon.fake.status()
        };
        while status.revision != last.revision {
            match follow.next().await.unwrap() {
                Update::List(list) => status = *list,
                Update::Change(change) => client::fold(&mut status, &change),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(status.nodes, last.nodes);
        assert_eq!((status.pauses, status.orphans), (last.pauses.clone(), last.orphans.clone()));
    });
}
