//! How much a caller may take.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use api::{Config, Limits, Rate, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use crate::fake::{Fake, Options};
use crate::raw::{Answer, Events, PATIENCE, ask, connect, get, post, request, send};
use crate::{TOKEN, daemon, listen};

fn short() -> Limits {
    let time = Duration::from_millis(1_000);
    Limits { head_time: time, body_time: time, ..Limits::default() }
}

#[tokio::test]
async fn heads_have_a_size() {
    let daemon = daemon(Limits::default()).await;
    let with = async |headers: &[(&str, &str)], target: &str| {
        ask(connect(&daemon.socket).await, &request("GET", target, headers, b"")).await
    };
    let value = "v".repeat(20 * 1024);
    let detail = with(&[("X-Large", &value)], "/healthz").await.problem(431, "too-large");
    assert!(detail.contains("16384 bytes or 64 lines"), "{detail}");
    let many: Vec<(&str, &str)> = vec![("X-Many", "1"); 70];
    with(&many, "/healthz").await.problem(431, "too-large");
    assert_eq!(with(&many[..50], "/healthz").await.status, 200);
    let long = format!("/healthz?{}", "q".repeat(5_000));
    with(&[], &long).await.problem(414, "too-large");
    let longer = format!("/healthz?{}", "q".repeat(100_000));
    let answer = with(&[], &longer).await;
    answer.problem(answer.status, "too-large");
    assert!(matches!(answer.status, 414 | 431));
}

/// What no router ever sees is refused in words too, and the answers before it come whole.
#[tokio::test]
async fn what_is_no_http_is_refused_in_words() {
    let daemon = daemon(Limits::default()).await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello of TLS \r\n\r\n"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nno colon\r\n\r\n",
        b"G\x00T / HTTP/1.1\r\n\r\n",
        b"GET  /two  spaces HTTP/1.1\r\n\r\n",
    ] {
        let answer = ask(connect(&daemon.socket).await, bytes).await;
        answer.problem(400, "malformed");
        assert_eq!(answer.header("connection"), Some("close"));
    }
    let two = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n";
    let read = send(connect(&daemon.socket).await, two).await;
    let text = String::from_utf8_lossy(&read);
    let at = text.rfind("HTTP/1.1 400").unwrap_or_else(|| panic!("{text}"));
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    Answer::parse(&read[at..]).unwrap().problem(400, "malformed");
}

#[tokio::test]
async fn bodies_have_a_size_whether_they_say_it_or_not() {
    let daemon = daemon(Limits::default()).await;
    let json = [("Content-Type", "application/json")];
    let large = vec![b' '; 1024 * 1024 + 1];
    let declared = ask(connect(&daemon.socket).await, &request("POST", "/v1/commands", &json, &large)).await;
    declared.problem(413, "too-large");
    assert_eq!(declared.header("connection"), Some("close"));
    let mut chunked = request("POST", "/v1/commands", &[json[0], ("Transfer-Encoding", "chunked")], b"");
    for chunk in large.chunks(64 * 1024) {
        chunked.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        chunked.extend_from_slice(chunk);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    ask(connect(&daemon.socket).await, &chunked).await.problem(413, "too-large");
    let just = [&vec![b' '; 1024 * 1024 - 2][..], b"{}"].concat();
    ask(connect(&daemon.socket).await, &request("POST", "/v1/commands", &json, &just)).await.problem(422, "invalid");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_answered_over_tcp_too() {
    let config = Config { listen: Some(listen()), ..Config::default() };
    let server = Server::start(Fake::new(Options::default()), config).await.unwrap();
    let authorization = format!("Bearer {TOKEN}");
    let headers = [("Content-Type", "application/json"), ("Authorization", authorization.as_str())];
    for _ in 0..20 {
        let bytes = request("POST", "/v1/commands", &headers, &vec![b' '; 3 * 1024 * 1024]);
        let stream = tokio::net::TcpStream::connect(server.address().unwrap()).await.unwrap();
        ask(stream, &bytes).await.problem(413, "too-large");
    }
}

#[tokio::test]
async fn whoever_has_no_token_cannot_keep_others_from_sending() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("api.sock");
    // Whoever waited for one of the slow ones would wait for longer than anybody has patience.
    let limits = Limits { bodies: 1, body_time: 10 * PATIENCE, head_time: 10 * PATIENCE, ..Limits::default() };
    let config = Config { socket: Some(socket.clone()), listen: Some(listen()), limits, ..Config::default() };
    let server = Server::start(Fake::new(Options::default()), config).await.unwrap();
    let mut slow = Vec::new();
    for _ in 0..10 {
        let mut stream = tokio::net::TcpStream::connect(server.address().unwrap()).await.unwrap();
        let head = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n\
                    Content-Length: 80\r\n\r\ntoken=";
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    sleep(Duration::from_millis(50)).await;
    let plan = post(&socket, "/v1/plan", r#"{"command":{"do":"add-node","group":"web"}}"#).await;
    assert_eq!(plan.status, 200, "{}", plan.text());
}

#[tokio::test]
async fn slow_heads_are_cut_off() {
    let daemon = daemon(short()).await;
    let dripping = async || {
        let mut stream = connect(&daemon.socket).await;
        let begun = Instant::now();
        for byte in b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: ".iter().chain(std::iter::repeat(&b'x')) {
            if stream.write_all(&[*byte]).await.is_err() || begun.elapsed() > PATIENCE {
                break;
            }
            sleep(Duration::from_millis(25)).await;
        }
        begun.elapsed()
    };
    let idle = async || {
        let begun = Instant::now();
        assert_eq!(connect(&daemon.socket).await.read(&mut [0; 16]).await.unwrap_or(0), 0);
        begun.elapsed()
    };
    let after_an_answer = async || {
        let mut stream = connect(&daemon.socket).await;
        let begun = Instant::now();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let mut read = Vec::new();
        stream.read_to_end(&mut read).await.unwrap();
        assert_eq!(Answer::parse(&read).unwrap().status, 200);
        begun.elapsed()
    };
    let (one, two, three) = tokio::join!(dripping(), idle(), after_an_answer());
    for took in [one, two, three] {
        assert!(took > Duration::from_millis(800) && took < PATIENCE, "{took:?}");
    }
}

#[tokio::test]
async fn slow_bodies_are_408() {
    let daemon = daemon(short()).await;
    let mut stream = connect(&daemon.socket).await;
    let head =
        "POST /v1/commands HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = Answer::parse(&send(stream, b" ").await).unwrap();
    assert!(answer.problem(408, "slow").contains("1 s"));
    assert_eq!(answer.header("connection"), Some("close"));
    // One that breaks off.
    let mut stream = connect(&daemon.socket).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let read = send(stream, b"").await;
    let refused = read.is_empty() || [400, 408].contains(&Answer::parse(&read).unwrap().status);
    assert!(refused, "{}", String::from_utf8_lossy(&read));
}

#[tokio::test]
async fn connections_are_counted_for_each_listener() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("api.sock");
    let limits = Limits { connections: 3, ..Limits::default() };
    let config = Config { socket: Some(socket.clone()), listen: Some(listen()), limits, ..Config::default() };
    let server = Server::start(Fake::new(Options::default()), config).await.unwrap();
    let address = server.address().unwrap();
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(tokio::net::TcpStream::connect(address).await.unwrap());
    }
    sleep(Duration::from_millis(50)).await;
    let crowded = ask(tokio::net::TcpStream::connect(address).await.unwrap(), b"").await;
    crowded.problem(503, "unavailable");
    assert_eq!(crowded.header("retry-after"), Some("1"));
    // The owner still gets in.
    assert_eq!(get(&socket, "/healthz").await.status, 200);
    drop(held);
    let bytes = request("GET", "/healthz", &[("Authorization", &format!("Bearer {TOKEN}"))], b"");
    let begun = Instant::now();
    // As soon as it has noticed that they are gone.
    while ask(tokio::net::TcpStream::connect(address).await.unwrap(), &bytes).await.status != 200 {
        assert!(begun.elapsed() < PATIENCE, "they are counted for ever");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn requests_have_a_pace_on_each_connection() {
    let limits = Limits { requests: Rate { per_second: 0.01, at_once: 5.0 }, ..Limits::default() };
    let daemon = daemon(limits).await;
    let one = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".as_slice();
    let bytes = [&one.repeat(7)[..], &request("GET", "/healthz", &[], b"")].concat();
    let read = String::from_utf8(send(connect(&daemon.socket).await, &bytes).await).unwrap();
    assert_eq!(read.matches("HTTP/1.1 200").count(), 5, "{read}");
    assert_eq!(read.matches("HTTP/1.1 429").count(), 3, "{read}");
    assert_eq!(read.matches("retry-after: ").count(), 3, "{read}");
    assert_eq!(get(&daemon.socket, "/healthz").await.status, 200, "another connection has its own");
}

#[tokio::test]
async fn commands_have_a_pace_of_everybody_together() {
    let limits = Limits { commands: Rate { per_second: 0.01, at_once: 3.0 }, ..Limits::default() };
    let daemon = daemon(limits).await;
    let command = async |id: usize| {
        let body = format!(r#"{{"id":"c{id}","command":{{"do":"scale","group":"web","count":{}}}}}"#, 3 + id);
        post(&daemon.socket, "/v1/commands", &body).await
    };
    for id in 1..=3 {
        assert_eq!(command(id).await.status, 200);
    }
    let refused = command(4).await;
    refused.problem(429, "rate");
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((50..=100).contains(&seconds), "{seconds}");
    assert_eq!(get(&daemon.socket, "/v1/status").await.json()["generation"], 4, "the fourth did nothing");
}

#[tokio::test]
async fn watchers_are_counted() {
    let daemon = daemon(Limits { watchers: 2, ..Limits::default() }).await;
    let open = async |socket: &Path| {
        let mut events = Events::open(connect(socket).await, "/v1/watch", &[]).await;
        assert_eq!(events.next().await.unwrap().name, "list");
        events
    };
    let (one, _two) = (open(&daemon.socket).await, open(&daemon.socket).await);
    assert_eq!(daemon.server.watchers(), 2);
    let third = get(&daemon.socket, "/v1/watch").await;
    third.problem(429, "rate");
    drop(one);
    while daemon.server.watchers() > 1 {
        sleep(Duration::from_millis(5)).await;
    }
    open(&daemon.socket).await;
}

#[tokio::test]
async fn answers_are_counted_by_path() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("api.sock");
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let config = Config {
        socket: Some(socket.clone()),
        on_answer: Some(Arc::new(move |path, status| heard.lock().unwrap().push((path, status.as_u16())))),
        ..Config::default()
    };
    let server = Server::start(Fake::new(Options::default()), config).await.unwrap();
    for target in ["/v1/status?x", "/v1/nodes/web-0", "/v1/nodes/nope", "/v1/nodes/", "/etc/passwd"] {
        get(&socket, target).await;
    }
    server.shutdown(PATIENCE).await;
    let told = told.lock().unwrap();
    let expected =
        [("/v1/status", 200), ("/v1/nodes/{node}", 200), ("/v1/nodes/{node}", 404), ("other", 404), ("other", 404)];
    assert_eq!(*told, expected);
}

#[tokio::test]
async fn it_ends_in_bounded_time() {
    let long = 10 * PATIENCE;
    let daemon = daemon(Limits { head_time: long, body_time: long, ..Limits::default() }).await;
    let mut events = Events::open(connect(&daemon.socket).await, "/v1/watch", &[]).await;
    assert_eq!(events.next().await.unwrap().name, "list");
    let _idle = connect(&daemon.socket).await;
    let mut halfway = connect(&daemon.socket).await;
    halfway.write_all(b"GET /healthz HTTP/1.1\r\nHo").await.unwrap();
    let mut stuck = connect(&daemon.socket).await;
    stuck
        .write_all(b"POST /v1/plan HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
        .await
        .unwrap();
    sleep(Duration::from_millis(50)).await;
    let begun = Instant::now();
    daemon.server.shutdown(Duration::from_secs(1)).await;
    // None of the times that callers have may be waited for: they are longer.
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert_eq!(events.next().await.unwrap().name, "end");
    assert_eq!(events.next().await, None);
}
