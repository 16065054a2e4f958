//! What operators ask for about deciders, on the loop: once for each id, with revisions that only rise (SPEC 10, 11).

use ::journal::{Chain, Hash, SwapStep};
use engine::id::Millis;
use serde::{Deserialize, Serialize};
use store::{Begun, Saved, Store, StoreError};

use super::HostError;
use super::operate::{Refused, Why, check_id};
use super::select::Runtime;
use crate::registry::{Document, Entry, Outcome, Pin, Registry, Wished};
use crate::swap::ShadowFeed;

/// What is asked for.
#[derive(Clone, Debug, Serialize)]
pub(crate) enum Asked {
    /// A decider is wished for.
    Wish {
        #[serde(skip)]
        digest: String,
        named: String,
        terms: crate::swap::Terms,
        shadow_only: bool,
        #[serde(skip)]
        declares: bool,
    },
    /// Whether there is one, is no part of what is asked.
    StopShadow {
        #[serde(skip)]
        is_open: bool,
    },
    Cancel {
        id: String,
        #[serde(skip)]
        is_open: bool,
    },
    Rollback,
    /// `None`: the one in force.
    Pin {
        digest: Option<String>,
    },
    Unpin,
}

/// It was taken: what follows goes on by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// When.
    pub at_ms: Millis,
    /// How many wishes were made, this one included.
    pub revision: u64,
    /// What it does, in words.
    pub text: String,
    /// The name of the swap or shadow that goes on.
    pub swap: Option<String>,
    /// The digest of the decider that it is about.
    pub decider: Option<String>,
    /// The id was used before: this was said then, and nothing was done now.
    #[serde(skip)]
    pub replayed: bool,
}

/// What was taken, and what its task needs to know.
pub(crate) struct Begin {
    pub taken: Result<Taken, Refused>,
    pub document: Document,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    outcome: Result<Taken, Refused>,
}

impl Runtime {
    /// Takes what is asked for, or finds what came of it before. All that it changes becomes durable in one commit.
    pub fn ask_deciders(
        &mut self,
        id: Option<String>,
        expected: Option<u64>,
        asked: Asked,
    ) -> Result<Begin, HostError> {
        if self.ending != super::ending::Ending::No {
            return Err(HostError::Ended("it is being shut down".into()));
        }
        let outcome = match expected.filter(|expected| *expected != self.swaps.document.revision) {
            Some(expected) => {
                let found = self.swaps.document.revision;
                let text = format!("{found} wishes were made so far, not {expected}: look again before you wish");
                Err(Refused { why: Why::Conflict, text })
            }
            None => self.foresee_deciders(id.as_deref(), &asked),
        };
        let begin = |outcome: Result<Taken, Refused>, replayed, document| {
            let taken = outcome.map(|taken| Taken { replayed, ..taken });
            Begin { taken, document }
        };
        if let Some(id) = &id {
            check_id(id)?;
            let body = serde_json::to_vec(&asked).map_err(|error| HostError::Order(error.to_string()))?;
            let kept = serde_json::to_vec(&Kept { outcome: outcome.clone() });
            let kept = kept.map_err(|error| HostError::Order(error.to_string()))?;
            let at_ms = self.now_ms();
            let store = self.parts.history.store();
            let store =
                store.ok_or_else(|| HostError::Order("this host keeps no state, so it takes no commands".into()))?;
            match store.command(id, Hash::of(&body), at_ms, || kept)? {
                Begun::New => {}
                Begun::Again(known) => {
                    self.parts.history.sync()?;
                    let kept: Kept = serde_json::from_slice(known.result.as_deref().unwrap_or_default())
                        .map_err(|error| HostError::Order(format!("what came of {id:?} cannot be read: {error}")))?;
                    return Ok(begin(kept.outcome, true, self.swaps.document.clone()));
                }
                Begun::OtherBody(known) => {
                    return Err(HostError::IdTaken { id: id.clone(), at_ms: known.at_ms });
                }
            }
        }
        if let Ok(taken) = &outcome {
            self.take_wish(id, &asked, taken)?;
        }
        self.parts.history.sync()?;
        Ok(begin(outcome, false, self.swaps.document.clone()))
    }

    /// What would be done, or why nothing.
    fn foresee_deciders(&self, id: Option<&str>, asked: &Asked) -> Result<Taken, Refused> {
        let document = &self.swaps.document;
        let next = document.revision.saturating_add(1);
        let name = || id.map_or_else(|| format!("wish-{next}"), str::to_owned);
        let taken = |revision, text: String, swap: Option<String>, decider: Option<String>| Taken {
            at_ms: self.now_ms(),
            revision,
            text,
            swap,
            decider,
            replayed: false,
        };
        let refuse = |why, text: String| Err(Refused { why, text });
        match asked {
            Asked::Wish { digest, shadow_only, .. } => {
                let what = if *shadow_only { "is shadowed" } else { "is judged, then put in force" };
                let text = format!("{} {what}", step::text::short(digest));
                Ok(taken(next, text, Some(name()), Some(digest.clone())))
            }
            Asked::StopShadow { is_open: false } => refuse(Why::Conflict, "no decider is shadowed".into()),
            Asked::Cancel { id, is_open: false } => {
                let wished = document.wishes.iter().rev().find(|wished| wished.by.as_ref() == Some(id));
                match wished.and_then(|wished| wished.outcome) {
                    Some(Outcome::Switched | Outcome::Watching) => {
                        refuse(Why::Conflict, format!("the swap {id:?} has switched: only a rollback takes it back"))
                    }
                    Some(outcome) => refuse(Why::Conflict, format!("the swap {id:?} is over: {}", outcome.label())),
                    None => refuse(Why::Unknown, format!("there is no swap {id:?}")),
                }
            }
            Asked::StopShadow { .. } | Asked::Cancel { .. } => {
                Ok(taken(document.revision, "it is called off".into(), None, None))
            }
            Asked::Rollback => match (&document.previous, &document.pinned) {
                (None, _) => refuse(Why::Conflict, "there is no decider to go back to".into()),
                (Some(previous), Some(pin)) if pin.digest != *previous => {
                    refuse(Why::Conflict, format!("{} is pinned: unpin it first", step::text::short(&pin.digest)))
                }
                (Some(previous), _) => {
                    let text = format!("back to {}", step::text::short(previous));
                    Ok(taken(next, text, Some(name()), Some(previous.clone())))
                }
            },
            Asked::Pin { digest } => {
                let digest = digest.as_deref().unwrap_or(&document.active);
                let known = digest == document.active || digest == Registry::built_in();
                if !known && document.entry(digest).is_none() {
                    return refuse(Why::Unknown, format!("there is no decider {digest}"));
                }
                let text = format!("no other decider than {} is put in force", step::text::short(digest));
                Ok(taken(document.revision, text, None, Some(digest.into())))
            }
            Asked::Unpin => match &document.pinned {
                None => refuse(Why::Conflict, "no decider is pinned".into()),
                Some(pin) => {
                    let text = format!("{} is not pinned any more", step::text::short(&pin.digest));
                    Ok(taken(document.revision, text, None, Some(pin.digest.clone())))
                }
            },
        }
    }

    /// Does what can be done at once.
    fn take_wish(&mut self, id: Option<String>, asked: &Asked, taken: &Taken) -> Result<(), HostError> {
        let digest = taken.decider.clone().unwrap_or_default();
        let (step, revision, text) = match asked {
            Asked::Wish { shadow_only, declares, .. } => {
                if *declares {
                    self.swaps.document.declared = Some(digest.clone());
                }
                let step = if *shadow_only { SwapStep::Shadowing } else { SwapStep::Wished };
                (step, self.new_wish(id, &digest, taken.at_ms), String::new())
            }
            Asked::Rollback => (SwapStep::Wished, self.new_wish(id, &digest, taken.at_ms), "a rollback".to_owned()),
            Asked::Pin { .. } => {
                let document = &mut self.swaps.document;
                document.acquit(&digest);
                document.pinned = Some(Pin { digest: digest.clone(), at_ms: taken.at_ms, by: id });
                (SwapStep::Pinned, 0, String::new())
            }
            Asked::Unpin => {
                self.swaps.document.pinned = None;
                (SwapStep::Unpinned, 0, String::new())
            }
            // Whoever carries it on records how it ended.
            Asked::StopShadow { .. } | Asked::Cancel { .. } => return Ok(()),
        };
        self.save_deciders()?;
        self.record_stage(revision, step, &digest, &text, Vec::new())
    }

    fn new_wish(&mut self, by: Option<String>, digest: &str, at_ms: Millis) -> u64 {
        let document = &mut self.swaps.document;
        let name = document.title(digest);
        let (digest, text) = (digest.to_owned(), String::new());
        let revision =
            document.wish(Wished { revision: 0, by, digest, name, at_ms, outcome: None, ended_ms: None, text });
        self.swaps.supersede(revision);
        revision
    }

    /// A decider was loaded and its bytes are kept.
    pub fn keep_decider(&mut self, entry: Entry) -> Result<(), HostError> {
        let digest = entry.digest.clone();
        let fresh = self.swaps.document.entry(&digest).is_none();
        if fresh {
            self.swaps.document.keep(entry);
            self.collect_deciders();
            self.save_deciders()?;
            self.record_stage(0, SwapStep::Kept, &digest, "", Vec::new())?;
        }
        self.parts.history.sync()?;
        Ok(())
    }

    /// Forgets what nobody uses.
    fn collect_deciders(&mut self) {
        let shadowing = self.swaps.document.wishes.iter().filter(|wished| wished.outcome.is_none());
        let used: Vec<String> = shadowing.map(|wished| wished.digest.clone()).collect();
        self.swaps.document.collect(&used);
    }

    /// A candidate is asked beside the one in force from now on: about the fleet as it is, at once.
    pub fn begin_shadow(&mut self, feed: ShadowFeed) -> Result<bool, HostError> {
        if feed.revision != self.swaps.document.revision {
            return Ok(false);
        }
        self.swaps.shadow = Some(feed);
        self.step(engine::io::Input::Resync)?;
        Ok(true)
    }

    /// A wish came to its end without a switch.
    pub fn end_wish(&mut self, revision: u64, outcome: Outcome, text: &str) -> Result<Millis, HostError> {
        let now = self.now_ms();
        self.swaps.call_off(revision);
        let wished = self.swaps.document.wishes.iter().find(|wished| wished.revision == revision);
        let digest = wished.map(|wished| wished.digest.clone()).unwrap_or_default();
        self.swaps.document.ended(revision, outcome, now, text);
        let step = match outcome {
            Outcome::Refused => SwapStep::Refused,
            Outcome::Superseded => SwapStep::Superseded,
            Outcome::Cancelled => SwapStep::Cancelled,
            Outcome::Shadowed => SwapStep::Shadowed,
            _ => SwapStep::Failed,
        };
        self.collect_deciders();
        self.save_deciders()?;
        self.record_stage(revision, step, &digest, text, Vec::new())?;
        self.parts.history.sync()?;
        Ok(now)
    }

    /// Where history can be read, with the store's newest checkpoint; `None` where nothing is kept.
    pub fn past(&mut self) -> Result<Option<(Option<Saved>, Chain, Chain)>, HostError> {
        self.parts.history.flush()?;
        let opened = self.read_store(|store| {
            let loaded = store.load()?;
            Ok((loaded.snapshot, loaded.first, store.durable()))
        });
        match opened {
            None => Ok(None),
            Some(opened) => opened.map(Some).map_err(|error| HostError::Setup(error.to_string())),
        }
    }

    /// Looks into the store; `None` where nothing is kept.
    pub fn read_store<T>(
        &mut self,
        read: impl FnOnce(&mut dyn Store) -> Result<T, StoreError>,
    ) -> Option<Result<T, StoreError>> {
        self.parts.history.store().map(|store| store.look(read))
    }
}
