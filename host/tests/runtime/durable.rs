//! A host with a store is killed at every boundary of it, and goes on.

use std::time::Duration;

use homeostat::Shutdown;
use homeostat::backends::fake::{Call, FakeBackend};
use store::FailAt;

use crate::bench::*;
use crate::disk::Disk;

#[tokio::test(start_paused = true)]
async fn a_host_that_is_stopped_goes_on_and_disturbs_nothing() {
    let (fake, disk) = (FakeBackend::keyed(), Disk::default());
    let wanted = shape(1, &[("web", 3, "a")]);
    let first = builder(&fake).store(disk.clone()).shape(wanted.clone()).start().await.unwrap();
    let before = converged(&first, 5).await;
    first.shutdown(Shutdown::Keep).await.unwrap();
    let creates = fake.log().iter().filter(|entry| entry.call == Some(Call::Create)).count();

    let second = builder(&fake).store(disk.clone()).shape(wanted).start().await.unwrap();
    let view = second.view();
    assert!(view.nodes.iter().all(|node| node.ready), "what was ready is ready at once: {view:#?}");
    for node in &before.nodes {
        assert_eq!(attempt(&view, &node.node), node.attempt.unwrap());
    }
    assert_eq!(view.generation, 1, "the same content is the same generation");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(fake.log().iter().filter(|entry| entry.call == Some(Call::Create)).count(), creates);
    // Its sessions are listened to: a death is noticed.
    assert!(fake.die(&fake.lease_of("web-1").unwrap(), "exit status 9"));
    let view = until(&second, 10, |view| view.nodes.iter().any(|node| node.node == "web-1" && !node.ready)).await;
    assert!(!view.converged);
    converged(&second, 30).await;
    // Another content from a file that does not count is a newer generation.
    second.shutdown(Shutdown::Keep).await.unwrap();
    let third = builder(&fake).store(disk).declare(declared(&[("web", 2, "a")])).start().await.unwrap();
    let view = converged(&third, 30).await;
    assert_eq!((view.generation, slots(&fake).len()), (2, 2));
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_kill_at_every_boundary_loses_and_doubles_nothing() {
    let mut kills = 0;
    for boundary in 1.. {
        let (fake, disk) = (FakeBackend::keyed(), Disk::default());
        let wanted = shape(1, &[("web", 2, "a"), ("db", 1, "b")]);
        disk.held().set_fail_point(Some(Box::new(FailAt::new(None, boundary))));
        let first = builder(&fake).store(disk.clone()).shape(wanted.clone()).start().await;
        let ended = match &first {
            Ok(host) => host.wait_converged().await.is_err(),
            Err(_) => true,
        };
        if !ended {
            break;
        }
        kills += 1;
        drop(first);
        disk.held().set_fail_point(None);
        disk.held().crash();
        let second = builder(&fake).store(disk.clone()).shape(wanted).start().await.unwrap();
        let view = converged(&second, 120).await;
        assert_eq!(slots(&fake), ["db-0", "web-0", "web-1"], "boundary {boundary}: {view:#?}");
        clean(&fake);
        second.shutdown(Shutdown::TakeDown).await.unwrap();
        assert_eq!(slots(&fake), [""; 0], "boundary {boundary}");
    }
    assert!(kills > 20, "{kills} boundaries");
}

#[tokio::test(start_paused = true)]
async fn what_the_state_does_not_know_is_an_orphan() {
    let fake = FakeBackend::keyed();
    let first = builder(&fake).store(Disk::default()).shape(shape(1, &[("web", 1, "a")])).start().await.unwrap();
    converged(&first, 5).await;
    first.shutdown(Shutdown::Keep).await.unwrap();
    // Its state is gone: what runs is not taken over, not touched, its key is not used again, and nothing is put beside it
    // before a person has looked.
    let second = builder(&fake).store(Disk::default()).shape(shape(1, &[("web", 1, "a")])).start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(300)).await;
    let view = second.view();
    assert_eq!((view.orphans.len(), view.pauses.len(), slots(&fake).len()), (1, 1, 1), "{view:#?}");
    assert!(!view.converged && view.nodes[0].held.as_ref().is_some_and(|held| held.contains("resume")), "{view:#?}");
    // Somebody destroys it.
    assert!(fake.vanish(&fake.lease_of("web-0").unwrap()));
    let view = converged(&second, 600).await;
    assert_eq!((view.orphans.len(), view.pauses.len(), slots(&fake).len()), (0, 0, 1));
    assert_eq!(attempt(&view, "web-0"), 2);
    clean(&fake);
}
