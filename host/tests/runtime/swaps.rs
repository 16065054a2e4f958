//! Another decider while the host runs (SPEC 11).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use decider::{HoldKind, Plan, Snapshot, Verb};
use engine::command::Command;
use engine::io::{DeciderFailure, DeciderIdentity};
use homeostat::backends::fake::{Call, FakeBackend};
use homeostat::decide::{Decider, NativeDecider};
use homeostat::registry::{Document, FailedLimit, Outcome};
use homeostat::swap::{Accept, Reason, Stage, StageStatus, SwapReport, Terms};
use homeostat::{Candidate, HostHandle, Shutdown, SwapTaken, Why, Wish, async_trait};
use journal::{Direction, Entry, RecordedInput, SwapStep};
use store::{FailAt, Store, records};

use crate::bench::*;
use crate::disk::Disk;

/// The ladder under another digest, with a fault.
pub struct Odd {
    pub digest: &'static str,
    pub fault: Fault,
    pub calls: Arc<AtomicU64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    /// It fails from this call on.
    Fails(u64, &'static str),
    /// Its plans are about other attempts from this call on.
    Invalid(u64),
    /// It never gives anything up.
    Keeps,
    /// It takes so long.
    Slow(u64),
    /// It never makes anything.
    Idle,
}

pub fn odd(digest: &'static str, fault: Fault) -> Arc<Odd> {
    Arc::new(Odd { digest, fault, calls: Arc::default() })
}

#[async_trait]
impl Decider for Odd {
    fn identity(&self) -> DeciderIdentity {
        DeciderIdentity::new(self.digest, decider::describe())
    }

    async fn decide(&self, snapshot: Arc<Snapshot>) -> Result<Plan, DeciderFailure> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let mut plan = decider::reconcile(&snapshot);
        let verbs: &[Verb] = match self.fault {
            Fault::Fails(from, class) if call >= from => {
                return Err(DeciderFailure { decider: self.digest.into(), class: class.into(), detail: "so".into() });
            }
            Fault::Invalid(from) if call >= from => {
                plan.decisions.attempt.iter_mut().for_each(|attempt| *attempt += 1);
                &[]
            }
            Fault::Slow(ms) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                &[]
            }
            Fault::Keeps => &[Verb::BeginDelete],
            Fault::Idle => &[Verb::Insert, Verb::CreateLease],
            _ => &[],
        };
        for at in 0..plan.decisions.len() {
            if verbs.iter().any(|verb| verb.code() == plan.decisions.verb[at]) {
                plan.decisions.verb[at] = Verb::Hold.code();
                plan.decisions.hold[at] = HoldKind::Steady.code();
            }
        }
        Ok(plan)
    }
}

fn wish(decider: Arc<Odd>, terms: Terms) -> Wish {
    Wish { terms, ..Wish::swap(Candidate::Ready(decider)) }
}

fn named(id: &str, wish: Wish) -> Wish {
    Wish { id: Some(id.into()), ..wish }
}

fn seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

fn watched() -> Terms {
    Terms { watch: seconds(600), ..Terms::default() }
}

async fn decided(taken: SwapTaken) -> Arc<SwapReport> {
    taken.outcome.unwrap();
    taken.job.unwrap().decided().await
}

async fn active(host: &HostHandle) -> String {
    host.deciders().await.unwrap().document.active
}

/// The digest that the driver has, which is what the journal says.
async fn folded(host: &HostHandle) -> String {
    host.look(|driver| driver.decider().digest.clone()).await.unwrap()
}

/// Calls but listings.
fn acted(fake: &FakeBackend) -> usize {
    fake.log().iter().filter(|entry| entry.call.is_some_and(|call| call != Call::List)).count()
}

async fn started(fake: &FakeBackend, disk: &Disk) -> HostHandle {
    builder(fake).store(disk.clone()).declare(declared(&[("web", 3, "a")])).start().await.unwrap()
}

/// All steps of swaps, and the digests of all changes of the decider, as the journal has them.
fn told(disk: &Disk) -> (Vec<(SwapStep, String)>, Vec<String>) {
    let mut held = disk.held();
    let (mut steps, mut changes) = (Vec::new(), Vec::new());
    for line in records(&mut *held, 0).unwrap() {
        match line.unwrap().entry {
            Entry::Swap(swap) => steps.push((swap.step, swap.decider)),
            Entry::Input { of: RecordedInput::DeciderChanged(identity), .. } => changes.push(identity.digest),
            _ => {}
        }
    }
    (steps, changes)
}

#[tokio::test(start_paused = true)]
async fn a_candidate_is_judged_put_in_force_and_watched_and_no_node_notices() {
    let (fake, disk) = (FakeBackend::keyed(), Disk::default());
    let host = started(&fake, &disk).await;
    converged(&host, 30).await;
    let calls = acted(&fake);
    let terms = Terms { replay: seconds(3_600), shadow: seconds(60), ..watched() };
    let taken = host.swap(named("one", wish(odd("odd", Fault::None), terms))).await.unwrap();
    assert_eq!(taken.outcome.as_ref().unwrap().revision, 1);
    let job = taken.job.unwrap();
    let report = job.decided().await;
    assert_eq!(report.outcome, Some(Outcome::Watching), "{report:#?}");
    let found = |stage| report.stage(stage).unwrap().compared.clone().unwrap();
    let replayed = found(Stage::Replay);
    assert!(replayed.passes > 5 && replayed.equal == replayed.passes, "{replayed:?}");
    // A quiet fleet is judged too: at once, and by each tick.
    let shadowed = found(Stage::Shadow);
    assert!(shadowed.passes >= 2 && shadowed.equal == shadowed.passes && shadowed.skipped == 0, "{shadowed:?}");
    assert_eq!((active(&host).await, folded(&host).await), ("odd".into(), "odd".into()));
    assert_eq!(job.ended().await.outcome, Some(Outcome::Switched));
    let document = host.deciders().await.unwrap().document;
    assert_eq!(
        (document.previous.as_deref(), document.watch, document.active_by.as_deref()),
        (Some("native"), None, Some("one"))
    );
    assert_eq!(acted(&fake), calls, "no node notices:\n{}", fake.transcript());
    let (steps, changes) = told(&disk);
    let steps: Vec<SwapStep> = steps.into_iter().map(|(step, _)| step).collect();
    use SwapStep::{Checked, Replayed, Shadowed, Switched, Watched, Wished};
    assert_eq!(steps, [Wished, Checked, Replayed, Shadowed, Switched, Watched]);
    assert_eq!(changes, ["odd"]);
    // It decides.
    host.command(homeostat::Order {
        id: "more".into(),
        expect_generation: None,
        command: Command::Scale { group: "web".into(), count: 5 },
    })
    .await
    .unwrap();
    assert_eq!(converged(&host, 30).await.nodes.len(), 5);
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn one_that_would_destroy_more_is_refused_with_the_list_unless_that_is_accepted() {
    for stage in [Stage::Replay, Stage::Shadow] {
        let (fake, disk) = (FakeBackend::keyed(), Disk::default());
        let host = builder(&fake).decider(Odd { digest: "keeps", fault: Fault::Keeps, calls: Arc::default() });
        let host = host.store(disk.clone()).declare(declared(&[("web", 3, "a")])).start().await.unwrap();
        converged(&host, 30).await;
        // It fails, and the one in force keeps it as it is.
        assert!(fake.die(&fake.lease_of("web-1").unwrap(), "exit status 9"));
        tokio::time::sleep(Duration::from_secs(15)).await;
        let terms = |accept| match stage {
            Stage::Replay => Terms { replay: seconds(3_600), accept, ..Terms::default() },
            _ => Terms { shadow: Some(Duration::ZERO), accept, ..Terms::default() },
        };
        let report = decided(host.swap(wish(odd("odd", Fault::None), terms(vec![]))).await.unwrap()).await;
        assert_eq!(report.outcome, Some(Outcome::Refused), "{report:#?}");
        let refusal = report.refusal.as_ref().unwrap();
        assert_eq!(
            (refusal.stage, refusal.reason, &refusal.accept[..]),
            (stage, Reason::Divergence, &[Accept::Destroys][..])
        );
        assert!(refusal.text.contains("web-1: R4 begin-delete instead of R4 hold"), "{}", refusal.text);
        let compared = report.stage(stage).unwrap().compared.clone().unwrap();
        let worst = &compared.divergences[0];
        assert_eq!((worst.direction, worst.slots), (Direction::MoreDestroys, 1));
        assert_eq!(report.stage(Stage::Switch).unwrap().status, StageStatus::Cancelled);
        assert_eq!(active(&host).await, "keeps");
        assert_eq!(told(&disk).0.last().unwrap(), &(SwapStep::Refused, "odd".into()));
        // Each of these accepts it.
        let rules = Accept::Rules("R4".into(), "R4".into());
        let accepted = if stage == Stage::Replay { Accept::Destroys } else { rules };
        let report = decided(host.swap(wish(odd("odd", Fault::None), terms(vec![accepted]))).await.unwrap()).await;
        assert_eq!(report.outcome, Some(Outcome::Switched), "{report:#?}");
        converged(&host, 30).await;
        clean(&fake);
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_while_it_is_watched_is_rolled_back_and_the_same_pass_is_asked_again() {
    let faults = [Fault::Fails(3, "panicked"), Fault::Fails(3, "out-of-fuel"), Fault::Invalid(3)];
    for fault in faults {
        let (fake, disk) = (FakeBackend::keyed(), Disk::default());
        let host = started(&fake, &disk).await;
        converged(&host, 30).await;
        let bad = odd("bad", fault);
        let job = host.swap(named("one", wish(bad.clone(), watched()))).await.unwrap().job.unwrap();
        assert_eq!(job.decided().await.outcome, Some(Outcome::Watching));
        assert!(fake.die(&fake.lease_of("web-1").unwrap(), "exit status 9"));
        let report = job.ended().await;
        assert_eq!(report.outcome, Some(Outcome::RolledBack), "{report:#?}");
        assert_eq!(report.stage(Stage::Watch).unwrap().status, StageStatus::Failed);
        assert_eq!((active(&host).await, folded(&host).await), ("native".into(), "native".into()));
        // Nothing is lost: the node is replaced at once, by the one before.
        let view = converged(&host, 3).await;
        assert!(view.nodes.iter().all(|node| !node.decider_fails));
        assert_eq!(bad.calls.load(Ordering::Relaxed), 3, "it is not asked again");
        let document = host.deciders().await.unwrap().document;
        assert_eq!((document.quarantined[0].digest.as_str(), &document.previous), ("bad", &None));
        // No loop promotes it again.
        let refused = decided(host.swap(wish(odd("bad", Fault::None), Terms::default())).await.unwrap()).await;
        let refusal = refused.refusal.as_ref().unwrap();
        assert_eq!((refusal.reason, &refusal.accept[..]), (Reason::Quarantined, &[Accept::Quarantine][..]));
        let accepted = Terms { accept: vec![Accept::Quarantine], ..Terms::default() };
        let report = decided(host.swap(wish(odd("bad", Fault::None), accepted)).await.unwrap()).await;
        assert_eq!(report.outcome, Some(Outcome::Switched));
        clean(&fake);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_again_while_it_is_watched_is_still_taken_back() {
    let (fake, disk) = (FakeBackend::keyed(), Disk::default());
    let host = started(&fake, &disk).await;
    converged(&host, 30).await;
    let bad = odd("bad", Fault::Fails(4, "panicked"));
    let first = host.swap(wish(bad.clone(), watched())).await.unwrap().job.unwrap();
    assert_eq!(first.decided().await.outcome, Some(Outcome::Watching));
    let again = host.swap(wish(bad.clone(), watched())).await.unwrap().job.unwrap();
    assert_eq!(again.decided().await.outcome, Some(Outcome::Watching));
    assert_eq!(first.ended().await.outcome, Some(Outcome::Switched));
    assert!(fake.die(&fake.lease_of("web-1").unwrap(), "exit status 9"));
    assert_eq!(again.ended().await.outcome, Some(Outcome::RolledBack));
    assert_eq!((active(&host).await, folded(&host).await), ("native".into(), "native".into()));
    converged(&host, 3).await;
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_rise_in_failed_nodes_rolls_back_where_that_was_asked_for() {
    for (limit, rolled_back) in
        [(Some(FailedLimit::Nodes(2)), true), (Some(FailedLimit::Percent(50)), true), (None, false)]
    {
        let fake = FakeBackend::keyed();
        let host = host(&fake).await;
        host.update_shape(shape(1, &[("web", 3, "a")])).await.unwrap();
        converged(&host, 30).await;
        let terms = Terms { watch_failed: limit, ..watched() };
        let job = host.swap(wish(odd("odd", Fault::None), terms)).await.unwrap().job.unwrap();
        assert_eq!(job.decided().await.outcome, Some(Outcome::Watching));
        assert!(fake.die(&fake.lease_of("web-0").unwrap(), "exit status 9"));
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(active(&host).await, "odd", "one alone is no rise");
        assert!(fake.die(&fake.lease_of("web-1").unwrap(), "exit status 9"));
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(active(&host).await, if rolled_back { "native" } else { "odd" });
        converged(&host, 30).await;
        clean(&fake);
    }
}

#[tokio::test(start_paused = true)]
async fn a_newer_wish_takes_the_place_of_one_that_has_not_switched() {
    let fake = FakeBackend::keyed();
    let host = host(&fake).await;
    host.update_shape(shape(1, &[("web", 3, "a")])).await.unwrap();
    converged(&host, 30).await;
    let terms = Terms { shadow: seconds(60), ..Terms::default() };
    let first = host.swap(wish(odd("first", Fault::None), terms.clone())).await.unwrap().job.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let second = host.swap(wish(odd("second", Fault::None), terms)).await.unwrap().job.unwrap();
    let lost = first.ended().await;
    assert_eq!((lost.outcome, lost.text.as_str()), (Some(Outcome::Superseded), "superseded by revision 2"));
    assert_eq!(second.decided().await.outcome, Some(Outcome::Switched));
    assert_eq!(active(&host).await, "second");
    // One that is called off does not switch, and a shadow never does.
    let terms = Terms { shadow: seconds(60), ..Terms::default() };
    let third = host.swap(wish(odd("third", Fault::None), terms)).await.unwrap().job.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let id = third.report().id.clone();
    host.call_off(None, &id).await.unwrap().unwrap();
    assert_eq!(third.ended().await.outcome, Some(Outcome::Cancelled));
    assert!(host.call_off(None, &id).await.unwrap().is_err());
    let shadow = Wish { shadow_only: true, ..wish(odd("shadow", Fault::Idle), Terms::default()) };
    let shadow = host.swap(shadow).await.unwrap().job.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    host.update_shape(shape(2, &[("web", 5, "a")])).await.unwrap();
    converged(&host, 30).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    let report = shadow.report();
    let compared = report.stage(Stage::Shadow).unwrap().compared.clone().unwrap();
    let fewer = compared.divergences.iter().find(|one| one.direction == Direction::FewerCreates);
    let fewer = fewer.unwrap_or_else(|| panic!("{compared:#?}"));
    assert_eq!((fewer.slots, fewer.first.name.as_deref()), (2, Some("web-3")), "{compared:#?}");
    host.stop_shadow(None).await.unwrap().unwrap();
    assert_eq!(shadow.ended().await.outcome, Some(Outcome::Shadowed));
    assert!(host.stop_shadow(None).await.unwrap().is_err());
    assert_eq!(active(&host).await, "second");
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_busy_candidate_delays_no_pass() {
    let fake = FakeBackend::keyed();
    let host = host(&fake).await;
    let shadow = Wish { shadow_only: true, ..wish(odd("slow", Fault::Slow(5_000)), Terms::default()) };
    let shadow = host.swap(shadow).await.unwrap().job.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let began = tokio::time::Instant::now();
    host.update_shape(shape(1, &[("web", 40, "a")])).await.unwrap();
    converged(&host, 5).await;
    assert!(began.elapsed() <= Duration::from_millis(2), "{:?}", began.elapsed());
    tokio::time::sleep(Duration::from_secs(60)).await;
    let compared = shadow.report().stage(Stage::Shadow).unwrap().compared.clone().unwrap();
    assert!(compared.skipped > 0 && compared.passes > 2, "{compared:?}");
    assert_eq!(compared.passes, compared.equal);
}

#[tokio::test(start_paused = true)]
async fn a_switch_waits_for_the_end_of_the_pass() {
    let fake = FakeBackend::keyed();
    let slow = odd("slow", Fault::Slow(200));
    let host = builder(&fake).decider(Odd { digest: "slow", fault: Fault::Slow(200), calls: slow.calls.clone() });
    let host = host.start().await.unwrap();
    host.update_shape(shape(1, &[("web", 3, "a")])).await.unwrap();
    // Its first pass is on the way.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (before, quick) = (slow.calls.load(Ordering::Relaxed), odd("quick", Fault::None));
    let began = tokio::time::Instant::now();
    let report = decided(host.swap(wish(quick.clone(), Terms::default())).await.unwrap()).await;
    assert_eq!(report.outcome, Some(Outcome::Switched));
    assert_eq!(began.elapsed(), Duration::from_millis(150));
    assert_eq!(slow.calls.load(Ordering::Relaxed), before, "no new pass of the old one begins");
    converged(&host, 5).await;
    let stats = host.look(|driver| driver.stats()).await.unwrap();
    assert_eq!(stats.stale_plans, 0, "no pass is lost");
    assert_eq!(stats.decider_calls, stats.passes + 1, "the pass that had just begun was asked of the new one");
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn history_that_the_one_in_force_does_not_reproduce_judges_nobody() {
    let (fake, disk) = (FakeBackend::keyed(), Disk::default());
    let host =
        builder(&fake).decider(Odd { digest: "fickle", fault: Fault::Fails(40, "panicked"), calls: Arc::default() });
    let host = host.store(disk.clone()).declare(declared(&[("web", 2, "a")])).start().await.unwrap();
    converged(&host, 30).await;
    let count = host.look(|driver| driver.stats().decider_calls).await.unwrap();
    assert!(count < 35, "{count}");
    tokio::time::sleep(Duration::from_secs(10 * (38 - count))).await;
    let terms = |accept| Terms { replay: seconds(3_600), accept, ..Terms::default() };
    let report = decided(host.swap(wish(odd("odd", Fault::None), terms(vec![]))).await.unwrap()).await;
    let refusal = report.refusal.clone().unwrap();
    assert_eq!(
        (refusal.stage, refusal.reason, &refusal.accept[..]),
        (Stage::Replay, Reason::History, &[Accept::History][..])
    );
    let report = decided(host.swap(wish(odd("odd", Fault::None), terms(vec![Accept::History]))).await.unwrap()).await;
    assert_eq!(report.outcome, Some(Outcome::Switched), "{report:#?}");
    // A host that keeps no history has none to judge by.
    let host = self::host(&FakeBackend::keyed()).await;
    let report = decided(host.swap(wish(odd("odd", Fault::None), terms(vec![]))).await.unwrap()).await;
    assert_eq!(report.refusal.as_ref().unwrap().reason, Reason::History);
}

#[tokio::test(start_paused = true)]
async fn what_was_pinned_stays_and_a_rollback_goes_back_at_once() {
    let (fake, disk) = (FakeBackend::keyed(), Disk::default());
    let host = started(&fake, &disk).await;
    converged(&host, 30).await;
    assert_eq!(host.roll_back(Some("early".into()), None).await.unwrap().outcome.unwrap_err().why, Why::Conflict);
    let report = decided(host.swap(wish(odd("odd", Fault::None), Terms::default())).await.unwrap()).await;
    assert_eq!(report.outcome, Some(Outcome::Switched));
    host.pin(Some("pin".into()), None).await.unwrap().unwrap();
    let refused = decided(host.swap(wish(odd("other", Fault::None), Terms::default())).await.unwrap()).await;
    assert_eq!(refused.refusal.as_ref().unwrap().reason, Reason::Pinned);
    assert!(refused.text.contains("odd is pinned"), "{}", refused.text);
    assert_eq!(host.roll_back(None, None).await.unwrap().outcome.unwrap_err().why, Why::Conflict);
    host.unpin(Some("unpin".into())).await.unwrap().unwrap();
    assert!(host.unpin(None).await.unwrap().is_err());
    // The built-in one of this host is none of a registry: there is no way back to it.
    let failed = decided(host.roll_back(Some("back".into()), None).await.unwrap()).await;
    assert_eq!(failed.outcome, Some(Outcome::Failed), "{failed:?}");
    assert!(failed.text.contains("no registry"), "{}", failed.text);
    let again = host.roll_back(Some("back".into()), None).await.unwrap();
    assert!(again.outcome.unwrap().replayed && again.job.unwrap().report().outcome == Some(Outcome::Failed));
    // Another body under the same id.
    assert!(host.pin(Some("back".into()), None).await.is_err());
    clean(&fake);
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_boundary_of_a_swap_leaves_the_one_in_force_that_the_journal_says() {
    let (mut crashes, mut outcomes) = (0, Vec::new());
    for boundary in 1.. {
        let (fake, disk) = (FakeBackend::keyed(), Disk::default());
        let host = started(&fake, &disk).await;
        converged(&host, 30).await;
        disk.held().set_fail_point(Some(Box::new(FailAt::new(None, boundary))));
        let terms = Terms { shadow: Some(Duration::ZERO), ..watched() };
        // It fails soon after the switch, so that the rollback has boundaries too.
        let answered = host.swap(named("once", wish(odd("odd", Fault::Fails(4, "panicked")), terms.clone()))).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let crashed = host.ping().await.is_err();
        drop(host);
        disk.held().set_fail_point(None);
        disk.held().crash();
        let (steps, changes) = told(&disk);
        let last = changes.last().cloned().unwrap_or("native".into());
        let switched = steps.iter().rev().find(|(step, _)| matches!(step, SwapStep::Switched | SwapStep::RolledBack));
        let expected = match switched {
            Some((SwapStep::Switched, digest)) => digest.clone(),
            _ => "native".into(),
        };
        assert_eq!(last, expected, "boundary {boundary}: steps and inputs are of one commit");
        // What the registry's document says is of the same commit.
        let kept = Store::meta(&mut *disk.held(), homeostat::registry::DECIDERS).unwrap().unwrap();
        let document = Document::read(&kept).unwrap();
        assert_eq!(document.active, last, "boundary {boundary}: {steps:?}");
        assert_eq!(document.watch.is_some(), last == "odd", "boundary {boundary}");
        // The next start goes on with it, or with the one it is given.
        let begun = builder(&fake).decider(Odd { digest: "odd", fault: Fault::None, calls: Arc::default() });
        let begun = if last == "odd" { begun } else { begun.decider(NativeDecider) };
        let host = begun.store(disk.clone()).declare(declared(&[("web", 3, "a")])).start().await.unwrap();
        assert_eq!((active(&host).await, folded(&host).await), (last.clone(), last.clone()), "boundary {boundary}");
        if let Ok(taken) = answered {
            let again = host.swap(named("once", wish(odd("odd", Fault::None), terms))).await.unwrap();
            let (first, again) = (taken.outcome.unwrap(), again.outcome.unwrap());
            assert!(again.replayed && again.revision == first.revision, "boundary {boundary}");
        }
        converged(&host, 60).await;
        clean(&fake);
        host.shutdown(Shutdown::TakeDown).await.unwrap();
        outcomes.push(last);
        crashes += u32::from(crashed);
        if !crashed {
            break;
        }
    }
    assert!(crashes >= 15, "only {crashes} boundaries were hit");
    assert!(outcomes.iter().any(|last| last == "odd"), "no crash fell between switch and rollback");
}

#[tokio::test(start_paused = true)]
async fn a_slow_provider_and_ten_swaps_a_second_lose_no_pass() {
    let fake = FakeBackend::keyed();
    let host = host(&fake).await;
    host.update_shape(shape(1, &[("web", 10, "a")])).await.unwrap();
    converged(&host, 30).await;
    let deciders = [odd("one", Fault::None), odd("two", Fault::None)];
    for round in 0..200u64 {
        let decider = deciders[usize::try_from(round % 2).unwrap()].clone();
        let taken = host.swap(wish(decider, Terms::default())).await.unwrap();
        if round % 10 == 0 {
            assert!(fake.die(&fake.lease_of(&format!("web-{}", round / 10 % 10)).unwrap(), "exit status 9"));
        }
        assert_eq!(decided(taken).await.outcome, Some(Outcome::Switched));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    converged(&host, 30).await;
    let stats = host.look(|driver| driver.stats()).await.unwrap();
    assert_eq!(stats.stale_plans, 0);
    assert_eq!(fake.live(&key("web-0", 1)), 0);
    assert_eq!(slots(&fake).len(), 10);
    clean(&fake);
}
