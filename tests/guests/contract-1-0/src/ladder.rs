//! THE TABLE (SPEC 4): one row a rule, the first that matches wins, the last one is total.
//!
//! A rule that names several alternatives has a row for each. `ANY` stands for every value the contract lists; what it
//! does not list matches the last row only, so nothing follows from unknown facts.

use crate::facts::{
    Address, Aim, Column, Doubt, Effect, Facts, Flight, Lease, Look, Restart, Session, Standing, Wanted,
};
use crate::{HoldKind, NodeRow, Verb};

/// What a row decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Do this.
    Act(Verb),
    /// Wait, until what the kind names, at the latest until the instant.
    Hold(HoldKind, Until),
}

/// Which stored instant ends a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// None.
    Open,
    /// `restart-at`.
    Restart,
    /// `pending-deadline`.
    Deadline,
    /// `next-effect-at`.
    Effect,
    /// `probe-at`.
    Look,
    /// `stage-deadline`.
    Stage,
}

impl Until {
    /// The instant itself; 0 when there is none.
    #[inline]
    pub fn of(self, row: &NodeRow) -> u64 {
        match self {
            Until::Open => 0,
            Until::Restart => row.restart_at,
            Until::Deadline => row.pending_deadline,
            Until::Effect => row.next_effect_at,
            Until::Look => row.probe_at,
            Until::Stage => row.stage_deadline,
        }
    }
}

/// One row of the ladder.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The number of its rule: `R{rule}`.
    pub rule: u8,
    /// Facts that are allowed, a bit each.
    pub when: u64,
    /// What it decides.
    pub then: Verdict,
    /// Why, for people.
    pub reason: &'static str,
}

/// Every value the contract lists.
const ANY: u64 = 0;

const NO: u64 = Wanted::No.bit();
const SAME: u64 = Wanted::Same.bit();
const DRIFT: u64 = Wanted::Drifted.bit();
const YES: u64 = SAME | DRIFT;

const VACANT: u64 = Standing::Vacant.bit();
const NEW: u64 = Standing::New.bit();
const LEASED: u64 = Standing::Leased.bit();
const ADDR: u64 = LEASED | Standing::Addressed.bit();
const BOOTING: u64 = Standing::Booting.bit();
const JOINED: u64 = Standing::Joined.bit();
const READY: u64 = Standing::Ready.bit();
const FAILED: u64 = Standing::Failed.bit();
const GONE: u64 = Standing::Destroyed.bit();
const NODE: u64 = NEW | ADDR | BOOTING | JOINED | READY | FAILED;

const ACTIVE: u64 = Aim::Active.bit();
const DELETE: u64 = Aim::Deleting.bit();

const IDLE: u64 = Flight::Idle.bit();
const FLIES: u64 = Flight::Pending.bit();

const CREATE: u64 = Doubt::Create.bit();
const BOOT: u64 = Doubt::Bootstrap.bit();
const SURE: u64 = Doubt::Clear.bit() | Doubt::Other.bit();

const LIVE: u64 = Lease::Live.bit();
const NONE: u64 = Lease::None.bit();
const KNOWN: u64 = Address::Known.bit();
const NOADR: u64 = Address::None.bit();
const SESS: u64 = Session::Live.bit();
const NOSES: u64 = Session::None.bit();

const R_DUE: u64 = Restart::Due.bit();
const R_WAIT: u64 = Restart::Waits.bit();
const E_DUE: u64 = Effect::Due.bit();
const E_WAIT: u64 = Effect::Waits.bit();
const L_DUE: u64 = Look::Due.bit();
const L_WAIT: u64 = Look::Waits.bit();

use HoldKind as H;
use Until as U;
use Verb as V;
use Verdict::{Act, Hold};

/// The ladder.
#[rustfmt::skip]
pub const LADDER: &[Row] = &[
    // rule   wanted standing aim     flight doubt       lease address session restart effect  look     then
    row( 0, [YES,   VACANT,  ACTIVE, IDLE,  SURE,       NONE, NOADR,  NOSES,  ANY,    ANY,    ANY   ], Act(V::Insert),              "the slot is desired and no node holds it"),
    row( 1, [NO,    GONE,    ANY,    IDLE,  SURE,       NONE, ANY,    NOSES,  ANY,    ANY,    ANY   ], Act(V::Reap),                "nothing is left of it and the slot is not desired"),
    row( 2, [YES,   GONE,    ANY,    IDLE,  SURE,       NONE, ANY,    NOSES,  R_DUE,  ANY,    ANY   ], Act(V::Restart),             "nothing is left of it and the slot is desired"),
    row( 3, [YES,   GONE,    ANY,    IDLE,  SURE,       NONE, ANY,    NOSES,  R_WAIT, ANY,    ANY   ], Hold(H::Instant, U::Restart), "backing off before the next attempt"),
    row( 4, [NO,    NODE,    ACTIVE, ANY,   ANY,        ANY,  ANY,    ANY,    ANY,    ANY,    ANY   ], Act(V::BeginDelete),         "the slot is not desired any more"),
    row( 4, [DRIFT, NODE,    ACTIVE, ANY,   ANY,        ANY,  ANY,    ANY,    ANY,    ANY,    ANY   ], Act(V::BeginDelete),         "the slot's template changed"),
    row( 4, [SAME,  FAILED,  ACTIVE, ANY,   ANY,        ANY,  ANY,    ANY,    ANY,    ANY,    ANY   ], Act(V::BeginDelete),         "the attempt failed"),
    row( 5, [ANY,   NODE,    ANY,    FLIES, ANY,        ANY,  ANY,    ANY,    ANY,    ANY,    ANY   ], Hold(H::Result, U::Deadline), "an operation is in flight"),
    row( 6, [ANY,   NODE,    DELETE, IDLE,  CREATE,     ANY,  ANY,    ANY,    ANY,    E_DUE,  ANY   ], Act(V::CreateLease),         "a create may have happened: adopt what it made, to be able to destroy it"),
    row( 6, [ANY,   NODE,    DELETE, IDLE,  BOOT,       LIVE, KNOWN,  ANY,    ANY,    E_DUE,  ANY   ], Act(V::StartBootstrap),      "a bootstrap may have started: adopt it, to be able to cancel it"),
    row( 7, [ANY,   NODE,    DELETE, IDLE,  SURE,       ANY,  ANY,    SESS,   ANY,    E_DUE,  ANY   ], Act(V::CancelBootstrap),     "its bootstrap session is live"),
    row( 8, [ANY,   NODE,    DELETE, IDLE,  SURE,       LIVE, ANY,    NOSES,  ANY,    E_DUE,  ANY   ], Act(V::DestroyLease),        "its lease is live"),
    row( 9, [ANY,   NODE,    DELETE, IDLE,  SURE,       NONE, ANY,    NOSES,  ANY,    ANY,    ANY   ], Act(V::MarkDestroyed),       "nothing is left of it"),
    row(10, [ANY,   NODE,    ANY,    IDLE,  ANY,        ANY,  ANY,    ANY,    ANY,    E_WAIT, ANY   ], Hold(H::Instant, U::Effect), "backing off before the next operation"),
    row(10, [ANY,   NODE,    ACTIVE, IDLE,  ANY,        ANY,  ANY,    ANY,    ANY,    E_DUE,  L_WAIT], Hold(H::Instant, U::Look),   "waiting to look again"),
    row(11, [SAME,  READY,   ACTIVE, IDLE,  SURE,       LIVE, ANY,    ANY,    ANY,    E_DUE,  L_DUE ], Hold(H::Steady, U::Open),    "ready"),
    row(12, [SAME,  NEW,     ACTIVE, IDLE,  SURE|CREATE,NONE, NOADR,  NOSES,  ANY,    E_DUE,  L_DUE ], Act(V::CreateLease),         "it has no lease"),
    row(13, [SAME,  LEASED,  ACTIVE, IDLE,  SURE,       LIVE, NOADR,  NOSES,  ANY,    E_DUE,  L_DUE ], Act(V::LookupEndpoint),      "it has a lease and no endpoint"),
    row(14, [SAME,  JOINED,  ACTIVE, IDLE,  SURE,       LIVE, ANY,    SESS,   ANY,    E_DUE,  L_DUE ], Act(V::ConvergenceObserved), "it joined and its session is live"),
    row(15, [SAME,  BOOTING, ACTIVE, IDLE,  SURE,       LIVE, ANY,    SESS,   ANY,    E_DUE,  L_DUE ], Hold(H::Observation, U::Stage), "its bootstrap is running"),
    row(16, [SAME,  ADDR,    ACTIVE, IDLE,  SURE|BOOT,  LIVE, KNOWN,  NOSES,  ANY,    E_DUE,  L_DUE ], Act(V::StartBootstrap),      "it has a lease and an endpoint and no session"),
    Row { rule: 17, when: u64::MAX, then: Hold(H::Person, U::Open), reason: "its facts contradict each other, or are not known to this decider" },
];

/// The rules' ids and sentences, in the order of their numbers (SPEC 4).
pub const RULES: [(&str, &str); 18] = [
    ("R0", "A desired slot that no node holds gets a fresh attempt."),
    ("R1", "A destroyed node whose slot is not desired is reaped."),
    ("R2", "A destroyed node whose slot is desired restarts, with a fresh attempt and the latest template."),
    ("R3", "A destroyed node whose slot is desired waits until its restart is due."),
    ("R4", "An active node that is not desired, drifted or failed begins to be deleted."),
    ("R5", "A node with a pending operation waits for its result or its deadline."),
    ("R6", "A deleting node with an ambiguous create or bootstrap dispatches that same operation again, to adopt."),
    ("R7", "A deleting node's live bootstrap session is cancelled."),
    ("R8", "A deleting node's live lease is destroyed."),
    ("R9", "A deleting node of which nothing is left is destroyed."),
    ("R10", "A node waits until its next operation or its next look is due."),
    ("R11", "A ready node is steady."),
    ("R12", "A node without a lease creates one."),
    ("R13", "A node with a lease and no endpoint looks it up."),
    ("R14", "A joined node with a live session has converged."),
    ("R15", "A node whose bootstrap runs waits for its observations, until the stage's deadline."),
    ("R16", "A node with a lease and an endpoint and no session starts its bootstrap."),
    ("R17", "A node whose facts contradict each other, or are unknown, waits for a person and is reported."),
];

/// What each column of [`row`] is; the order of the arrays above.
const COLUMNS: [Column; 11] = [
    Column::Wanted,
    Column::Standing,
    Column::Aim,
    Column::Flight,
    Column::Doubt,
    Column::Lease,
    Column::Address,
    Column::Session,
    Column::Restart,
    Column::Effect,
    Column::Look,
];

/// Values the contract does not list.
const UNKNOWN: u64 = Standing::Unknown.bit() | Aim::Unknown.bit() | Doubt::Unknown.bit() | Lease::Unknown.bit();

const fn row(rule: u8, facts: [u64; 11], then: Verdict, reason: &'static str) -> Row {
    let (mut column, mut when) = (0, 0);
    while column < facts.len() {
        let mask = COLUMNS[column].mask();
        // A fact in the wrong column would make a row that never matches.
        assert!(facts[column] & !mask == 0);
        when |= if facts[column] == ANY { mask & !UNKNOWN } else { facts[column] };
        column += 1;
    }
    Row { rule, when, then, reason }
}

/// The first row that matches. Total: the last row matches everything.
#[inline]
pub fn first_match(facts: Facts) -> &'static Row {
    let mut at = 0;
    while at + 1 < LADDER.len() {
        if facts.0 & !LADDER[at].when == 0 {
            break;
        }
        at += 1;
    }
    &LADDER[at]
}
