//! The stream of changes: whole, in order, and no burden.

use std::time::{Duration, Instant};

use api::Limits;
use api::wire::What;
use tokio::net::UnixStream;
use tokio::time::sleep;

use crate::fake::Options;
use crate::raw::{Events, PATIENCE, Told, connect, get};
use crate::{Daemon, daemon, daemon_with};

async fn open(daemon: &Daemon, target: &str) -> Events<UnixStream> {
    Events::open(connect(&daemon.socket).await, target, &[]).await
}

fn say(daemon: &Daemon, text: impl Into<String>) {
    daemon.fake.say(What::Notice { level: "info".into(), text: text.into() });
}

fn text(event: &Told) -> &str {
    assert_eq!(event.name, "change", "{event:?}");
    assert_eq!(event.id.as_deref(), event.payload["revision"].as_str());
    event.payload["of"]["text"].as_str().unwrap()
}

#[tokio::test]
async fn it_begins_with_the_list_and_goes_on_from_there() {
    let daemon = daemon(Limits::default()).await;
    say(&daemon, "before");
    let mut events = open(&daemon, "/v1/watch").await;
    let list = events.next().await.unwrap();
    assert_eq!(list.name, "list");
    assert_eq!(list.id.as_deref(), list.payload["revision"].as_str());
    assert_eq!(list.payload["nodes"].as_array().unwrap().len(), 11);
    for number in 0..20 {
        say(&daemon, format!("{number}"));
    }
    for number in 0..20 {
        assert_eq!(text(&events.next().await.unwrap()), number.to_string());
    }
}

#[tokio::test]
async fn changes_in_quick_succession_go_out_together() {
    let daemon = daemon(Limits::default()).await;
    let mut events = open(&daemon, "/v1/watch").await;
    events.next().await.unwrap();
    let before = events.pieces();
    let begun = Instant::now();
    for number in 0..300 {
        say(&daemon, format!("{number}"));
        if number % 10 == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
    for number in 0..300 {
        assert_eq!(text(&events.next().await.unwrap()), number.to_string());
    }
    let pieces = events.pieces() - before;
    // One each 20 ms, and the first and the last one. It takes 60 ms where nobody else is busy.
    let most = begun.elapsed().as_millis() as usize / 20 + 3;
    assert!(pieces <= most, "{pieces} pieces for 300 changes, at most {most}");
    // One that comes alone does not wait for company.
    sleep(Duration::from_millis(100)).await;
    say(&daemon, "alone");
    assert_eq!(text(&events.next().await.unwrap()), "alone");
    assert_eq!(events.pieces() - before, pieces + 1);
}

#[tokio::test]
async fn it_is_resumed_where_it_broke_off() {
    let daemon = daemon(Limits::default()).await;
    let mut events = open(&daemon, "/v1/watch").await;
    let from = events.next().await.unwrap().id.unwrap();
    (0..10).for_each(|number| say(&daemon, format!("{number}")));
    let mut third = None;
    for number in 0..3 {
        let event = events.next().await.unwrap();
        assert_eq!(text(&event), number.to_string());
        third = event.id;
    }
    drop(events);
    let third = third.unwrap();
    let by_query = open(&daemon, &format!("/v1/watch?from={third}")).await;
    let stream = connect(&daemon.socket).await;
    // The header is what a browser sends, and it is newer than the address it was given.
    let by_header = Events::open(stream, &format!("/v1/watch?from={from}"), &[("Last-Event-ID", &third)]).await;
    (10..13).for_each(|number| say(&daemon, format!("{number}")));
    for mut events in [by_query, by_header] {
        for number in 3..13 {
            assert_eq!(text(&events.next().await.unwrap()), number.to_string());
        }
    }
    let status = get(&daemon.socket, "/v1/status").await.json();
    let mut events = open(&daemon, &format!("/v1/watch?from={}", status["revision"].as_str().unwrap())).await;
    say(&daemon, "news");
    assert_eq!(text(&events.next().await.unwrap()), "news");
}

#[tokio::test]
async fn a_gap_is_said() {
    let options = Options { remembered: 5, epoch: "e1".into(), ..Options::default() };
    let daemon = daemon_with(options, Limits::default()).await;
    (0..20).for_each(|number| say(&daemon, format!("{number}")));
    for from in ["e1-1", "e0-7", "e1-999999", "nonsense", "", "e1-", &"e1-1".repeat(500), "e1-%00"] {
        let mut events = open(&daemon, &format!("/v1/watch?from={from}")).await;
        let relist = events.next().await.unwrap();
        assert_eq!((relist.name.as_str(), relist.id), ("relist", None), "{from}");
        assert_eq!(relist.payload["reason"], "unknown-revision");
        assert_eq!(events.next().await.unwrap().name, "list");
        say(&daemon, "after");
        assert_eq!(text(&events.next().await.unwrap()), "after");
    }
    let kept = open(&daemon, "/v1/watch?from=e1-999").await.next().await.unwrap();
    assert_eq!(kept.name, "relist", "from the future");
}

#[tokio::test]
async fn who_falls_behind_lists_again() {
    let options = Options { channel: 16, ..Options::default() };
    let daemon = daemon_with(options, Limits::default()).await;
    let mut events = open(&daemon, "/v1/watch").await;
    assert_eq!(events.next().await.unwrap().name, "list");
    // More than the channel holds, without a pause in which anybody could read.
    (0..200).for_each(|number| say(&daemon, format!("{number}")));
    let mut names = Vec::new();
    let mut last = None;
    loop {
        let event = events.next().await.unwrap();
        if event.name == "list" {
            last = event.id.clone();
        }
        names.push(event.name);
        if last.is_some() {
            break;
        }
    }
    assert_eq!(&names[names.len() - 2..], ["relist", "list"], "{names:?}");
    let revision = get(&daemon.socket, "/v1/status").await.json()["revision"].as_str().unwrap().to_owned();
    assert_eq!(last, Some(revision), "the list has all of it");
    say(&daemon, "after");
    assert_eq!(text(&events.next().await.unwrap()), "after", "and nothing comes twice");
}

/// Whoever broke off in between would resume behind what it never heard.
#[tokio::test]
async fn what_follows_a_gap_is_told_after_the_new_list() {
    let daemon = daemon_with(Options { channel: 16, ..Options::default() }, Limits::default()).await;
    let mut events = open(&daemon, "/v1/watch").await;
    assert_eq!(events.next().await.unwrap().name, "list");
    say(&daemon, "first");
    assert_eq!(text(&events.next().await.unwrap()), "first");
    // It waits for others to go out with it; meanwhile come more than the channel holds.
    say(&daemon, "second");
    sleep(Duration::from_millis(2)).await;
    (0..200).for_each(|number| say(&daemon, format!("{number}")));
    let mut before = Vec::new();
    loop {
        let event = events.next().await.unwrap();
        if event.name == "relist" {
            break;
        }
        before.push(text(&event).to_owned());
    }
    assert!(before.is_empty() || before == ["second"], "{before:?}");
    assert_eq!(events.next().await.unwrap().name, "list");
    say(&daemon, "after");
    assert_eq!(text(&events.next().await.unwrap()), "after");
}

#[tokio::test]
async fn it_gives_signs_of_life() {
    let daemon = daemon(Limits { heartbeat: Duration::from_millis(50), ..Limits::default() }).await;
    let mut events = open(&daemon, "/v1/watch").await;
    assert_eq!(events.next().await.unwrap().name, "list");
    let begun = Instant::now();
    while events.beats < 3 {
        assert!(begun.elapsed() < PATIENCE, "{} signs of life", events.beats);
        sleep(Duration::from_millis(500)).await;
        say(&daemon, "news");
        assert_eq!(text(&events.next().await.unwrap()), "news");
    }
    let most = begun.elapsed().as_millis() as usize / 50 + 2;
    assert!(events.beats <= most, "{} and at most {most}", events.beats);
}

/// How long it takes to tell so many changes, the slowest one first.
fn tell(daemon: &Daemon, count: usize) -> (Duration, Duration) {
    let padding = "x".repeat(500);
    let begun = Instant::now();
    let slowest = (0..count).map(|number| {
        let one = Instant::now();
        say(daemon, format!("{number} {padding}"));
        // As often as a lively fleet has news.
        std::thread::sleep(Duration::from_micros(500));
        one.elapsed()
    });
    (slowest.max().unwrap(), begun.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_watchers_and_one_that_is_stopped_do_not_slow_the_fleet() {
    const CHANGES: usize = 1_500;
    let limit = Duration::from_secs(15);
    let daemon = daemon(Limits { write_time: limit, ..Limits::default() }).await;
    let alone = tokio::task::block_in_place(|| tell(&daemon, CHANGES));

    // Opened, and never read from.
    let stopped = open(&daemon, "/v1/watch").await;
    let mut readers = Vec::new();
    for _ in 0..99 {
        let mut events = open(&daemon, "/v1/watch").await;
        assert_eq!(events.next().await.unwrap().name, "list");
        readers.push(tokio::spawn(async move {
            let (mut seen, mut lists) = (0, 0);
            loop {
                let block = events.next_block().await.unwrap();
                if block.starts_with("event: change") {
                    if block.contains("\"done\"") {
                        return (seen, lists);
                    }
                    seen += 1;
                } else if block.starts_with("event: list") {
                    lists += 1;
                }
            }
        }));
    }
    while daemon.server.watchers() < 100 {
        sleep(Duration::from_millis(5)).await;
    }
    let watched = tokio::task::block_in_place(|| tell(&daemon, CHANGES));
    eprintln!("slowest change and all of them: {alone:?} alone, {watched:?} watched");
    // Whoever waited for the stopped one would wait until it is cut off.
    assert!(watched.0 < limit / 2, "{alone:?} alone, {watched:?} watched");
    // Again and again: for whoever had fallen behind, the first one may be behind its new list.
    while !readers.iter().all(tokio::task::JoinHandle::is_finished) {
        sleep(Duration::from_millis(100)).await;
        say(&daemon, "done");
    }
    let mut complete = 0;
    for reader in readers {
        let (seen, lists) = reader.await.unwrap();
        assert!(seen == CHANGES || lists > 0, "{seen} changes and {lists} lists: something was missed in silence");
        complete += usize::from(seen == CHANGES);
    }
    eprintln!("{complete} of 99 saw each change");
    // The stopped one was cut off; nobody else was.
    let begun = Instant::now();
    while daemon.server.watchers() > 0 {
        assert!(begun.elapsed() < PATIENCE, "{} watch", daemon.server.watchers());
        sleep(Duration::from_millis(20)).await;
    }
    drop(stopped);
}

fn number(event: &Told) -> u64 {
    event.id.as_deref().and_then(|id| id.rsplit_once('-')).map(|(_, number)| number.parse().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_missed_or_told_twice_however_the_moment_falls() {
    // Room for many seconds of news: nobody may fall behind here, however busy the machine is.
    let options = Options { channel: 1 << 18, remembered: 1_000_000, ..Options::default() };
    let daemon = std::sync::Arc::new(daemon_with(options, Limits::default()).await);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let telling = daemon.clone();
    let teller = std::thread::spawn(move || {
        let mut told = 0;
        while stopped.try_recv().is_err() {
            say(&telling, "news");
            told += 1;
            if told % 5 == 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    });
    let watched = (0..8).map(|_| {
        let daemon = daemon.clone();
        tokio::spawn(async move {
            let mut from = None;
            for round in 0..60 {
                let target = from.as_ref().map_or("/v1/watch".into(), |from| format!("/v1/watch?from={from}"));
                let mut events = open(&daemon, &target).await;
                let mut last = match &from {
                    Some(_) => None,
                    None => Some(number(&events.next().await.unwrap())),
                };
                for _ in 0..30 {
                    let event = events.next().await.unwrap();
                    assert_eq!(event.name, "change");
                    let before = last
                        .or_else(|| from.as_ref().map(|id: &String| id.rsplit_once('-').unwrap().1.parse().unwrap()));
                    assert_eq!(number(&event), before.unwrap() + 1, "round {round}, {target}");
                    last = Some(number(&event));
                    from = event.id;
                }
                if round % 3 == 0 {
                    from = None;
                }
            }
        })
    });
    for reader in watched.collect::<Vec<_>>() {
        reader.await.unwrap();
    }
    stop.send(()).unwrap();
    teller.join().unwrap();
}
