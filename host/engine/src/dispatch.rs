//! Attempts begin here, and operations are recorded as pending before they leave (SPEC 5, S1).

use std::sync::Arc;

use decider::{OperationKind, Stage};

use crate::driver::Driver;
use crate::id::NodeId;
use crate::io::{CreateRequest, Operation, Promise, Request};
use crate::ledger::Status;
use crate::mutation::Mutation;
use crate::schedule::after;
use crate::state::{ManagedNode, Pending};

impl Driver {
    /// A fresh attempt with the latest template; a replacement inherits its predecessor's failures.
    pub(crate) fn begin_attempt(&mut self, node: NodeId) {
        let attempt = self.authorise(node);
        let forgets = self.mutated(Mutation::RestartForgetsFailures);
        let old_template = self.mutated(Mutation::RestartOldTemplate);
        if let Some(slot) = self.slot_mut(node)
            && let Some(desired) = slot.desired
        {
            let mut failures = slot.node.as_ref().map_or(0, |held| held.retry.failures);
            if forgets {
                failures = 0;
            }
            let old = slot.node.as_ref().map(|held| held.template).filter(|_| old_template);
            slot.node = Some(ManagedNode::fresh(attempt, old.unwrap_or(desired.template), failures));
        }
    }

    /// Records an operation as pending; it leaves with the batch (S1).
    pub(crate) fn dispatch(&mut self, node: NodeId, kind: OperationKind) {
        let now = self.now;
        let Some((attempt, name, template, lease, endpoint, session, doubt)) = self.state.slot(node).and_then(|slot| {
            let held = slot.node.as_ref()?;
            let template = self.state.templates.get(held.template.0 as usize)?.clone();
            let (lease, endpoint, session) = (held.lease.clone(), held.endpoint.clone(), held.session.clone());
            Some((held.attempt, slot.name.clone(), template, lease, endpoint, session, held.retry.ambiguous.clone()))
        }) else {
            return;
        };
        let key = self.state.key(&name, attempt);
        let windowed = matches!(self.providers.get(&template.provider), Some(Promise::Windowed { .. }));
        let request = match (kind, lease, endpoint, session) {
            (OperationKind::CreateLease, ..) => {
                let doubt = doubt.filter(|doubt| doubt.kind == OperationKind::CreateLease);
                let unsettled = doubt.is_some();
                // The same bytes as before, if there was a before.
                let create = doubt
                    .and_then(|doubt| doubt.request)
                    .unwrap_or_else(|| Arc::new(CreateRequest { key: key.clone(), template: template.clone() }));
                let settles = !self.mutated(Mutation::SettleByCreating);
                let create = match self.mutated(Mutation::OtherRequestOnRetry) && unsettled {
                    true => Arc::new(CreateRequest {
                        key: crate::id::ExternalKey { slot: "other-0".into(), ..create.key.clone() },
                        ..(*create).clone()
                    }),
                    false => create,
                };
                if unsettled && windowed && settles {
                    Request::SettleCreate(create)
                } else {
                    Request::CreateLease(create)
                }
            }
            (OperationKind::LookupEndpoint, Some(lease), ..) => Request::LookupEndpoint { lease },
            (OperationKind::StartBootstrap, Some(lease), Some(endpoint), _) => {
                Request::StartBootstrap { lease, endpoint, template: template.clone() }
            }
            (OperationKind::CancelBootstrap, Some(lease), _, Some(session)) => {
                Request::CancelBootstrap { lease, session }
            }
            (OperationKind::DestroyLease, Some(lease), ..) => Request::DestroyLease { lease },
            _ => return,
        };
        let id = self.next_operation(attempt);
        let deadline_ms = after(now, self.policy.deadlines.of(kind).max(1));
        let operation = Operation { id, key, provider: template.provider.clone(), request, deadline_ms };
        if let Some(held) = self.node_mut(node) {
            if kind == OperationKind::CreateLease && held.climbs() {
                held.stage = Stage::LeaseRequested;
            }
            if kind == OperationKind::StartBootstrap {
                held.early.clear();
            }
            held.pending =
                Some(Pending { operation: operation.clone(), sent_ms: now, status: Status::Running, deadline_ms });
        }
        self.submits.push(operation);
    }
}
