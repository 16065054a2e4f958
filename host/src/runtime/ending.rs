//! How a host ends: at once, or after everything was taken down and a fresh listing of every backend shows nothing more.

use std::collections::BTreeMap;

use engine::id::Millis;
use engine::shape::ClusterShape;

use super::HostError;
use super::select::Runtime;

/// How often a backend is listed after a take-down before the host ends without.
const TRIES: u32 = 3;
const PAUSE_MS: Millis = 1_000;

/// Whether, and how far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    No,
    /// Nothing is desired any more. Once nothing is held either, the last listings of the backends, by name.
    TakingDown(Option<BTreeMap<String, Look>>),
    /// The loop ends. Backends that could not be listed, with their words.
    Over(Vec<(String, String)>),
}

/// The last listing of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// To be started then; an older listing may still be under way.
    Wanted {
        at_ms: Millis,
        failed: u32,
    },
    Asked {
        failed: u32,
    },
    Done,
    Failed(String),
}

impl Ending {
    pub fn is_over(&self) -> bool {
        matches!(self, Ending::Over(_))
    }

    pub fn cut_short(&mut self) {
        if !self.is_over() {
            *self = Ending::Over(Vec::new());
        }
    }

    pub fn unlisted(&self) -> Vec<(String, String)> {
        match self {
            Ending::Over(unlisted) => unlisted.clone(),
            Ending::No | Ending::TakingDown(_) => Vec::new(),
        }
    }

    /// When a backend should be asked again. One that waits for an older listing to end is woken by that.
    pub fn retry_at(&self) -> Option<Millis> {
        let Ending::TakingDown(Some(looks)) = self else { return None };
        let wanted = looks.values().filter_map(|look| match look {
            Look::Wanted { at_ms, .. } => Some(*at_ms),
            Look::Asked { .. } | Look::Done | Look::Failed(_) => None,
        });
        wanted.min()
    }

    /// A backend was listed, or in these words not.
    pub fn listed(&mut self, provider: &str, failure: Option<String>, now_ms: Millis) {
        let Ending::TakingDown(Some(looks)) = self else { return };
        let Some(look) = looks.get_mut(provider) else { return };
        match (&mut *look, failure) {
            (Look::Asked { .. }, None) => *look = Look::Done,
            (Look::Asked { failed }, Some(words)) if *failed + 1 >= TRIES => *look = Look::Failed(words),
            (Look::Asked { failed }, Some(_)) => {
                *look = Look::Wanted { at_ms: now_ms.saturating_add(PAUSE_MS), failed: *failed + 1 };
            }
            // An older one ended: it may have missed what came late.
            (Look::Wanted { at_ms, .. }, _) => *at_ms = now_ms.min(*at_ms),
            (Look::Done | Look::Failed(_), _) => {}
        }
    }
}

impl Runtime {
    /// Nothing is desired any more.
    pub fn take_down(&mut self) -> Result<(), HostError> {
        if self.ending != Ending::No {
            return Ok(());
        }
        let state = self.parts.driver.state();
        let generation = state.desired.as_ref().map_or(0, |shape| shape.generation).saturating_add(1);
        let nothing = ClusterShape { run: state.run.clone(), generation, groups: Vec::new() };
        self.ending = Ending::TakingDown(None);
        self.forget_declared()?;
        match self.desire(nothing) {
            // There is no higher generation: the fleet is left as it is, and the farewell shows it.
            Err(HostError::Shape(_)) => {
                self.ending.cut_short();
                Ok(())
            }
            other => other,
        }
    }

    /// Goes on with a take-down as far as it can go now.
    pub fn advance_ending(&mut self) {
        if !matches!(self.ending, Ending::TakingDown(_)) {
            return;
        }
        let (empty, now) = (self.is_empty(), self.now_ms());
        let Ending::TakingDown(looks) = &mut self.ending else { return };
        if !empty {
            *looks = None;
            return;
        }
        let backends = self.parts.backends.keys();
        let looks = looks.get_or_insert_with(|| {
            backends.map(|name| (name.clone(), Look::Wanted { at_ms: now, failed: 0 })).collect()
        });
        for (name, look) in looks.iter_mut() {
            if let Look::Wanted { at_ms, failed } = look
                && *at_ms <= now
            {
                if self.parts.executor.list(name, &self.parts.driver.state().run) {
                    *look = Look::Asked { failed: *failed };
                } else {
                    *at_ms = now.saturating_add(PAUSE_MS);
                }
            }
        }
        let failures = looks.iter().filter_map(|(name, look)| match look {
            Look::Done => Some(None),
            Look::Failed(words) => Some(Some((name.clone(), words.clone()))),
            Look::Wanted { .. } | Look::Asked { .. } => None,
        });
        let ended: Vec<_> = failures.collect();
        if ended.len() == looks.len() {
            self.ending = Ending::Over(ended.into_iter().flatten().collect());
        }
    }

    /// Whether nothing is held, being reaped or under way.
    fn is_empty(&self) -> bool {
        let driver = &self.parts.driver;
        let held = driver.state().slots.iter().any(|slot| slot.node.is_some());
        !held && driver.state().reaps.is_empty() && self.parts.executor.running().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_that_cannot_be_listed_is_named_in_the_end() {
        let wanted = Look::Wanted { at_ms: 5, failed: 0 };
        let mut ending = Ending::TakingDown(Some(BTreeMap::from([("p".to_owned(), wanted)])));
        assert_eq!(ending.retry_at(), Some(5));
        for failed in 0..TRIES {
            ending = Ending::TakingDown(Some(BTreeMap::from([("p".to_owned(), Look::Asked { failed })])));
            ending.listed("p", Some("no".into()), 100);
            let again = Look::Wanted { at_ms: 1_100, failed: failed + 1 };
            let expected = if failed + 1 < TRIES { again } else { Look::Failed("no".into()) };
            assert_eq!(ending, Ending::TakingDown(Some(BTreeMap::from([("p".to_owned(), expected)]))));
        }
    }
}
