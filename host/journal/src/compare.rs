//! Compares what a decider answered with what was recorded: field by field, and over a whole journal by rule.

use std::collections::{BTreeMap, BTreeSet};

use decider::{DecisionRow, HoldKind, NodeRow, Plan, Rule, Snapshot, Verb};
use engine::id::Millis;
use engine::io::DeciderFailure;
use engine::validate::check_plan;

use crate::replay::Against;
use crate::walk::PassAsked;

/// Failures that another machine, or another moment, may not have.
const UNREPEATABLE: &[&str] = &["wall-clock", "pool-exhausted", "host"];
/// Differences that are kept one by one; all are counted.
const KEPT: usize = 1_000;
/// The decision about a slot that a contract does not show.
const UNSEEN: &str = "not shown by its contract";

/// A field in which two decisions differ, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDifference {
    /// Its name: `rule`, `verb`, `hold`, `until`, `attempt`; where only one of them is shown the slot, `decision`; of a whole pass `answer`, `wake-at`, `order`, `columns`.
    pub field: &'static str,
    /// As recorded.
    pub recorded: String,
    /// As answered now.
    pub other: String,
}

/// A decision that is another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The record of the pass.
    pub seq: u64,
    /// The instant at which the recorded plan was folded.
    pub at_ms: Millis,
    /// The number of the call.
    pub call: u64,
    /// The instant of the snapshot.
    pub asked_ms: Millis,
    /// Whose decision; `None` when it is about the pass as a whole.
    pub node: Option<NodeRow>,
    /// The slot's name.
    pub name: Option<String>,
    /// The fields that differ.
    pub fields: Vec<FieldDifference>,
}

/// Which way a difference goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leaning {
    /// It destroys where nothing was destroyed.
    MoreDestroys,
    /// It does not destroy where something was destroyed.
    FewerDestroys,
    /// It creates where nothing was created.
    MoreCreates,
    /// It does not create where something was created.
    FewerCreates,
    /// It fails where there was a plan.
    MoreFailures,
    /// It has a plan where the recorded one failed.
    FewerFailures,
    /// Another step, which neither creates nor destroys.
    OtherStep,
    /// The same step for another reason, or with another wait.
    SameStep,
}

impl Leaning {
    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Leaning::MoreDestroys => "destroys more",
            Leaning::FewerDestroys => "destroys less",
            Leaning::MoreCreates => "creates more",
            Leaning::FewerCreates => "creates less",
            Leaning::MoreFailures => "fails more",
            Leaning::FewerFailures => "fails less",
            Leaning::OtherStep => "another step",
            Leaning::SameStep => "same step, another reason or wait",
        }
    }
}

/// Differences of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What was recorded, such as `R13 lookup-endpoint`.
    pub recorded: String,
    /// What is answered now.
    pub other: String,
    /// Which way that goes.
    pub leaning: Leaning,
    /// How many decisions, or, where it is about passes as a whole, passes.
    pub decisions: u64,
    /// Of how many slots; 0 where it is about passes as a whole.
    pub slots: u64,
    /// The record of the first one.
    pub first_seq: u64,
}

/// How often a decider creates and destroys, over all passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tendency {
    /// `insert`, `restart` and `create-lease`.
    pub creates: u64,
    /// `begin-delete`, `cancel-bootstrap` and `destroy-lease`.
    pub destroys: u64,
    /// All other steps.
    pub others: u64,
    /// Holds.
    pub holds: u64,
    /// Passes without a plan.
    pub failures: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tally {
    decisions: u64,
    slots: BTreeSet<u32>,
    first_seq: u64,
}

/// All that was compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contrast {
    /// Passes compared.
    pub passes: u64,
    /// Of these, those with a difference.
    pub differing_passes: u64,
    /// Decisions compared.
    pub decisions: u64,
    /// Of these, those that differ.
    pub differing_decisions: u64,
    /// Passes that failed for a reason that need not come again, such as the wall clock; not compared.
    pub unrepeatable: u64,
    /// The differences, in order: at most the first thousand.
    pub differences: Vec<Difference>,
    /// What was recorded.
    pub recorded: Tendency,
    /// What is answered now.
    pub other: Tendency,
    groups: BTreeMap<(String, String, Leaning), Tally>,
}

type Answered<'a> = Result<&'a Plan, &'a DeciderFailure>;

/// One pass of the comparison.
pub(crate) struct Compared<'a> {
    pub seq: u64,
    pub at_ms: Millis,
    pub asked: &'a PassAsked,
    /// What the other one was asked with.
    pub shown: &'a Snapshot,
    pub recorded: Answered<'a>,
    pub other: Answered<'a>,
    pub against: &'a Against,
}

impl Compared<'_> {
    fn is_same_decider(&self) -> bool {
        match self.against {
            Against::Recorded => true,
            Against::Other(other) => other.digest == self.asked.decider,
        }
    }
}

impl Contrast {
    /// Whether all that was compared is the same.
    pub fn is_same(&self) -> bool {
        self.differing_passes == 0
    }

    /// The differences by kind, the most frequent first.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = self
            .groups
            .iter()
            .map(|((recorded, other, leaning), tally)| Group {
                recorded: recorded.clone(),
                other: other.clone(),
                leaning: *leaning,
                decisions: tally.decisions,
                slots: tally.slots.len() as u64,
                first_seq: tally.first_seq,
            })
            .collect();
        groups.sort_by(|a, b| b.decisions.cmp(&a.decisions).then(a.first_seq.cmp(&b.first_seq)));
        groups
    }

    /// Compares one pass. `name` gives a slot's name.
    pub(crate) fn add(&mut self, pass: &Compared<'_>, name: impl Fn(u32) -> Option<String>) {
        if pass.recorded.is_err_and(|failure| UNREPEATABLE.contains(&failure.class.as_str())) {
            self.unrepeatable += 1;
            return;
        }
        self.passes += 1;
        let before = self.differing_decisions;
        let whole = match pass.against {
            Against::Other(other) if !pass.is_same_decider() => self.judged(pass, &other.rules, &name),
            Against::Recorded | Against::Other(_) => self.strict(pass, &name),
        };
        let whole: Vec<FieldDifference> = whole.into_iter().collect();
        if self.differing_decisions > before || !whole.is_empty() {
            self.differing_passes += 1;
        }
        for field in whole {
            let leaning = match (field.field, pass.recorded.is_ok()) {
                ("answer", true) => Leaning::MoreFailures,
                ("answer", false) if field.other == PLANNED => Leaning::FewerFailures,
                _ => Leaning::SameStep,
            };
            let key = match field.field {
                "answer" => (field.recorded.clone(), field.other.clone(), leaning),
                name => (name.to_owned(), format!("another {name}"), leaning),
            };
            self.tally(key, None, pass.seq);
            self.keep(pass, None, None, vec![field]);
        }
    }

    /// Bit for bit: the same decider. Plans need not be valid.
    fn strict(&mut self, pass: &Compared<'_>, name: &impl Fn(u32) -> Option<String>) -> Option<FieldDifference> {
        let rules = &pass.asked.rules;
        match (pass.recorded, pass.other) {
            (Ok(recorded), Ok(other)) if recorded == other => {
                self.decisions += recorded.decisions.len() as u64;
                self.recorded.count(recorded);
                self.other.count(other);
                None
            }
            (Ok(recorded), Ok(other)) => {
                let comparable = |plan: &Plan| check_plan(plan, &pass.asked.snapshot, rules.len()).is_ok();
                if !comparable(recorded) || !comparable(other) {
                    return Some(whole("columns", columns(recorded), columns(other)));
                }
                self.plans(pass, (recorded, rules), (other, rules), name)
            }
            (recorded, other) => self.failures(recorded, other),
        }
    }

    /// Another decider: an invalid plan is a failure, and rules are compared by their ids.
    fn judged(
        &mut self,
        pass: &Compared<'_>,
        other_rules: &[Rule],
        name: &impl Fn(u32) -> Option<String>,
    ) -> Option<FieldDifference> {
        let rules = &pass.asked.rules;
        let checked = |answer: Result<&Plan, &DeciderFailure>, snapshot: &Snapshot, rules: &[Rule]| match answer {
            Ok(plan) => check_plan(plan, snapshot, rules.len()).map_err(|error| DeciderFailure {
                decider: String::new(),
                class: "invalid-plan".into(),
                detail: error.to_string(),
            }),
            Err(failure) => Err(failure.clone()),
        };
        let recorded = checked(pass.recorded, &pass.asked.snapshot, rules);
        let other = checked(pass.other, pass.shown, other_rules);
        match (pass.recorded, pass.other, &recorded, &other) {
            (Ok(plan), Ok(answer), Ok(()), Ok(())) => self.plans(pass, (plan, rules), (answer, other_rules), name),
            (plan, answer, recorded, other) => {
                let recorded = recorded.as_ref().err().map_or(plan, Err);
                let other = other.as_ref().err().map_or(answer, Err);
                self.failures(recorded, other)
            }
        }
    }

    fn failures(&mut self, recorded: Answered<'_>, other: Answered<'_>) -> Option<FieldDifference> {
        self.recorded.answered(recorded);
        self.other.answered(other);
        match (recorded, other) {
            (Err(recorded), Err(other)) if recorded.class == other.class => None,
            _ => Some(whole("answer", answer(recorded), answer(other))),
        }
    }

    /// Two valid plans: each has every node of its snapshot once.
    fn plans(
        &mut self,
        pass: &Compared<'_>,
        (recorded, rules): (&Plan, &[Rule]),
        (other, other_rules): (&Plan, &[Rule]),
        name: &impl Fn(u32) -> Option<String>,
    ) -> Option<FieldDifference> {
        self.recorded.count(recorded);
        self.other.count(other);
        let nodes = &pass.asked.snapshot.nodes;
        let in_order = recorded.decisions.node == other.decisions.node;
        let places: BTreeMap<u32, usize> = match in_order {
            true => BTreeMap::new(),
            false => other.decisions.node.iter().enumerate().map(|(at, node)| (*node, at)).collect(),
        };
        for (at, row) in recorded.decisions.rows().enumerate() {
            self.decisions += 1;
            let place = if in_order { Some(at) } else { places.get(&row.node).copied() };
            let Some(answer) = place.and_then(|place| other.decisions.row(place)) else {
                self.unseen(pass, &row, Ok(rules), name);
                continue;
            };
            let fields = fields((&row, rules), (&answer, other_rules));
            if fields.is_empty() {
                continue;
            }
            self.differing_decisions += 1;
            let key = (step(&row, rules), step(&answer, other_rules), leaning(row.verb, answer.verb));
            self.tally(key, Some(row.node), pass.seq);
            let facts = nodes.node.binary_search(&row.node).ok().and_then(|found| nodes.row(found));
            self.keep(pass, facts, name(row.node), fields);
        }
        if !in_order {
            let asked: BTreeSet<u32> = recorded.decisions.node.iter().copied().collect();
            for row in other.decisions.rows().filter(|row| !asked.contains(&row.node)) {
                self.decisions += 1;
                self.unseen(pass, &row, Err(other_rules), name);
            }
        }
        if recorded.wake_at_ms != other.wake_at_ms {
            return Some(whole("wake-at", instant(recorded.wake_at_ms), instant(other.wake_at_ms)));
        }
        (pass.is_same_decider() && !in_order).then(|| whole("order", columns(recorded), columns(other)))
    }

    /// A slot that the contract of one of them does not show, with the rules of the one that is shown it: `Ok` of the recorded.
    /// To hold it is no difference.
    fn unseen(
        &mut self,
        pass: &Compared<'_>,
        row: &DecisionRow,
        rules: Result<&[Rule], &[Rule]>,
        name: &impl Fn(u32) -> Option<String>,
    ) {
        if row.verb == Verb::Hold.code() {
            return;
        }
        self.differing_decisions += 1;
        let (nodes, hold, unseen) = (&pass.asked.snapshot.nodes, Verb::Hold.code(), UNSEEN.to_owned());
        let (key, nodes) = match rules {
            Ok(rules) => ((step(row, rules), unseen, leaning(row.verb, hold)), nodes),
            Err(rules) => ((unseen, step(row, rules), leaning(hold, row.verb)), &pass.shown.nodes),
        };
        let (recorded, other, _) = key.clone();
        self.tally(key, Some(row.node), pass.seq);
        let facts = nodes.node.binary_search(&row.node).ok().and_then(|found| nodes.row(found));
        self.keep(pass, facts, name(row.node), vec![FieldDifference { field: "decision", recorded, other }]);
    }

    fn tally(&mut self, key: (String, String, Leaning), node: Option<u32>, seq: u64) {
        let fresh = Tally { decisions: 0, slots: BTreeSet::new(), first_seq: seq };
        let tally = self.groups.entry(key).or_insert(fresh);
        tally.decisions += 1;
        tally.slots.extend(node);
    }

    fn keep(&mut self, pass: &Compared<'_>, node: Option<NodeRow>, name: Option<String>, fields: Vec<FieldDifference>) {
        if self.differences.len() < KEPT {
            let (call, asked_ms) = (pass.asked.call, pass.asked.snapshot.now_ms);
            self.differences.push(Difference { seq: pass.seq, at_ms: pass.at_ms, call, asked_ms, node, name, fields });
        }
    }
}

impl Tendency {
    fn count(&mut self, plan: &Plan) {
        for verb in &plan.decisions.verb {
            match Verb::from_code(*verb).map(kind) {
                Some(Kind::Create) => self.creates += 1,
                Some(Kind::Destroy) => self.destroys += 1,
                Some(Kind::Hold) => self.holds += 1,
                Some(Kind::Other) | None => self.others += 1,
            }
        }
    }

    fn answered(&mut self, answer: Answered<'_>) {
        match answer {
            Ok(plan) => self.count(plan),
            Err(_) => self.failures += 1,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Create,
    Destroy,
    Other,
    Hold,
}

fn kind(verb: Verb) -> Kind {
    match verb {
        Verb::Insert | Verb::Restart | Verb::CreateLease => Kind::Create,
        Verb::BeginDelete | Verb::CancelBootstrap | Verb::DestroyLease => Kind::Destroy,
        Verb::Hold => Kind::Hold,
        Verb::Reap | Verb::MarkDestroyed | Verb::ConvergenceObserved | Verb::LookupEndpoint | Verb::StartBootstrap => {
            Kind::Other
        }
    }
}

fn leaning(recorded: u8, other: u8) -> Leaning {
    if recorded == other {
        return Leaning::SameStep;
    }
    let kind = |code: u8| Verb::from_code(code).map_or(Kind::Other, kind);
    match (kind(recorded), kind(other)) {
        (Kind::Destroy, Kind::Destroy) | (Kind::Create, Kind::Create) => Leaning::OtherStep,
        (_, Kind::Destroy) => Leaning::MoreDestroys,
        (Kind::Destroy, _) => Leaning::FewerDestroys,
        (_, Kind::Create) => Leaning::MoreCreates,
        (Kind::Create, _) => Leaning::FewerCreates,
        _ => Leaning::OtherStep,
    }
}

fn fields(
    (row, rules): (&DecisionRow, &[Rule]),
    (other, other_rules): (&DecisionRow, &[Rule]),
) -> Vec<FieldDifference> {
    let mut fields = Vec::new();
    let (id, other_id) = (rule(row.rule, rules), rule(other.rule, other_rules));
    if row.attempt != other.attempt {
        fields.push(whole("attempt", format!("a{}", row.attempt), format!("a{}", other.attempt)));
    }
    if id != other_id {
        fields.push(whole("rule", id, other_id));
    }
    if row.verb != other.verb {
        fields.push(whole("verb", verb(row.verb), verb(other.verb)));
    }
    if row.hold != other.hold {
        fields.push(whole("hold", hold(row.hold), hold(other.hold)));
    }
    if row.until != other.until {
        fields.push(whole("until", instant(row.until), instant(other.until)));
    }
    fields
}

fn whole(field: &'static str, recorded: String, other: String) -> FieldDifference {
    FieldDifference { field, recorded, other }
}

fn step(row: &DecisionRow, rules: &[Rule]) -> String {
    format!("{} {}", rule(row.rule, rules), verb(row.verb))
}

fn rule(index: u8, rules: &[Rule]) -> String {
    rules.get(usize::from(index)).map_or_else(|| format!("rule #{index}"), |rule| rule.id.clone())
}

fn verb(code: u8) -> String {
    Verb::from_code(code).map_or_else(|| format!("verb {code}"), |verb| verb.label().into())
}

fn hold(code: u8) -> String {
    match HoldKind::from_code(code) {
        Some(hold) => hold.label().into(),
        None if code == 0 => "-".into(),
        None => format!("hold {code}"),
    }
}

fn instant(at_ms: Millis) -> String {
    if at_ms == 0 { "-".into() } else { at_ms.to_string() }
}

/// Enough to see that two plans are not the same, and of how many rows.
fn columns(plan: &Plan) -> String {
    let d = &plan.decisions;
    let lengths = [d.node.len(), d.attempt.len(), d.rule.len(), d.verb.len(), d.hold.len(), d.until.len()];
    let first = d.node.iter().take(8).map(u32::to_string).collect::<Vec<_>>().join(" ");
    match lengths.iter().all(|length| *length == lengths[0]) {
        true => format!("{} decisions, for the nodes {first}{}", lengths[0], if d.node.len() > 8 { " …" } else { "" }),
        false => format!("columns of {lengths:?} entries"),
    }
}

const PLANNED: &str = "a plan";

fn answer(answer: Answered<'_>) -> String {
    answer.map_or_else(|failure| format!("failure {}", failure.class), |_| PLANNED.into())
}
