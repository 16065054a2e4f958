//! Backends, deciders and disks that misbehave.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use decider::{Plan, Snapshot};
use engine::io::{DeciderFailure, DeciderIdentity, Notice, Promise};
use engine::record::Record;
use homeostat::backends::fake::{Call, Commit, FakeBackend, Nth, Script, Step, View as Shows};
use homeostat::decide::{Decider, NativeDecider};
use homeostat::journal::{Journal, JournalError};
use homeostat::{HostError, HostEvent};
use tokio::time::{Instant, sleep};

use crate::bench::*;

#[tokio::test(start_paused = true)]
async fn failures_are_retried_with_backoff_and_patience() {
    let script = Script::new()
        .on("web-0", Call::Create, Nth::UpTo(2), Step::retryable())
        .on("web-1", Call::Create, Nth::Only(1), Step::retry_after(7_000))
        .on("web-2", Call::Lookup, Nth::UpTo(3), Step::not_ready())
        .on("web-3", Call::Create, Nth::Only(1), Step::panic("boom"));
    let fake = FakeBackend::new(Promise::Keyed, script);
    let host = host(&fake).await;
    host.update_shape(shape(1, &[("web", 4, "a")])).await.unwrap();
    let view = converged(&host, 20).await;
    assert!(view.nodes.iter().all(|node| node.failures == 0), "reaching ready resets the count");
    let ready = |slot: &str| when(&fake, slot, Call::Start, "starts");
    assert_eq!((ready("web-0"), ready("web-1"), ready("web-2"), ready("web-3")), (3_000, 7_000, 3_000, 1_000));
    assert_eq!(fake.calls("web-2", Call::Create), 1, "not ready is no failure");
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_create_that_hangs_and_lands_is_adopted() {
    let script = Script::new().on("web-0", Call::Create, Nth::Only(1), Step::hang(Commit::After { ms: 30_000 }));
    let fake = FakeBackend::new(Promise::Keyed, script);
    let host = host(&fake).await;
    host.update_shape(shape(1, &[("web", 1, "a")])).await.unwrap();
    converged(&host, 120).await;
    assert_eq!(fake.resources().len(), 1);
    assert!(when(&fake, "web-0", Call::Create, "adopts") >= 60_000, "after its deadline:\n{}", fake.transcript());
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_windowed_create_in_doubt_is_settled_by_looking() {
    for lands in [Commit::Never, Commit::After { ms: 20_000 }] {
        let script = Script::new().on("web-0", Call::Create, Nth::Only(1), Step::ambiguous(lands));
        let promise = Promise::Windowed { window_ms: 60_000, listings: 3 };
        let fake = FakeBackend::new(promise, script);
        let host = host(&fake).await;
        let began = Instant::now();
        host.update_shape(shape(1, &[("web", 2, "a")])).await.unwrap();
        converged(&host, 200).await;
        let landed = lands != Commit::Never;
        assert_eq!(fake.calls("web-0", Call::Create), if landed { 1 } else { 2 }, "{}", fake.transcript());
        assert_eq!(began.elapsed() < Duration::from_secs(60), landed);
        assert_eq!(fake.resources().len(), 2);
        clean(&fake);
    }
}

#[tokio::test(start_paused = true)]
async fn what_appears_late_for_a_retired_attempt_is_reaped_and_strangers_are_left_alone() {
    let script = Script::new().on("web-0", Call::Create, Nth::Only(1), Step::ambiguous(Commit::After { ms: 45_000 }));
    let fake = FakeBackend::new(Promise::Keyed, script);
    let host = host(&fake).await;
    let mut events = host.events();
    host.update_shape(shape(1, &[("web", 1, "a")])).await.unwrap();
    let first = converged(&host, 20).await;
    host.update_shape(shape(2, &[("web", 1, "b")])).await.unwrap();
    let second = converged(&host, 20).await;
    assert!(attempt(&second, "web-0") > attempt(&first, "web-0"));
    let stranger = fake.plant(None, None);
    let orphan = fake.plant(Some(key("web-7", 999_999)), None);
    let deserter = key("web-0", attempt(&first, "web-0"));
    sleep(Duration::from_secs(45)).await;
    assert_eq!(fake.live(&deserter), 1, "it landed");
    sleep(Duration::from_secs(31)).await;
    assert_eq!(fake.live(&deserter), 0, "gone within one sweep (L3):\n{}", fake.transcript());
    let left: Vec<_> = fake.resources().into_iter().map(|(lease, _)| lease).collect();
    assert!(left.contains(&stranger) && left.contains(&orphan) && left.len() == 3, "{left:?}");
    let mut notices = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let HostEvent::Notice(notice) = event {
            notices.push(notice);
        }
    }
    let (mut reaping, mut orphans) = (0, 0);
    for notice in notices {
        match notice {
            Notice::Reaping { key, .. } => reaping += u32::from(key == deserter),
            Notice::Orphan { lease, .. } => orphans += u32::from(lease == orphan),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((reaping, orphans), (1, 1));
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn bad_listings_authorise_nothing() {
    let script = Script::new()
        .on("*", Call::List, Nth::Only(2), Step::listing(Shows::Nothing, true))
        .on("*", Call::List, Nth::Only(3), Step::listing(Shows::First(1), false))
        .on("*", Call::List, Nth::Only(4), Step::permanent())
        .on("*", Call::List, Nth::Only(5), Step::listing(Shows::Stale, true))
        .on("*", Call::List, Nth::Only(6), Step::panic("boom"));
    let fake = FakeBackend::new(Promise::Keyed, script);
    let host = host(&fake).await;
    let mut events = host.events();
    host.update_shape(shape(1, &[("web", 3, "a")])).await.unwrap();
    let before = converged(&host, 5).await;
    sleep(Duration::from_secs(200)).await;
    assert!(fake.calls("", Call::List) > 6);
    assert_eq!(host.view().nodes, before.nodes);
    let mut failed = 0;
    while let Ok(event) = events.try_recv() {
        failed += u32::from(matches!(event, HostEvent::ListingFailed { .. }));
    }
    assert_eq!(failed, 2);
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn without_a_complete_listing_there_is_no_start() {
    let fake = FakeBackend::new(Promise::Keyed, Script::new().on("*", Call::List, Nth::UpTo(3), Step::retryable()));
    fake.rescript(Script::new().on("*", Call::List, Nth::Only(4), Step::listing(Shows::Now, false)));
    assert!(builder(&fake).start().await.is_ok(), "the fifth is good");
    for step in [Step::retryable(), Step::listing(Shows::Now, false), Step::hang(Commit::Never), Step::permanent()] {
        let fake = FakeBackend::new(Promise::Keyed, Script::new().on("*", Call::List, Nth::Every, step.clone()));
        let began = Instant::now();
        let error = builder(&fake).start().await.unwrap_err();
        let HostError::Adoption { provider, tries, .. } = &error else { panic!("{error}") };
        assert!(provider == "fake" && *tries >= 1 && error.to_string().contains("fake"), "{error}");
        assert!(began.elapsed() <= Duration::from_secs(30), "{step:?}");
    }
}

/// Fails while it is told to.
struct Moody {
    fails: Arc<Mutex<bool>>,
}

#[async_trait::async_trait]
impl Decider for Moody {
    fn identity(&self) -> DeciderIdentity {
        NativeDecider.identity()
    }
    async fn decide(&self, snapshot: Arc<Snapshot>) -> Result<Plan, DeciderFailure> {
        assert!(!*self.fails.lock().unwrap(), "moody");
        NativeDecider.decide(snapshot).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_decider_that_fails_is_reported_once_and_recovers() {
    let fails = Arc::new(Mutex::new(true));
    let fake = FakeBackend::keyed();
    let host = builder(&fake).decider(Moody { fails: fails.clone() }).start().await.unwrap();
    let mut events = host.events();
    host.update_shape(shape(1, &[("web", 3, "a")])).await.unwrap();
    sleep(Duration::from_secs(30)).await;
    assert!(fake.resources().is_empty());
    *fails.lock().unwrap() = false;
    converged(&host, 70).await;
    let mut notices = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let HostEvent::Notice(notice) = event {
            notices.push(notice);
        }
    }
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(
        matches!(&notices[0], Notice::DeciderFailed { nodes, failure } if nodes.is_empty() && failure.class == "host")
    );
    assert_eq!(notices[1], Notice::DeciderRecovered);
}

/// Takes as long as it likes.
struct Slow;

#[async_trait::async_trait]
impl Decider for Slow {
    fn identity(&self) -> DeciderIdentity {
        NativeDecider.identity()
    }
    async fn decide(&self, snapshot: Arc<Snapshot>) -> Result<Plan, DeciderFailure> {
        sleep(Duration::from_secs(2)).await;
        NativeDecider.decide(snapshot).await
    }
}

#[tokio::test(start_paused = true)]
async fn other_inputs_are_folded_while_a_decision_is_being_made() {
    let fake = FakeBackend::keyed();
    let host = builder(&fake).decider(Slow).start().await.unwrap();
    let began = Instant::now();
    host.update_shape(shape(1, &[("web", 1, "a")])).await.unwrap();
    host.update_shape(shape(2, &[("web", 2, "a")])).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(host.view().generation, 2);
    converged(&host, 60).await;
    assert_eq!(slots(&fake), ["web-0", "web-1"]);
    clean(&fake);
}

/// Writes down what it is told and when it is made durable; fails from some sync on.
#[derive(Clone, Default)]
struct Witness {
    told: Arc<Mutex<Vec<String>>>,
    fake: Option<FakeBackend>,
    syncs: Arc<Mutex<u32>>,
    fails_at: Option<u32>,
}

impl Journal for Witness {
    fn append(&mut self, record: &Record) -> Result<(), JournalError> {
        let words = match record {
            Record::AttemptsReserved { below } => format!("below {below}"),
            Record::Pending(operation) => format!("pending {}", operation.id),
        };
        self.told.lock().unwrap().push(words);
        Ok(())
    }
    fn sync(&mut self) -> Result<(), JournalError> {
        let mut syncs = self.syncs.lock().unwrap();
        *syncs += 1;
        if self.fails_at.is_some_and(|at| *syncs >= at) {
            let error = std::io::Error::other("the disk is gone");
            return Err(JournalError::Io { doing: "write", path: "journal".into(), error });
        }
        let calls =
            self.fake.as_ref().map_or(0, |fake| fake.log().iter().filter(|entry| entry.what == "begins").count());
        self.told.lock().unwrap().push(format!("durable after {calls} calls"));
        Ok(())
    }
    fn next_attempt(&self) -> u64 {
        41
    }
    fn starts_before(&self) -> u64 {
        2
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_leaves_before_it_is_durable() {
    let fake = FakeBackend::keyed();
    let witness = Witness { fake: Some(fake.clone()), ..Witness::default() };
    let host = builder(&fake).journal(witness.clone()).start().await.unwrap();
    host.update_shape(shape(1, &[("web", 1, "a")])).await.unwrap();
    let view = converged(&host, 5).await;
    assert_eq!(attempt(&view, "web-0"), 41, "the fence is respected");
    let told = witness.told.lock().unwrap().clone();
    assert_eq!(
        told,
        [
            "below a73",
            "durable after 1 calls", // the listing at the start
            "pending a41.1",
            "durable after 1 calls",
            "pending a41.2",
            "durable after 2 calls",
            "pending a41.3",
            "durable after 3 calls",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_fails_ends_the_host_before_the_effect() {
    let fake = FakeBackend::keyed();
    let host = builder(&fake).journal(Witness { fails_at: Some(3), ..Witness::default() }).start().await.unwrap();
    host.update_shape(shape(1, &[("web", 1, "a")])).await.unwrap();
    let error = host.wait_ended().await.unwrap_err();
    assert!(error.to_string().contains("the disk is gone"), "{error}");
    assert_eq!((fake.calls("web-0", Call::Create), fake.calls("web-0", Call::Lookup)), (1, 0));
    assert!(matches!(host.update_shape(shape(2, &[])).await, Err(HostError::Ended(_))));
    assert!(matches!(host.wait_converged().await, Err(HostError::Ended(_))));
}
