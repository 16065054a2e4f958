use std::net::TcpListener;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::json;

use crate::fixture::{HOMEOSTAT, Place, Up, until};

fn example(name: &str) -> Place {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples");
    Place::with(&std::fs::read_to_string(folder.join(name)).unwrap())
}

#[test]
fn every_example_converges_and_leaves_nothing() {
    for (name, run) in [("hello.toml", "hello"), ("web.toml", "web"), ("flaky.toml", "flaky")] {
        let place = example(name);
        let mut up = place.up(&["--until-converged"]);
        let (code, last) = up.ended();
        assert_eq!(code, 0, "{name}: {}", up.errors());
        assert_eq!((&last["clean"], &last["left"]), (&json!(true), &json!([])), "{name}");
        assert!(!last["removed"].as_array().unwrap().is_empty(), "{name}");
        let lines = up.lines.lock().unwrap();
        let converged = lines.iter().filter(|line| line["schema"] == "homeostat.converged/v1");
        assert_eq!(converged.map(|line| &line["generation"]).collect::<Vec<_>>(), [1], "{name}: said once");
        let ports = lines.iter().filter_map(|line| line["endpoint"].as_str());
        let mut free = 0;
        for endpoint in ports {
            // Another test's node of the same name begins to look for a port at the same place, and may have got it now.
            until(&format!("{name}: {endpoint} is free"), || TcpListener::bind(endpoint).ok());
            free += 1;
        }
        assert!(free > 0, "{name}");
        place.assert_empty();
        assert!(!place.state().join(run).join("leases").exists(), "{name}");
    }
}

#[test]
fn the_web_example_serves_while_it_is_up() {
    let place = example("web.toml");
    let mut up = place.up(&[]);
    up.converged(0);
    let leases = place.leases_of("web");
    let names: Vec<&str> = leases.iter().map(|(slot, _)| slot.as_str()).collect();
    assert_eq!(names, ["api-0", "api-1", "front-0", "front-1", "front-2", "store-0"]);
    for (slot, lease) in &leases {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", lease.port.unwrap())).unwrap();
        std::io::Write::write_all(&mut stream, b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let answer = std::io::read_to_string(stream).unwrap();
        assert!(answer.contains(&format!("run web, node {slot}, attempt {}", lease.attempt)), "{answer}");
    }
    up.take_down(Signal::TERM);
    place.assert_empty();
}

#[test]
fn the_flaky_example_shows_its_backoff() {
    let place = example("flaky.toml");
    let mut up = place.up(&["--until-converged"]);
    assert_eq!(up.ended().0, 0);
    let lines = up.lines.lock().unwrap();
    let of = |stage: &str| {
        lines.iter().filter(|line| line["stage"] == stage && line["node"] == "flaky-0").collect::<Vec<_>>()
    };
    let mut failed: Vec<_> =
        of("failed").iter().map(|line| (line["attempt"].clone(), line["failures"].clone())).collect();
    failed.dedup();
    assert_eq!(failed.iter().map(|(_, failures)| failures).collect::<Vec<_>>(), [1, 2]);
    assert_ne!(failed[0].0, failed[1].0, "an attempt of its own each");
    let words = of("failed")[0]["error"].as_str().unwrap().to_owned();
    assert!(words.contains("exit status 1") && words.contains("failing on purpose, 1 of 2"), "{words}");
    // The wait before the next attempt is in the line, and grows: a second, then two from a later failure on.
    let waits: Vec<(u64, u64)> =
        of("destroyed").iter().filter_map(|line| Some((line["at_ms"].as_u64()?, line["until_ms"].as_u64()?))).collect();
    let [(said, first), (_, second)] = waits[..] else { panic!("{waits:?}") };
    assert!(first <= said + 1_300 && second > first + 1_300, "{waits:?}");
    let ready = lines.iter().find(|line| line["ready"] == true && line["node"] == "flaky-0").unwrap();
    assert!(ready["failures"].is_null(), "ready again, counted from zero");
}

/// As text, which is what people see without a terminal.
#[test]
fn text_says_the_same() {
    let place = example("flaky.toml");
    let (code, out, err) = place.run(&["--until-converged"]);
    assert_eq!(code, 0);
    let first = out.lines().find(|line| line.contains("stage=destroyed")).unwrap();
    assert!(
        first.contains("failures=1 error=\"exit status 1 before it was ready") && first.contains(" wait="),
        "{first}"
    );
    assert_eq!(
        out.lines().filter(|line| line.starts_with("converged=")).collect::<Vec<_>>(),
        ["converged=true generation=1"]
    );
    assert_eq!(err, "homeostat: converged\nhomeostat: removed 2 nodes: flaky-0, flaky-1\nhomeostat: nothing is left\n");
}

#[test]
fn the_state_directory_may_come_from_the_environment() {
    let place = example("hello.toml");
    for (name, state) in [("HOMEOSTAT_STATE", "state/hello"), ("XDG_STATE_HOME", "state/homeostat/hello")] {
        let mut command = std::process::Command::new(HOMEOSTAT);
        command.env_remove("HOMEOSTAT_STATE").env(name, place.state());
        command.arg("up").arg(place.file()).args(["-o", "json"]);
        let mut up = Up::start(command);
        up.converged(0);
        until(name, || place.path().join(state).join("leases").exists().then_some(()));
        up.take_down(Signal::INT);
    }
    place.assert_empty();
}
