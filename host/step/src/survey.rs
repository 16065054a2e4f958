//! One look at each record when a journal is opened: what it is, whom it changed, which rules decided anew.

use std::collections::{BTreeMap, BTreeSet};

use decider::Verb;
use engine::id::{AttemptId, Millis};
use engine::io::{Fault, Input, Observation};
use engine::state::Decision;
use engine::validate::check_plan;
use engine::watch::Watch;
use journal::{Answer, Entry, Hash, Line, Mismatch, RecordedInput, SIMULATED, Step};

use crate::trail::Trail;

/// What is remembered of a record.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// Where its line begins, in bytes.
    pub offset: u64,
    /// The hash of the record before.
    pub prev: Hash,
    pub at_ms: Millis,
    pub label: &'static str,
    /// For an input, what of.
    pub of: Option<&'static str>,
    pub failed: bool,
    /// Whom it is about.
    pub touches: Box<[Touch]>,
}

/// A slot that a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Touch {
    /// Index of the slot's name.
    pub name: u32,
    /// Index of the rule by which it was decided anew, plus one; 0 when it was not.
    pub rule: u32,
}

/// Texts by number, each once.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    texts: Vec<String>,
    numbers: BTreeMap<String, u32>,
}

impl Texts {
    pub fn number(&mut self, text: &str) -> u32 {
        if let Some(known) = self.numbers.get(text) {
            return *known;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    pub fn find(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    pub fn all(&self) -> &[String] {
        &self.texts
    }
}

/// What the records add up to.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub marks: Vec<Mark>,
    /// The records that a driver starts with.
    pub starts: Vec<u64>,
    pub names: Texts,
    pub rules: Texts,
    /// The ids of all rules that some decider had.
    pub declared: BTreeSet<String>,
    /// What is broken, by record.
    pub broken: BTreeMap<u64, Vec<String>>,
    /// The slots of the driver that runs, as they were last seen.
    seen: Vec<Seen>,
    watch: Option<Watch>,
}

#[derive(Debug, Default)]
struct Seen {
    name: u32,
    revision: u64,
    decision: Option<Decision>,
    /// The attempt that failed.
    failed: Option<AttemptId>,
    /// How often the decider failed for it in a row.
    tries: u32,
}

impl Survey {
    /// A record was followed. `trail` is what is known after it.
    pub fn add(&mut self, place: (u64, Hash), line: &Line, followed: Result<Option<&Step>, &Mismatch>, trail: &Trail) {
        let (of, input) = match &line.entry {
            Entry::Input { of, .. } => (Some(of.label()), Some(Input::from(of.clone()))),
            Entry::Pass { call, answer, .. } => {
                (None, Some(Input::Decided { call: *call, result: answer.clone().into() }))
            }
            _ => (None, None),
        };
        if matches!(line.entry, Entry::Start(_)) || of == Some("decider-changed") {
            self.declared.extend(trail.rules().iter().map(|rule| rule.id.clone()));
        }
        if matches!(line.entry, Entry::Start(_)) {
            self.starts.push(line.seq);
            self.seen.clear();
            self.watch = trail.state().map(Watch::new);
        }
        if let Err(mismatch) = followed {
            self.broken.insert(line.seq, vec![format!("the engine of this program does not follow: {mismatch}")]);
            self.watch = None;
        }
        if let (Some(input), Some(watch), Some(state)) = (&input, &mut self.watch, trail.state()) {
            let found = watch.step(input, trail.outputs(), state);
            if !found.is_empty() {
                let found = found.into_iter().map(|violation| format!("{}: {}", violation.id, violation.what));
                self.broken.insert(line.seq, found.collect());
            }
        }
        let refused = refused_plan(followed.ok().flatten());
        if let (Some(what), Entry::Pass { decider, .. }) = (&refused, &line.entry)
            && decider != SIMULATED
        {
            self.broken.entry(line.seq).or_default().push(what.clone());
        }
        let (mut touches, died) = self.touched(trail);
        if let Some(name) = named(&line.entry, trail) {
            touches.push(Touch { name: self.names.number(&name), rule: 0 });
        }
        touches.sort_unstable();
        touches.dedup();
        self.marks.push(Mark {
            offset: place.0,
            prev: place.1,
            at_ms: line.at_ms,
            label: line.entry.label(),
            of,
            failed: died || refused.is_some() || fails(&line.entry),
            touches: touches.into(),
        });
    }

    /// The slots that changed or were decided anew, and whether one of them failed just now.
    fn touched(&mut self, trail: &Trail) -> (Vec<Touch>, bool) {
        let mut touches = Vec::new();
        let mut died = false;
        for (at, slot) in trail.state().map_or(&[][..], |state| &state.slots).iter().enumerate() {
            if self.seen.len() <= at {
                self.seen.push(Seen { name: self.names.number(&slot.name), ..Seen::default() });
            }
            let seen = &mut self.seen[at];
            let anew = slot.decision.as_ref().filter(|now| is_news(seen.decision.as_ref(), now));
            let tries = slot.quarantine.as_ref().map_or(0, |held| held.tries);
            if seen.revision == slot.revision && seen.tries == tries && anew.is_none() {
                continue;
            }
            let failed = slot.node.as_ref().filter(|node| node.failure.is_some()).map(|node| node.attempt);
            died |= failed.is_some() && failed != seen.failed;
            let rule = anew.map_or(0, |decision| self.rules.number(&decision.rule) + 1);
            touches.push(Touch { name: seen.name, rule });
            *seen = Seen { name: seen.name, revision: slot.revision, decision: slot.decision.clone(), failed, tries };
        }
        (touches, died)
    }
}

/// What the engine has against a plan, with the property that it would break.
fn refused_plan(step: Option<&Step>) -> Option<String> {
    let Some(Step::Answered { asked: Some(asked), answer: Ok(plan) }) = step else { return None };
    let error = check_plan(plan, &asked.snapshot, asked.rules.len()).err()?;
    Some(format!("{}: the plan is refused: {error}", error.property()))
}

/// Whether a decision says anything that the last one did not.
fn is_news(before: Option<&Decision>, now: &Decision) -> bool {
    let Some(before) = before else { return true };
    let same =
        before.rule == now.rule && (before.verb, before.hold, before.until_ms) == (now.verb, now.hold, now.until_ms);
    !same || (now.verb != Verb::Hold && (before.at_ms, before.revision) != (now.at_ms, now.revision))
}

/// Whether a record is itself about something that went wrong.
fn fails(entry: &Entry) -> bool {
    match entry {
        Entry::Input { error: Some(_), .. }
        | Entry::Pass { error: Some(_), .. }
        | Entry::Pass { answer: Answer::Failure(_), .. } => true,
        Entry::Input { of, .. } => match of {
            RecordedInput::Completed { result: Err(fault), .. } => !matches!(fault, Fault::NotReady { .. }),
            RecordedInput::Observed { observation, .. } => {
                matches!(observation, Observation::Failed { .. } | Observation::Closed { exit: Some(_) })
            }
            _ => false,
        },
        _ => false,
    }
}

/// The slot that a record names.
fn named(entry: &Entry, trail: &Trail) -> Option<String> {
    let attempt = match entry {
        Entry::Dispatch { key, .. } => return Some(key.slot.clone()),
        Entry::Input { of: RecordedInput::Completed { id, .. } | RecordedInput::Answered { id, .. }, .. } => id.attempt,
        Entry::Input { of: RecordedInput::Observed { attempt, .. }, .. } => *attempt,
        _ => return None,
    };
    trail.words().slot_of(attempt).map(str::to_owned)
}
