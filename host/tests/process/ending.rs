//! Cancel and destroy: all of a lease's processes, and no other.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use engine::io::Fault;
use engine::shape::Setting;
use homeostat::backends::Backend;

use crate::fixture::{PATIENCE, Place, eventually, group, is_running, key, kill, request, script, start, stat};

/// Children, grandchildren, one that left the group, one without the label, one that is stopped.
const FAMILY: &str = "sleep 1000 & (sleep 1001 & sh -c 'sleep 1002 & sleep 1003' &) ; setsid sleep 1004 & \
    env -i sleep 1005 & sleep 1006 & kill -STOP $!; echo ready; wait";

#[tokio::test]
async fn all_that_a_command_started_ends_with_it() {
    let place = Place::new();
    let backend = place.open();
    let mut template = script(FAMILY);
    template.settings.insert("grace".into(), Setting::Text("5m".into()));
    let mut node = start(&backend, key("web-0", 1), &template).await;
    node.joined().await;
    eventually("the family is there", || place.labelled().len() >= 8 && group(node.pid()).len() >= 8).await;
    let ended = tokio::time::timeout(PATIENCE, node.cancel(&backend)).await;
    assert!(ended.is_ok(), "they end on TERM, not after the grace");
    assert_eq!((place.labelled(), group(node.pid())), (vec![], vec![]));
    assert!(place.lease("web-0.1").exists(), "the lease stays");
    node.destroy(&backend).await;
    assert!(!place.lease("web-0.1").exists());
}

#[tokio::test]
async fn the_rest_of_a_group_ends_when_its_leader_is_dead() {
    let place = Place::new();
    let backend = place.open();
    let mut node = start(&backend, key("web-0", 1), &script(FAMILY)).await;
    node.joined().await;
    eventually("the family is there", || group(node.pid()).len() >= 8).await;
    kill(node.pid(), "KILL");
    assert_eq!(node.closed().await, "killed by signal 9 (SIGKILL)");
    node.destroy(&backend).await;
    assert_eq!((place.labelled(), group(node.pid())), (vec![], vec![]));
}

#[tokio::test]
async fn what_ignores_term_is_killed_after_the_grace() {
    let place = Place::new();
    let backend = place.open();
    let mut template = script("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    template.settings.insert("grace".into(), Setting::Text("300ms".into()));
    let mut node = start(&backend, key("web-0", 1), &template).await;
    node.joined().await;
    let began = Instant::now();
    node.cancel(&backend).await;
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(300) && took < PATIENCE, "{took:?}");
    assert!(!is_running(node.pid()));
    assert!(stat(node.pid()).is_none(), "waited for");
    node.destroy(&backend).await;
}

#[tokio::test]
async fn a_command_may_use_its_grace() {
    let place = Place::new();
    let backend = place.open();
    let text = "trap 'sleep 0.2; echo orderly > {state}/end; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
    let mut template = script(text);
    template.settings.insert("grace".into(), Setting::Text("5m".into()));
    let mut node = start(&backend, key("web-0", 1), &template).await;
    node.joined().await;
    node.destroy(&backend).await;
    assert_eq!(std::fs::read_to_string(place.state().join("shared/end")).unwrap(), "orderly\n");
}

#[tokio::test]
async fn a_reused_number_is_not_hit() {
    let place = Place::new();
    let backend = place.open();
    let key = key("web-0", 1);
    let lease = backend.create(&request(&key, &script("true"))).await.unwrap().lease;
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
    let other_label = format!("{}|demo/web-0/2", place.lease("web-0.2").display());
    // An innocent process has the recorded number; or all that was recorded, but another lease's label.
    for (label, off) in [(None, 1), (Some(other_label), 0)] {
        let mut innocent = Command::new("sleep");
        innocent.arg("1000").process_group(0);
        if let Some(label) = label {
            innocent.env("HOMEOSTAT_LEASE", label);
        }
        let mut innocent = innocent.spawn().unwrap();
        let pid = i32::try_from(innocent.id()).unwrap();
        let start_ticks = stat(pid).unwrap().3 + off;
        let ident = serde_json::json!({"pid": pid, "start-ticks": start_ticks, "boot-id": boot_id});
        place.edit_marker(&lease, "boot", serde_json::json!({"started": ident}));
        backend.cancel(&key, &lease, &pid.to_string()).await.unwrap();
        assert!(is_running(pid));
        innocent.kill().unwrap();
        innocent.wait().unwrap();
    }
    // A marker of another boot of the machine names nothing that lives.
    let own = i32::try_from(std::process::id()).unwrap();
    let ident = serde_json::json!({"pid": own, "start-ticks": stat(own).unwrap().3, "boot-id": "another"});
    place.edit_marker(&lease, "boot", serde_json::json!({"started": ident}));
    backend.destroy(&key, &lease).await.unwrap();
}

#[tokio::test]
async fn a_process_whose_directory_is_gone_is_found_and_ended() {
    let place = Place::new();
    let backend = place.open();
    let mut node = start(&backend, key("web-0", 1), &script("echo ready; exec sleep 1000")).await;
    node.joined().await;
    std::fs::remove_dir_all(place.lease("web-0.1")).unwrap();
    let listing = backend.list("demo").await.unwrap();
    assert_eq!(listing.resources[0].key, Some(key("web-0", 1)));
    node.destroy(&backend).await;
    assert_eq!(place.labelled(), [0; 0]);
    assert!(backend.list("demo").await.unwrap().resources.is_empty());
}

#[tokio::test]
async fn read_only_directories_are_removed_too() {
    let place = Place::new();
    let backend = place.open();
    let text = "mkdir -p a/b; echo x > a/b/c; chmod 500 a/b a; echo ready; exec sleep 1000";
    let mut node = start(&backend, key("web-0", 1), &script(text)).await;
    node.joined().await;
    node.destroy(&backend).await;
    assert!(std::fs::read_dir(place.leases()).unwrap().next().is_none());
}

#[tokio::test]
async fn a_hanging_node_delays_no_other() {
    let place = Place::new();
    let backend = place.open();
    let mut stubborn = script("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    stubborn.settings.insert("grace".into(), Setting::Text("5m".into()));
    let mut first = start(&backend, key("slow-0", 1), &stubborn).await;
    first.joined().await;
    let hanging = first.pid();
    let other = async {
        let mut node = start(&backend, key("web-0", 1), &script("echo ready; exec sleep 1000")).await;
        node.joined().await;
        node.destroy(&backend).await;
        assert!(is_running(hanging), "the other one came and went meanwhile");
        kill(hanging, "KILL");
    };
    tokio::join!(other, first.destroy(&backend));
    let fault = backend.cancel(&key("web-0", 1), &"web-1.1".into(), &"1".into()).await.unwrap_err();
    assert!(matches!(fault, Fault::Permanent { .. }));
}
