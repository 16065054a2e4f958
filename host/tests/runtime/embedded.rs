//! The host inside other people's programs: several in one process, and nothing that the caller brings can take the process
//! or another host with it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use decider::{Plan, Snapshot};
use engine::io::{DeciderFailure, DeciderIdentity, Observation, Promise};
use homeostat::backends::fake::{Beat, FakeBackend, Nth, Script};
use homeostat::decide::{Decider, NativeDecider};
use homeostat::store::{FailPoint, MemoryStore, Point, StoreError};
use homeostat::{Host, HostError, Shutdown};

use crate::bench::*;

#[tokio::test(start_paused = true)]
async fn two_hosts_in_one_process_know_nothing_of_each_other() {
    let (one, other) = (FakeBackend::keyed(), FakeBackend::keyed());
    let first = builder(&one).store(MemoryStore::new()).start().await.unwrap();
    let second = builder(&other).store(MemoryStore::new()).start().await.unwrap();
    first.update_shape(shape(1, &[("web", 3, "a")])).await.unwrap();
    second.update_shape(shape(7, &[("db", 2, "b")])).await.unwrap();
    converged(&first, 5).await;
    converged(&second, 5).await;
    assert_eq!((slots(&one).len(), slots(&other)), (3, vec!["db-0".to_owned(), "db-1".to_owned()]));
    assert!(first.shutdown(Shutdown::TakeDown).await.unwrap().is_clean());
    assert!(second.view().converged, "the end of one is not the end of the other");
    assert_eq!(slots(&other).len(), 2);
    assert!(second.shutdown(Shutdown::TakeDown).await.unwrap().is_clean());
    clean(&one);
    clean(&other);
}

/// One backend can serve two runs: each host sees what bears its own run's label only (S15).
#[tokio::test(start_paused = true)]
async fn two_runs_share_a_backend() {
    let fake = FakeBackend::keyed();
    let first = builder(&fake).start().await.unwrap();
    let second = Host::builder("other").backend("fake", fake.clone()).decider(NativeDecider).start().await.unwrap();
    first.update_shape(shape(1, &[("web", 2, "a")])).await.unwrap();
    let mut theirs = shape(1, &[("web", 2, "a")]);
    theirs.run = "other".into();
    second.update_shape(theirs).await.unwrap();
    converged(&first, 5).await;
    converged(&second, 5).await;
    assert_eq!(fake.resources().len(), 4);
    assert!(first.shutdown(Shutdown::TakeDown).await.unwrap().is_clean());
    assert_eq!(fake.resources().len(), 2, "what is not ours is left alone");
    assert!(second.view().converged);
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_panics_is_told_no_more() {
    let beats = vec![Beat::after(0, Observation::Output("hello".into())), Beat::after(1, Observation::Joined)];
    let fake = FakeBackend::new(Promise::Keyed, Script::new().bootstrap("*", Nth::Every, beats));
    let told = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = told.clone();
    let watcher = Arc::new(move |_, _: &str| {
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        panic!("the caller's watcher");
    });
    let host = builder(&fake).output_watcher(watcher).start().await.unwrap();
    host.update_shape(shape(1, &[("web", 3, "a")])).await.unwrap();
    converged(&host, 5).await;
    assert_eq!(told.load(std::sync::atomic::Ordering::SeqCst), 1);
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_look_that_panics_changes_nothing() {
    let fake = FakeBackend::keyed();
    let host = host(&fake).await;
    let seen: Result<(), _> = host.look(|_| panic!("the caller's closure")).await;
    assert_eq!(seen.unwrap_err().to_string(), "the closure that looked at the driver panicked: the caller's closure");
    host.update_shape(shape(1, &[("web", 1, "a")])).await.unwrap();
    converged(&host, 5).await;
    clean(&fake);
}

struct Throws;

#[async_trait]
impl Decider for Throws {
    fn identity(&self) -> DeciderIdentity {
        NativeDecider.identity()
    }
    async fn decide(&self, _: Arc<Snapshot>) -> Result<Plan, DeciderFailure> {
        panic!("the caller's decider")
    }
}

#[tokio::test(start_paused = true)]
async fn a_native_decider_that_panics_is_an_error_of_its_pass() {
    let fake = FakeBackend::keyed();
    let host = Host::builder(RUN).backend("fake", fake.clone()).decider(Throws).start().await.unwrap();
    host.update_shape(shape(1, &[("web", 2, "a")])).await.unwrap();
    let view =
        until(&host, 30, |view| view.nodes.iter().any(|node| format!("{node:?}").contains("the caller's decider")))
            .await;
    assert!(view.nodes.iter().all(|node| node.attempt.is_none()));
    // Another one takes over, and decides what was held.
    host.use_decider(Arc::new(NativeDecider)).await.unwrap();
    converged(&host, 60).await;
    clean(&fake);
}

struct Breaks(u32);

impl FailPoint for Breaks {
    fn reached(&mut self, _: Point) -> Result<(), StoreError> {
        self.0 -= 1;
        assert!(self.0 > 0, "the caller's store");
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_ends_its_host_and_no_other() {
    let (fake, others) = (FakeBackend::keyed(), FakeBackend::keyed());
    let other = host(&others).await;
    let mut store = MemoryStore::new();
    store.set_fail_point(Some(Box::new(Breaks(60))));
    let host = builder(&fake).store(store).start().await.unwrap();
    // The shape may still be taken, or the host fall over it.
    let _ = host.update_shape(shape(1, &[("web", 40, "a")])).await;
    let ended = tokio::time::timeout(Duration::from_secs(60), host.wait_ended()).await.unwrap();
    assert_eq!(ended.unwrap_err().to_string(), "the host has ended: the host's loop panicked: the caller's store",);
    assert!(matches!(host.look(|_| ()).await, Err(HostError::Ended(_))));
    other.update_shape(shape(1, &[("web", 2, "a")])).await.unwrap();
    converged(&other, 5).await;
    clean(&others);
}
