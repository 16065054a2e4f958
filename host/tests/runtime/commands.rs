//! Commands of operators: once for each id, before, during and after a crash (SPEC 10).

use std::time::Duration;

use engine::command::Command;
use engine::pause::Only;
use homeostat::backends::fake::{Call, FakeBackend};
use homeostat::{HostError, HostHandle, Order, Shutdown, Why};
use store::FailAt;

use crate::bench::*;
use crate::disk::Disk;

fn order(id: &str, command: Command) -> Order {
    Order { id: id.into(), expect_generation: None, command }
}

fn scale(id: &str, count: u32) -> Order {
    order(id, Command::Scale { group: "web".into(), count })
}

fn kill(id: &str, node: &str) -> Order {
    order(id, Command::Kill { nodes: vec![node.into()] })
}

async fn started(fake: &FakeBackend, disk: &Disk) -> HostHandle {
    builder(fake).store(disk.clone()).declare(declared(&[("web", 2, "a")])).start().await.unwrap()
}

fn creates(fake: &FakeBackend) -> usize {
    fake.log().iter().filter(|entry| entry.call == Some(Call::Create) && entry.what.starts_with("makes")).count()
}

#[tokio::test(start_paused = true)]
async fn the_same_id_acts_once_and_gets_the_first_answer() {
    let (fake, disk) = (FakeBackend::keyed(), Disk::default());
    let host = started(&fake, &disk).await;
    converged(&host, 30).await;
    let first = host.command(scale("one", 3)).await.unwrap();
    assert!(!first.replayed);
    assert_eq!(first.outcome.as_ref().unwrap().creates, ["web-2"]);
    let again = host.command(scale("one", 3)).await.unwrap();
    assert!(again.replayed);
    assert_eq!((&again.outcome, again.at_ms), (&first.outcome, first.at_ms));
    converged(&host, 30).await;
    assert_eq!(creates(&fake), 3);
    // Another body under the same id, another expectation under the same id: not that command.
    for other in [scale("one", 4), Order { expect_generation: Some(2), ..scale("one", 3) }] {
        let refused = host.command(other).await.unwrap_err();
        assert!(matches!(&refused, HostError::IdTaken { id, .. } if id == "one"), "{refused}");
    }
    // After another start too, and after others have changed the shape since.
    host.command(scale("two", 1)).await.unwrap();
    converged(&host, 30).await;
    host.shutdown(Shutdown::Keep).await.unwrap();
    let host = started(&fake, &disk).await;
    let later = host.command(scale("one", 3)).await.unwrap();
    assert!(later.replayed && later.outcome == first.outcome);
    let view = converged(&host, 30).await;
    assert_eq!(view.nodes.len(), 1, "nothing was done again");
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_command_without_an_id_is_refused_and_so_is_one_that_makes_no_sense() {
    let (fake, disk) = (FakeBackend::keyed(), Disk::default());
    let host = started(&fake, &disk).await;
    converged(&host, 30).await;
    for id in ["", " ", "a b", "é", "a/b", "\n", &"x".repeat(65)] {
        let refused = host.command(scale(id, 3)).await.unwrap_err();
        assert!(matches!(refused, HostError::Order(_)), "{id:?}: {refused}");
    }
    let outcomes = [
        (order("a", Command::Scale { group: "nope".into(), count: 1 }), Why::Unknown),
        (kill("b", "web-9"), Why::Unknown),
        (order("c", Command::Kill { nodes: vec![] }), Why::Invalid),
        (Order { expect_generation: Some(7), ..scale("d", 3) }, Why::Conflict),
        (order("e", Command::Resume { group: None, only: Only::Create }), Why::Conflict),
        (scale("f", u32::MAX), Why::Invalid),
    ];
    for (order, why) in outcomes {
        let report = host.command(order.clone()).await.unwrap();
        assert_eq!(report.outcome.as_ref().unwrap_err().why, why, "{report:?}");
        let again = host.command(order).await.unwrap();
        assert!(again.replayed && again.outcome == report.outcome, "a refusal is an answer too");
    }
    assert_eq!(converged(&host, 30).await.generation, 1);
    // A host that keeps nothing cannot promise anything.
    let forgetful = builder(&FakeBackend::keyed()).shape(shape(1, &[("web", 1, "a")])).start().await.unwrap();
    assert!(matches!(forgetful.command(scale("x", 2)).await, Err(HostError::Order(_))));
}

#[tokio::test(start_paused = true)]
async fn what_operators_changed_stands_until_the_declaration_changes() {
    let (fake, disk) = (FakeBackend::keyed(), Disk::default());
    let host = started(&fake, &disk).await;
    converged(&host, 30).await;
    host.command(scale("one", 3)).await.unwrap();
    // The same file is read again, and the daemon started again.
    assert_eq!(host.declare(declared(&[("web", 2, "a")])).await.unwrap(), 2);
    host.shutdown(Shutdown::Keep).await.unwrap();
    let host = started(&fake, &disk).await;
    let view = converged(&host, 30).await;
    assert_eq!((view.generation, view.nodes.len()), (2, 3));
    // The file is edited: it says what counts now.
    assert_eq!(host.declare(declared(&[("web", 1, "a")])).await.unwrap(), 3);
    assert_eq!(converged(&host, 30).await.nodes.len(), 1);
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_command_sent_again_after_a_crash_at_any_boundary_acts_once() {
    for (what, expected) in [("scale", 3), ("kill", 3), ("add", 3)] {
        let mut crashes = 0;
        for boundary in 1.. {
            let (fake, disk) = (FakeBackend::keyed(), Disk::default());
            let host = started(&fake, &disk).await;
            converged(&host, 30).await;
            let sent = || match what {
                "scale" => scale("once", 3),
                "kill" => kill("once", "web-1"),
                _ => order("once", Command::AddNode { group: "web".into() }),
            };
            disk.held().set_fail_point(Some(Box::new(FailAt::new(None, boundary))));
            let answered = host.command(sent()).await;
            tokio::time::sleep(Duration::from_secs(20)).await;
            let crashed = host.ping().await.is_err();
            drop(host);
            disk.held().set_fail_point(None);
            disk.held().crash();
            // Whoever sent it does not know, and sends it again: before anything else, and once more.
            let host = started(&fake, &disk).await;
            let report = host.command(sent()).await.unwrap();
            if let Ok(first) = &answered {
                assert!(
                    report.replayed && report.outcome == first.outcome,
                    "{what} {boundary}: what was answered stands"
                );
            }
            assert!(host.command(sent()).await.unwrap().replayed);
            converged(&host, 60).await;
            assert_eq!(creates(&fake), expected, "{what}, boundary {boundary}: {:?}", fake.log());
            clean(&fake);
            host.shutdown(Shutdown::TakeDown).await.unwrap();
            crashes += u32::from(crashed);
            if !crashed {
                break;
            }
        }
        assert!(crashes >= 3, "{what}: only {crashes} boundaries were hit");
    }
}
