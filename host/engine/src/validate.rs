//! Plan validation (SPEC 9): the decider is untrusted input. A plan is checked whole against the snapshot it answers
//! before any of it is applied.

use decider::{HoldKind, Intent, NO_INDEX, NodeRow, OperationKind, Plan, Snapshot, Stage, Verb, live};

use crate::id::Millis;

/// Why a plan is refused, whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The columns of the decisions differ in length.
    #[error("the columns of the decisions have different lengths: {lengths}")]
    Uneven {
        /// The lengths, named.
        lengths: String,
    },
    /// A decision for a node that the snapshot does not have.
    #[error("decision {row} is for node {node}, which is not in the snapshot")]
    UnknownNode {
        /// Which decision.
        row: usize,
        /// The node it names.
        node: u32,
    },
    /// Two decisions for one node.
    #[error("node {node} has more than one decision")]
    Twice {
        /// The node.
        node: u32,
    },
    /// A decision about an attempt that does not hold the slot.
    #[error("the decision for node {node} is about attempt {found}; attempt {expected} holds the slot")]
    StaleAttempt {
        /// The node.
        node: u32,
        /// The attempt in the snapshot.
        expected: u64,
        /// The attempt in the plan.
        found: u64,
    },
    /// A node without a decision.
    #[error("node {node} has no decision")]
    Missing {
        /// The node.
        node: u32,
    },
    /// A rule the decider did not declare.
    #[error("the decision for node {node} cites rule {rule}; the decider declares {declared}")]
    UnknownRule {
        /// The node.
        node: u32,
        /// The index.
        rule: u8,
        /// How many it declares.
        declared: usize,
    },
    /// A verb, or a hold, that the contract does not list.
    #[error("the decision for node {node} has the {what} code {code}, which the contract does not list")]
    UnknownCode {
        /// The node.
        node: u32,
        /// `verb` or `hold`.
        what: &'static str,
        /// The code.
        code: u8,
    },
    /// An action for which the node is not in the right state.
    #[error("{verb} is illegal for node {node} (stage {stage}): {why}")]
    Illegal {
        /// The node.
        node: u32,
        /// The action.
        verb: &'static str,
        /// The node's stage.
        stage: &'static str,
        /// What forbids it.
        why: &'static str,
    },
}

impl PlanError {
    /// The node that it is about; `None` for the plan as a whole.
    pub fn node(&self) -> Option<u32> {
        match self {
            PlanError::Uneven { .. } => None,
            PlanError::UnknownNode { node, .. }
            | PlanError::Twice { node }
            | PlanError::StaleAttempt { node, .. }
            | PlanError::Missing { node }
            | PlanError::UnknownRule { node, .. }
            | PlanError::UnknownCode { node, .. }
            | PlanError::Illegal { node, .. } => Some(*node),
        }
    }

    /// The property of SPEC 13 that the plan would break if it were applied: for people who write deciders.
    pub fn property(&self) -> &'static str {
        match self {
            PlanError::Uneven { .. } | PlanError::Missing { .. } => "L4",
            PlanError::UnknownNode { .. } | PlanError::UnknownRule { .. } | PlanError::UnknownCode { .. } => "S11",
            PlanError::Twice { .. } => "S2",
            PlanError::StaleAttempt { .. } => "S4",
            PlanError::Illegal { why, .. } => property_of(why),
        }
    }
}

/// What [`legal`] keeps with each of its refusals.
fn property_of(why: &str) -> &'static str {
    match why {
        "an operation is pending" => "S2",
        "an ambiguous operation has to be settled first" => "S7",
        "its lease or its session is live" | "its session is live: cancel it first" => "S6",
        "it is not destroyed" | "the slot is held" => "S8",
        "it is desired, undrifted and has not failed" | "it is not deleting" | "the slot is desired" => "S9",
        "its lease is live" | "its session is live" | "it is deleting and no create is in doubt" => "S8",
        "it is destroyed" | "it is already destroyed" => "S5",
        "its next operation is not due" | "its restart is not due" | "its next look is not due" => "SPEC 6",
        _ => "SPEC 4",
    }
}

/// Checks a plan against the snapshot it answers. `declared` is the number of rules the decider declares.
pub fn check_plan(plan: &Plan, snapshot: &Snapshot, declared: usize) -> Result<(), PlanError> {
    let d = &plan.decisions;
    if !d.is_even() {
        let lengths = format!(
            "node {}, attempt {}, rule {}, verb {}, hold {}, until {}",
            d.node.len(),
            d.attempt.len(),
            d.rule.len(),
            d.verb.len(),
            d.hold.len(),
            d.until.len()
        );
        return Err(PlanError::Uneven { lengths });
    }
    let known = &snapshot.nodes.node;
    let mut seen = vec![false; known.len()];
    for (at, decision) in d.rows().enumerate() {
        let node = decision.node;
        // Plans mostly keep the snapshot's order, which is ascending.
        let row = if known.get(at) == Some(&node) {
            at
        } else {
            known.binary_search(&node).map_err(|_| PlanError::UnknownNode { row: at, node })?
        };
        if std::mem::replace(&mut seen[row], true) {
            return Err(PlanError::Twice { node });
        }
        let Some(facts) = snapshot.nodes.row(row) else { return Err(PlanError::UnknownNode { row: at, node }) };
        if facts.attempt != decision.attempt {
            return Err(PlanError::StaleAttempt { node, expected: facts.attempt, found: decision.attempt });
        }
        if usize::from(decision.rule) >= declared {
            return Err(PlanError::UnknownRule { node, rule: decision.rule, declared });
        }
        let Some(verb) = Verb::from_code(decision.verb) else {
            return Err(PlanError::UnknownCode { node, what: "verb", code: decision.verb });
        };
        let hold_ok = match verb {
            Verb::Hold => HoldKind::from_code(decision.hold).is_some(),
            _ => decision.hold == 0,
        };
        if !hold_ok {
            return Err(PlanError::UnknownCode { node, what: "hold", code: decision.hold });
        }
        if let Err(why) = legal(&facts, verb, snapshot.now_ms) {
            let stage = Stage::from_code(facts.stage).map_or("?", Stage::label);
            return Err(PlanError::Illegal { node, verb: verb.label(), stage, why });
        }
    }
    match seen.iter().position(|seen| !seen) {
        Some(row) => Err(PlanError::Missing { node: known[row] }),
        None => Ok(()),
    }
}

/// Whether an action is legal for a node's facts; else what forbids it. This, not the decider, is what keeps S2, S5, S6,
/// S7, S8 and S9.
pub fn legal(row: &NodeRow, verb: Verb, now: Millis) -> Result<(), &'static str> {
    let stage = Stage::from_code(row.stage);
    let vacant = row.attempt == 0;
    let desired = row.desired_template != NO_INDEX;
    let deleting = row.intent == Intent::Deleting.code();
    let has = |bit: u8| row.live & bit != 0;
    let create_doubt = row.ambiguous == OperationKind::CreateLease.code();
    let boot_doubt = row.ambiguous == OperationKind::StartBootstrap.code();
    let doubt = create_doubt || boot_doubt;
    let need = |holds: bool, why: &'static str| if holds { Ok(()) } else { Err(why) };

    if verb == Verb::Hold {
        return Ok(());
    }
    if verb == Verb::Insert {
        need(vacant, "the slot is held")?;
        return need(desired, "the slot is not desired");
    }
    need(!vacant, "no node holds the slot")?;
    if verb.operation().is_some() {
        need(row.pending == 0, "an operation is pending")?;
        need(row.next_effect_at <= now, "its next operation is not due")?;
        need(stage != Some(Stage::Destroyed), "it is destroyed")?;
    }
    match verb {
        Verb::Hold | Verb::Insert => Ok(()),
        Verb::Reap => {
            need(stage == Some(Stage::Destroyed), "it is not destroyed")?;
            need(!desired, "the slot is desired")
        }
        Verb::Restart => {
            need(stage == Some(Stage::Destroyed), "it is not destroyed")?;
            need(desired, "the slot is not desired")?;
            need(row.restart_at <= now, "its restart is not due")
        }
        Verb::BeginDelete => {
            need(!deleting, "it is already deleting")?;
            need(stage != Some(Stage::Destroyed), "it is destroyed")?;
            let drifted = row.template != row.desired_template;
            need(!desired || drifted || stage == Some(Stage::Failed), "it is desired, undrifted and has not failed")
        }
        Verb::MarkDestroyed => {
            need(deleting, "it is not deleting")?;
            need(stage != Some(Stage::Destroyed), "it is already destroyed")?;
            need(row.pending == 0, "an operation is pending")?;
            need(!has(live::LEASE) && !has(live::SESSION), "its lease or its session is live")?;
            need(!doubt, "an ambiguous operation has to be settled first")
        }
        Verb::ConvergenceObserved => {
            need(!deleting, "it is deleting")?;
            need(stage == Some(Stage::Joined), "it has not joined")?;
            need(has(live::SESSION), "its session is not live")
        }
        Verb::CreateLease => {
            need(!has(live::LEASE), "its lease is live")?;
            need(!deleting || create_doubt, "it is deleting and no create is in doubt")?;
            need(deleting || matches!(stage, Some(Stage::New | Stage::LeaseRequested)), "the stage is past it")
        }
        Verb::LookupEndpoint => {
            need(!deleting, "it is deleting")?;
            need(has(live::LEASE), "it has no lease")?;
            need(!has(live::ENDPOINT), "its endpoint is known")?;
            need(row.probe_at <= now, "its next look is not due")?;
            need(stage == Some(Stage::LeaseCreated), "the stage is past it")
        }
        Verb::StartBootstrap => {
            need(has(live::LEASE) && has(live::ENDPOINT), "it has no lease or no endpoint")?;
            need(!has(live::SESSION), "its session is live")?;
            need(!deleting || boot_doubt, "it is deleting and no bootstrap is in doubt")?;
            let before = matches!(stage, Some(Stage::LeaseCreated | Stage::EndpointKnown));
            need(deleting || before, "the stage is past it")
        }
        Verb::CancelBootstrap => {
            need(deleting, "it is not deleting")?;
            need(has(live::SESSION), "its session is not live")?;
            need(!doubt, "an ambiguous operation has to be settled first")
        }
        Verb::DestroyLease => {
            need(deleting, "it is not deleting")?;
            need(has(live::LEASE), "it has no lease")?;
            need(!has(live::SESSION), "its session is live: cancel it first")?;
            need(!doubt, "an ambiguous operation has to be settled first")
        }
    }
}
