//! What is no daemon, or not a whole one.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;
use std::time::Duration;

use api::wire;

use super::{Ran, WAITS, operate, operate_within};

/// Something that listens at a socket: each connection's request is handed out, and answered with the next text; after the
/// last one it listens on without a word.
pub struct Stand {
    folder: tempfile::TempDir,
    pub requests: mpsc::Receiver<String>,
}

impl Stand {
    pub fn new(answers: Vec<Vec<u8>>) -> Stand {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        let (sender, requests) = mpsc::channel();
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            let mut answers = answers.into_iter();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read(&mut stream);
                let _ = sender.send(request);
                match answers.next() {
                    Some(answer) => drop(stream.write_all(&answer)),
                    None => silent.push(stream),
                }
            }
        });
        Stand { folder, requests }
    }

    pub fn socket(&self) -> String {
        self.folder.path().join("s").to_str().unwrap().to_owned()
    }

    fn ask(&self, args: &[&str]) -> Ran {
        operate(&[args, &["--socket", &self.socket()]].concat(), "")
    }

    /// By somebody who waits for an answer for 0.3 s.
    fn ask_in_haste(&self, args: &[&str]) -> Ran {
        let waits = client::Waits { answer: Duration::from_millis(300), ..WAITS };
        operate_within(&[args, &["--socket", &self.socket()]].concat(), "", waits)
    }

    /// That many requests came, and no other.
    fn assert_asked(&self, times: usize) {
        // The last one may be read after whoever sent it has given it up.
        (0..times).for_each(|_| drop(self.requests.recv_timeout(WAITS.answer).expect("it is asked again")));
        assert_eq!(self.requests.try_iter().count(), 0);
    }
}

/// A request, whole.
fn read(stream: &mut UnixStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).unwrap_or(0);
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        if count == 0 {
            return text;
        }
    }
}

pub fn answer(status: &str, kind: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn problem(status: u16, kind: &str, detail: &str) -> Vec<u8> {
    let body =
        serde_json::json!({"type": format!("urn:homeostat:{kind}"), "title": "t", "status": status, "detail": detail});
    answer(&format!("{status} X"), "application/problem+json", &body.to_string())
}

#[test]
fn nobody_there_is_exit_code_4_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().to_str().unwrap();
    let ran = operate(&["status", "--state", state], "");
    assert_eq!(ran.code, 4);
    assert!(ran.err.contains("no daemon has a run there") && ran.err.contains("homeostat daemon FILE"), "{}", ran.err);
    // The socket of a daemon that was killed.
    std::fs::create_dir(folder.path().join("demo")).unwrap();
    drop(UnixListener::bind(folder.path().join("demo/api.sock")).unwrap());
    let ran = operate(&["status", "--state", state], "");
    assert_eq!(ran.code, 4);
    assert!(ran.err.contains("has ended") && ran.err.contains("run demo"), "{}", ran.err);
    let ran = operate(&["status", "--state", state, "--run", "other"], "");
    assert!(ran.code == 4 && ran.err.contains("no such socket"), "{}", ran.err);
    // Several: nobody guesses.
    std::fs::create_dir(folder.path().join("more")).unwrap();
    drop(UnixListener::bind(folder.path().join("more/api.sock")).unwrap());
    let ran = operate(&["kill", "web-0", "--yes", "--state", state], "");
    assert!(ran.code == 2 && ran.err.contains("demo, more"), "{}", ran.err);
    for run in ["..", "a/b", ""] {
        assert_eq!(operate(&["status", "--state", state, "--run", run], "").code, 2);
    }
    for address in
        ["127.0.0.1:1", "ftp://x:1", "http://x", "http://x:99999", "http://u@x:1", "https://x:1", "http://:1"]
    {
        let ran = operate(&["status", "--address", address], "");
        assert!(ran.code == 2 && ran.err.contains("--address"), "{address}: {}", ran.err);
    }
    assert_eq!(operate(&["status", "--address", "http://127.0.0.1:1"], "").code, 4);
    // A variable that is empty is one that is not set.
    assert_eq!(operate(&["status", "--state", "", "--address", "http://127.0.0.1:1"], "").code, 4);
    let base = |given| client::state_base(given).map_err(|error| error.to_string());
    assert_eq!(base(Some(std::path::Path::new(""))), base(None));
}

#[test]
fn what_hangs_or_breaks_off_is_exit_code_4() {
    let ran = Stand::new(Vec::new()).ask_in_haste(&["status"]);
    assert!(ran.code == 4 && ran.err.contains("no answer within 0.3 s"), "{}", ran.err);
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"schema\"".to_vec();
    let ran = Stand::new(vec![half]).ask(&["status"]);
    assert!(ran.code == 4 && ran.err.contains("broke off"), "{}", ran.err);
    let ran = Stand::new(vec![Vec::new()]).ask(&["status"]);
    assert_eq!(ran.code, 4, "{}", ran.err);
}

#[test]
fn what_is_no_daemon_is_told_from_one() {
    let huge = b"HTTP/1.1 200 OK\r\nx: ".iter().copied().chain(std::iter::repeat_n(b'a', 1 << 20)).collect();
    for garbage in [
        b"\x00\x01\x02garbage\r\n\r\n".to_vec(),
        b"220 mail.example ESMTP\r\n".to_vec(),
        answer("200 OK", "text/html", "<html>"),
        answer("200 OK", "application/json", "{}"),
        answer("200 OK", "application/json", "[1"),
        answer("302 Found", "text/html", ""),
        answer("404 Not Found", "text/html", "nothing here"),
        huge,
    ] {
        let ran = Stand::new(vec![garbage]).ask(&["status"]);
        assert!(ran.code == 1 && ran.err.contains("does not answer as a daemon"), "{} {}", ran.code, ran.err);
        assert_eq!(ran.out, "");
        assert!(ran.err.contains("homeostat daemon listens there"), "{}", ran.err);
    }
    // What was turned away with a page was not passed on: it is not asked again, and nothing is in doubt.
    let stand = Stand::new(vec![answer("404 Not Found", "text/html", "nothing here")]);
    let ran = stand.ask(&["add-node", "web"]);
    assert!(ran.code == 1 && ran.err.contains(&stand.socket()) && ran.err.contains("status 404"), "{}", ran.err);
    stand.assert_asked(1);
}

#[test]
fn refusals_end_as_their_kind() {
    for (status, kind, code, part) in [
        (401, "unauthorized", 4, "--token-file"),
        (403, "forbidden", 4, "run as the user"),
        (403, "guard", 5, "why so"),
        (404, "not-found", 1, "why so"),
        (409, "conflict", 1, "homeostat status"),
        (422, "invalid", 1, "why so"),
        (429, "rate", 1, "why so"),
        (503, "unavailable", 4, "why so"),
        (500, "failed", 1, "why so"),
    ] {
        let ran = Stand::new(vec![problem(status, kind, "why so")]).ask(&["status"]);
        assert!(ran.code == code && ran.err.contains(part), "{status} {kind}: {} {}", ran.code, ran.err);
    }
    // Each conflict with what fits it.
    let taken = "the id \"abc1\" was used for another command, at 2026-11-30T00:00:00.000Z";
    let ran = Stand::new(vec![problem(409, "conflict", taken)]).ask(&["add-node", "web", "--id", "abc1"]);
    assert!(ran.code == 1 && ran.err.contains("another --id") && !ran.err.contains("then repeat"), "{}", ran.err);
    let other = "nothing to resume for web (create); paused: destroy, by an operator; `homeostat resume` ends it";
    let ran = Stand::new(vec![problem(409, "conflict", other)]).ask(&["resume", "web"]);
    assert!(ran.code == 1 && ran.err.contains(other) && !ran.err.contains("then repeat"), "{}", ran.err);
    let nothing = "nothing to resume for the whole run (all); nothing is paused";
    let ran = Stand::new(vec![problem(409, "conflict", nothing)]).ask(&["resume"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "nothing is paused\n"), "{}", ran.err);
    // A proxy's words are not ours.
    let ran = Stand::new(vec![answer("502 Bad Gateway", "text/html", "<h1>\x1b[31m")]).ask(&["status"]);
    assert!(ran.code == 1 && ran.err.contains("status 502") && !ran.err.contains('\x1b'), "{}", ran.err);
    let ran = Stand::new(vec![problem(422, "invalid", "\x1b]0;x\x07")]).ask(&["status"]);
    assert!(!ran.err.contains('\x1b'), "{:?}", ran.err);
}

#[test]
fn a_command_without_an_answer_is_asked_for_again_under_its_id() {
    let result = serde_json::json!({
        "schema": "homeostat.command/v1", "id": "x", "replayed": true, "at_ms": 1, "text": "done", "generation": 2,
        "changes": true, "creates": [], "destroys": [], "replaces": [], "keeps": 0,
    });
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_vec();
    let busy = problem(429, "rate", "later");
    let stand = Stand::new(vec![cut, busy, answer("200 OK", "application/json", &result.to_string())]);
    let ran = stand.ask(&["add-node", "web"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("replayed: "), "{}", ran.err);
    let sent: Vec<String> =
        stand.requests.try_iter().map(|text| text.split_once("\r\n\r\n").unwrap().1.into()).collect();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|body| *body == sent[0] && body.contains("\"id\":\"01")), "{sent:?}");

    // Never an answer: it is said that nobody knows, and how to find out.
    let stand = Stand::new(Vec::new());
    let ran = stand.ask_in_haste(&["add-node", "web", "--id", "mine"]);
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(
        ran.err.contains("whether it was carried out is not known") && ran.err.contains("--id mine"),
        "{}",
        ran.err
    );
    stand.assert_asked(4);

    // A daemon that ends may have carried it out, and not be able to say so.
    let ended = || problem(503, "unavailable", "the host has ended: disk full");
    for answers in [vec![ended(), ended(), ended(), ended()], vec![ended()]] {
        let ran = Stand::new(answers).ask_in_haste(&["add-node", "web", "--id", "mine"]);
        assert!(ran.code == 4 && ran.err.contains("is not known") && ran.err.contains("--id mine"), "{}", ran.err);
    }
}

#[test]
fn instants_of_swaps_are_told_by_the_daemons_clock() {
    // Here it is years later than there: this machine's clock was set, or the daemon's is behind.
    let stage = wire::SwapStage {
        stage: wire::StageName::Shadow,
        state: wire::StageState::Running,
        started_ms: Some(1_000_000),
        until_ms: Some(1_060_000),
        ..wire::SwapStage::default()
    };
    let swap = wire::Swap { id: "s-1".into(), asked_ms: 940_000, stages: vec![stage], ..wire::Swap::default() };
    let one = wire::SwapDetail { now_ms: 1_015_000, swap: swap.clone(), ..wire::SwapDetail::default() };
    let list = wire::Swaps { now_ms: 1_015_000, swaps: vec![swap], ..wire::Swaps::default() };
    let body = |value: serde_json::Value| answer("200 OK", "application/json", &value.to_string());
    let stand = Stand::new(vec![body(serde_json::to_value(&one).unwrap()), body(serde_json::to_value(&list).unwrap())]);
    let ran = stand.ask(&["decider", "swaps", "s-1"]);
    assert!(ran.out.contains("ends in 45s"), "{}{}", ran.out, ran.err);
    let ran = stand.ask(&["decider", "swaps"]);
    assert!(ran.out.contains("1m 15s ago"), "{}{}", ran.out, ran.err);
}

#[test]
fn who_answers_before_it_has_read_all_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("s")).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // The beginning only: the rest finds a broken pipe.
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(&problem(413, "too-large", "8 bytes at most"));
        }
    });
    let large = folder.path().join("large.wasm");
    std::fs::write(&large, [b"\0asm".as_slice(), &vec![0; 4 << 20]].concat()).unwrap();
    let socket = folder.path().join("s");
    let args = ["decider", "swap", large.to_str().unwrap(), "--socket", socket.to_str().unwrap()];
    let ran = operate_within(&args, "", WAITS);
    assert!(ran.code == 1 && ran.err.contains("8 bytes at most"), "{}: {}", ran.code, ran.err);
}
