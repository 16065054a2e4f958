//! What one outcome or observation does to a node (SPEC 6): deadlines are computed here, once, and stored.

use decider::{OperationKind, Progress, Stage};

use crate::id::Millis;
use crate::io::{Done, Fault, Observation, Request};
use crate::mutation::Mutation;
use crate::schedule::{after, backoff_ms, stretched_ms};
use crate::state::{Ambiguous, Failure, ManagedNode, Pending};

/// How often a bootstrap in doubt is tried to be adopted before its lease is destroyed without that.
pub(crate) const ADOPTION_TRIES: u32 = 3;

/// What a fold needs besides the node.
pub(crate) struct Folding<'a> {
    pub policy: &'a crate::policy::Policy,
    pub now: Millis,
    /// Window and number of listings, for a windowed provider.
    pub settles: Option<(u64, u32)>,
    /// The rule that is broken on purpose (tests only).
    pub mutation: Option<Mutation>,
}

impl Folding<'_> {
    fn mutated(&self, mutation: Mutation) -> bool {
        cfg!(feature = "mutations") && self.mutation == Some(mutation)
    }

    pub(crate) fn succeeded(&self, node: &mut ManagedNode, pending: &Pending, done: Done) {
        let climbs = node.climbs();
        match (&pending.operation.request, done) {
            (Request::CreateLease(_) | Request::SettleCreate(_), Done::Leased { lease, .. }) => {
                node.lease = Some(lease);
                self.settled(node);
                if climbs {
                    node.stage = Stage::LeaseCreated;
                    self.enter(node, self.policy.stages.endpoint_ms, None);
                }
            }
            (Request::SettleCreate(_), Done::Absent) => self.absent(node, pending),
            (Request::LookupEndpoint { .. }, Done::Found { endpoint }) => {
                node.endpoint = Some(endpoint);
                self.settled(node);
                if climbs {
                    node.stage = Stage::EndpointKnown;
                    node.stage_deadline = None;
                    node.stage_deadline_max = None;
                }
            }
            (Request::StartBootstrap { .. }, Done::Started { session, .. }) => {
                node.session = Some(session);
                self.settled(node);
                if climbs {
                    node.stage = Stage::BootstrapRunning;
                    node.progress = Progress::None;
                    self.enter(node, self.policy.stages.bootstrap_ms, Some(self.policy.stages.join_ms));
                }
            }
            (Request::CancelBootstrap { .. }, Done::Cancelled) => {
                if !self.mutated(Mutation::CancelKeepsSession) {
                    node.session = None;
                }
                self.settled(node);
            }
            (Request::DestroyLease { .. }, Done::Destroyed) => {
                if !self.mutated(Mutation::DestroyKeepsLease) {
                    node.lease = None;
                }
                node.endpoint = None;
                node.session = None;
                self.settled(node);
            }
            (request, done) => {
                let reason = format!("the backend answered {done:?} to a {}", request.kind().label());
                self.faulted(node, pending, Fault::Ambiguous { reason });
            }
        }
    }

    pub(crate) fn faulted(&self, node: &mut ManagedNode, pending: &Pending, fault: Fault) {
        let kind = pending.operation.request.kind();
        let tries = node.retry.ambiguous.as_ref().map_or(0, |doubt| doubt.absences);
        node.last_error = Some(format!("{}: {fault}", kind.label()));
        if kind == OperationKind::CancelBootstrap && self.mutated(Mutation::FailedCancelForgets) {
            node.session = None;
        }
        if matches!(fault, Fault::Ambiguous { .. }) && self.mutated(Mutation::NoDoubt) {
            return self.back_off(node, None);
        }
        match fault {
            Fault::NotReady { .. } if kind == OperationKind::LookupEndpoint => {
                if self.mutated(Mutation::CountNotReady) {
                    node.retry.failures += 1;
                }
                if self.mutated(Mutation::NoProbeWait) {
                    return;
                }
                node.retry.probe_at = Some(after(self.now, self.policy.probe_interval_ms));
            }
            Fault::NotReady { .. } => {
                node.retry.next_effect_at = Some(after(self.now, self.policy.probe_interval_ms));
            }
            Fault::Retryable { reason, retry_after_ms } => {
                if let (Request::SettleCreate(_), Some(doubt)) = (&pending.operation.request, &mut node.retry.ambiguous)
                {
                    // Only complete listings in a row count (S14).
                    doubt.absences = 0;
                }
                if kind == OperationKind::StartBootstrap && retry_after_ms.is_none() && node.climbs() {
                    return self.fail(node, reason, false);
                }
                if kind == OperationKind::CreateLease && node.climbs() && node.retry.ambiguous.is_none() {
                    node.stage = Stage::New;
                }
                self.tried_to_adopt(node, kind, tries);
                self.back_off(node, retry_after_ms);
            }
            Fault::Permanent { reason } => {
                let cleaning = matches!(kind, OperationKind::CancelBootstrap | OperationKind::DestroyLease);
                if node.climbs() && !cleaning && !self.mutated(Mutation::RefusedKeepsClimbing) {
                    return self.fail(node, reason, true);
                }
                if matches!(pending.operation.request, Request::SettleCreate(_)) {
                    // A listing that is refused says nothing about what it would show (S14).
                    return self.back_off(node, Some(self.policy.backoff_cap_ms));
                }
                if node.doubt() == Some(kind) {
                    // The backend looked for the key before it refused: nothing is held under it. What lands later is
                    // swept by its label (SPEC 7).
                    node.retry.ambiguous = None;
                }
                self.back_off(node, Some(self.policy.backoff_cap_ms));
                node.retry.provider_wait = None;
                if !cleaning {
                    node.retry.next_effect_at = None;
                }
            }
            Fault::Ambiguous { .. } => {
                let request = match &pending.operation.request {
                    Request::CreateLease(request) | Request::SettleCreate(request) => Some(request.clone()),
                    _ => None,
                };
                // Settling sends nothing: the doubt is as old as it was.
                let kept = matches!(pending.operation.request, Request::SettleCreate(_));
                match &mut node.retry.ambiguous {
                    Some(doubt) if kept => doubt.absences = 0,
                    doubt => {
                        *doubt = Some(Ambiguous {
                            id: pending.operation.id,
                            kind,
                            since_ms: self.now,
                            looked_ms: self.now,
                            waited_ms: 0,
                            absences: 0,
                            request,
                        });
                    }
                }
                self.tried_to_adopt(node, kind, tries);
                self.back_off(node, None);
            }
        }
    }

    /// A bootstrap in doubt could not be adopted to be cancelled. After some tries its lease is destroyed all the same:
    /// what runs on it ends with it. Else a machine that never answers again would be kept for ever.
    fn tried_to_adopt(&self, node: &mut ManagedNode, kind: OperationKind, tries: u32) {
        if kind != OperationKind::StartBootstrap || node.climbs() || node.lease.is_none() {
            return;
        }
        if tries + 1 >= ADOPTION_TRIES {
            node.retry.ambiguous = None;
        } else if let Some(doubt) = node.retry.ambiguous.as_mut().filter(|doubt| doubt.kind == kind) {
            doubt.absences = tries + 1;
        }
    }

    /// A complete listing lacks the label of a create in doubt (SPEC 7, windowed).
    fn absent(&self, node: &mut ManagedNode, pending: &Pending) {
        let Some((window_ms, listings)) = self.settles else { return };
        let Some(doubt) = &mut node.retry.ambiguous else { return };
        doubt.absences = doubt.absences.saturating_add(1);
        let window_ms = if self.mutated(Mutation::SettleWithoutWindow) { 0 } else { window_ms };
        let most = self.policy.probe_interval_ms.max(1).saturating_mul(2);
        let passed = pending.sent_ms.saturating_sub(doubt.looked_ms).min(most);
        doubt.waited_ms = doubt.waited_ms.saturating_add(passed);
        doubt.looked_ms = pending.sent_ms;
        if doubt.absences >= listings.max(1) && doubt.waited_ms >= window_ms {
            node.retry.ambiguous = None;
            node.retry.next_effect_at = None;
            if node.climbs() {
                node.stage = Stage::New;
            }
        } else {
            node.retry.next_effect_at = Some(after(self.now, self.policy.probe_interval_ms.max(1)));
        }
    }

    /// An operation ended well: nothing is in doubt, nothing waits.
    fn settled(&self, node: &mut ManagedNode) {
        if !self.mutated(Mutation::DoubtSurvivesSuccess) {
            node.retry.ambiguous = None;
        }
        node.retry.next_effect_at = None;
        node.retry.provider_wait = None;
        node.retry.probe_at = None;
        node.last_error = None;
    }

    /// One more failure in a row: wait, and at least as long as the provider asked.
    fn back_off(&self, node: &mut ManagedNode, retry_after_ms: Option<u64>) {
        let retry_after_ms = retry_after_ms.filter(|_| !self.mutated(Mutation::IgnoreRetryAfter));
        if self.mutated(Mutation::NoBackoff) {
            return;
        }
        node.retry.failures = node.retry.failures.saturating_add(1);
        let ours = after(self.now, backoff_ms(self.policy, node.attempt, node.retry.failures));
        let theirs = retry_after_ms.map(|wait| after(self.now, wait));
        node.retry.provider_wait = theirs;
        node.retry.next_effect_at = Some(ours.max(theirs.unwrap_or(0)));
    }

    /// Enters a stage that has a deadline; after failures it is longer.
    pub(crate) fn enter(&self, node: &mut ManagedNode, span_ms: u64, max_ms: Option<u64>) {
        let stretched = |span| after(self.now, stretched_ms(self.policy, span, node.retry.failures).max(1));
        if self.mutated(Mutation::NoStageDeadline) {
            return;
        }
        let max = max_ms.map(stretched);
        let at = stretched(span_ms);
        node.stage_deadline = Some(max.map_or(at, |max| at.min(max)));
        node.stage_deadline_max = max;
    }

    /// The attempt failed (SPEC 6): facts are kept for people, clean-up starts at once, the restart backs off.
    pub(crate) fn fail(&self, node: &mut ManagedNode, reason: String, permanent: bool) {
        if !node.climbs() {
            return;
        }
        node.stage = Stage::Failed;
        node.failure = Some(Failure { at_ms: self.now, reason, permanent });
        node.stage_deadline = None;
        node.stage_deadline_max = None;
        node.retry.failures = node.retry.failures.saturating_add(1);
        let wait = match permanent {
            true => self.policy.backoff_cap_ms,
            false => backoff_ms(self.policy, node.attempt, node.retry.failures),
        };
        node.retry.restart_at = Some(after(self.now, wait).max(node.retry.provider_wait.unwrap_or(0)));
        if self.mutated(Mutation::NoRestartBackoff) {
            node.retry.restart_at = None;
        }
        node.retry.next_effect_at = node.retry.provider_wait.filter(|at| *at > self.now);
        node.retry.probe_at = None;
    }

    /// Folds an observation; whether it changed anything.
    pub(crate) fn observed(&self, node: &mut ManagedNode, observation: Observation) -> bool {
        let booting = node.climbs() && matches!(node.stage, Stage::BootstrapRunning | Stage::Joined);
        match observation {
            Observation::Progress(progress) => {
                if node.stage.is_ready() {
                    return false;
                }
                node.progress = progress;
                self.extend(node)
            }
            Observation::Output(_) => self.extend(node),
            Observation::Joined => {
                if !(booting && node.stage == Stage::BootstrapRunning && node.session.is_some()) {
                    return false;
                }
                node.stage = Stage::Joined;
                node.progress = Progress::Join;
                node.stage_deadline = None;
                node.stage_deadline_max = None;
                true
            }
            Observation::Failed { progress, reason, permanent } => {
                node.progress = progress;
                self.fail(node, reason, permanent);
                true
            }
            Observation::Closed { exit } => {
                let (had, stage) = (node.session.take().is_some(), node.stage);
                if node.climbs() && node.stage.is_ready() {
                    let exit = exit.filter(|_| !self.mutated(Mutation::IgnoreDeath));
                    let believed = self.mutated(Mutation::BelieveClosed).then(|| "closed".to_string());
                    // Only positive evidence is a death (S14).
                    if let Some(exit) = exit.or(believed) {
                        self.fail(node, format!("died after it was ready: {exit}"), false);
                    }
                } else if booting {
                    let exit = exit.unwrap_or_else(|| "no exit status".into());
                    self.fail(node, format!("closed before it converged: {exit}"), false);
                }
                had || node.stage != stage
            }
        }
    }

    fn extend(&self, node: &mut ManagedNode) -> bool {
        if !(node.climbs() && node.stage == Stage::BootstrapRunning) {
            return false;
        }
        let span = stretched_ms(self.policy, self.policy.stages.bootstrap_ms, node.retry.failures);
        let at = after(self.now, span.max(1));
        node.stage_deadline = Some(node.stage_deadline_max.map_or(at, |max| at.min(max)));
        true
    }
}
