//! What the fake provider really holds, and what it noticed about its callers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use engine::id::{AttemptId, ExternalKey};
use engine::io::{LeaseId, Promise, Resource, SessionId};
use engine::shape::Template;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::script::{Call, Script};
use crate::backends::ObservationSink;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Milliseconds since the provider was made.
    pub at_ms: u64,
    /// Which call; `None` for what happened by itself.
    pub call: Option<Call>,
    /// Whose; `None` for a listing.
    pub key: Option<ExternalKey>,
    /// How manieth call of this kind for its slot, from 1.
    pub nth: u32,
    /// What happened: `begins`, `is dropped`, or how it ended.
    pub what: String,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>6} ms", self.at_ms)?;
        if let Some(call) = self.call {
            write!(f, "  {} #{}", call.label(), self.nth)?;
        }
        if let Some(key) = &self.key {
            write!(f, "  {}/{}", key.slot, key.attempt)?;
        }
        write!(f, "  {}", self.what)
    }
}

/// A resource.
pub(super) struct Held {
    pub key: Option<ExternalKey>,
    pub template: Option<Arc<Template>>,
    pub endpoint: String,
    pub session: Option<Session>,
}

/// A running bootstrap.
pub(super) struct Session {
    pub id: SessionId,
    pub sink: ObservationSink,
    pub joined: bool,
    pub player: Option<AbortHandle>,
}

pub(super) struct World {
    pub promise: Promise,
    pub script: Script,
    pub held: BTreeMap<LeaseId, Held>,
    pub log: Vec<Entry>,
    pub violations: Vec<String>,
    counts: BTreeMap<(String, Call), u32>,
    sessions: BTreeMap<String, u32>,
    in_flight: BTreeMap<AttemptId, u32>,
    peaks: BTreeMap<ExternalKey, u32>,
    numbers: u64,
    previous: Vec<Resource>,
    began: Instant,
}

impl World {
    pub fn new(promise: Promise, script: Script) -> Self {
        World {
            promise,
            script,
            held: BTreeMap::new(),
            log: Vec::new(),
            violations: Vec::new(),
            counts: BTreeMap::new(),
            sessions: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            peaks: BTreeMap::new(),
            numbers: 0,
            previous: Vec::new(),
            began: Instant::now(),
        }
    }

    pub fn note(&mut self, call: Option<Call>, key: Option<&ExternalKey>, nth: u32, what: impl Into<String>) {
        let at_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.log.push(Entry { at_ms, call, key: key.cloned(), nth, what: what.into() });
    }

    pub fn violation(&mut self, words: String) {
        self.note(None, None, 0, format!("VIOLATION: {words}"));
        self.violations.push(words);
    }

    /// Counts a call, and notices a second one that runs beside it for the same attempt (S2).
    pub fn enter(&mut self, call: Call, key: Option<&ExternalKey>) -> u32 {
        let slot = key.map(|key| key.slot.clone()).unwrap_or_default();
        let nth = self.counts.entry((slot, call)).or_insert(0);
        *nth += 1;
        let nth = *nth;
        if let Some(key) = key {
            let beside = self.in_flight.entry(key.attempt).or_insert(0);
            *beside += 1;
            if *beside > 1 {
                self.violation(format!("S2: {} for {key} while another call runs", call.label()));
            }
        }
        self.note(Some(call), key, nth, "begins");
        nth
    }

    pub fn leave(&mut self, key: Option<&ExternalKey>) {
        if let Some(key) = key
            && let Some(beside) = self.in_flight.get_mut(&key.attempt)
        {
            *beside -= 1;
            if *beside == 0 {
                self.in_flight.remove(&key.attempt);
            }
        }
    }

    pub fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub fn session_of(&mut self, slot: &str) -> u32 {
        let nth = self.sessions.entry(slot.into()).or_insert(0);
        *nth += 1;
        *nth
    }

    pub fn live(&self, key: &ExternalKey) -> u32 {
        let live = self.held.values().filter(|held| held.key.as_ref() == Some(key)).count();
        u32::try_from(live).unwrap_or(u32::MAX)
    }

    pub fn peaks(&self) -> &BTreeMap<ExternalKey, u32> {
        &self.peaks
    }

    /// The lowest resource that bears this label.
    pub fn find(&self, key: &ExternalKey) -> Option<LeaseId> {
        self.held.iter().find(|(_, held)| held.key.as_ref() == Some(key)).map(|(lease, _)| lease.clone())
    }

    /// A create that takes effect: what bears the key is returned, else it is made. A windowed provider looks before it
    /// creates only while it is asked (`late` is false), so a late create makes a second one.
    pub fn create(&mut self, key: &ExternalKey, template: &Arc<Template>, late: bool) -> (LeaseId, bool) {
        if (!late || self.promise == Promise::Keyed)
            && let Some(lease) = self.find(key)
        {
            return (lease, true);
        }
        let number = self.number();
        let lease = format!("lease-{number:03}");
        let held = Held {
            key: Some(key.clone()),
            template: Some(template.clone()),
            endpoint: format!("fake:{number}"),
            session: None,
        };
        self.held.insert(lease.clone(), held);
        let live = self.live(key);
        let peak = self.peaks.entry(key.clone()).or_insert(0);
        *peak = (*peak).max(live);
        if live > 1 {
            self.violation(format!("S8: {live} live resources bear {key}"));
        }
        (lease, false)
    }

    /// The resource, if its label is this key. Something else under that reference must not be touched (S15).
    pub fn ours(&mut self, call: Call, key: &ExternalKey, lease: &str) -> Option<&mut Held> {
        if self.held.get(lease).is_some_and(|held| held.key.as_ref() != Some(key)) {
            self.violation(format!("S15: {} of {lease}, which does not bear {key}", call.label()));
            return None;
        }
        self.held.get_mut(lease)
    }

    /// What a listing of a run shows now: the run's, and what bears no label.
    pub fn view(&self, run: &str) -> Vec<Resource> {
        self.held
            .iter()
            .filter(|(_, held)| held.key.as_ref().is_none_or(|key| key.run == run))
            .map(|(lease, held)| Resource {
                lease: lease.clone(),
                key: held.key.clone(),
                template: held.template.clone(),
            })
            .collect()
    }

    pub fn replace_previous(&mut self, view: Vec<Resource>) -> Vec<Resource> {
        std::mem::replace(&mut self.previous, view)
    }
}
