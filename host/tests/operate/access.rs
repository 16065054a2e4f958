//! Who may ask, and what nobody is told.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::fixture::{PATIENCE, Place, until};
use crate::lab::{HOMEOSTAT, ask, daemon, kill, over, said, web};

const PASSWORD: &str = "hunter2-is-the-password";

fn get(address: &str, path: &str, head: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{head}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_address_asks_for_the_token_and_nobody_is_told_a_secret() {
    let secret = web(2).replace("[group.join]", &format!("env = {{ PASSWORD = \"{PASSWORD}\" }}\n[group.join]"));
    let place = Place::with(&secret);
    let up = daemon(&place, &["--listen", "127.0.0.1:0"]);
    up.converged(0);
    let status = ask(&place, &["status"]).ok();
    let url = status["listens"][0].as_str().unwrap().to_owned();
    let address = url.trim_start_matches("http://").to_owned();
    for path in ["/", "/v1/status", "/v1/watch", "/metrics", "/v1/openapi.json", "/nothing"] {
        let answer = get(&address, path, "");
        assert!(answer.starts_with("HTTP/1.1 401 "), "{path}: {answer}");
        assert!(answer.to_lowercase().contains("www-authenticate: bearer"), "{path}: {answer}");
        assert!(get(&address, path, "Authorization: Bearer nonsense\r\n").starts_with("HTTP/1.1 401 "), "{path}");
    }
    let token = ask(&place, &["token"]).ok()["token"].as_str().unwrap().to_owned();
    let bearer = format!("Authorization: Bearer {token}\r\n");
    for path in ["/", "/v1/status", "/metrics", "/v1/openapi.json"] {
        assert!(get(&address, path, &bearer).starts_with("HTTP/1.1 200 "), "{path}");
    }
    let metrics = get(&address, "/metrics", &bearer);
    for name in [
        "controller_runtime_reconcile_total",
        "homeostat_nodes{group=\"web\",stage=\"dormant\"} 2",
        "homeostat_decider_fuel ",
    ] {
        assert!(metrics.contains(name), "{name} is not in {metrics}");
    }
    let mut remote = Command::new(HOMEOSTAT);
    remote
        .args(["status", "--address", &url, "-o", "json"])
        .env("HOMEOSTAT_TOKEN", &token)
        .env_remove("HOMEOSTAT_STATE");
    assert_eq!(said(remote).ok()["run"], "demo");

    // The key and the token are nowhere but in the key's file; the fleet's secrets in no answer.
    let key = std::fs::read(place.state().join("demo/key")).unwrap();
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut told = up.errors() + &format!("{:?}", up.lines.lock().unwrap()) + &metrics;
    for args in [
        &["status"][..],
        &["describe", "web-0"],
        &["explain", "web-0"],
        &["history", "web-0"],
        &["events"],
        &["doctor"],
        &["logs", "web-0"],
        &["diff", place.file().to_str().unwrap()],
    ] {
        told += &ask(&place, args).out;
    }
    for secret in [hex.as_str(), &token, PASSWORD] {
        assert!(!told.contains(secret), "{secret} is told");
    }
    let journal = std::fs::read(place.state().join("demo/state.db")).unwrap();
    let wal = std::fs::read(place.state().join("demo/state.db-wal")).unwrap_or_default();
    for secret in [key.as_slice(), hex.as_bytes(), token.as_bytes()] {
        let inside = |bytes: &[u8]| bytes.windows(secret.len()).any(|part| part == secret);
        assert!(!inside(&journal) && !inside(&wal), "the journal has it");
        for pid in place.pids().into_values().chain([up.pid()]) {
            assert!(!inside(&std::fs::read(format!("/proc/{pid}/environ")).unwrap()), "an environment has it");
            assert!(!inside(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap()), "a command line has it");
        }
    }
    // Not beyond this machine without TLS.
    let mut open = Command::new(HOMEOSTAT);
    open.arg("daemon")
        .arg(place.file())
        .arg("--state")
        .arg(place.path().join("second"))
        .args(["--listen", "0.0.0.0:0"]);
    open.stdin(Stdio::null()).env_remove("HOMEOSTAT_STATE");
    let refused = said(open);
    assert!(refused.code == 1 && refused.err.contains("TLS"), "{} {}", refused.code, refused.err);
    over(&place, up);
}

#[test]
fn the_socket_is_its_owners_alone() {
    let place = Place::with(&web(1));
    let up = daemon(&place, &[]);
    up.converged(0);
    let socket = place.state().join("demo/api.sock");
    assert_eq!(std::fs::symlink_metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    if rustix::process::geteuid().is_root() {
        let mut other = Command::new("setpriv");
        other.args(["--reuid=65534", "--regid=65534", "--clear-groups", HOMEOSTAT, "status", "--socket"]).arg(&socket);
        let refused = said(other);
        assert!(refused.code == 4 && refused.err.contains("ermission denied"), "{} {}", refused.code, refused.err);
    }
    over(&place, up);
    assert!(!socket.exists(), "it goes with the daemon");
}

#[test]
fn a_hundred_watchers_one_of_them_stopped_hold_nobody_up() {
    let place = Place::with(&web(4));
    let up = daemon(&place, &[]);
    up.converged(0);
    let socket = place.state().join("demo/api.sock");
    let pace = |up: &crate::fixture::Up| {
        let began = Instant::now();
        for count in [8, 4] {
            let mark = up.mark();
            ask(&place, &["scale", &format!("web={count}"), "--yes"]).ok();
            up.converged(mark);
        }
        began.elapsed()
    };
    let alone = pace(&up);
    println!("alone {alone:?}");
    let mut stopped = Vec::new();
    let readers: Vec<_> = (0..100)
        .map(|at| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.write_all(b"GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            if at == 0 {
                stopped.push(stream);
                return None;
            }
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            Some(std::thread::spawn(move || {
                let (mut read, mut bytes) = (Vec::new(), [0; 65_536]);
                while let Ok(count @ 1..) = stream.read(&mut bytes) {
                    read.extend_from_slice(&bytes[..count]);
                }
                String::from_utf8_lossy(&read).into_owned()
            }))
        })
        .collect();
    until("all watch", || {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.contains("homeostat_watchers 100\n").then_some(())
    });
    // A held-up loop would never converge.
    println!("watched {:?}", pace(&up));
    over(&place, up);
    for reader in readers.into_iter().flatten() {
        let read = reader.join().unwrap();
        assert!(
            read.contains("event: list") && read.contains("\"node\":\"web-7\""),
            "a watcher missed something: {}",
            read.len()
        );
    }
}

/// Whoever waits for a line and then asks finds somebody, also after a restart, where all is known from the start: where
/// the interface cannot be served, nothing was said before.
#[test]
fn nothing_is_said_before_it_can_be_asked() {
    let place = Place::with(&web(3));
    let mut up = daemon(&place, &[]);
    up.converged(0);
    kill(&mut up);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = Command::new(HOMEOSTAT);
    command.env_remove("HOMEOSTAT_STATE").arg("daemon").arg(place.file()).arg("--state").arg(place.state());
    command.args(["--listen", &taken.local_addr().unwrap().to_string(), "-o", "json"]).stdin(Stdio::null());
    let ended = said(command);
    assert_eq!(ended.code, 1, "{}{}", ended.out, ended.err);
    let lines: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["schema"] == "homeostat.error/v1"), "{}", ended.out);
    over(&place, daemon(&place, &[]));
}
