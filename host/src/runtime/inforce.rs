//! Which decider a host begins with (SPEC 11): the one that was in force when it ended, unless something else is declared.

use std::sync::Arc;

use engine::id::Millis;
use store::Store;

use super::HostError;
use crate::decide::Decider;
use crate::registry::{DECIDERS, Document, Outcome, Ready, Registry, RegistryError};

/// Who decides, and what is known of deciders.
pub(super) struct InForce {
    pub decider: Arc<dyn Decider>,
    pub document: Document,
    /// Who takes over when the watched one fails.
    pub fallback: Option<Arc<dyn Decider>>,
    /// What people should know.
    pub said: Vec<String>,
}

/// What a host is given.
pub(super) struct Given {
    /// Who decides when nothing else is known.
    pub default: Arc<dyn Decider>,
    /// What was named explicitly, such as with `--decider FILE`.
    pub declared: Option<Ready>,
    pub registry: Option<Registry>,
}

impl InForce {
    /// Blocks while a component is compiled: not on an async worker.
    pub fn choose(kept: Option<Vec<u8>>, given: Given, now_ms: Millis) -> Result<Self, HostError> {
        let document = match kept {
            Some(bytes) => Document::read(&bytes).map_err(RegistryError::Document)?,
            None => Document::default(),
        };
        let mut chosen = InForce { decider: given.default.clone(), document, fallback: None, said: Vec::new() };
        for wished in chosen.document.wishes.iter_mut().filter(|wished| wished.outcome.is_none()) {
            wished.outcome = Some(Outcome::Interrupted);
            wished.ended_ms = Some(now_ms);
            wished.text = "the host ended before it did".into();
        }
        let ready = chosen.choice(&given)?;
        let digest = ready.decider.identity().digest;
        if chosen.document.active != digest {
            chosen.document.activate(&digest, now_ms, None);
        }
        chosen.document.forgotten = false;
        if chosen.document.entry(&digest).is_none() {
            let mut entry = ready.entry;
            entry.loaded_at_ms = now_ms;
            chosen.document.keep(entry);
        }
        let default = Ready::of(given.default.clone()).entry;
        if default.digest == Registry::built_in() && chosen.document.entry(&default.digest).is_none() {
            chosen.document.keep(default);
        }
        chosen.decider = ready.decider;
        chosen.go_on_watching(&given);
        // What a host that was killed left half written, or had not recorded yet.
        if let Some(registry) = &given.registry
            && let Err(error) = registry.collect(&chosen.document)
        {
            chosen.said.push(format!("what is left over of deciders stays there: {error}"));
        }
        Ok(chosen)
    }

    fn choice(&mut self, given: &Given) -> Result<Ready, HostError> {
        let default = Ready::of(given.default.clone());
        let Some(registry) = &given.registry else { return Ok(default) };
        let declared = self.take_declared(given.declared.as_ref());
        if let Some(declared) = declared {
            return Ok(declared);
        }
        let active = &self.document.active;
        if active.is_empty() || self.document.forgotten || *active == default.entry.digest {
            return Ok(default);
        }
        match registry.ready(active) {
            Ok(mut ready) => {
                if let Some(known) = self.document.entry(active) {
                    ready.entry = known.clone();
                }
                Ok(ready)
            }
            // What was named explicitly helps where nothing else does.
            Err(error) => match &given.declared {
                Some(declared) => {
                    self.said.push(format!("the decider that was in force cannot be had: {error}"));
                    Ok(declared.clone())
                }
                None => Err(error.into()),
            },
        }
    }

    /// What is declared, unless it was taken over before, or must not be.
    fn take_declared(&mut self, declared: Option<&Ready>) -> Option<Ready> {
        let declared = declared?;
        let digest = &declared.entry.digest;
        let document = &mut self.document;
        if document.declared.as_ref() == Some(digest) {
            if document.active != *digest {
                let active = step::text::short(&document.active);
                self.said.push(format!(
                    "the declared decider was taken over before; {active} was swapped to since, and stays"
                ));
            }
            return None;
        }
        if let Some(pin) = document.pinned.as_ref().filter(|pin| pin.digest != *digest) {
            let pinned = step::text::short(&pin.digest);
            self.said.push(format!("the declared decider is not taken over: {pinned} is pinned"));
            return None;
        }
        if let Some(quarantined) = document.quarantine(digest) {
            let why = &quarantined.why;
            self.said.push(format!("the declared decider is not taken over: it is quarantined: {why}"));
            return None;
        }
        document.declared = Some(digest.clone());
        Some(declared.clone())
    }

    /// A watch goes on where it was.
    fn go_on_watching(&mut self, given: &Given) {
        let Some(watch) = &self.document.watch else { return };
        let previous = &watch.previous;
        let default = given.default.identity().digest == *previous;
        let fallback = match &given.registry {
            _ if default => Ok(given.default.clone()),
            Some(registry) => registry.ready(previous).map(|ready| ready.decider),
            None => Err(RegistryError::Missing { digest: previous.clone(), place: "this host".into() }),
        };
        match fallback {
            Ok(fallback) => self.fallback = Some(fallback),
            Err(error) => {
                self.said.push(format!("the decider is not watched any longer: {error}"));
                let revision = watch.revision;
                self.document.ended(revision, Outcome::Switched, watch.until_ms, "its watch could not go on");
                self.document.watch = None;
            }
        }
    }
}

/// What a store keeps of deciders.
pub(super) fn kept(store: &mut dyn Store) -> Result<Option<Vec<u8>>, HostError> {
    let kept = store.meta(DECIDERS).map_err(|error| HostError::Journal(error.into()))?;
    Ok(kept.filter(|bytes| !bytes.is_empty()))
}
