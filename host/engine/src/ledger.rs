//! The ledger is a match: the life of an operation, the same live, on recovery and in replay.

use serde::{Deserialize, Serialize};

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Recorded; has not left yet.
    Pending,
    /// It has left.
    Running,
    /// Its deadline passed; the executor has been asked.
    Asked,
    /// It ended well.
    Done,
    /// It ended badly; nobody doubts that.
    Failed,
    /// Nobody knows whether it happened.
    Ambiguous,
    /// A later operation settled it, or its attempt is over.
    Superseded,
}

/// What can happen to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerEvent {
    /// It was handed to the executor.
    Left,
    /// Its deadline passed.
    DeadlinePassed,
    /// The executor answered: the result is on its way.
    ResultPromised,
    /// A success arrived.
    Succeeded,
    /// A failure arrived.
    Failed,
    /// Its outcome is not known: the backend or the executor says so.
    GivenUp,
    /// A later operation settled it, or its attempt is over.
    Superseded,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It now stands here.
    To(Status),
    /// It came too late, or twice: discarded and counted (SPEC 7).
    Discard,
}

/// One step of an operation's life.
pub const fn step(status: Status, event: LedgerEvent) -> Step {
    use LedgerEvent as E;
    use Status as S;
    match (status, event) {
        (S::Pending, E::Left) => Step::To(S::Running),
        (S::Pending | S::Running | S::Asked, E::Succeeded) => Step::To(S::Done),
        (S::Pending | S::Running | S::Asked, E::Failed) => Step::To(S::Failed),
        (S::Pending | S::Running | S::Asked, E::GivenUp) => Step::To(S::Ambiguous),
        (S::Pending | S::Running | S::Asked, E::DeadlinePassed) => Step::To(S::Asked),
        (S::Asked, E::ResultPromised) => Step::To(S::Asked),
        (S::Pending | S::Running | S::Asked | S::Ambiguous, E::Superseded) => Step::To(S::Superseded),
        (S::Running | S::Asked, E::Left)
        | (S::Pending | S::Running, E::ResultPromised)
        | (S::Done | S::Failed | S::Superseded, _)
        | (S::Ambiguous, E::Left | E::DeadlinePassed | E::ResultPromised | E::Succeeded | E::Failed | E::GivenUp) => {
            Step::Discard
        }
    }
}
