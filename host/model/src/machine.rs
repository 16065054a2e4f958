//! The production driver as a table: each normal form is kept once, with one driver that has it, and what each input makes
//! of it is computed once, by that driver.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use decider::{OperationKind, Plan, Snapshot, Stage};
use engine::canon::CanonBy;
use engine::driver::{Driver, DriverError};
use engine::id::{AttemptId, OperationId};
use engine::invariants::Violation;
use engine::io::{DeciderFailure, DeciderIdentity, Request};
use engine::shape::ClusterShape;
use engine::state::{ManagedNode, Pending};

use crate::hash::{Mix, PlainBuild};
use crate::names;
use crate::scope::{Edits, Scope};
use crate::world::{Ask, Reply};

/// How plans are made.
pub type Decide<'a> = dyn Fn(&Snapshot) -> Result<Plan, DeciderFailure> + Sync + 'a;

/// What the world gives to the driver, in numbers of the normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum In {
    /// People have edited the shape.
    Shape(Edits),
    /// The awaited call of an attempt is answered.
    Answer { attempt: u8, reply: Reply, number: u8, session: u8 },
    /// It ends badly.
    Fails { attempt: u8, fault: Failing },
    /// An answer that nobody waits for.
    Late { attempt: u8, doubted: bool, reply: Reply, number: u8, session: u8 },
    /// A session reports.
    Hears { attempt: u8, word: Word },
    /// The provider is listed; ten bits a resource: attempt, number and one.
    Listed { resources: u128 },
    /// Time passes.
    Tick { ms: u64 },
    /// The host starts again; the sessions of these attempts, a bit each, still run.
    Restarted { running: u32, edits: Edits },
    /// Only these attempts still matter, a bit each.
    Keep(u32),
}

/// How a call ends badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    Unknown,
    Retryable,
    Permanent,
    NotReady,
}

/// What a session says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Joined,
    Failed,
    Ended,
    Silent,
}

/// A call that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub attempt: u8,
    pub ask: Ask,
    pub number: u8,
    pub session: u8,
}

/// What an input makes of a driver.
#[derive(Debug)]
pub struct Step {
    pub next: Arc<Form>,
    /// The new number of each attempt.
    pub renumbered: Vec<u8>,
    pub sent: Vec<Sent>,
    /// For each attempt by its old number: the operation in doubt is the one that was in doubt before.
    pub doubt_kept: u32,
    /// The operation in doubt is the one that was pending before.
    pub doubt_new: u32,
    /// What is broken, first things first.
    pub violation: Option<Violation>,
}

/// What the world needs to know of an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    pub slot: u8,
    /// It holds its slot, or it is being reaped.
    pub kept: bool,
    pub holds: bool,
    pub reaped: bool,
    /// The number of the lease that it holds, plus one.
    pub lease: u8,
    /// When the deadline of its pending operation passes, from now.
    pub deadline_ms: Option<u64>,
    /// When a bootstrap that runs is given up, from now.
    pub boot_ms: Option<u64>,
    /// Its pending operation starts a bootstrap.
    pub starts: bool,
    /// Resources and sessions that the driver refers to, a bit each.
    pub numbers: u16,
    pub sessions: u16,
    /// Resources that are reported as orphans, a bit each.
    pub orphans: u16,
    /// The session that the driver knows, plus one.
    pub session: u8,
}

/// One normal form.
#[derive(Debug)]
pub struct Form {
    pub hash: u128,
    pub driver: Driver,
    pub attempts: Vec<AttemptId>,
    pub known: Vec<Known>,
    /// When the driver wants to be woken, from now.
    pub wake_ms: Option<u64>,
    pub converged: bool,
    /// The driver is between two inputs, as it should be.
    pub whole: bool,
    pub(crate) steps: Mutex<Vec<(In, Arc<Step>)>>,
}

/// The table of forms.
pub struct Machine<'a> {
    pub scope: Scope,
    pub decide: &'a Decide<'a>,
    pub identity: DeciderIdentity,
    /// A decider that is not the built-in one may look at what the engine does not.
    pub exact: bool,
    shapes: Vec<ClusterShape>,
    pub(crate) forms: Vec<Mutex<HashMap<u128, Arc<Form>, PlainBuild>>>,
    /// Further drivers of the same forms, where the normal form itself is what is tested.
    #[cfg(test)]
    pub(crate) twins: Option<crate::tests::twins::Twins>,
    /// Decisions by rule, in steps that were computed.
    pub rules: Vec<AtomicU64>,
    /// Steps that were computed.
    pub computed: AtomicU64,
    #[cfg_attr(not(feature = "mutations"), allow(dead_code))]
    pub mutation: Option<engine::mutation::Mutation>,
}

const SHARDS: usize = 64;

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Machine<'a> {
    pub fn new(scope: Scope, identity: DeciderIdentity, decide: &'a Decide<'a>, exact: bool) -> Self {
        Machine {
            scope,
            decide,
            rules: identity.rules.iter().map(|_| AtomicU64::new(0)).collect(),
            identity,
            exact,
            shapes: (0..8).map(|code| scope.shape(Edits::of(code))).collect(),
            forms: (0..SHARDS).map(|_| Mutex::default()).collect(),
            #[cfg(test)]
            twins: None,
            computed: AtomicU64::new(0),
            mutation: None,
        }
    }

    /// The shape after some edits.
    pub fn shape(&self, edits: Edits) -> ClusterShape {
        self.shapes.get(usize::from(edits.code())).cloned().unwrap_or_else(|| self.scope.shape(edits))
    }

    /// The form of a driver that knows nothing yet.
    pub fn begin(&self) -> Result<Arc<Form>, DriverError> {
        #[cfg_attr(not(feature = "mutations"), allow(unused_mut))]
        let mut driver = Driver::new(self.scope.config(self.identity.clone()))?;
        #[cfg(feature = "mutations")]
        if let Some(mutation) = self.mutation {
            driver.mutate(mutation);
        }
        Ok(self.intern(driver, &[]).0)
    }

    /// How many forms there are.
    pub fn forms(&self) -> u64 {
        self.forms.iter().map(|shard| lock(shard).len() as u64).sum()
    }

    /// What an input makes of a form: looked up, or computed and kept.
    pub fn step(&self, form: &Arc<Form>, input: In) -> Arc<Step> {
        if let Some((_, known)) = lock(&form.steps).iter().find(|(known, _)| *known == input) {
            return Arc::clone(known);
        }
        let mut rules = vec![0; self.rules.len()];
        let step = Arc::new(self.compute(form, input, &mut rules, &|driver, kept| self.intern(driver, kept)));
        let mut steps = lock(&form.steps);
        if let Some((_, known)) = steps.iter().find(|(known, _)| *known == input) {
            // Another thread was faster; what it has is the same.
            return Arc::clone(known);
        }
        steps.push((input, Arc::clone(&step)));
        drop(steps);
        self.computed.fetch_add(1, Ordering::Relaxed);
        for (all, here) in self.rules.iter().zip(rules) {
            all.fetch_add(here, Ordering::Relaxed);
        }
        step
    }

    /// The same without the table: this very driver goes on, under its own names.
    pub fn step_alone(&self, form: &Arc<Form>, input: In) -> Arc<Step> {
        let mut rules = vec![0; self.rules.len()];
        Arc::new(self.compute(form, input, &mut rules, &|driver, kept| self.apart(driver, kept)))
    }

    fn intern(&self, driver: Driver, kept: &[AttemptId]) -> (Arc<Form>, Vec<AttemptId>) {
        let (hash, attempts) = self.hash(&driver, kept);
        let Some(hash) = hash else { return (Arc::new(form(0, driver, attempts.clone(), false)), attempts) };
        let mut shard = lock(&self.forms[(hash >> 64) as usize % SHARDS]);
        #[cfg(test)]
        if let Some(twins) = self.twins.as_ref().filter(|_| shard.contains_key(&hash)) {
            twins.keep(hash, &driver, &attempts);
        }
        let known = shard.entry(hash).or_insert_with(|| Arc::new(form(hash, driver, attempts.clone(), true)));
        (Arc::clone(known), attempts)
    }

    pub(crate) fn apart(&self, driver: Driver, kept: &[AttemptId]) -> (Arc<Form>, Vec<AttemptId>) {
        let (hash, attempts) = self.hash(&driver, kept);
        (Arc::new(form(hash.unwrap_or(0), driver, attempts.clone(), hash.is_some())), attempts)
    }

    /// The hash of a driver's normal form; `None` in the middle of a pass.
    fn hash(&self, driver: &Driver, kept: &[AttemptId]) -> (Option<u128>, Vec<AttemptId>) {
        let Some(canon) = driver.canon(kept, CanonBy { name: &names::parse, exact: self.exact }) else {
            return (None, Vec::new());
        };
        let mut mix = Mix::new();
        canon.words.iter().for_each(|word| mix.word(*word));
        (Some(mix.finish()), canon.attempts)
    }
}

pub(crate) fn form(hash: u128, driver: Driver, attempts: Vec<AttemptId>, whole: bool) -> Form {
    let now = driver.now_ms();
    Form {
        hash,
        known: attempts.iter().map(|attempt| known(&driver, *attempt)).collect(),
        attempts,
        wake_ms: driver.requeue_at().map(|at| at.saturating_sub(now)),
        converged: driver.is_converged() && driver.state().reaps.is_empty(),
        driver,
        whole,
        steps: Mutex::default(),
    }
}

/// The bit of a resource's name, or of a session's.
fn bit(number: u8) -> u16 {
    1 << (number & 15)
}

fn known(driver: &Driver, attempt: AttemptId) -> Known {
    let state = driver.state();
    let now = driver.now_ms();
    let rest = |at: u64| at.saturating_sub(now);
    let node = state.attempts.get(&attempt).map(|known| known.node);
    let mut known = Known { slot: node.map_or(u8::MAX, |node| node.0 as u8), ..Known::default() };
    for ((_, lease), orphan) in &state.orphans {
        if orphan.key.attempt == attempt {
            known.orphans |= bit(names::number(lease));
        }
    }
    known.numbers |= known.orphans;
    let held = node.and_then(|node| state.slot(node)?.node.as_ref()).filter(|held| held.attempt == attempt);
    if let Some(held) = held {
        known.holds = true;
        known.lease = held.lease.as_ref().map_or(0, |lease| names::number(lease) + 1);
        known.session = held.session.as_ref().map_or(0, |session| names::session_number(session) + 1);
        let boots = held.climbs() && held.stage == Stage::BootstrapRunning;
        known.boot_ms = held.stage_deadline.filter(|_| boots).map(rest);
        known.numbers |= refers(held);
        known.sessions |= held.session.as_ref().map_or(0, |session| bit(names::session_number(session)));
        known.pending(held.pending.as_ref(), now);
    }
    if let Some(reap) = state.reaps.get(&attempt) {
        known.reaped = true;
        known.numbers |= bit(names::number(&reap.lease));
        known.pending(reap.pending.as_ref(), now);
    }
    known.kept = known.holds || known.reaped || known.orphans != 0;
    known
}

fn refers(held: &ManagedNode) -> u16 {
    held.lease.iter().chain(held.endpoint.iter()).fold(0, |mask, name| mask | bit(names::number(name)))
}

impl Known {
    fn pending(&mut self, pending: Option<&Pending>, now: u64) {
        let Some(pending) = pending else { return };
        self.deadline_ms = Some(pending.deadline_ms.saturating_sub(now));
        self.starts = pending.operation.request.kind() == OperationKind::StartBootstrap;
        let (number, session) = about(&pending.operation.request);
        self.numbers |= number.map_or(0, bit);
        self.sessions |= session.map_or(0, bit);
    }
}

/// The resource and the session that a request names.
pub fn about(request: &Request) -> (Option<u8>, Option<u8>) {
    match request {
        Request::CreateLease(_) | Request::SettleCreate(_) => (None, None),
        Request::LookupEndpoint { lease } | Request::DestroyLease { lease } => (Some(names::number(lease)), None),
        Request::StartBootstrap { lease, .. } => (Some(names::number(lease)), None),
        Request::CancelBootstrap { lease, session } => {
            (Some(names::number(lease)), Some(names::session_number(session)))
        }
    }
}

/// What a request asks.
pub fn ask(request: &Request) -> Ask {
    match (request, request.kind()) {
        (Request::SettleCreate(_), _) => Ask::Settle,
        (_, OperationKind::CreateLease) => Ask::Create,
        (_, OperationKind::LookupEndpoint) => Ask::Lookup,
        (_, OperationKind::StartBootstrap) => Ask::Start,
        (_, OperationKind::CancelBootstrap) => Ask::Cancel,
        (_, OperationKind::DestroyLease) => Ask::Destroy,
    }
}

/// The operation that a driver waits for on behalf of an attempt.
pub fn pending_of(driver: &Driver, attempt: AttemptId) -> Option<&Pending> {
    let state = driver.state();
    match state.reaps.get(&attempt) {
        Some(reap) => reap.pending.as_ref(),
        None => held_of(driver, attempt)?.pending.as_ref(),
    }
}

/// The create or bootstrap that a driver remembers as ambiguous for an attempt.
pub fn doubt_of(driver: &Driver, attempt: AttemptId) -> Option<OperationId> {
    let held = held_of(driver, attempt)?;
    held.doubt()?;
    held.retry.ambiguous.as_ref().map(|doubt| doubt.id)
}

fn held_of(driver: &Driver, attempt: AttemptId) -> Option<&ManagedNode> {
    let state = driver.state();
    state.slot(state.holder(attempt)?)?.node.as_ref()
}
