//! What a session reports.

use std::time::Instant;

use decider::Progress;
use engine::io::{Fault, Observation};
use engine::shape::Probe;
use homeostat::backends::process::ProcessBackend;
use homeostat::backends::{Backend, StartRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{PATIENCE, Place, eventually, key, request, script, server, sink, start, template};

async fn get(endpoint: &str, request: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(endpoint).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_server_joins_by_http_and_says_who_it_is() {
    let place = Place::new();
    let backend = place.open();
    let mut node = start(&backend, key("web-0", 7), &server()).await;
    let mut seen = Vec::new();
    loop {
        match node.next().await {
            Observation::Output(_) => {}
            other => seen.push(other),
        }
        if seen.last() == Some(&Observation::Joined) {
            break;
        }
    }
    let steps = [Progress::Start, Progress::Join, Progress::Converged].map(Observation::Progress);
    assert_eq!(seen[..3], steps);
    let page = get(&node.endpoint, "GET / HTTP/1.1\r\n\r\n").await;
    assert!(page.ends_with("\r\n\r\nhello from web-0 from run demo, node web-0, attempt 7\n"), "{page}");
    assert!(get(&node.endpoint, "nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    let left = backend.leftovers();
    assert_eq!((left[0].pid, left[0].port), (Some(node.pid()), node.endpoint.rsplit_once(':').unwrap().1.parse().ok()));
    node.cancel(&backend).await;
    node.cancel(&backend).await;
    assert_eq!(place.labelled(), [0; 0]);
    assert_eq!(backend.leftovers()[0].pid, None);
    node.destroy(&backend).await;
}

async fn joins(backend: &ProcessBackend, slot: &str, template: &engine::shape::Template) {
    let mut node = start(backend, key(slot, 1), template).await;
    node.joined().await;
    node.destroy(backend).await;
}

#[tokio::test]
async fn every_kind_of_probe_holds() {
    let place = Place::new();
    let backend = place.open();
    let mut tcp = server();
    tcp.join.probe = Probe::Tcp("{host}:{port}".into());
    joins(&backend, "tcp-0", &tcp).await;
    let probe = Probe::Exec(["sh", "-c", "test \"$(cat made)\" = \"$HOMEOSTAT_NODE $X\""].map(String::from).to_vec());
    let mut exec = template(&["./bin/boot"], probe);
    exec.boot.env.insert("X".into(), "{attempt}{{attempt}}".into());
    exec.boot
        .files
        .insert("bin/boot".into(), "#!/bin/sh\necho \"{node} 1{{attempt}}\" > made\nexec sleep 1000\n".into());
    joins(&backend, "exec-0", &exec).await;
    let mut stdout = script("printf 'not yet\\nlistening on %s\\n' $HOMEOSTAT_ENDPOINT; exec sleep 1000");
    stdout.join.probe = Probe::Stdout("^listening on {endpoint}$".into());
    joins(&backend, "out-0", &stdout).await;
    assert_eq!(place.labelled(), [0; 0]);
}

#[tokio::test]
async fn a_probe_that_does_not_hold_says_why() {
    let place = Place::new();
    let backend = place.open();
    let mut nope = server();
    nope.join.probe = Probe::Http("http://{endpoint}/nope".into());
    let mut hangs = script("exec sleep 1000");
    hangs.join.probe = Probe::Exec(["sh", "-c", "sleep 999 & sleep 998"].map(String::from).to_vec());
    hangs.join.timeout_ms = 50;
    let mut refused = script("exec sleep 1000");
    refused.join.probe = Probe::Tcp("{endpoint}".into());
    let mut missing = script("exec sleep 1000");
    missing.join.probe = Probe::Exec(vec!["/no/such/program".into()]);
    for (slot, template, why) in [
        ("a-0", nope, "join probe: GET /nope answered 404"),
        ("b-0", hangs, "join probe: no answer within 50 ms"),
        ("c-0", refused, "Connection refused"),
        ("d-0", missing, "join probe: /no/such/program: No such file"),
    ] {
        let mut node = start(&backend, key(slot, 1), &template).await;
        let seen = node.until(|seen| matches!(seen, Observation::Output(line) if line.contains(why)));
        tokio::select! {
            _ = seen => {}
            () = tokio::time::sleep(crate::fixture::PATIENCE) => panic!("{why}"),
        }
        if slot == "b-0" {
            // At most one try runs; those that were given up are gone with all they started.
            eventually("given-up tries end", || place.labelled().len() <= 4).await;
        }
        node.destroy(&backend).await;
        assert_eq!(place.labelled(), [0; 0], "{why}");
    }
}

#[tokio::test]
async fn an_end_before_readiness_is_a_failure_and_then_closed() {
    let place = Place::new();
    let backend = place.open();
    for (slot, text, how) in [
        ("a-0", "echo one; printf 'bad \\377\\376 \\033[31mbytes'; exit 7", "exit status 7"),
        ("b-0", "echo 'bad bytes'; kill -9 $$", "killed by signal 9 (SIGKILL)"),
        ("c-0", "echo 'bad bytes'; exit 0", "exit status 0"),
    ] {
        let mut node = start(&backend, key(slot, 1), &script(text)).await;
        let failed = node.until(|seen| matches!(seen, Observation::Failed { .. })).await;
        let Observation::Failed { progress, reason, permanent } = failed else { panic!() };
        assert_eq!((progress, permanent), (Progress::StartFailed, false));
        assert!(reason.starts_with(&format!("{how} before it was ready; last output: bad ")), "{reason}");
        assert!(reason.ends_with("bytes"), "{reason}");
        assert_eq!(node.next().await, Observation::Closed { exit: Some(how.into()) });
        assert!(node.seen.recv().await.is_none(), "nothing after it closed");
        // Asked again, the answer is the same: an attempt boots once.
        let mut again = start(&backend, key(slot, 1), &script(text)).await;
        assert!(again.adopted);
        assert_eq!(again.closed().await, how);
        again.destroy(&backend).await;
    }
}

#[tokio::test]
async fn an_end_after_readiness_is_closed_with_the_evidence() {
    let place = Place::new();
    let backend = place.open();
    let mut node = start(&backend, key("web-0", 1), &script("echo ready; exec sleep 1000")).await;
    node.joined().await;
    crate::fixture::kill(node.pid(), "KILL");
    let closed = node.until(|seen| {
        assert!(!matches!(seen, Observation::Failed { .. }));
        matches!(seen, Observation::Closed { .. })
    });
    assert_eq!(closed.await, Observation::Closed { exit: Some("killed by signal 9 (SIGKILL)".into()) });
    assert!(node.seen.recv().await.is_none(), "nothing after it closed");
    node.destroy(&backend).await;
    assert!(crate::fixture::stat(node.pid()).is_none(), "waited for: no zombie stays");
}

#[tokio::test]
async fn a_command_that_cannot_start_is_refused_for_good() {
    let place = Place::new();
    let backend = place.open();
    let mut no_rights = template(&["./plain"], Probe::Stdout("x".into()));
    no_rights.boot.files.insert("plain".into(), "text".into());
    let missing = template(&["no-such-program-anywhere"], Probe::Stdout("x".into()));
    for (slot, template, word) in [("a-0", missing, "No such file"), ("b-0", no_rights, "Permission denied")] {
        let key = key(slot, 1);
        let lease = backend.create(&request(&key, &template)).await.unwrap().lease;
        let endpoint = backend.lookup(&key, &lease).await.unwrap();
        for _ in 0..2 {
            let (sink, _seen) = sink(&key);
            let asked = StartRequest { key: &key, lease: &lease, endpoint: &endpoint, template: &template };
            let fault = backend.start(asked, sink).await.unwrap_err();
            assert!(
                matches!(&fault, Fault::Permanent { reason } if reason.contains(word) && reason.contains(&template.boot.command[0])),
                "{fault}"
            );
        }
        backend.destroy(&key, &lease).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_output_is_bounded() {
    let place = Place::new();
    let mut config = place.config();
    config.log_limit_bytes = 1 << 20;
    let backend = ProcessBackend::open(config).unwrap();
    let text =
        "yes some words of output | head -c 40000000; printf '\\nready\\n'; yes | head -c 3000000; exec sleep 1000";
    let began = Instant::now();
    let mut node = start(&backend, key("web-0", 1), &script(text)).await;
    let mut reports = 0;
    node.until(|seen| *seen == Observation::Joined).await;
    let dir = place.lease(&node.lease);
    let size = || std::fs::read_dir(&dir).unwrap().flatten().map(|entry| entry.metadata().unwrap().len()).sum::<u64>();
    eventually("the log is cut", || size() < (2 << 20) + 100_000).await;
    while let Ok((_, observation)) = node.seen.try_recv() {
        reports += usize::from(matches!(observation, Observation::Output(_)));
    }
    let most = began.elapsed().as_millis() / 500 + 2;
    assert!(reports as u128 <= most, "{reports} reports, at most {most}");
    assert!(dir.join("output.log.1").exists());
    node.destroy(&backend).await;
}

#[tokio::test]
async fn a_session_whose_listener_is_slow_still_ends() {
    let place = Place::new();
    let backend = place.open();
    let node = start(&backend, key("web-0", 1), &script("while :; do echo x; sleep 0.01; done")).await;
    let done = tokio::time::timeout(PATIENCE, node.destroy(&backend)).await;
    assert!(done.is_ok());
}

#[tokio::test]
async fn the_demo_server_fails_as_often_as_it_is_told_and_ends_in_order() {
    let place = Place::new();
    let backend = place.open();
    let mut flaky = server();
    let extra = ["--fail-times", "2", "--fail-file", "{state}/{node}.failures", "--start-delay", "20ms"];
    flaky.boot.command.extend(extra.map(String::from));
    for attempt in 1..=2 {
        let mut node = start(&backend, key("web-0", attempt), &flaky).await;
        let failed = node.until(|seen| matches!(seen, Observation::Failed { .. })).await;
        let Observation::Failed { reason, .. } = failed else { panic!() };
        assert!(reason.contains(&format!("failing on purpose, {attempt} of 2")), "{reason}");
        assert_eq!(node.closed().await, "exit status 1");
        node.destroy(&backend).await;
    }
    let mut node = start(&backend, key("web-0", 3), &flaky).await;
    node.joined().await;
    crate::fixture::kill(node.pid(), "TERM");
    assert_eq!(node.closed().await, "exit status 0");
    node.destroy(&backend).await;
    assert!(std::fs::read_dir(place.state().join("shared")).unwrap().next().is_none(), "the count is gone");
}
