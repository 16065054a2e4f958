//! Hosts that are killed: this test program runs itself as the host.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use homeostat::backends::Backend;
use homeostat::backends::process::{ProcessBackend, ProcessConfig};

use crate::fixture::{Place, eventually, group, is_running, key, kill, lines, script, start};

/// Tells the program that it is the host, and where.
const STATE: &str = "PROCESS_TEST_STATE";
const NODES: u64 = 6;

fn booted() -> engine::shape::Template {
    script("echo x >> {state}/{node}; sleep 1000 & echo ready; wait")
}

/// The host: starts its nodes and waits to be killed. Does nothing when run as a test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn host() {
    let Some(state) = std::env::var_os(STATE) else { return };
    let backend = ProcessBackend::open(ProcessConfig::new(PathBuf::from(&state), "/bin/false")).unwrap();
    let mut nodes = Vec::new();
    for index in 0..NODES {
        let mut node = start(&backend, key(&format!("web-{index}"), index + 1), &booted()).await;
        node.joined().await;
        nodes.push(node);
    }
    std::fs::write(PathBuf::from(state).with_file_name("done"), "").unwrap();
    std::future::pending::<()>().await;
}

fn run_host(place: &Place) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed::host"]).env(STATE, place.state());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[tokio::test]
async fn the_next_host_adopts_what_a_killed_one_started() {
    let place = Place::new();
    let mut host = run_host(&place);
    let done = place.state().with_file_name("done");
    eventually("the nodes are up", || done.exists()).await;
    host.kill().unwrap();
    host.wait().unwrap();
    let backend = place.open();
    let left = backend.leftovers();
    assert_eq!(left.len(), NODES as usize);
    for left in left {
        let mut node = start(&backend, left.key, &booted()).await;
        assert!(node.adopted);
        assert_eq!(Some(node.pid()), left.pid);
        node.joined().await;
        kill(node.pid(), "KILL");
        assert_eq!(node.closed().await, "exited (not our child; status unknown)");
        node.destroy(&backend).await;
        assert!(!is_running(node.pid()) && group(node.pid()).is_empty());
        assert_eq!(lines(&place.state().join("shared").join(&node.key.slot)), 1, "started once");
    }
    assert_eq!(place.labelled(), [0; 0]);
}

#[tokio::test]
async fn a_host_killed_at_any_moment_leaves_nothing_that_is_not_found() {
    let place = Place::new();
    for round in 0..12u64 {
        let mut host = run_host(&place);
        tokio::time::sleep(Duration::from_millis(10 + round * 13)).await;
        host.kill().unwrap();
        host.wait().unwrap();
        let backend = place.open();
        let listing = backend.list("demo").await.unwrap();
        assert!(listing.complete);
        for (at, resource) in listing.resources.iter().enumerate() {
            let key = resource.key.clone().unwrap();
            if at % 2 == 0 {
                let node = start(&backend, key.clone(), &booted()).await;
                node.cancel(&backend).await;
            }
            backend.destroy(&key, &resource.lease).await.unwrap();
            let count = place.state().join("shared").join(&key.slot);
            assert!(lines(&count) <= 1, "started at most once");
        }
        assert_eq!(place.labelled(), [0; 0], "round {round}");
        assert!(backend.list("demo").await.unwrap().resources.is_empty());
        backend.forget_output();
        backend.shutdown().await;
        assert!(!place.state().exists());
    }
}
