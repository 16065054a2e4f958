//! SPEC 9: a guest that does not come back stalls the next pass and nothing else, even when the host has a single thread.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use homeostat::backends::fake::FakeBackend;
use homeostat::decide::SandboxedDecider;
use homeostat::sandbox::{Limits, Sandbox};
use homeostat::{Host, Shutdown};
use hostile_guests_artifact as guests;
use tests::build::{shape, template};

#[tokio::test(flavor = "current_thread")]
async fn a_guest_that_spins_stalls_nothing_but_the_next_pass() {
    let stall = Duration::from_secs(4);
    let limits = Limits { fuel_base: u64::MAX, wall_clock_ms: stall.as_millis() as u64, ..Limits::default() };
    let spin = Arc::new(Sandbox::new(limits).unwrap().load(guests::SPIN).unwrap());
    let host = Host::builder("demo")
        .backend("fake", FakeBackend::keyed())
        .decider(SandboxedDecider::start(spin).unwrap())
        .start()
        .await
        .unwrap();
    let began = Instant::now();
    host.update_shape(shape(1, &[("web", 3, template("fake", "v1"))])).await.unwrap();

    // While the guest spins: timers, questions and edits.
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        let one = Instant::now();
        tokio::time::sleep(Duration::from_millis(5)).await;
        host.ping().await.unwrap();
        longest = longest.max(one.elapsed());
    }
    host.update_shape(shape(2, &[("web", 2, template("fake", "v1"))])).await.unwrap();
    println!("20 questions and an edit after {:?}, the slowest question after {longest:?}", began.elapsed());
    let came_back = host.view().nodes.iter().any(|node| node.decider_fails);
    assert!(!came_back, "a question or the edit waited for the guest, {longest:?}");

    // It is stopped, and said to fail.
    let mut views = host.watch();
    let failed = views.wait_for(|view| view.nodes.iter().any(|node| node.decider_fails));
    let failed = tokio::time::timeout(60 * stall, failed).await.unwrap().unwrap().clone();
    assert!(began.elapsed() >= stall, "stopped after {:?}", began.elapsed());
    assert_eq!(failed.nodes.len(), 2);
    host.use_decider(Arc::new(SandboxedDecider::built_in().unwrap())).await.unwrap();
    assert!(host.shutdown(Shutdown::TakeDown).await.unwrap().is_clean());
}
