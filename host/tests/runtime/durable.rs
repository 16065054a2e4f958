//! A host with a store is killed at every boundary of it, and goes on.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use engine::id::Millis;
use homeostat::Shutdown;
use homeostat::backends::fake::{Call, FakeBackend};
use journal::{Chain, Damage, EncodedLine, Hash};
use store::{Begun, Command, Compacted, FailAt, Loaded, MemoryStore, Retention, Store, StoreError};

use crate::bench::*;

/// A disk: it outlives the hosts that use it.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<MemoryStore>>);

impl Disk {
    fn held(&self) -> MutexGuard<'_, MemoryStore> {
        self.0.lock().unwrap()
    }
}

impl Store for Disk {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        self.held().load()
    }
    fn head(&self) -> Chain {
        self.held().head()
    }
    fn durable(&self) -> Chain {
        self.held().durable()
    }
    fn append(&mut self, lines: &[EncodedLine]) -> Result<(), StoreError> {
        self.held().append(lines)
    }
    fn sync(&mut self) -> Result<(), StoreError> {
        self.held().sync()
    }
    fn snapshot(&mut self, at_seq: u64, checkpoint: &[u8]) -> Result<(), StoreError> {
        self.held().snapshot(at_seq, checkpoint)
    }
    fn compact(&mut self, keep: Retention, now_ms: Millis) -> Result<Compacted, StoreError> {
        self.held().compact(keep, now_ms)
    }
    fn chain_at(&mut self, seq: u64) -> Result<Chain, StoreError> {
        self.held().chain_at(seq)
    }
    fn page(&mut self, from_seq: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        self.held().page(from_seq)
    }
    fn damaged(&self, damage: Damage) -> StoreError {
        self.held().damaged(damage)
    }
    fn begin_command(&mut self, id: &str, body: Hash, at_ms: Millis) -> Result<Begun, StoreError> {
        self.held().begin_command(id, body, at_ms)
    }
    fn end_command(&mut self, id: &str, result: &[u8]) -> Result<(), StoreError> {
        self.held().end_command(id, result)
    }
    fn command(&mut self, id: &str) -> Result<Option<Command>, StoreError> {
        self.held().command(id)
    }
    fn open_commands(&mut self) -> Result<Vec<Command>, StoreError> {
        self.held().open_commands()
    }
    fn meta(&mut self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.held().meta(key)
    }
    fn put_meta(&mut self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.held().put_meta(key, value)
    }
}

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
    let third = builder(&fake).store(disk).shape_to_number(shape(1, &[("web", 2, "a")])).start().await.unwrap();
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
