//! The engine's deliberate defects that an exhaustive search of one slot and one fault finds, each by the property that it
//! breaks. What is not listed needs more than that: a second slot, strangers, a swap, a lost state, invalid shapes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use decider::{Snapshot, reconcile};
use engine::io::DeciderIdentity;
use engine::mutation::Mutation;
use model::{Check, Kind, Scope, Verdict};

use Mutation as M;

const BOTH: &[Mutation] = &[
    M::SubmitBeforeRecord,
    M::DispatchTwice,
    M::FoldSuperseded,
    M::DestroyedTooEarly,
    M::ForgetLease,
    M::ForgetAmbiguous,
    M::ReplaceBeforeCleanUp,
    M::ScaleDownLowest,
    M::RestlessPass,
    M::BelieveAbsence,
    M::NoDoubt,
    M::DoubtSurvivesSuccess,
    M::NoBackoff,
    M::NoRestartBackoff,
    M::RestartForgetsFailures,
    M::ReadyKeepsFailures,
    M::CountNotReady,
    M::NoProbeWait,
    M::NoStageDeadline,
    M::IgnoreStageDeadline,
    M::IgnoreDeath,
    M::BelieveClosed,
    M::RefusedKeepsClimbing,
    M::FailedCancelForgets,
    M::CancelKeepsSession,
    M::DestroyKeepsLease,
    M::OtherRequestOnRetry,
    M::FoldLateResult,
    M::IgnoreAnswer,
    M::NeverAsk,
    M::ForgetAtDeadline,
    M::LedgerDiscardsAsked,
    M::NoDeadlineTimer,
    M::ChangeInPlace,
    M::RestartOldTemplate,
    M::ReapNothing,
    M::KeepIntent,
    M::DeleteForgetsPending,
    M::KeepUndesired,
    M::ReapHeld,
    M::RestartForgetsPending,
];

/// What only one kind of provider shows.
const ONE: &[(Mutation, Kind)] =
    &[(M::SettleWithoutWindow, Kind::Windowed), (M::SettleByCreating, Kind::Windowed), (M::NoReap, Kind::Keyed)];

/// The property that the search finds broken, and the path to it; `None` when all holds.
fn found(mutation: Mutation, kind: Kind) -> Option<(&'static str, Vec<String>)> {
    let identity = DeciderIdentity::native();
    let decide = |snapshot: &Snapshot| Ok(reconcile(snapshot));
    let scope = Scope { nodes: 1, kind, ..Scope::default() };
    let check =
        Check { scope, identity, decide: &decide, exact: false, jobs: 2, most: 300_000, mutation: Some(mutation) };
    match check.run(&mut |_| {}).unwrap().verdict {
        Verdict::Broken(broken) => Some((broken.violation.id, broken.path)),
        Verdict::Holds => None,
        Verdict::Unfinished(_) => panic!("{mutation:?}: not finished"),
    }
}

#[test]
fn each_is_found_by_its_property() {
    let mut wrong = Vec::new();
    let both = BOTH.iter().flat_map(|mutation| Kind::ALL.map(|kind| (*mutation, kind)));
    for (mutation, kind) in both.chain(ONE.iter().copied()) {
        match found(mutation, kind) {
            Some((id, path)) if mutation.breaks().contains(&id) && !path.is_empty() => {}
            other => wrong.push(format!("{mutation:?}, {kind}: {other:?}, and it breaks {:?}", mutation.breaks())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_other_kind_of_provider_does_not_mind() {
    assert_eq!(found(M::SettleWithoutWindow, Kind::Keyed), None);
    assert_eq!(found(M::SettleByCreating, Kind::Keyed), None);
}
