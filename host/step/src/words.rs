//! A record in words.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use decider::{Plan, Rule, Verb};
use engine::id::{AttemptId, Millis};
use engine::io::{Done, Fault, Listing, Notice, Observation, OperationStatus, Output};
use engine::state::ClusterState;
use journal::{Answer, Entry, RecordedInput, SIMULATED, SwapRecord};

use crate::text::{counted, short, time_of_day};

/// The names that records give by number.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// Knows the slots; `None` where the engine could not follow.
    pub state: Option<&'a ClusterState>,
    /// The rules of the decider in force.
    pub rules: &'a [Rule],
}

impl Words<'_> {
    /// A slot's name, or its number.
    pub fn slot(&self, node: u32) -> String {
        let slot = self.state.and_then(|state| state.slots.get(node as usize));
        slot.map_or_else(|| format!("#{node}"), |slot| slot.name.clone())
    }

    /// The slot that an attempt was for.
    pub fn slot_of(&self, attempt: AttemptId) -> Option<&str> {
        let state = self.state?;
        Some(state.slot(state.attempts.get(&attempt)?.node)?.name.as_str())
    }

    /// `web-0 a3`, or `a3`.
    pub fn who(&self, attempt: AttemptId) -> String {
        self.slot_of(attempt).map_or_else(|| attempt.to_string(), |slot| format!("{slot} {attempt}"))
    }

    /// A rule's id.
    pub fn rule(&self, index: u8) -> String {
        self.rules.get(usize::from(index)).map_or_else(|| format!("rule #{index}"), |rule| rule.id.clone())
    }

    /// What a record says.
    pub fn record(&self, entry: &Entry, at_ms: Millis) -> String {
        match entry {
            Entry::Start(start) => {
                let decider = &start.decider;
                format!(
                    "start of run {} at {} by {}; decider {} {} ({}); attempts from {}",
                    start.run,
                    time_of_day(at_ms),
                    start.written_by,
                    decider.name,
                    decider.version,
                    short(&decider.digest),
                    AttemptId(start.next_attempt)
                )
            }
            Entry::Input { of, error } => format!("{}{}", self.input(of), refused(error.as_deref())),
            Entry::Pass { answer: Answer::Plan(plan), .. } => self.pass(entry, &self.plan(plan)),
            Entry::Pass { answer: Answer::Failure(failure), .. } => {
                self.pass(entry, &format!("no plan: {}: {}", failure.class, failure.detail))
            }
            Entry::Dispatch { id, kind, key, provider } => {
                format!("-> {id} {} for {} at {provider}", kind.label(), key.slot)
            }
            Entry::Reserved { below } => format!("attempts below {below} are reserved"),
            Entry::Order { id } => format!("the command {id}:"),
            Entry::Swap(swap) => swapped(swap),
            Entry::End => "end".into(),
        }
    }

    /// What a pass was, with its decisions in these words.
    pub fn pass(&self, entry: &Entry, decided: &str) -> String {
        let Entry::Pass { call, decider, snapshot, error, .. } = entry else { return decided.to_owned() };
        let by = match snapshot {
            None => ", to no call in flight",
            Some(_) if decider == SIMULATED => ", by a simulated fault",
            Some(_) => "",
        };
        format!("pass {call}{by}: {decided}{}", refused(error.as_deref()))
    }

    /// What an input says.
    pub fn input(&self, input: &RecordedInput) -> String {
        match input {
            RecordedInput::Desired(shape) => {
                let groups = shape.groups.iter().map(|group| format!("{}={}", group.id, group.count));
                let groups = groups.collect::<Vec<_>>().join(" ");
                let groups = if groups.is_empty() { "nothing".into() } else { groups };
                format!("desired, generation {}: {groups}", shape.generation)
            }
            RecordedInput::Completed { id, result } => {
                format!("{} operation {id}: {}", self.who(id.attempt), ended(result))
            }
            RecordedInput::Answered { id, status } => {
                format!("{} operation {id}: {}", self.who(id.attempt), became(*status))
            }
            RecordedInput::Observed { attempt, observation } => {
                format!("{} {}", self.who(*attempt), observed(observation))
            }
            RecordedInput::Listed { provider, listing } => format!("listing of {provider}: {}", resources(listing)),
            RecordedInput::Adopt { provider, listing } => format!("adopted from {provider}: {}", resources(listing)),
            RecordedInput::Surveyed { provider, listing } => {
                format!("{provider} holds at the start: {}", resources(listing))
            }
            RecordedInput::PolicyChanged(_) => "the settings changed".into(),
            RecordedInput::Command(command) => format!("order: {command}"),
            RecordedInput::DeciderChanged(identity) => format!("another decider: {}", short(&identity.digest)),
            RecordedInput::Restarted => "the host started again".into(),
            RecordedInput::Tick => "tick".into(),
            RecordedInput::Resync => "resync".into(),
        }
    }

    /// What was decided: who does what, and how many hold.
    pub fn plan(&self, plan: &Plan) -> String {
        let mut acted: BTreeMap<(u8, u8), Vec<String>> = BTreeMap::new();
        let mut holds = 0;
        for row in plan.decisions.rows() {
            match row.verb == Verb::Hold.code() {
                true => holds += 1,
                false => acted.entry((row.rule, row.verb)).or_default().push(self.slot(row.node)),
            }
        }
        let mut words = Vec::new();
        for ((rule, code), nodes) in acted {
            let mut one = format!("{} {} {}", self.rule(rule), verb(code), nodes[..nodes.len().min(8)].join(" "));
            if nodes.len() > 8 {
                let _ = write!(one, " and {} more", nodes.len() - 8);
            }
            words.push(one);
        }
        if holds > 0 {
            words.push(format!("{} {}", counted(holds, "node"), if holds == 1 { "holds" } else { "hold" }));
        }
        if words.is_empty() { "nobody to decide about".into() } else { words.join("; ") }
    }

    /// What the driver put out and no record says; `None` where a record follows.
    pub fn output(&self, output: &Output) -> Option<String> {
        Some(match output {
            Output::Record(_) | Output::Submit(_) => return None,
            Output::Ask(id) => format!("asks what became of {id} ({})", self.who(id.attempt)),
            Output::Decide { call, snapshot } => {
                format!("asks the decider, call {call}, about {}", counted(snapshot.nodes.len() as u64, "node"))
            }
            Output::Notice(notice) => format!("notice: {}", said(notice)),
        })
    }
}

/// A notice in words.
fn said(notice: &Notice) -> String {
    match notice {
        Notice::DeciderFailed { nodes, failure } => {
            let whom = if nodes.is_empty() { "everything".into() } else { nodes.join(" ") };
            format!("the decider fails for {whom}: {}: {}", failure.class, failure.detail)
        }
        Notice::DeciderRecovered => "the decider decides again".into(),
        Notice::Inconsistent { node, facts } => format!("the facts of {node} contradict each other: {facts}"),
        Notice::AwaitsPerson { node, rule, facts } => format!("{node} waits for a person ({rule}): {facts}"),
        Notice::Orphan { provider, lease, key } => {
            format!("{provider} {lease} bears {key}, and no such attempt was ever authorised")
        }
        Notice::OrphanGone { provider, lease } => format!("the orphan {provider} {lease} is gone"),
        Notice::Reaping { provider, lease, key } => {
            format!("{provider} {lease} of the retired {key} appeared and is being destroyed")
        }
        Notice::StateIsOlder { orphans } => {
            let found = counted(*orphans as u64, "orphan");
            format!("the state never heard of {found} that the start found: creates wait for a person")
        }
        Notice::Missing { provider, node, attempt, lease } => {
            format!("{node} {attempt}: {lease} is missing at {provider}")
        }
        Notice::Paused { scope, only } => format!("{} of {} is paused", only.label(), whole(scope)),
        Notice::Resumed { scope, only } => format!("{} of {} is resumed", only.label(), whole(scope)),
        Notice::GuardTripped { guard, limit, group } => {
            format!("the guard {} ({limit}) pauses {}", guard.label(), whole(group))
        }
    }
}

/// How an operation ended.
pub fn ended(result: &Result<Done, Fault>) -> String {
    match result {
        Ok(Done::Leased { lease, adopted }) => format!("leased {lease}{}", found(*adopted)),
        Ok(Done::Absent) => "absent from a complete listing".into(),
        Ok(Done::Found { endpoint }) => format!("at {endpoint}"),
        Ok(Done::Started { session, adopted }) => format!("started {session}{}", found(*adopted)),
        Ok(Done::Cancelled) => "cancelled".into(),
        Ok(Done::Destroyed) => "destroyed".into(),
        Err(fault) => format!("failed: {fault}"),
    }
}

/// What a step of a swap was.
pub fn swapped(swap: &SwapRecord) -> String {
    let mut text = match swap.revision {
        0 => format!("decider {}", swap.step.label()),
        revision => format!("swap {revision}: {}", swap.step.label()),
    };
    if !swap.decider.is_empty() {
        let _ = write!(text, " {}", short(&swap.decider));
    }
    if !swap.name.is_empty() {
        let _ = write!(text, " ({})", swap.name);
    }
    if !swap.text.is_empty() {
        let _ = write!(text, ": {}", swap.text);
    }
    for group in &swap.divergences {
        let (active, candidate) = (&group.active, &group.candidate);
        let _ = write!(
            text,
            "; {} {} -> {} {}: {} x{}",
            active.rule,
            active.verb,
            candidate.rule,
            candidate.verb,
            group.direction.label(),
            group.decisions
        );
    }
    text
}

/// What the executor says of an operation.
pub fn became(status: OperationStatus) -> &'static str {
    match status {
        OperationStatus::Completed => "its result is on its way",
        OperationStatus::Ambiguous => "given up; it may have happened",
    }
}

/// What a bootstrap session reported.
pub fn observed(observation: &Observation) -> String {
    match observation {
        Observation::Progress(progress) => format!("progress: {}", progress.label()),
        Observation::Output(line) => format!("says {line:?}"),
        Observation::Joined => "joined".into(),
        Observation::Failed { progress, reason, permanent } => {
            let good = if *permanent { ", for good" } else { "" };
            format!("{}{good}: {reason}", progress.label())
        }
        Observation::Closed { exit } => format!("closed: {}", exit.as_deref().unwrap_or("nothing is known of its end")),
    }
}

fn whole(scope: &Option<String>) -> &str {
    scope.as_deref().unwrap_or("the whole run")
}

/// A verb's name.
pub fn verb(code: u8) -> &'static str {
    Verb::from_code(code).map_or("?", Verb::label)
}

fn found(adopted: bool) -> &'static str {
    if adopted { ", which was there" } else { "" }
}

fn refused(error: Option<&str>) -> String {
    error.map(|words| format!(" (refused: {words})")).unwrap_or_default()
}

fn resources(listing: &Listing) -> String {
    let complete = if listing.complete { "complete" } else { "incomplete" };
    format!("{}, {complete}", counted(listing.resources.len() as u64, "resource"))
}
