//! How a host ends, and what the next one finds.

use std::time::Duration;

use engine::io::Promise;
use homeostat::backends::fake::{Call, Commit, FakeBackend, Nth, Script, Step};
use homeostat::{HostError, Shutdown};
use tokio::time::{Instant, sleep};

use crate::bench::*;

#[tokio::test(start_paused = true)]
async fn a_take_down_leaves_nothing() {
    let fake = FakeBackend::keyed();
    let host = host(&fake).await;
    host.update_shape(shape(7, &[("web", 3, "a"), ("db", 1, "b")])).await.unwrap();
    converged(&host, 5).await;
    let farewell = host.shutdown(Shutdown::TakeDown).await.unwrap();
    assert_eq!(fake.resources(), []);
    assert!(farewell.is_clean(), "{farewell:?}");
    assert_eq!(farewell.view.generation, 8);
    assert!(matches!(host.update_shape(shape(9, &[])).await, Err(HostError::Ended(_))));
    assert_eq!(host.shutdown(Shutdown::Keep).await.unwrap(), farewell, "ending twice is no error");
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_take_down_in_the_middle_of_everything_leaves_nothing() {
    // Whatever the nodes were doing when it began, and though destroys fail at first.
    for ms in [0, 1, 5, 15, 25, 50, 500, 1_500] {
        let script = Script::new()
            .on("web-0", Call::Create, Nth::Only(1), Step::done().after(20))
            .on("web-1", Call::Lookup, Nth::UpTo(2), Step::not_ready().after(10))
            .on("web-2", Call::Start, Nth::Only(1), Step::done().after(30).commit(Commit::AtOnce))
            .on("web-3", Call::Create, Nth::Only(1), Step::ambiguous(Commit::After { ms: 300 }))
            .on("web-4", Call::Create, Nth::UpTo(2), Step::retryable())
            .on("*", Call::Destroy, Nth::Only(1), Step::retryable())
            .on("*", Call::Cancel, Nth::Only(1), Step::ambiguous(Commit::AtOnce));
        let fake = FakeBackend::new(Promise::Keyed, script);
        let host = host(&fake).await;
        host.update_shape(shape(1, &[("web", 6, "a")])).await.unwrap();
        sleep(Duration::from_millis(ms)).await;
        let farewell = host.shutdown(Shutdown::TakeDown).await.unwrap();
        assert!(farewell.is_clean(), "{ms} ms: {farewell:?}");
        assert_eq!(fake.resources(), [], "{ms} ms:\n{}", fake.transcript());
        clean(&fake);
    }
}

#[tokio::test(start_paused = true)]
async fn a_take_down_before_any_shape_removes_what_was_adopted() {
    let fake = FakeBackend::keyed();
    fake.plant(Some(key("web-0", 3)), Some(template("a")));
    fake.plant(Some(key("web-0", 2)), Some(template("a")));
    let stranger = fake.plant(None, None);
    let farewell = host(&fake).await.shutdown(Shutdown::TakeDown).await.unwrap();
    assert!(farewell.is_clean(), "{farewell:?}");
    assert_eq!(fake.resources(), [(stranger, None)]);
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_take_down_that_cannot_look_says_so() {
    let fake = FakeBackend::new(Promise::Keyed, Script::new().on("*", Call::List, Nth::From(2), Step::retryable()));
    let host = host(&fake).await;
    host.update_shape(shape(1, &[("web", 1, "a")])).await.unwrap();
    converged(&host, 5).await;
    let farewell = host.shutdown(Shutdown::TakeDown).await.unwrap();
    assert!(!farewell.is_clean());
    assert_eq!(farewell.unlisted.len(), 1);
    assert_eq!(farewell.unlisted[0].0, "fake");
    assert_eq!(fake.resources(), []);
}

#[tokio::test(start_paused = true)]
async fn a_take_down_finds_what_lands_after_the_last_node_is_gone() {
    let fake = FakeBackend::new(
        Promise::Keyed,
        Script::new().on("web-0", Call::Create, Nth::Only(1), Step::ambiguous(Commit::After { ms: 2_500 })).on(
            "*",
            Call::List,
            Nth::From(2),
            Step::done().after(3_000),
        ),
    );
    let host = host(&fake).await;
    host.update_shape(shape(1, &[("web", 1, "a")])).await.unwrap();
    converged(&host, 5).await; // the second create made one, before the first lands
    let farewell = host.shutdown(Shutdown::TakeDown).await.unwrap();
    assert!(farewell.is_clean(), "{farewell:?}");
    assert_eq!(fake.resources(), [], "{}", fake.transcript());
    assert!(fake.transcript().contains("takes effect: makes"), "{}", fake.transcript());
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_take_down_can_be_cut_short() {
    let fake = FakeBackend::new(
        Promise::Keyed,
        Script::new().on("web-1", Call::Destroy, Nth::Every, Step::hang(Commit::Never)),
    );
    let host = host(&fake).await;
    host.update_shape(shape(1, &[("web", 3, "a")])).await.unwrap();
    converged(&host, 5).await;
    let other = host.clone();
    let taking_down = tokio::spawn(async move { other.shutdown(Shutdown::TakeDown).await });
    sleep(Duration::from_secs(30)).await;
    assert!(!taking_down.is_finished());
    assert!(matches!(host.update_shape(shape(9, &[])).await, Err(HostError::Ended(_))));
    let began = Instant::now();
    let farewell = host.shutdown(Shutdown::Keep).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(5), "what runs gets its time");
    assert!(!farewell.is_clean());
    assert_eq!(farewell.given_up.len(), 1);
    let left: Vec<_> = farewell.view.nodes.iter().map(|node| node.node.as_str()).collect();
    assert_eq!(left, ["web-1"]);
    assert_eq!(taking_down.await.unwrap().unwrap(), farewell);
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_adopted_by_the_next_host() {
    let state = tempfile::tempdir().unwrap();
    let fake = FakeBackend::keyed();
    let first = builder(&fake).state_dir(state.path()).start().await.unwrap();
    first.update_shape(shape(1, &[("web", 3, "a")])).await.unwrap();
    let before = converged(&first, 5).await;
    let locked = builder(&fake).state_dir(state.path()).start().await.unwrap_err();
    assert!(locked.to_string().contains(&std::process::id().to_string()), "{locked}");
    first.shutdown(Shutdown::Keep).await.unwrap();
    assert_eq!(fake.resources().len(), 3);

    let second = builder(&fake).state_dir(state.path()).start().await.unwrap();
    second.update_shape(shape(1, &[("web", 4, "a")])).await.unwrap();
    let after = converged(&second, 5).await;
    for slot in ["web-0", "web-1", "web-2"] {
        assert_eq!(attempt(&after, slot), attempt(&before, slot));
        assert_eq!((fake.calls(slot, Call::Create), fake.calls(slot, Call::Destroy)), (1, 0));
    }
    assert!(attempt(&after, "web-3") > 3, "no id of the first host's is given out again (S3)");
    assert_eq!(fake.calls("web-3", Call::Create), 1);
    assert!(fake.transcript().contains("adopts session"), "nothing was restarted");
    assert!(second.shutdown(Shutdown::TakeDown).await.unwrap().is_clean());
    assert_eq!(fake.resources(), []);
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_handle_keeps_the_fleet() {
    let fake = FakeBackend::keyed();
    let host = host(&fake).await;
    host.update_shape(shape(1, &[("web", 1, "a")])).await.unwrap();
    converged(&host, 5).await;
    let mut views = host.watch();
    drop(host);
    while views.changed().await.is_ok() {}
    let calls = fake.log().len();
    sleep(Duration::from_secs(300)).await;
    assert_eq!(fake.log().len(), calls);
    assert_eq!(fake.resources().len(), 1);
}
