//! A decision through the component (a fresh instance, metered) against the native call, and what loading costs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::hint::black_box;
use std::time::Duration;

use benches::median;
use criterion::{Criterion, SamplingMode, Throughput, criterion_group};
use decider::Snapshot;
use homeostat::sandbox::{Limits, Sandbox};
use tests::snapshots::{Random, plausible};

const SIZES: [usize; 6] = [1, 100, 1_000, 10_000, 100_000, 1_000_000];

fn fleet(rows: usize) -> Snapshot {
    plausible(&mut Random::new(42), rows)
}

fn decide(criterion: &mut Criterion) {
    let component = Sandbox::new(Limits::default()).unwrap().built_in().unwrap();
    for rows in SIZES {
        let snapshot = fleet(rows);
        let mut group = criterion.benchmark_group(format!("decide {rows}"));
        group.throughput(Throughput::Elements(rows as u64));
        if rows >= 100_000 {
            group.sampling_mode(SamplingMode::Flat);
        }
        group.bench_function("native", |bench| bench.iter(|| decider::reconcile(black_box(&snapshot))));
        group.bench_function("component", |bench| bench.iter(|| component.reconcile(black_box(&snapshot)).unwrap()));
        group.finish();
    }
}

fn load(criterion: &mut Criterion) {
    let sandbox = Sandbox::new(Limits::default()).unwrap();
    let component = sandbox.built_in().unwrap();
    let empty = Snapshot::default();
    let mut group = criterion.benchmark_group("load");
    group.sampling_mode(SamplingMode::Flat);
    group.bench_function("cold load (compile, check, trial)", |bench| bench.iter(|| sandbox.built_in().unwrap()));
    group.bench_function("empty call (instantiate, answer, drop)", |bench| bench.iter(|| component.reconcile(&empty)));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    targets = decide, load
}

/// The ratios of one run, as benches/README.md has them.
fn table() {
    let component = Sandbox::new(Limits::default()).unwrap().built_in().unwrap();
    println!("\n| nodes | native | component | ratio |\n|---|---|---|---|");
    for rows in SIZES {
        let snapshot = fleet(rows);
        let calls = (2_000_000 / rows).clamp(15, 5_000);
        let native = median(calls, || decider::reconcile(black_box(&snapshot)));
        let guest = median(calls, || component.reconcile(black_box(&snapshot)).unwrap());
        let ratio = guest.as_secs_f64() / native.as_secs_f64();
        println!("| {rows} | {native:.1?} | {guest:.1?} | {ratio:.1} |");
    }
}

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    if std::env::args().any(|argument| argument == "--bench") {
        table();
    }
}
