//! A host ends, and the next one takes over what runs.

use std::time::Duration;

use engine::io::Observation;
use engine::shape::Probe;
use homeostat::backends::{Backend, StartRequest};
use serde_json::json;

use crate::fixture::{Place, eventually, is_running, key, kill, lines, request, script, server, sink, start, template};

#[tokio::test]
async fn what_was_kept_is_adopted_and_not_started_again() {
    let place = Place::new();
    let backend = place.open();
    let text = "echo x >> {state}/{node}; echo ready; exec sleep 1000";
    let mut script_node = start(&backend, key("web-0", 1), &script(text)).await;
    let mut server_node = start(&backend, key("web-1", 2), &server()).await;
    script_node.joined().await;
    server_node.joined().await;
    backend.shutdown().await;
    while let Some((_, seen)) = script_node.seen.recv().await {
        assert!(!matches!(seen, Observation::Closed { .. }), "the session ends with the host, the process does not");
    }
    drop(backend);
    assert!(is_running(script_node.pid()) && is_running(server_node.pid()));

    let backend = place.open();
    let keys: Vec<_> = backend.list("demo").await.unwrap().resources.into_iter().map(|resource| resource.key).collect();
    assert_eq!(keys, [Some(key("web-0", 1)), Some(key("web-1", 2))]);
    for (old, template) in [(script_node, script(text)), (server_node, server())] {
        assert!(backend.create(&request(&old.key, &template)).await.unwrap().adopted);
        let mut node = start(&backend, old.key.clone(), &template).await;
        assert!(node.adopted);
        assert_eq!((&node.session, &node.endpoint), (&old.session, &old.endpoint));
        node.joined().await;
        if node.lease == "web-0.1" {
            kill(node.pid(), "KILL");
            // In a test the next host is still the parent; a real one is told less.
            let how = node.closed().await;
            assert!(how == "killed by signal 9 (SIGKILL)" || how.starts_with("exited (not our child"), "{how}");
        }
        node.destroy(&backend).await;
    }
    assert_eq!(lines(&place.state().join("shared/web-0")), 1, "started once");
    assert_eq!(place.labelled(), [0; 0]);
}

#[tokio::test]
async fn a_start_that_was_not_written_down_is_found_by_its_label() {
    let place = Place::new();
    let text = "echo x >> {state}/{node}; echo ready; exec sleep 1000";
    for (attempt, record) in [(1, json!("starting")), (2, json!("never"))] {
        let backend = place.open();
        let key = key("web-0", attempt);
        let mut node = start(&backend, key.clone(), &script(text)).await;
        node.joined().await;
        drop(backend);
        place.edit_marker(&node.lease, "boot", record);
        let backend = place.open();
        let mut again = start(&backend, key, &script(text)).await;
        assert!(again.adopted);
        assert_eq!(again.session, node.session);
        again.joined().await;
        assert_eq!(place.marker(&again.lease)["boot"]["started"]["pid"], json!(node.pid()));
        again.destroy(&backend).await;
        assert_eq!(lines(&place.state().join("shared/web-0")), attempt as usize);
    }
}

#[tokio::test]
async fn a_start_of_which_nothing_is_left_is_over() {
    let place = Place::new();
    let backend = place.open();
    let key = key("web-0", 1);
    let template = script("echo x >> {state}/{node}; echo ready; exec sleep 1000");
    let lease = backend.create(&request(&key, &template)).await.unwrap().lease;
    backend.lookup(&key, &lease).await.unwrap();
    place.edit_marker(&lease, "boot", json!("starting"));
    let mut node = start(&backend, key.clone(), &template).await;
    let failed = node.until(|seen| matches!(seen, Observation::Failed { .. })).await;
    assert!(matches!(&failed, Observation::Failed { reason, .. } if reason.contains("cut off")), "{failed:?}");
    node.closed().await;
    node.destroy(&backend).await;
    assert_eq!(lines(&place.state().join("shared/web-0")), 0, "never started");
}

#[tokio::test]
async fn one_that_ended_while_nobody_looked_is_closed_with_evidence() {
    let place = Place::new();
    let backend = place.open();
    let mut node = start(&backend, key("web-0", 1), &server()).await;
    node.joined().await;
    drop(backend);
    kill(node.pid(), "KILL");
    eventually("it is gone", || !is_running(node.pid())).await;
    let backend = place.open();
    let mut again = start(&backend, key("web-0", 1), &server()).await;
    assert!(again.adopted);
    let end = again.until(|seen| matches!(seen, Observation::Failed { .. } | Observation::Closed { .. })).await;
    assert!(
        matches!(end, Observation::Closed { exit: Some(_) }),
        "it had joined, so it did not fail to start: {end:?}"
    );
    again.destroy(&backend).await;
}

#[tokio::test]
async fn a_line_written_before_the_next_host_came_still_counts() {
    let place = Place::new();
    let backend = place.open();
    let mut node =
        start(&backend, key("web-0", 1), &script("until test -e go; do sleep 0.01; done; echo ready; exec sleep 1000"))
            .await;
    node.until(|seen| *seen == Observation::Progress(decider::Progress::Join)).await;
    drop(backend);
    std::fs::write(place.lease("web-0.1").join("work/go"), "").unwrap();
    let log = place.lease("web-0.1").join("output.log");
    eventually("it said so", || lines(&log) == 1).await;
    let backend = place.open();
    let mut again = start(&backend, key("web-0", 1), &script("whatever")).await;
    again.joined().await;
    again.destroy(&backend).await;
}

#[tokio::test]
async fn the_environment_is_the_hosts_and_the_nodes() {
    let place = Place::new();
    let backend = place.open();
    let probe = Probe::Stdout("^end$".into());
    let mut node =
        start(&backend, key("web-0", 9), &template(&["sh", "-c", "env; pwd; echo end; exec sleep 1000"], probe)).await;
    node.joined().await;
    let dir = place.lease("web-0.9");
    let text = std::fs::read_to_string(dir.join("output.log")).unwrap();
    let has = |line: String| assert!(text.lines().any(|found| found == line), "{line} in {text}");
    has("HOMEOSTAT_RUN=demo".into());
    has("HOMEOSTAT_NODE=web-0".into());
    has("HOMEOSTAT_ATTEMPT=9".into());
    has(format!("HOMEOSTAT_ENDPOINT={}", node.endpoint));
    has(format!("HOMEOSTAT_PORT={}", node.endpoint.rsplit_once(':').unwrap().1));
    has(format!("HOMEOSTAT_DIR={}", dir.join("work").display()));
    has(format!("HOMEOSTAT_LEASE={}|demo/web-0/9", dir.display()));
    has(format!("PATH={}", std::env::var("PATH").unwrap()));
    has(dir.join("work").display().to_string());
    node.destroy(&backend).await;
}

/// A process number that flipped is not the death of a node that lives.
#[tokio::test]
async fn a_flipped_byte_in_a_marker_is_no_evidence() {
    let place = Place::new();
    let backend = place.open();
    let made_of = script("echo ready; exec sleep 1000");
    let mut node = start(&backend, key("web-0", 1), &made_of).await;
    node.joined().await;
    drop(backend);
    let path = place.lease("web-0.1").join("lease.json");
    let whole = std::fs::read(&path).unwrap();
    let boot = whole.windows(9).position(|text| text == b"\"started\"").unwrap();
    let mut refused = 0;
    for at in (0..boot).step_by(23).chain(boot..whole.len()) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        std::fs::write(&path, flipped).unwrap();
        let backend = place.open();
        let (to, mut seen) = sink(&node.key);
        let (lease, endpoint) = (node.lease.clone(), node.endpoint.clone());
        let asked = StartRequest { key: &node.key, lease: &lease, endpoint: &endpoint, template: &made_of };
        refused += u32::from(backend.listen(asked, &node.session, to).await.is_err());
        let next = tokio::time::timeout(Duration::from_millis(10), seen.recv()).await;
        assert!(!matches!(next, Ok(Some((_, Observation::Closed { .. })))), "byte {at}");
        let listing = backend.list("demo").await.unwrap();
        assert!(!listing.complete || listing.resources.len() == 1, "byte {at}: {listing:?}");
    }
    assert!(refused > 100, "{refused}");
    std::fs::write(&path, whole).unwrap();
    node.destroy(&place.open()).await;
}
