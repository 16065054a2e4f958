//! Recovery (SPEC 10): a driver that was rebuilt from its durable inputs starts again.

use std::sync::Arc;

use decider::Stage;

use crate::driver::Driver;
use crate::folding::Folding;
use crate::id::{ExternalKey, NodeId};
use crate::io::{Endpoint, Fault, LeaseId, SessionId};
use crate::ledger::{self, LedgerEvent, Step};
use crate::mutation::Mutation;
use crate::shape::Template;

impl Driver {
    /// The host starts again. Whatever was pending comes back as ambiguous, and stages get their time anew: while nobody
    /// listened, silence was no silence.
    pub(crate) fn fold_restarted(&mut self) {
        self.pass = None;
        self.queued = true;
        self.wake_at = None;
        self.pass_retry_at = None;
        self.pass_failures = 0;
        self.reported = None;
        let words = || Fault::Ambiguous { reason: "the host was started again".into() };
        let (policy, now, mutation) = (self.policy, self.now, self.mutation);
        let forgets = self.mutated(Mutation::RestartForgetsPending);
        if self.mutated(Mutation::RestartForgetsWindows) {
            self.state.windows = Default::default();
        }
        for at in 0..self.state.slots.len() {
            let node = NodeId(u32::try_from(at).unwrap_or(u32::MAX));
            let settles = self.settles(node);
            let Some(held) = self.node_mut(node) else { continue };
            let fold = Folding { policy: &policy, now, settles, mutation };
            if let Some(pending) = held.pending.take()
                && matches!(ledger::step(pending.status, LedgerEvent::GivenUp), Step::To(_))
                && !forgets
            {
                held.early.clear();
                fold.faulted(held, &pending, words());
            }
            if held.climbs() && held.stage_deadline.is_some() {
                match held.stage {
                    Stage::BootstrapRunning => {
                        fold.enter(held, policy.stages.bootstrap_ms, Some(policy.stages.join_ms))
                    }
                    _ => fold.enter(held, policy.stages.endpoint_ms, None),
                }
            }
            self.touch(node);
        }
        for (of, id) in self.sweeping() {
            self.fold_swept(&of, id.attempt, Err(words()));
        }
    }

    /// The sessions that the state knows to run: whoever starts the host again listens to them again.
    pub fn live_sessions(&self) -> Vec<LiveSession> {
        let slots = self.state.slots.iter().filter_map(|slot| Some((slot, slot.node.as_ref()?)));
        slots
            .filter_map(|(slot, node)| {
                let template = self.state.templates.get(node.template.0 as usize)?.clone();
                Some(LiveSession {
                    key: self.state.key(&slot.name, node.attempt),
                    provider: template.provider.clone(),
                    lease: node.lease.clone()?,
                    endpoint: node.endpoint.clone()?,
                    session: node.session.clone()?,
                    template,
                })
            })
            .collect()
    }
}

/// A bootstrap session that the state knows to run.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveSession {
    /// The resource's label: whose it is.
    pub key: ExternalKey,
    /// Which backend knows it.
    pub provider: String,
    /// On what it runs.
    pub lease: LeaseId,
    /// Where that is.
    pub endpoint: Endpoint,
    /// The backend's reference.
    pub session: SessionId,
    /// What was started.
    pub template: Arc<Template>,
}
