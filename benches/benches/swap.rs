//! What a swap costs: loading from bytes and from the cache, the gap in which no pass can start, and whether the host can be felt
//! to pause. A fleet of 1,000 nodes, a store on the disk. Ratios of one run; `cargo bench -p benches --bench swap`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use benches::{Cost, measure};
use decider::Snapshot;
use homeostat::backends::fake::FakeBackend;
use homeostat::registry::Registry;
use homeostat::sandbox::{BUILT_IN, Cache, Limits, Sandbox};
use homeostat::store::{SqliteStore, StateDir};
use homeostat::swap::Terms;
use homeostat::{Candidate, Host, HostHandle, Shutdown, Wish};
use serde_json::json;

fn load() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::new(Limits::default()).unwrap();
    let cached = Sandbox::with_cache(Limits::default(), Cache::open(folder.path(), [7; 32])).unwrap();
    let decider = cached.built_in().unwrap();
    let cold = measure(30, || sandbox.built_in().unwrap());
    let warm = measure(300, || cached.built_in().unwrap());
    assert_eq!(cached.cache().unwrap().usage().misses, 1);
    let call = measure(20_000, || decider.reconcile(&Snapshot::default()).unwrap());
    println!("| | time | times an empty call |\n|---|---|---|");
    for (what, cost) in [("load from bytes", cold), ("load from the cache", warm), ("an empty call", call)] {
        let Cost { wall, .. } = cost;
        println!("| {what} | {wall:.1?} | {:.0} |", wall.as_secs_f64() / call.wall.as_secs_f64());
    }
    println!("from the cache: {:.0} times as fast\n", cold.wall.as_secs_f64() / warm.wall.as_secs_f64());
}

/// How long the host took to answer a question that its loop answers between two inputs.
async fn answers(host: &HostHandle, count: usize) -> Vec<Duration> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let began = Instant::now();
        host.ping().await.unwrap();
        times.push(began.elapsed());
        tokio::task::yield_now().await;
    }
    times.sort_unstable();
    times
}

/// What the disk takes for one block that is to stay: the floor of any commit.
fn sync(folder: &Path) -> Duration {
    let mut file = File::create(folder.join("floor")).unwrap();
    let mut times = Vec::new();
    for _ in 0..200 {
        let began = Instant::now();
        file.write_all(&[7; 4_096]).unwrap();
        file.sync_data().unwrap();
        times.push(began.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2]
}

async fn swaps() {
    let folder = tempfile::tempdir().unwrap();
    let state = StateDir::open(folder.path()).unwrap();
    let registry = Registry::in_memory(Sandbox::new(Limits::default()).unwrap());
    let host = Host::builder("bench")
        .store(SqliteStore::open(&state).unwrap())
        .backend("fake", FakeBackend::keyed())
        .shared_decider(registry.ready(&Registry::built_in()).unwrap().decider)
        .registry(registry)
        .start()
        .await
        .unwrap();
    let mut digests = Vec::new();
    for number in [1, 2] {
        // The built-in decider under another digest: with a custom section that says nothing.
        let bytes: Arc<[u8]> = [BUILT_IN, &[0, 3, 1, b'x', number]].concat().into();
        digests.push(host.add_decider(bytes, None).await.unwrap().digest);
    }
    let template = json!({
        "provider": "fake",
        "boot": { "command": ["a"] },
        "join": { "probe": { "tcp": "{endpoint}" }, "interval_ms": 100, "timeout_ms": 60_000 },
    });
    let group = json!({ "id": "web", "count": 1_000, "template": template });
    let shape = json!({ "run": "bench", "generation": 1, "groups": [group] });
    host.update_shape(serde_json::from_value(shape).unwrap()).await.unwrap();
    host.wait_converged().await.unwrap();
    let swapping = {
        let host = host.clone();
        async move |rounds: usize| {
            let (mut times, mut gaps) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
            for round in 0..rounds {
                let began = Instant::now();
                let wish =
                    Wish { terms: Terms::default(), ..Wish::swap(Candidate::Digest(digests[round % 2].clone())) };
                let report = host.swap(wish).await.unwrap().job.unwrap().decided().await;
                times.push(began.elapsed());
                gaps.push(Duration::from_micros(report.switch_gap_us.unwrap()));
            }
            times.sort_unstable();
            gaps.sort_unstable();
            (times, gaps)
        }
    };
    swapping(20).await;
    let quiet = answers(&host, 5_000).await;
    let ((swapped, gaps), busy) = tokio::join!(swapping(500), answers(&host, 5_000));
    println!("| | median | 99 of 100 | slowest |\n|---|---|---|---|");
    for (what, times) in [
        ("an answer of the host's loop, nothing else going on", quiet),
        ("the same, while deciders are swapped", busy),
        ("a swap, from the wish to the switch", swapped),
        ("of that, no pass could start for", gaps.clone()),
    ] {
        let at = |share: usize| times[(times.len() - 1) * share / 100];
        println!("| {what} | {:.1?} | {:.1?} | {:.1?} |", at(50), at(99), at(100));
    }
    let (gap, sync) = (gaps[gaps.len() / 2], sync(folder.path()));
    let times = gap.as_secs_f64() / sync.as_secs_f64();
    println!("\na block written and synced beside it: {sync:.1?} (median); the gap is {times:.1} of it");
    host.shutdown(Shutdown::Keep).await.unwrap();
}

fn main() {
    load();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(swaps());
}
