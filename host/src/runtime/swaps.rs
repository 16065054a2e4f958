//! Which decider is in force, on the loop (SPEC 11): wishes and their revisions, the switch between two passes, and the watch that
//! falls back by itself. The registry's document goes to the disk together with the journal's record.

use std::sync::Arc;
use std::time::Instant;

use ::journal::{Divergence, Entry as Recorded, SwapRecord, SwapStep};
use decider::{Plan, Snapshot};
use engine::driver::Driver;
use engine::id::Millis;
use engine::io::{DeciderFailure, DeciderIdentity, Input};
use engine::validate::check_plan;
use tokio::sync::oneshot;

use super::select::Runtime;
use super::{HostError, HostEvent};
use crate::decide::Decider;
use crate::registry::{DECIDERS, Document, FailedLimit, Outcome, Ready, Watch};
use crate::swap::ShadowFeed;

/// What the loop knows of deciders.
pub(crate) struct Swaps {
    pub document: Document,
    /// The decider in force, as plans cite it.
    pub active: Arc<DeciderIdentity>,
    /// Who takes over when the watched one fails.
    pub fallback: Option<Arc<dyn Decider>>,
    /// A switch that waits for the end of the pass in flight.
    due: Option<Due>,
    /// A switch that is not yet on the disk, and so not yet told.
    untold: Option<Untold>,
    /// A candidate that is asked too.
    pub shadow: Option<ShadowFeed>,
    /// The call in flight.
    asked: Option<(u64, Arc<Snapshot>)>,
    /// Who waits for the end of the watch.
    watched: Option<oneshot::Sender<Watched>>,
    /// The passes that had ended when failed nodes were counted last.
    counted_at: u64,
}

struct Due {
    switch: Switch,
    /// The passes that had ended when it was asked for.
    passes: u64,
    reply: Reply,
}

type Reply = oneshot::Sender<Result<Switched, NotSwitched>>;

struct Untold {
    reply: Reply,
    switched: Switched,
    /// When the loop began with it.
    began: Instant,
}

/// A decider that is to be put in force.
pub(crate) struct Switch {
    /// The revision of the wish; 0 for one that no wish asked for.
    pub revision: u64,
    pub ready: Ready,
    pub watch_ms: Option<Millis>,
    pub limit: Option<FailedLimit>,
    pub by: Option<String>,
    /// What is said of it.
    pub text: String,
    /// Is told when it is not watched any more.
    pub watched: Option<oneshot::Sender<Watched>>,
}

/// It is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Switched {
    pub at_ms: Millis,
    pub until_ms: Option<Millis>,
    /// For so long no pass could start because of it, its commit included.
    pub gap_us: u64,
}

/// It was not put in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotSwitched {
    Superseded(u64),
    Pinned(String),
    Ended,
}

/// How a watch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// It stays.
    Kept(Millis),
    /// The one before it is in force again.
    RolledBack(Millis, String),
    /// Another one was put in force meanwhile.
    Replaced(Millis),
}

/// Failures of the host rather than of the guest: they roll back, and condemn nobody.
const NOT_THE_GUESTS: &[&str] = &["pool-exhausted", "host"];

impl Swaps {
    pub fn new(document: Document, active: DeciderIdentity, fallback: Option<Arc<dyn Decider>>) -> Self {
        Swaps {
            document,
            active: Arc::new(active),
            fallback,
            due: None,
            untold: None,
            shadow: None,
            asked: None,
            watched: None,
            counted_at: 0,
        }
    }

    /// Whether a switch can be carried out now: no pass is in flight, or the one in flight has only just begun and nobody was
    /// asked for it yet.
    pub fn is_due(&self, driver: &Driver) -> bool {
        let ended = |due: &Due| driver.is_between_passes() || driver.stats().passes != due.passes;
        self.due.as_ref().is_some_and(ended)
    }

    /// The decider in force is asked, by a driver that was told who is shadowed.
    pub fn asks(&mut self, call: u64, snapshot: &Arc<Snapshot>, driver: &Driver) {
        self.asked = Some((call, snapshot.clone()));
        if let Some(shadow) = &mut self.shadow {
            // A candidate is shown the pass in its own contract.
            let is_alike = shadow.candidate.sees_rollouts() == self.active.sees_rollouts();
            let shown = if is_alike { None } else { driver.asked_otherwise() };
            shadow.asked(call, snapshot, shown.unwrap_or(snapshot), &self.active);
        }
    }

    /// Its answer, and what speaks against it while it is watched.
    fn breach(&self, call: u64, result: &Result<Plan, DeciderFailure>) -> Option<DeciderFailure> {
        self.fallback.as_ref().filter(|_| self.document.watch.is_some())?;
        let (_, snapshot) = self.asked.as_ref().filter(|(asked, _)| *asked == call)?;
        match result {
            Err(failure) => Some(failure.clone()),
            Ok(plan) => check_plan(plan, snapshot, self.active.rules.len()).err().map(|error| DeciderFailure {
                decider: self.active.digest.clone(),
                class: "invalid-plan".into(),
                detail: error.to_string(),
            }),
        }
    }

    /// When the watch ends.
    pub fn watch_until(&self) -> Option<Millis> {
        self.document.watch.as_ref().map(|watch| watch.until_ms)
    }

    /// A newer wish has come.
    pub fn supersede(&mut self, revision: u64) {
        self.shadow = None;
        if let Some(due) = self.due.take() {
            // Whoever waits may be gone.
            let _ = due.reply.send(Err(NotSwitched::Superseded(revision)));
        }
    }

    /// The wish of this revision was called off, unless it has switched.
    pub fn call_off(&mut self, revision: u64) {
        self.shadow.take_if(|shadow| shadow.revision == revision);
        self.due.take_if(|due| due.switch.revision == revision);
    }

    fn end_watch(&mut self, how: Watched) {
        self.document.watch = None;
        self.fallback = None;
        if let Some(watched) = self.watched.take() {
            // Whoever waits may be gone.
            let _ = watched.send(how);
        }
    }
}

/// A step of a swap, as it is recorded.
pub(crate) fn record(document: &Document, revision: u64, step: SwapStep, digest: &str, text: &str) -> SwapRecord {
    SwapRecord {
        revision,
        step,
        decider: digest.into(),
        name: document.title(digest),
        command: document.wishes.iter().find(|wished| wished.revision == revision).and_then(|wished| wished.by.clone()),
        text: text.into(),
        divergences: Vec::new(),
    }
}

impl Runtime {
    /// Keeps the registry's document, in the transaction of what is recorded next.
    pub fn save_deciders(&mut self) -> Result<(), HostError> {
        let Some(store) = self.parts.history.store() else { return Ok(()) };
        let bytes = serde_json::to_vec(&self.swaps.document);
        let bytes = bytes.map_err(|error| HostError::Setup(format!("the registry of deciders: {error}")))?;
        Ok(store.put_meta(DECIDERS, &bytes)?)
    }

    /// Records a step of a swap, and tells it.
    pub fn record_swap(&mut self, record: SwapRecord) -> Result<(), HostError> {
        let now = self.now_ms();
        self.parts.history.note(Recorded::Swap(Box::new(record.clone())), now)?;
        self.parts.publisher.say(HostEvent::Swap(Box::new(record)));
        Ok(())
    }

    /// Records what a stage found.
    pub fn record_stage(
        &mut self,
        revision: u64,
        step: SwapStep,
        digest: &str,
        text: &str,
        divergences: Vec<Divergence>,
    ) -> Result<(), HostError> {
        let record = record(&self.swaps.document, revision, step, digest, text);
        self.record_swap(SwapRecord { divergences, ..record })
    }

    /// Puts a decider in force between two passes: now, or as soon as the pass in flight has ended.
    pub fn switch(
        &mut self,
        switch: Switch,
        reply: oneshot::Sender<Result<Switched, NotSwitched>>,
    ) -> Result<(), HostError> {
        let pinned = self.swaps.document.pinned.as_ref().filter(|pin| pin.digest != switch.ready.entry.digest);
        let newest = self.swaps.document.revision;
        let refused = match pinned {
            _ if self.ending.is_over() => Some(NotSwitched::Ended),
            _ if switch.revision != 0 && switch.revision != newest => Some(NotSwitched::Superseded(newest)),
            Some(pin) if switch.revision != 0 => Some(NotSwitched::Pinned(pin.digest.clone())),
            _ => None,
        };
        if let Some(refused) = refused {
            // Whoever asked may be gone.
            let _ = reply.send(Err(refused));
            return Ok(());
        }
        self.swaps.supersede(newest);
        let passes = self.parts.driver.stats().passes;
        self.swaps.due = Some(Due { switch, passes, reply });
        match self.swaps.is_due(&self.parts.driver) {
            true => {
                let input = self.put_in_force()?;
                self.step_all(input)?;
                self.publish();
                Ok(())
            }
            false => Ok(()),
        }
    }

    /// The switch that is due: what is recorded, and what the driver is to be given at once. Nothing may become durable between.
    pub fn put_in_force(&mut self) -> Result<Option<Input>, HostError> {
        let Some(Due { switch, reply, .. }) = self.swaps.due.take() else { return Ok(None) };
        let Switch { revision, ready, watch_ms, limit, by, text, watched } = switch;
        let (now, began) = (self.now_ms(), Instant::now());
        let digest = ready.entry.digest.clone();
        let identity = ready.decider.identity();
        let previous = std::mem::replace(&mut self.parts.decider, ready.decider);
        let was = self.swaps.document.active.clone();
        // Who takes over when it fails. Where it was in force already and is watched, that is who it was before.
        let running = self.swaps.document.watch.clone().zip(self.swaps.fallback.clone());
        let before = match running.filter(|_| was == digest) {
            Some((watch, fallback)) => Some((Watch { limit: limit.or(watch.limit), ..watch }, fallback)),
            None if was == digest => None,
            None => {
                let failed_before = failed_nodes(&self.parts.driver);
                let digest = digest.clone();
                let watch = Watch { revision, digest, until_ms: now, previous: was, limit, failed_before };
                Some((watch, previous))
            }
        };
        self.swaps.end_watch(Watched::Replaced(now));
        let document = &mut self.swaps.document;
        document.activate(&digest, now, by);
        if document.entry(&digest).is_none() {
            document.keep(ready.entry);
        }
        let until_ms = watch_ms.filter(|_| before.is_some()).map(|span| now.saturating_add(span));
        if let (Some(until_ms), Some((watch, fallback))) = (until_ms, before) {
            document.watch = Some(Watch { revision, until_ms, ..watch });
            self.swaps.fallback = Some(fallback);
            self.swaps.watched = watched;
        }
        let outcome = if until_ms.is_some() { Outcome::Watching } else { Outcome::Switched };
        self.swaps.document.ended(revision, outcome, now, &text);
        self.swaps.active = Arc::new(identity.clone());
        self.save_deciders()?;
        let record = record(&self.swaps.document, revision, SwapStep::Switched, &digest, &text);
        self.record_swap(record)?;
        self.swaps.untold = Some(Untold { reply, switched: Switched { at_ms: now, until_ms, gap_us: 0 }, began });
        Ok(Some(Input::DeciderChanged(identity)))
    }

    /// Tells of a switch, when a crash cannot undo it any more.
    pub fn tell_of_switch(&mut self) -> Result<(), HostError> {
        if let Some(Untold { reply, switched, began }) = self.swaps.untold.take() {
            self.parts.history.sync()?;
            let gap = began.elapsed();
            self.parts.instruments.switched(gap);
            let gap_us = u64::try_from(gap.as_micros()).unwrap_or(u64::MAX);
            // Whoever asked may be gone.
            let _ = reply.send(Ok(Switched { gap_us, ..switched }));
        }
        Ok(())
    }

    /// The decider answered. One that is watched and fails is not believed: the one before it is asked the same.
    pub fn decided(&mut self, call: u64, result: Result<Plan, DeciderFailure>) -> Result<(), HostError> {
        if let Some(shadow) = &mut self.swaps.shadow {
            shadow.answered(call, &result);
        }
        if let Some(failure) = self.swaps.breach(call, &result) {
            let blames = !NOT_THE_GUESTS.contains(&failure.class.as_str());
            return self.fall_back(&format!("{}: {}", failure.class, failure.detail), blames);
        }
        self.step(Input::Decided { call, result })
    }

    /// The one before the watched one takes over, at once.
    fn fall_back(&mut self, why: &str, blames: bool) -> Result<(), HostError> {
        let (Some(watch), Some(fallback)) = (self.swaps.document.watch.clone(), self.swaps.fallback.take()) else {
            return Ok(());
        };
        let now = self.now_ms();
        let identity = fallback.identity();
        let document = &mut self.swaps.document;
        document.activate(&watch.previous, now, None);
        // There is nothing good to go back to.
        document.previous = None;
        document.ended(watch.revision, Outcome::RolledBack, now, why);
        if blames {
            let swap = document.wishes.iter().find(|wished| wished.revision == watch.revision);
            let swap = swap.and_then(|wished| wished.by.clone());
            document.condemn(&watch.digest, why, now, swap);
        }
        self.swaps.active = Arc::new(identity.clone());
        self.parts.decider = fallback;
        self.save_deciders()?;
        self.record_stage(watch.revision, SwapStep::RolledBack, &watch.digest, why, Vec::new())?;
        if blames {
            self.record_stage(watch.revision, SwapStep::Quarantined, &watch.digest, why, Vec::new())?;
        }
        self.swaps.end_watch(Watched::RolledBack(now, why.into()));
        self.step(Input::DeciderChanged(identity))?;
        self.parts.history.sync()?;
        self.publish();
        Ok(())
    }

    /// Counts failed nodes after each pass, and ends a watch whose time is over.
    pub fn look_after_watch(&mut self) -> Result<(), HostError> {
        let Some(watch) = self.swaps.document.watch.clone() else { return Ok(()) };
        let passes = self.parts.driver.stats().passes;
        if let Some(limit) = watch.limit
            && std::mem::replace(&mut self.swaps.counted_at, passes) != passes
        {
            let failed = failed_nodes(&self.parts.driver);
            let more = failed.saturating_sub(watch.failed_before);
            let slots = self.parts.driver.state().slots.iter().filter(|slot| slot.desired.is_some()).count();
            if limit.is_breached(more, slots) {
                return self
                    .fall_back(&format!("{failed} nodes fail, {} did at the switch", watch.failed_before), true);
            }
        }
        let now = self.now_ms();
        if now < watch.until_ms {
            return Ok(());
        }
        self.swaps.document.ended(watch.revision, Outcome::Switched, now, "watched to the end");
        self.swaps.end_watch(Watched::Kept(now));
        self.save_deciders()?;
        self.record_stage(watch.revision, SwapStep::Watched, &watch.digest, "nothing spoke against it", Vec::new())?;
        self.parts.history.sync()?;
        Ok(())
    }
}

/// Slots whose attempts fail: one failed, and none was ready since.
fn failed_nodes(driver: &Driver) -> u32 {
    let failing = driver.state().slots.iter().filter(|slot| {
        slot.desired.is_some()
            && slot.node.as_ref().is_some_and(|node| node.retry.failures > 0 || node.failure.is_some())
    });
    u32::try_from(failing.count()).unwrap_or(u32::MAX)
}
