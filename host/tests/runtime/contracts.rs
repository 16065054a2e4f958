//! A candidate of another contract is shown what it would be once in force (SPEC 11).

use std::sync::Arc;
use std::time::Duration;

use decider::{Plan, Snapshot, v1_0};
use engine::io::{DeciderFailure, DeciderIdentity};
use engine::rollout::{Rollout, Share};
use homeostat::backends::fake::FakeBackend;
use homeostat::decide::Decider;
use homeostat::registry::Outcome;
use homeostat::swap::{Accept, Reason, Stage, SwapReport, Terms};
use homeostat::{Candidate, Declaration, HostHandle, Wish, async_trait};
use journal::Direction;

use crate::bench::*;
use crate::disk::Disk;

/// The ladder, built for a contract. It fails when it is shown what that contract does not show.
struct Speaks(&'static str);

#[async_trait]
impl Decider for Speaks {
    fn identity(&self) -> DeciderIdentity {
        DeciderIdentity { contract: self.0.into(), ..DeciderIdentity::new(self.0, decider::describe()) }
    }

    async fn decide(&self, snapshot: Arc<Snapshot>) -> Result<Plan, DeciderFailure> {
        let limited = snapshot.groups.iter().any(|group| group.max_unavailable.is_some());
        if limited == v1_0::is_spoken(self.0) {
            let detail = format!("contract {} is shown {:?}", self.0, snapshot.groups);
            return Err(DeciderFailure { decider: self.0.into(), class: "shown".into(), detail });
        }
        Ok(decider::reconcile(&snapshot))
    }
}

/// Four nodes, of which one may be down, and one more may be there, because of a rollout.
fn rolled(command: &str) -> Declaration {
    let mut declared = declared(&[("web", 4, command)]);
    let one = Some(Share::Nodes(1));
    declared.shape.groups[0].rollout = Rollout { max_unavailable: one, max_surge: one, ..Rollout::default() };
    declared
}

async fn swap(host: &HostHandle, to: &'static str, terms: Terms) -> Arc<SwapReport> {
    let wish = Wish { terms, ..Wish::swap(Candidate::Ready(Arc::new(Speaks(to)))) };
    host.swap(wish).await.unwrap().job.unwrap().decided().await
}

/// The rules and steps of both, and the direction, of what a stage found.
fn found(report: &SwapReport, stage: Stage) -> Vec<(String, String, Direction, u64)> {
    let compared = report.stage(stage).unwrap().compared.clone().unwrap_or_else(|| panic!("{report:#?}"));
    let text = |cited: &journal::Cited| format!("{} {}", cited.rule, cited.verb).trim().to_owned();
    let all = compared.divergences.iter();
    all.map(|one| (text(&one.active), text(&one.candidate), one.direction, one.slots)).collect()
}

fn has(found: &[(String, String, Direction, u64)], active: &str, candidate: &str, direction: Direction, slots: u64) {
    let expected = (active.to_owned(), candidate.to_owned(), direction, slots);
    assert!(found.contains(&expected), "{expected:?} in {found:#?}");
}

fn replay() -> Terms {
    Terms { replay: Some(Duration::from_secs(3_600)), ..Terms::default() }
}

fn shadow() -> Terms {
    Terms { shadow: Some(Duration::from_secs(60)), ..Terms::default() }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_is_judged_by_what_its_own_contract_shows() {
    let (fake, disk) = (FakeBackend::keyed(), Disk::default());
    let host = builder(&fake).decider(Speaks("1.0.0")).store(disk.clone()).declare(rolled("a"));
    let host = host.start().await.unwrap();
    converged(&host, 30).await;

    // Without budgets all four are replaced at once. With them, one of the four, and one beside them.
    host.declare(rolled("b")).await.unwrap();
    converged(&host, 60).await;
    let report = swap(&host, "1.1.0", replay()).await;
    let differs = found(&report, Stage::Replay);
    has(&differs, "R4 begin-delete", "R19 hold", Direction::FewerDestroys, 3);
    has(&differs, "not-shown", "R0 insert", Direction::MoreCreates, 1);
    let replayed = report.stage(Stage::Replay).unwrap();
    let (compared, text) = (replayed.compared.clone().unwrap(), &replayed.text);
    assert_eq!((compared.failed, compared.not_judged), (0, 0), "{text}");
    assert!(text.contains("each asked in its own contract, 1.0 and 1.1"), "{text}");
    assert_eq!(report.outcome, Some(Outcome::Switched), "{report:#?}");

    // And the other way round it would be more that is destroyed.
    host.declare(rolled("c")).await.unwrap();
    converged(&host, 120).await;
    let report = swap(&host, "1.0.0", replay()).await;
    let differs = found(&report, Stage::Replay);
    has(&differs, "R19 hold", "R4 begin-delete", Direction::MoreDestroys, 3);
    has(&differs, "R0 insert", "not-shown", Direction::FewerCreates, 1);
    assert_eq!(report.refusal.as_ref().map(|refusal| refusal.reason), Some(Reason::Divergence), "{report:#?}");
    let compared = report.stage(Stage::Replay).unwrap().compared.clone().unwrap();
    assert_eq!((compared.failed, compared.not_judged), (0, 0), "{report:#?}");

    // The shadow: a pass is put to both, each as it is shown it.
    let job =
        host.swap(Wish { terms: shadow(), ..Wish::swap(Candidate::Ready(Arc::new(Speaks("1.0.0")))) }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    host.declare(rolled("d")).await.unwrap();
    converged(&host, 50).await;
    let report = job.job.unwrap().decided().await;
    let differs = found(&report, Stage::Shadow);
    has(&differs, "R19 hold", "R4 begin-delete", Direction::MoreDestroys, 3);
    assert_eq!(report.outcome, Some(Outcome::Refused), "{report:#?}");

    // With open eyes back, and then a later one is shadowed by the earlier one in force.
    let report = swap(&host, "1.0.0", Terms { accept: vec![Accept::Destroys], ..replay() }).await;
    assert_eq!(report.outcome, Some(Outcome::Switched), "{report:#?}");
    let job =
        host.swap(Wish { terms: shadow(), ..Wish::swap(Candidate::Ready(Arc::new(Speaks("1.1.0")))) }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    host.declare(rolled("e")).await.unwrap();
    let report = job.job.unwrap().decided().await;
    let differs = found(&report, Stage::Shadow);
    has(&differs, "R4 begin-delete", "R19 hold", Direction::FewerDestroys, 3);
    has(&differs, "not-shown", "R0 insert", Direction::MoreCreates, 1);
    assert_eq!(report.outcome, Some(Outcome::Switched), "{report:#?}");
    converged(&host, 60).await;
    clean(&fake);

    // All of history, under both in turn, is a judge for both.
    let report = swap(&host, "1.0.0", replay()).await;
    let text = &report.stage(Stage::Replay).unwrap().text;
    assert!(report.refusal.as_ref().is_some_and(|refusal| refusal.reason == Reason::Divergence), "{report:#?}");
    assert!(!text.contains("answers otherwise") && text.contains("reproduced"), "{text}");
}
