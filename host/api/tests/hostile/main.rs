//! Ten thousand requests that nobody means well with: no panic, no growth, and a clear answer to each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, dead_code)]

#[path = "../../examples/fake/mod.rs"]
mod fake;
#[path = "../api/raw.rs"]
mod raw;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{Config, Control, Limits, Server};
use fake::{Fake, Options};
use raw::{Answer, PATIENCE, get, request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How many; `HOSTILE_REQUESTS` for more.
const REQUESTS: u64 = 10_000;

/// xorshift64*: the same requests for the same seed (`HOSTILE_SEED`).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

const TARGETS: &[&str] =
    &["/v1/status", "/v1/nodes/web-0", "/v1/history", "/v1/commands", "/v1/plan", "/v1/watch", "/", "*", "x"];

const GOOD: &str = r#"{"id":"c-1","command":{"do":"scale","group":"web","count":3}}"#;

/// Whether an answer may be missing: the head has no end, so there is nothing to answer yet.
struct Attack {
    what: &'static str,
    bytes: Vec<u8>,
    may_be_silent: bool,
    /// It may happen to be right.
    may_pass: bool,
}

fn attack(dice: &mut Dice) -> Attack {
    let json = [("Content-Type", "application/json")];
    let clear = |what, bytes| Attack { what, bytes, may_be_silent: false, may_pass: false };
    let unclear = |what, bytes| Attack { what, bytes, may_be_silent: true, may_pass: true };
    match dice.below(16) {
        0 => {
            let count = 1 + dice.below(2_000);
            unclear("noise", dice.bytes(count))
        }
        1 => {
            let whole = request("POST", dice.of(&["/v1/commands", "/v1/plan"]), &json, GOOD.as_bytes());
            let keep = dice.below(whole.len());
            unclear("cut off", whole[..keep].to_vec())
        }
        2 => {
            let mut whole = request("POST", dice.of(TARGETS), &json, GOOD.as_bytes());
            for _ in 0..1 + dice.below(6) {
                let at = dice.below(whole.len());
                whole[at] = dice.next() as u8;
            }
            unclear("bytes changed", whole)
        }
        3 => {
            let count = 17_000 + dice.below(200_000);
            clear("a large head", request("GET", dice.of(&TARGETS[..7]), &[("X-Large", &"x".repeat(count))], b""))
        }
        4 => {
            let many = vec![("X-Many", "x"); 65 + dice.below(400)];
            clear("many headers", request("GET", "/v1/status", &many, b""))
        }
        5 => {
            let count = 4_097 + dice.below(60_000);
            clear("a long target", request("GET", &format!("/{}", "a/".repeat(count / 2 + 1)), &[], b""))
        }
        6 => {
            let count = 1 + dice.below(3_000);
            let mut body = dice.bytes(count);
            // So that it is not JSON whatever the dice say.
            body[0] = 0xff;
            clear("a body of noise", request("POST", "/v1/commands", &json, &body))
        }
        7 => {
            let depth = 200 + dice.below(50_000);
            let body = dice.of(&["[", "{\"a\":"]).repeat(depth);
            clear("a deep body", request("POST", "/v1/plan", &json, body.as_bytes()))
        }
        8 => {
            let count = 1024 * 1024 + 1 + dice.below(1024);
            clear("a large body", request("POST", "/v1/commands", &json, &vec![b'['; count]))
        }
        9 => {
            let length = dice.of(&["-1", "1e3", "18446744073709551616", "0x10", "99999999999999999999", "5, 6", ""]);
            clear("a wrong length", request("POST", "/v1/commands", &[json[0], ("Content-Length", length)], b""))
        }
        10 => {
            let coding =
                dice.of(&["identity", "gzip", "chunked, chunked, x", "chunked\r\nContent-Length: 3", "xchunked"]);
            let bytes = request("POST", "/v1/commands", &[json[0], ("Transfer-Encoding", coding)], b"");
            Attack { may_be_silent: true, ..clear("a wrong coding", [bytes, b"zz\r\nabc\r\n".to_vec()].concat()) }
        }
        11 => {
            let method = dice.of(&["PUT", "DELETE", "CONNECT", "TRACE", "OPTIONS", "BREW", "get", "GET\u{e9}"]);
            let target = dice.of(&TARGETS[..6]);
            Attack { may_pass: false, ..clear("another method", request(method, target, &[], b"")) }
        }
        12 => {
            let target = dice.of(&[
                "/v1/nodes/%ff%fe",
                "/v1/nodes/%",
                "/v1/nodes/%00",
                "/v1/nodes/..%2f..%2fetc%2fpasswd",
                "/v1/history?limit=99999999999999999999",
                "/v1/history?limit=%ff",
                "/v1/history?node=%1b[31m",
                "/v1/decisions?limit=-1",
                "/v1/decisions?limit=0",
                "/v1/nodes/web-0/logs?lines=1&lines=2",
                "/v1/nodes/web-0/logs?after=x",
                "/v1/watch?since=1",
            ]);
            clear("a wrong name or query", request("GET", target, &[], b""))
        }
        13 => {
            let id = "a".repeat(65 + dice.below(1_000));
            let body = dice.of(&[
                r#"{"id":"x","command":{"do":"scale","group":"web","count":4294967296}}"#,
                r#"{"id":"x","command":{"do":"scale","group":"web","count":1.5}}"#,
                r#"{"id":"x","id":"y","command":{"do":"add-node","group":"web"}}"#,
                r#"{"id":"x","command":{"do":"add-node","group":"\u0000\u001b[2J"}}"#,
                r#"{"id":"x","command":{"do":"pause"},"extra":1}"#,
                r#"{"id":"\ud800","command":{"do":"pause"}}"#,
                r#"{"id":1,"command":[]}"#,
                r#""a text""#,
                "null",
                "",
            ]);
            let long = GOOD.replace("c-1", &id);
            let body = if dice.below(4) == 0 { &long } else { body };
            clear("a wrong command", request("POST", "/v1/commands", &json, body.as_bytes()))
        }
        14 => {
            let kind =
                dice.of(&["text/plain", "application/xml", "application/jsonx", "", "multipart/form-data; boundary=x"]);
            clear("another type", request("POST", "/v1/commands", &[("Content-Type", kind)], GOOD.as_bytes()))
        }
        _ => {
            let version = dice.of(&["HTTP/0.9", "HTTP/2.0", "HTTP/3", "HTTP/1.1 x", "", "SPDY/1"]);
            unclear("another version", format!("GET /v1/status {version}\r\nHost: a\r\n\r\n").into_bytes())
        }
    }
}

async fn attempt(socket: &Path, attack: &Attack) -> Vec<u8> {
    let stream = UnixStream::connect(socket).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    let writing = async {
        // It may answer and close before all is written.
        let _ = to.write_all(&attack.bytes).await;
        // Whoever closes before the answer gets none: only where none may come.
        if attack.may_be_silent {
            let _ = to.shutdown().await;
        }
    };
    let reading = async {
        let mut read = Vec::new();
        // A stream of changes has no end.
        let mut taken = (&mut from).take(1024 * 1024);
        let patience = if attack.may_be_silent { Duration::from_secs(2) } else { PATIENCE };
        let _ = timeout(patience, taken.read_to_end(&mut read)).await;
        read
    };
    timeout(2 * PATIENCE, async { tokio::join!(writing, reading).1 }).await.expect("an end in time")
}

/// Resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_hostile_requests() {
    let (seed, count) = (number("HOSTILE_SEED", 20_261_130), number("HOSTILE_REQUESTS", REQUESTS));
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("api.sock");
    let answered = Arc::new(Mutex::new(BTreeMap::<u16, u64>::new()));
    let counted = answered.clone();
    let config = Config {
        socket: Some(socket.clone()),
        limits: Limits { body_time: Duration::from_secs(2), ..Limits::default() },
        on_answer: Some(Arc::new(move |_, status| *counted.lock().unwrap().entry(status.as_u16()).or_default() += 1)),
        ..Config::default()
    };
    let fake = Fake::new(Options::default());
    let server = Server::start(fake.clone(), config).await.unwrap();
    let mut dice = Dice(seed | 1);
    let mut outcomes = BTreeMap::<(&str, String), u64>::new();
    let mut warm = 0;
    for number in 0..count {
        let attack = attack(&mut dice);
        let read = attempt(&socket, &attack).await;
        let outcome = match Answer::parse(&read) {
            Some(answer) if (400..500).contains(&answer.status) => answer.status.to_string(),
            Some(answer) if answer.status < 300 && attack.may_pass => answer.status.to_string(),
            None if read.is_empty() && attack.may_be_silent => "silent".into(),
            other => panic!(
                "seed {seed}, request {number} ({}): {:?}\n{other:?}",
                attack.what,
                String::from_utf8_lossy(&attack.bytes[..attack.bytes.len().min(400)]),
            ),
        };
        *outcomes.entry((attack.what, outcome)).or_default() += 1;
        if number == count / 5 {
            warm = resident();
        }
    }
    let grown = resident().saturating_sub(warm);
    eprintln!("seed {seed}: {outcomes:#?}\n{:?}\n{grown} KiB more after the first fifth", answered.lock().unwrap());
    assert!(!answered.lock().unwrap().contains_key(&500), "{answered:?}");
    assert!(grown < 16 * 1024, "{grown} KiB more after the first fifth");
    // Whoever watched has gone; that is noticed as soon as it is looked at.
    timeout(PATIENCE, async {
        while server.watchers() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("nobody watches any more");
    assert_eq!(get(&socket, "/v1/status").await.json()["run"], "demo");
    assert_eq!(fake.status().nodes.len(), 11, "and nothing was done");
}
