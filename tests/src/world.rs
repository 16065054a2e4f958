//! A small omniscient provider for random runs: it knows what really exists; the engine sees only what it is told.

use engine::id::ExternalKey;
use engine::io::{Done, Fault, Listing, Operation, Request, Resource};

use crate::session::natural;

/// What really exists, and what is still going to.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Live resources, in the order in which they appeared.
    pub live: Vec<Resource>,
    /// Creates that will land, and when.
    pub late: Vec<(u64, ExternalKey)>,
    made: u64,
}

/// How a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// It works.
    Works,
    /// It fails and nothing happened.
    Fails,
    /// It is refused for good and nothing happened.
    Refused,
    /// Nobody knows; it happened.
    LostDone,
    /// Nobody knows; it did not happen.
    LostNothing,
    /// Nobody knows; it will happen after this many milliseconds (creates).
    LostLate(u64),
}

impl World {
    /// Performs an operation; what the backend says about it.
    pub fn perform(&mut self, operation: &Operation, course: Course, now_ms: u64) -> Result<Done, Fault> {
        let lost = || Err(Fault::Ambiguous { reason: "connection reset".into() });
        match course {
            Course::Fails => return Err(Fault::retryable("503")),
            Course::Refused => return Err(Fault::permanent("no permission")),
            Course::LostNothing => return lost(),
            Course::LostLate(after_ms) => {
                if matches!(operation.request, Request::CreateLease(_)) {
                    self.late.push((now_ms + after_ms, operation.key.clone()));
                }
                return lost();
            }
            Course::Works | Course::LostDone => {}
        }
        let done = self.effect(operation);
        if course == Course::LostDone { lost() } else { Ok(done) }
    }

    fn effect(&mut self, operation: &Operation) -> Done {
        let held = |live: &[Resource]| {
            live.iter()
                .find(|resource| resource.key.as_ref() == Some(&operation.key))
                .map(|resource| resource.lease.clone())
        };
        match &operation.request {
            // A keyed provider adopts. A windowed one makes another: it must not be asked twice.
            Request::CreateLease(_) => match held(&self.live).filter(|_| operation.provider == "fake") {
                Some(lease) => Done::Leased { lease, adopted: true },
                None => Done::Leased { lease: self.make(&operation.key), adopted: false },
            },
            Request::SettleCreate(_) => match held(&self.live) {
                Some(lease) => Done::Leased { lease, adopted: true },
                None => Done::Absent,
            },
            Request::DestroyLease { lease } => {
                self.live.retain(|resource| resource.lease != *lease);
                Done::Destroyed
            }
            _ => natural(operation),
        }
    }

    fn make(&mut self, key: &ExternalKey) -> String {
        self.made += 1;
        let lease = format!("L{}", self.made);
        self.live.push(Resource { lease: lease.clone(), key: Some(key.clone()), template: None });
        lease
    }

    /// Lets the creates land whose time has come. A keyed provider holds one resource a key.
    pub fn land(&mut self, now_ms: u64) {
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.late).into_iter().partition(|(at, _)| *at <= now_ms);
        self.late = later;
        for (_, key) in due {
            if !self.live.iter().any(|resource| resource.key.as_ref() == Some(&key)) {
                self.make(&key);
            }
        }
    }

    /// What a listing shows: all of it, or the first few.
    pub fn listing(&self, complete: bool, shown: usize) -> Listing {
        Listing { complete, resources: self.live.iter().take(shown).cloned().collect() }
    }
}
