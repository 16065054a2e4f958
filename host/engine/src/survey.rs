//! The boot join (SPEC 10): what a backend holds when the host starts, compared with what the state knows. It takes no
//! action: what the state does not know is an orphan; what it knows and the backend does not show is said to be missing.
//!
//! Where an orphan is found that the state never heard of, the state is older than the world: it was put back from a copy, it
//! was lost, or somebody else kept the run meanwhile. Then what it takes for vacant may be served by an orphan, so nothing new
//! is made until a person has looked; and no id is given out that something bears already (S3, S8).

use std::collections::BTreeSet;

use crate::driver::Driver;
use crate::io::{LeaseId, Listing, Notice};
use crate::orphan::MAX_ADOPTED;
use crate::pause::{By, Only, Pause};

impl Driver {
    pub(crate) fn fold_surveyed(&mut self, provider: &str, listing: &Listing) {
        let ours = listing.resources.iter().filter_map(|resource| Some((&resource.lease, resource.key.as_ref()?)));
        let ours: Vec<_> = ours.filter(|(_, key)| key.run == self.state.run).collect();
        for (_, key) in &ours {
            // Ids above are not to be used up by a label that lies; they are out of reach.
            if key.attempt.0 <= MAX_ADOPTED {
                self.pass_over(key.attempt);
            }
        }
        let known = |lease: &LeaseId| self.state.orphans.contains_key(&(provider.to_string(), lease.clone()));
        let news = ours.iter().filter(|(lease, key)| !known(lease) && !self.state.authorised(&key.slot, key.attempt));
        let news = news.count();
        self.fold_listed(provider, listing);
        self.look_for_missing(provider, listing);
        if news > 0 {
            self.wait_for_a_person(u32::try_from(news).unwrap_or(u32::MAX));
        }
        self.queued = true;
    }

    /// Ready nodes whose resource a complete listing lacks: that is said, and nothing follows from it (S14).
    fn look_for_missing(&mut self, provider: &str, listing: &Listing) {
        if !listing.complete {
            return;
        }
        let shown: BTreeSet<&LeaseId> = listing.resources.iter().map(|resource| &resource.lease).collect();
        let mut missing = Vec::new();
        for slot in &self.state.slots {
            let Some(node) = &slot.node else { continue };
            let Some(lease) = node.lease.as_ref().filter(|_| node.climbs() && node.stage.is_ready()) else { continue };
            let template = self.state.templates.get(node.template.0 as usize);
            if template.is_some_and(|template| template.provider == provider) && !shown.contains(lease) {
                missing.push((slot.name.clone(), node.attempt, lease.clone()));
            }
        }
        for (node, attempt, lease) in missing {
            let at = self.state.names.get(&node).copied();
            if let Some(held) = at.and_then(|at| self.node_mut(at)) {
                held.last_error =
                    Some(format!("{provider} did not show it at the start; `homeostat kill {node}` replaces it"));
            }
            self.notice(Notice::Missing { provider: provider.into(), node, attempt, lease });
        }
    }

    fn wait_for_a_person(&mut self, orphans: u32) {
        let since_ms = self.now;
        let earlier = self.state.pauses.iter_mut().find_map(|pause| match &mut pause.by {
            By::Start { orphans } => Some(orphans),
            By::Operator | By::Guard { .. } => None,
        });
        match earlier {
            Some(known) => *known = known.saturating_add(orphans),
            None => {
                let by = By::Start { orphans };
                self.state.pauses.push(Pause { scope: None, only: Only::Create, since_ms, by });
            }
        }
        self.notice(Notice::StateIsOlder { orphans });
    }

    /// Nothing is left of what the start could not explain: what waited for that goes on.
    pub(crate) fn end_start_pause(&mut self) {
        let is_ours = |pause: &Pause| matches!(pause.by, By::Start { .. });
        if !self.state.pauses.iter().any(is_ours) || !self.state.orphans.is_empty() {
            return;
        }
        self.state.pauses.retain(|pause| !is_ours(pause));
        self.notice(Notice::Resumed { scope: None, only: Only::Create });
        self.queued = true;
    }
}
