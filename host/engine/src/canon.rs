//! The normal form of a driver: all that can still influence what it does, and nothing else. Two drivers of one search with
//! equal forms do the same from here on, under names that correspond. Instants count from now; attempts are numbered by slot
//! and age; counts stop where they change nothing any more. The structs are taken apart field by field, so that a new field
//! is either written here or said to be without influence.

use std::collections::BTreeSet;

use decider::{Intent, Stage};

use crate::driver::Driver;
use crate::guard::{CREATES_WINDOW_MS, DESTROYS_WINDOW_MS, Windows};
use crate::id::{AttemptId, Millis};
use crate::io::{Observation, Operation, Promise, Request};
use crate::ledger::Status;
use crate::pause::{By, Pause};
use crate::policy::Policy;
use crate::schedule::backoff_ms;
use crate::state::{Ambiguous, ClusterState, ManagedNode, Orphan, Pending, Quarantine, Reap, Retry, Slot};

/// How names and counts are told apart.
#[derive(Clone, Copy)]
pub struct CanonBy<'a> {
    /// Which attempt a lease, a session or an endpoint belongs to, and its number within the attempt.
    pub name: &'a dyn Fn(&str) -> (AttemptId, u64),
    /// What a decider could tell apart, though the engine and the built-in ladder do not, is told apart too: failures in a row,
    /// progress, instants that have passed from those that there never were, and how far an attempt had come that is deleted.
    pub exact: bool,
}

/// The normal form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Canon {
    /// The form itself.
    pub words: Vec<u64>,
    /// The attempts that still matter, by their number in the form.
    pub attempts: Vec<AttemptId>,
}

impl Driver {
    /// The normal form. Attempts in `referenced` matter though the driver has retired them: resources or calls bear their keys.
    ///
    /// What never changes within a search is left out: run, policy, providers, decider, templates and their order; all templates
    /// are of one provider. Jitter
    /// depends on attempt ids, so the policy must have none. `None` in the middle of something: a pass is in flight, or outputs are
    /// not drained.
    pub fn canon(&self, referenced: &[AttemptId], by: CanonBy<'_>) -> Option<Canon> {
        let Driver {
            state,
            policy,
            providers: _,
            provider_names: _,
            decider: _,
            rule_ids: _,
            epoch: _,
            fence: _,
            now,
            outputs,
            submits,
            timers: _, // what the slots have armed
            pass,
            next_call: _,
            queued,
            chain: _, // counted from the next input on
            wake_at,
            pass_retry_at,
            pass_failures,
            reported,
            shape_revision: _,
            stats: _,
            also: _,
            mutation: _,
        } = self;
        if pass.is_some() || !outputs.is_empty() || !submits.is_empty() {
            return None;
        }
        let ClusterState {
            run: _,
            desired,
            observed_generation,
            next_attempt: _,
            reserved_below: _,
            inherited_below: _,
            slots,
            names: _,
            templates: _,
            template_index: _,
            attempts,
            forgotten_sequence: _,
            reaps,
            orphans,
            retired,
            pauses,
            windows,
            sees_rollouts: _,
        } = state;
        let mut all: BTreeSet<(u32, AttemptId)> = BTreeSet::new();
        let holders = slots.iter().filter_map(|slot| slot.node.as_ref()).map(|node| node.attempt);
        let strays = orphans.values().map(|orphan| orphan.key.attempt);
        for attempt in holders.chain(strays).chain(reaps.keys().copied()).chain(referenced.iter().copied()) {
            all.insert((attempts.get(&attempt).map_or(u32::MAX, |known| known.node.0), attempt));
        }
        let numbered: Vec<AttemptId> = all.iter().map(|(_, attempt)| *attempt).collect();
        let mut form = Form {
            words: Vec::with_capacity(96),
            attempts: &numbered,
            now: *now,
            by,
            policy,
            most: saturation(policy),
        };
        form.push(numbered.len() as u64);
        for (node, attempt) in &all {
            form.push(u64::from(*node) << 1 | u64::from(attempts.contains_key(attempt)));
        }
        form.push(*observed_generation);
        match desired {
            None => form.push(0),
            Some(shape) => {
                form.push(1 + shape.groups.len() as u64);
                form.push(shape.generation);
                shape.groups.iter().for_each(|group| form.push(u64::from(group.count)));
            }
        }
        form.push(slots.len() as u64);
        for slot in slots {
            let promise = slot
                .node
                .as_ref()
                .and_then(|node| self.providers.get(&state.templates.get(node.template.0 as usize)?.provider).copied());
            form.slot(slot, promise);
        }
        form.push(reaps.len() as u64);
        // In the order of their numbers: their own is by age, and which of two slots' attempts is older is not in the form.
        for attempt in &numbered {
            let Some(reap) = reaps.get(attempt) else { continue };
            form.attempt(*attempt);
            form.reap(reap);
        }
        form.push(orphans.len() as u64);
        let mut strays: Vec<(u64, u64, &Orphan)> = orphans
            .iter()
            .map(|((_, lease), orphan)| (form.named(lease), form.number(orphan.key.attempt), orphan))
            .collect();
        strays.sort_unstable_by_key(|(lease, attempt, _)| (*lease, *attempt));
        for (lease, attempt, orphan) in strays {
            // Its template matters only if it is adopted, which leads to one that is compared then.
            let Orphan { key: _, template: _, seen_ms: _, destroying } = orphan;
            form.extend([lease, attempt, u64::from(destroying.is_some())]);
            if let Some(reap) = destroying {
                form.reap(reap);
            }
        }
        form.push(retired.len() as u64);
        for (group, indices) in retired {
            form.text(Some(group));
            form.push(indices.len() as u64);
            form.extend(indices.iter().map(|index| u64::from(*index)));
        }
        form.push(pauses.len() as u64);
        pauses.iter().for_each(|pause| form.pause(pause));
        let Windows { destroys, creates } = windows;
        for (window, length_ms) in [(destroys, DESTROYS_WINDOW_MS), (creates, CREATES_WINDOW_MS)] {
            form.push(window.len() as u64);
            form.extend(window.iter().map(|at| form_age(*now, *at, length_ms)).collect::<Vec<_>>());
        }
        form.push(u64::from(*queued));
        form.wait(*wake_at);
        form.wait(*pass_retry_at);
        form.push(u64::from((*pass_failures).min(form.most)));
        form.text(reported.as_ref().map(|failure| failure.class.as_str()));
        Some(Canon { words: form.words, attempts: numbered })
    }
}

/// From how many failures on one more changes no delay.
fn saturation(policy: &Policy) -> u32 {
    let cap = backoff_ms(&Policy { backoff_jitter_percent: 0, ..*policy }, AttemptId(0), u32::MAX);
    let at_cap = |failures: u32| backoff_ms(&Policy { backoff_jitter_percent: 0, ..*policy }, AttemptId(0), failures);
    let delays = (1..64).find(|failures| at_cap(*failures) >= cap).unwrap_or(64);
    // The next failure is counted before its delay is computed.
    (delays - 1).max(policy.stages.growth_cap.saturating_sub(1))
}

/// How long ago, as far as a window still counts it.
fn form_age(now: Millis, at: Millis, length_ms: u64) -> u64 {
    now.saturating_sub(at).min(length_ms)
}

struct Form<'a> {
    words: Vec<u64>,
    attempts: &'a [AttemptId],
    now: Millis,
    by: CanonBy<'a>,
    policy: &'a Policy,
    most: u32,
}

impl Form<'_> {
    fn push(&mut self, word: u64) {
        self.words.push(word);
    }

    fn extend(&mut self, words: impl IntoIterator<Item = u64>) {
        self.words.extend(words);
    }

    fn number(&self, attempt: AttemptId) -> u64 {
        self.attempts.iter().position(|known| *known == attempt).map_or(u64::MAX, |at| at as u64)
    }

    fn attempt(&mut self, attempt: AttemptId) {
        let number = self.number(attempt);
        self.push(number);
    }

    /// An instant that something is compared with: 0 when it is due or there is none.
    fn wait(&mut self, at: Option<Millis>) {
        let word = match at {
            Some(at) if at > self.now => 2 + (at - self.now),
            Some(_) if self.by.exact => 1,
            _ => 0,
        };
        self.push(word);
    }

    /// An instant that means something even when it has passed.
    fn instant(&mut self, at: Option<Millis>) {
        self.push(at.map_or(0, |at| if at > self.now { 2 + (at - self.now) } else { 1 }));
    }

    fn named(&self, name: &str) -> u64 {
        let (attempt, number) = (self.by.name)(name);
        (self.number(attempt) << 32).wrapping_add(number.wrapping_add(1))
    }

    fn name(&mut self, name: Option<&str>) {
        let word = name.map_or(0, |name| self.named(name));
        self.push(word);
    }

    fn text(&mut self, text: Option<&str>) {
        // FNV-1a; only whether two short texts are the same matters.
        let hash = |text: &str| {
            text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            })
        };
        self.push(text.map_or(0, |text| hash(text) | 1));
    }

    fn failures(&mut self, failures: u32) {
        self.push(u64::from(if self.by.exact { failures } else { failures.min(self.most) }));
    }

    fn slot(&mut self, slot: &Slot, promise: Option<Promise>) {
        let Slot { name: _, group: _, index: _, desired, node, revision, decision, quarantine, armed, held: _, down } =
            slot;
        // Only that guard asks who is down, and settings stay as they are.
        self.push(u64::from(*down && self.policy.guards.destroyed_share_percent.is_some()));
        self.push(desired.map_or(0, |desired| {
            1 + (u64::from(desired.surge) << 63 | u64::from(desired.group) << 32 | u64::from(desired.template.0))
        }));
        // The last decision is for people, but for one thing: a contradiction is reported once.
        self.push(u64::from(decision.as_ref().is_some_and(|last| last.hold == Some(decider::HoldKind::Person))));
        self.instant(*armed);
        match quarantine {
            None => self.push(0),
            Some(Quarantine { revision: held, failure, retry_at, tries }) => {
                self.push(1 + u64::from(held == revision));
                self.text(Some(&failure.class));
                self.wait(Some(*retry_at));
                self.push(u64::from((*tries).min(self.most.max(1))));
            }
        }
        match node {
            None => self.push(0),
            Some(node) => self.node(node, promise),
        }
    }

    fn node(&mut self, node: &ManagedNode, promise: Option<Promise>) {
        let ManagedNode {
            attempt,
            intent,
            template,
            stage,
            lease,
            endpoint,
            session,
            progress,
            failure,
            last_error: _,
            pending,
            retry,
            stage_deadline,
            stage_deadline_max,
            early,
        } = node;
        // Of an attempt that is cleaned up only what is left of it matters, not how far it had come.
        let cleaned = *intent == Intent::Deleting && !self.by.exact;
        let stage = if cleaned && *stage != Stage::Destroyed { Stage::Failed } else { *stage };
        let codes = u64::from(stage.code()) | u64::from(intent.code()) << 8;
        let (made_from, failed) = if cleaned { (0, false) } else { (template.0, failure.is_some()) };
        self.push(1 + (codes | u64::from(failed) << 24 | u64::from(made_from) << 32));
        self.push(if self.by.exact { u64::from(progress.code()) } else { 0 });
        self.attempt(*attempt);
        self.name(lease.as_deref());
        self.name(endpoint.as_deref());
        self.name(session.as_deref());
        self.instant(*stage_deadline);
        self.instant(*stage_deadline_max);
        self.push(early.len() as u64);
        early.iter().for_each(|observation| self.observation(observation));
        let Retry { failures, next_effect_at, provider_wait, probe_at, restart_at, ambiguous } = retry;
        self.failures(*failures);
        for at in [next_effect_at, provider_wait, probe_at, restart_at] {
            self.wait(*at);
        }
        self.pending(pending.as_ref());
        // What can simply be repeated is not settled: to the engine it is as if there were no doubt.
        let ambiguous = ambiguous.as_ref().filter(|_| node.doubt().is_some() || self.by.exact);
        let Some(Ambiguous { id, kind, since_ms: _, looked_ms, waited_ms, absences, request: _ }) = ambiguous else {
            return self.push(0);
        };
        self.push(u64::from(kind.code()) | u64::from(id.attempt == *attempt) << 8);
        let listings = match promise {
            Some(Promise::Windowed { window_ms, listings }) if *kind == decider::OperationKind::CreateLease => {
                // What `absent` computes with: how long ago it was looked for, up to what counts of that.
                let most = self.policy.probe_interval_ms.max(1).saturating_mul(2);
                self.push((*waited_ms).min(window_ms));
                self.push(self.now.saturating_sub(*looked_ms).min(most));
                if let Some(Pending { sent_ms, operation, .. }) = pending
                    && matches!(operation.request, Request::SettleCreate(_))
                {
                    self.push(sent_ms.saturating_sub(*looked_ms).min(most));
                    self.push(self.now.saturating_sub(*sent_ms).min(most));
                }
                listings.max(1)
            }
            _ => crate::folding::ADOPTION_TRIES,
        };
        self.push(u64::from((*absences).min(listings)));
    }

    fn pending(&mut self, pending: Option<&Pending>) {
        let Some(Pending { operation, sent_ms: _, status, deadline_ms }) = pending else { return self.push(0) };
        let status = match status {
            Status::Pending => 1,
            Status::Running => 2,
            Status::Asked => 3,
            Status::Done => 4,
            Status::Failed => 5,
            Status::Ambiguous => 6,
            Status::Superseded => 7,
        };
        self.push(status);
        self.instant(Some(*deadline_ms));
        // What was recorded with it as its deadline is not read again.
        let Operation { id: _, key, provider: _, request, deadline_ms: _ } = operation;
        self.attempt(key.attempt);
        match request {
            Request::CreateLease(_) => self.push(1),
            Request::SettleCreate(_) => self.push(2),
            Request::LookupEndpoint { lease } => self.extend([3, self.named(lease)]),
            Request::StartBootstrap { lease, endpoint, template: _ } => {
                self.extend([4, self.named(lease), self.named(endpoint)]);
            }
            Request::CancelBootstrap { lease, session } => self.extend([5, self.named(lease), self.named(session)]),
            Request::DestroyLease { lease } => self.extend([6, self.named(lease)]),
        }
    }

    fn observation(&mut self, observation: &Observation) {
        let word = match observation {
            Observation::Progress(progress) => 1 | u64::from(progress.code()) << 8,
            Observation::Output(_) => 2,
            Observation::Joined => 3,
            Observation::Failed { progress, reason: _, permanent } => {
                4 | u64::from(progress.code()) << 8 | u64::from(*permanent) << 16
            }
            Observation::Closed { exit } => 5 | u64::from(exit.is_some()) << 8,
        };
        self.push(word);
    }

    fn pause(&mut self, pause: &Pause) {
        let Pause { scope, only, since_ms: _, by } = pause;
        self.text(scope.as_deref());
        let by = match by {
            By::Operator => 0,
            By::Guard { guard, limit: _, value: _ } => 1 + *guard as u64,
            By::Start { orphans: _ } => 255,
        };
        self.push(*only as u64 | by << 8);
    }

    fn reap(&mut self, reap: &Reap) {
        let Reap { provider: _, lease, key, pending, failures, next_effect_at, counted } = reap;
        self.push(u64::from(*counted && self.policy.guards.destroys_per_minute.is_some()));
        self.name(Some(lease));
        self.attempt(key.attempt);
        self.pending(pending.as_ref());
        self.failures(*failures);
        self.wait(*next_effect_at);
    }
}
