//! Swapping without end, under load: no node notices, no pass is lost, and memory and threads return to where they were (SPEC 11). `HOMEOSTAT_SWAPS=10000` swaps more often.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::shape::ClusterShape;
use homeostat::backends::fake::FakeBackend;
use homeostat::registry::{Outcome, Registry};
use homeostat::sandbox::{BUILT_IN, Cache, Limits, Sandbox};
use homeostat::swap::Terms;
use homeostat::{Candidate, Host, HostHandle, Shutdown, Wish};
use serde_json::json;

/// The built-in decider under another digest: with a custom section that says nothing.
fn other(number: u8) -> Arc<[u8]> {
    let mut bytes = BUILT_IN.to_vec();
    bytes.extend([0, 3, 1, b'x', number]);
    bytes.into()
}

fn shape(generation: u64, web: u32, command: &str) -> ClusterShape {
    let template = json!({
        "provider": "fake",
        "boot": { "command": [command] },
        "join": { "probe": { "tcp": "{endpoint}" }, "interval_ms": 100, "timeout_ms": 1_000 },
    });
    let group = json!({ "id": "web", "count": web, "template": template });
    let shape = json!({ "run": "swapping", "generation": generation, "groups": [group] });
    serde_json::from_value(shape).unwrap()
}

/// A number of the process's own status file.
fn of_process(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

async fn swap(host: &HostHandle, digest: &str, terms: Terms) -> Duration {
    let began = Instant::now();
    let wish = Wish { terms, ..Wish::swap(Candidate::Digest(digest.into())) };
    let report = host.swap(wish).await.unwrap().job.unwrap().decided().await;
    assert!(matches!(report.outcome, Some(Outcome::Switched | Outcome::Watching)), "{report:#?}");
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_swaps_leave_no_trace() {
    let swaps: u64 = std::env::var("HOMEOSTAT_SWAPS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_500);
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("compiled"), [7; 32]);
    let registry = Registry::in_memory(Sandbox::new(Limits::default()).unwrap().cached(cache));
    let fake = FakeBackend::keyed();
    let host = Host::builder("swapping")
        .backend("fake", fake.clone())
        .shared_decider(registry.ready(&Registry::built_in()).unwrap().decider)
        .registry(registry)
        .start()
        .await
        .unwrap();
    let mut digests = Vec::new();
    for number in [1, 2] {
        digests.push(host.add_decider(other(number), None).await.unwrap().digest);
    }
    host.update_shape(shape(1, 12, "a")).await.unwrap();
    host.wait_converged().await.unwrap();
    let attempts =
        |host: &HostHandle| -> Vec<Option<u64>> { host.view().nodes.iter().map(|node| node.attempt).collect() };

    // At rest: not one node is touched, however often.
    let before = attempts(&host);
    for round in 0..200 {
        swap(&host, &digests[round % 2], Terms::default()).await;
    }
    let (memory, threads) = (of_process("VmRSS"), of_process("Threads"));
    for round in 0..usize::try_from(swaps).unwrap() {
        swap(&host, &digests[round % 2], Terms::default()).await;
    }
    assert_eq!(attempts(&host), before);
    let rested = of_process("VmRSS");
    println!("{swaps} swaps at rest: RSS {memory} -> {rested} kB");
    assert!(rested <= memory + 4 * 1_024, "memory: {memory} -> {rested} kB");

    // Under load: edits and deaths all the time, sometimes with a shadow, sometimes watched.
    let load = {
        let (host, fake) = (host.clone(), fake.clone());
        tokio::spawn(async move {
            for generation in 2.. {
                let command = if generation % 7 == 0 { "b" } else { "a" };
                if host
                    .update_shape(shape(generation, 10 + u32::try_from(generation % 5).unwrap(), command))
                    .await
                    .is_err()
                {
                    return;
                }
                if let Some(lease) = fake.lease_of(&format!("web-{}", generation % 8)) {
                    fake.die(&lease, "exit status 9");
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    };
    let mut slowest = Duration::ZERO;
    for round in 0..swaps {
        let digest = &digests[usize::try_from(round % 2).unwrap()];
        let terms = match round % 50 {
            7 => Terms {
                shadow: Some(Duration::ZERO),
                accept: vec![homeostat::swap::Accept::Destroys],
                ..Terms::default()
            },
            9 => Terms { watch: Some(Duration::from_secs(60)), ..Terms::default() },
            _ => Terms::default(),
        };
        slowest = slowest.max(swap(&host, digest, terms).await);
    }
    load.abort();
    let stats = host.look(|driver| driver.stats()).await.unwrap();
    let last = host.look(|driver| driver.state().desired.as_ref().map_or(0, |shape| shape.generation)).await.unwrap();
    host.update_shape(shape(last + 1, 12, "a")).await.unwrap();
    tokio::time::timeout(Duration::from_secs(300), host.wait_converged()).await.expect("it converges").unwrap();
    assert_eq!(stats.stale_plans, 0, "no pass was lost: {stats:?}");
    assert_eq!(fake.violations(), Vec::<String>::new());
    assert!(fake.peak() <= 1);

    // What is still being dropped by other threads is given time.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let began = Instant::now();
    while of_process("Threads") > threads + 4 && began.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (memory_now, threads_now) = (of_process("VmRSS"), of_process("Threads"));
    println!(
        "{swaps} swaps under load: slowest {slowest:?}; {} passes; RSS {memory} -> {memory_now} kB; threads {threads} -> {threads_now}",
        stats.passes
    );
    assert!(threads_now <= threads + 4, "threads: {threads} -> {threads_now}");
    // The log of the fake backend grows with the load, not with the swaps.
    let most = rested + 24 * 1_024 + swaps * 12;
    assert!(memory_now <= most, "memory: {memory} -> {memory_now} kB");
    host.shutdown(Shutdown::Keep).await.unwrap();
}
