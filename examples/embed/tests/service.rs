//! The examples inside a service and an actor work as they are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nhost: service\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_service_keeps_the_fleet_that_its_callers_wish_for() {
    let mut service = Command::new(env!("CARGO_BIN_EXE_service"));
    let mut service = service.arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(service.stdout.take().unwrap()).lines();
    let first = said.next().unwrap().unwrap();
    let address = first.strip_prefix("listening on http://").unwrap().to_owned();

    assert!(ask(&address, "PUT /cells/5").ends_with("5 cells are wanted\n"));
    let until = Instant::now() + Duration::from_secs(120);
    while ask(&address, "GET /cells").matches("dormant").count() != 5 {
        assert!(Instant::now() < until, "{}", ask(&address, "GET /cells"));
        std::thread::sleep(Duration::from_millis(20));
    }
    let refused = ask(&address, "PUT /cells/4000000000");
    assert!(refused.starts_with("HTTP/1.1 422 ") && refused.contains("4000000000"), "{refused}");
    assert_eq!(ask(&address, "GET /cells").matches("dormant").count(), 5, "a refused wish changes nothing");

    let stopped = Command::new("kill").args(["-INT", &service.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(said.next().unwrap().unwrap(), "nothing is left");
    assert!(service.wait().unwrap().success());
}

#[test]
fn the_actor_grows_its_fleet_and_takes_it_down() {
    let output = Command::new(env!("CARGO_BIN_EXE_actor")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("generation 2: 5 nodes, converged\n"), "{printed}");
    assert!(printed.ends_with("nothing is left\n"), "{printed}");
}
