//! Deciders that are wrong on purpose, as a policy author might get them wrong: what the simulator finds in them, and names.

use engine::mutation::Mutation;

use decider::{HoldKind, Intent, Nodes, OperationKind, Plan, Snapshot, Stage, Verb, live};

/// One way to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It does not settle what is in doubt before it cleans up (R6).
    SkipsDoubt,
    /// It starts a new attempt before the failed one is cleaned up.
    RestartsTooEarly,
    /// It answers differently at odd milliseconds.
    OddMilliseconds,
    /// It scales down from the lowest index.
    ScalesDownLowest,
    /// It does not wait for a backoff.
    IgnoresBackoff,
    /// It destroys before it cancels.
    DestroysFirst,
    /// It takes a drifted node for a good one.
    IgnoresDrift,
    /// It never restarts.
    NeverRestarts,
    /// It acts while an operation is pending.
    IgnoresPending,
    /// It decides for the first node only.
    ForgetsNodes,
    /// Its choice depends on who else is in the snapshot.
    ByCompany,
    /// It deletes what is ready.
    DeletesReady,
}

impl Wrong {
    /// The four that ship as examples.
    pub const EXAMPLES: [Wrong; 4] =
        [Wrong::SkipsDoubt, Wrong::RestartsTooEarly, Wrong::OddMilliseconds, Wrong::ScalesDownLowest];

    /// The one that a mutation stands for; `None` for mutations of the engine.
    pub fn of(mutation: Mutation) -> Option<Wrong> {
        Some(match mutation {
            Mutation::DeciderSkipsDoubt => Wrong::SkipsDoubt,
            Mutation::DeciderRestartsEarly => Wrong::RestartsTooEarly,
            Mutation::DeciderOddMilliseconds => Wrong::OddMilliseconds,
            Mutation::DeciderScalesDownLowest => Wrong::ScalesDownLowest,
            Mutation::DeciderIgnoresBackoff => Wrong::IgnoresBackoff,
            Mutation::DeciderDestroysFirst => Wrong::DestroysFirst,
            Mutation::DeciderIgnoresDrift => Wrong::IgnoresDrift,
            Mutation::DeciderNeverRestarts => Wrong::NeverRestarts,
            Mutation::DeciderIgnoresPending => Wrong::IgnoresPending,
            Mutation::DeciderForgetsNodes => Wrong::ForgetsNodes,
            Mutation::DeciderByCompany => Wrong::ByCompany,
            Mutation::DeciderDeletesReady => Wrong::DeletesReady,
            _ => return None,
        })
    }

    /// The property that it breaks (SPEC 13), for the four examples.
    pub fn breaks(self) -> &'static str {
        match self {
            Wrong::SkipsDoubt => "S7",
            Wrong::RestartsTooEarly => "S8",
            Wrong::OddMilliseconds | Wrong::ByCompany => "S11",
            Wrong::ScalesDownLowest | Wrong::DeletesReady => "S9",
            Wrong::IgnoresBackoff => "SPEC 6",
            Wrong::DestroysFirst => "S6",
            Wrong::IgnoresDrift | Wrong::NeverRestarts => "L1",
            Wrong::IgnoresPending => "S2",
            Wrong::ForgetsNodes => "L4",
        }
    }

    /// Its plan: the built-in ladder's, and the mistake.
    pub fn decide(self, snapshot: &Snapshot) -> Plan {
        let mut plan = decider::reconcile(snapshot);
        match self {
            Wrong::SkipsDoubt => skip_doubt(snapshot, &mut plan),
            Wrong::RestartsTooEarly => restart_early(snapshot, &mut plan),
            Wrong::OddMilliseconds => {
                if snapshot.now_ms % 2 == 1 {
                    for at in 0..plan.decisions.len() {
                        hold(&mut plan, at);
                    }
                }
            }
            Wrong::ScalesDownLowest => scale_down_lowest(snapshot, &mut plan),
            Wrong::IgnoresBackoff | Wrong::DestroysFirst | Wrong::IgnoresPending | Wrong::DeletesReady => {
                self.act_too_early(snapshot, &mut plan);
            }
            Wrong::IgnoresDrift => hold_where(snapshot, &mut plan, |row| {
                row.desired_template != decider::NO_INDEX && row.template != row.desired_template && row.attempt != 0
            }),
            Wrong::NeverRestarts => hold_where(snapshot, &mut plan, |row| row.stage == Stage::Destroyed.code()),
            Wrong::ByCompany => {
                if snapshot.nodes.len() > 1 {
                    hold_where(snapshot, &mut plan, |row| row.stage == Stage::New.code());
                }
            }
            Wrong::ForgetsNodes => {
                let d = &mut plan.decisions;
                d.node.truncate(1);
                d.attempt.truncate(1);
                d.rule.truncate(1);
                d.verb.truncate(1);
                d.hold.truncate(1);
                d.until.truncate(1);
            }
        }
        plan
    }
}

impl Wrong {
    fn act_too_early(self, snapshot: &Snapshot, plan: &mut Plan) {
        for (at, row) in rows(&snapshot.nodes) {
            let deleting = row.intent == Intent::Deleting.code();
            let verb = match self {
                Wrong::IgnoresBackoff if row.next_effect_at > snapshot.now_ms && row.live == 0 && !deleting => {
                    Verb::CreateLease
                }
                Wrong::DestroysFirst if deleting && row.live & live::SESSION != 0 && row.pending == 0 => {
                    Verb::DestroyLease
                }
                Wrong::IgnoresPending if row.pending == OperationKind::CreateLease.code() && !deleting => {
                    Verb::CreateLease
                }
                Wrong::DeletesReady if row.stage == Stage::Dormant.code() && !deleting && row.slot == 2 => {
                    Verb::BeginDelete
                }
                _ => continue,
            };
            if row.stage != Stage::Destroyed.code() {
                act(plan, at, verb);
            }
        }
    }
}

fn hold_where(snapshot: &Snapshot, plan: &mut Plan, wanted: impl Fn(&decider::NodeRow) -> bool) {
    for (at, row) in rows(&snapshot.nodes) {
        if wanted(&row) {
            hold(plan, at);
        }
    }
}

fn act(plan: &mut Plan, at: usize, verb: Verb) {
    plan.decisions.verb[at] = verb.code();
    plan.decisions.hold[at] = 0;
    plan.decisions.until[at] = 0;
}

fn hold(plan: &mut Plan, at: usize) {
    plan.decisions.verb[at] = Verb::Hold.code();
    plan.decisions.hold[at] = HoldKind::Instant.code();
    plan.decisions.until[at] = 0;
}

fn rows(nodes: &Nodes) -> impl Iterator<Item = (usize, decider::NodeRow)> + '_ {
    nodes.rows().enumerate()
}

fn skip_doubt(snapshot: &Snapshot, plan: &mut Plan) {
    for (at, row) in rows(&snapshot.nodes) {
        let doubt = [OperationKind::CreateLease.code(), OperationKind::StartBootstrap.code()].contains(&row.ambiguous);
        let due = row.next_effect_at <= snapshot.now_ms && row.pending == 0;
        if row.intent == Intent::Deleting.code() && doubt && due && row.stage != Stage::Destroyed.code() {
            let verb = match row.live {
                bits if bits & live::SESSION != 0 => Verb::CancelBootstrap,
                bits if bits & live::LEASE != 0 => Verb::DestroyLease,
                _ => Verb::MarkDestroyed,
            };
            act(plan, at, verb);
        }
    }
}

fn restart_early(snapshot: &Snapshot, plan: &mut Plan) {
    for (at, row) in rows(&snapshot.nodes) {
        let desired = row.desired_template != decider::NO_INDEX;
        if desired && row.stage == Stage::Failed.code() && row.restart_at <= snapshot.now_ms + 60_000 {
            act(plan, at, Verb::Restart);
        }
    }
}

/// Where a group has more nodes than slots, it deletes the lowest index instead of the one that is not desired.
fn scale_down_lowest(snapshot: &Snapshot, plan: &mut Plan) {
    let begins: Vec<usize> = (0..plan.decisions.len())
        .filter(|at| plan.decisions.verb[*at] == Verb::BeginDelete.code())
        .filter(|at| snapshot.nodes.row(*at).is_some_and(|row| row.desired_template == decider::NO_INDEX))
        .collect();
    for at in begins {
        let lowest = rows(&snapshot.nodes).find(|(_, row)| {
            row.desired_template != decider::NO_INDEX
                && row.slot == 0
                && row.attempt != 0
                && row.intent == Intent::Active.code()
                && row.stage == Stage::Dormant.code()
        });
        if let Some((low, _)) = lowest {
            hold(plan, at);
            act(plan, low, Verb::BeginDelete);
        }
    }
}
