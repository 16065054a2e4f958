//! A node of a stated snapshot: `node web-0 lease-created lease failures=1 next-effect-at=12s`.

use decider::{Intent, OperationKind, Progress, Stage, live};

use crate::expect::stage;
use crate::words::{number, parse_ms};

/// The facts of a node as a file states them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeFacts {
    pub name: String,
    pub group: String,
    pub slot: u32,
    pub stage: u8,
    pub intent: u8,
    pub live: u8,
    pub attempt: Option<u64>,
    /// Its own template; `None` for the usual one, or none when vacant.
    pub template: Option<String>,
    /// The slot's; `Some(None)` when it is not desired.
    pub desired: Option<Option<String>>,
    pub progress: u8,
    pub pending: u8,
    pub pending_deadline: u64,
    pub ambiguous: u8,
    pub failures: u32,
    pub next_effect_at: u64,
    pub probe_at: u64,
    pub restart_at: u64,
    pub stage_deadline: u64,
}

/// The template that is meant where none is named.
pub(crate) const USUAL: &str = "v1";

impl NodeFacts {
    pub fn parse(words: &[&str]) -> Result<NodeFacts, String> {
        let [name, stage, facts @ ..] = words else {
            return Err("node NAME STAGE, then its facts".into());
        };
        let wrong = || format!("{name:?} is no node; a node is group-index, such as web-0");
        let (group, slot) = name.rsplit_once('-').filter(|(group, _)| !group.is_empty()).ok_or_else(wrong)?;
        let mut node = NodeFacts {
            name: (*name).into(),
            group: group.into(),
            slot: slot.parse().map_err(|_| wrong())?,
            stage: code_of(stage)?,
            intent: Intent::Active.code(),
            live: 0,
            attempt: None,
            template: None,
            desired: None,
            progress: 0,
            pending: 0,
            pending_deadline: 0,
            ambiguous: 0,
            failures: 0,
            next_effect_at: 0,
            probe_at: 0,
            restart_at: 0,
            stage_deadline: 0,
        };
        for fact in facts {
            node.fact(fact)?;
        }
        Ok(node)
    }

    fn fact(&mut self, fact: &str) -> Result<(), String> {
        let Some((name, value)) = fact.split_once('=') else {
            match fact {
                "lease" => self.live |= live::LEASE,
                "endpoint" => self.live |= live::ENDPOINT,
                "session" => self.live |= live::SESSION,
                "deleting" => self.intent = Intent::Deleting.code(),
                "active" => self.intent = Intent::Active.code(),
                "undesired" => self.desired = Some(None),
                _ => return Err(no_fact(fact)),
            }
            return Ok(());
        };
        match name {
            "attempt" => self.attempt = Some(number(value, "attempt")?),
            "template" => self.template = Some(value.into()),
            "desired" => self.desired = Some(Some(value.into())),
            "intent" => self.intent = number(value, "code")?,
            "live" => self.live = number(value, "code")?,
            "progress" => self.progress = progress(value)?,
            "pending" => self.pending = operation(value)?,
            "pending-deadline" => self.pending_deadline = parse_ms(value)?,
            "in-doubt" => self.ambiguous = operation(value)?,
            "failures" => self.failures = number(value, "count")?,
            "next-effect-at" => self.next_effect_at = parse_ms(value)?,
            "probe-at" => self.probe_at = parse_ms(value)?,
            "restart-at" => self.restart_at = parse_ms(value)?,
            "stage-deadline" => self.stage_deadline = parse_ms(value)?,
            _ => return Err(no_fact(fact)),
        }
        Ok(())
    }

    pub fn is_vacant(&self) -> bool {
        self.stage == Stage::Vacant.code()
    }

    pub fn is_desired(&self) -> bool {
        self.desired != Some(None)
    }
}

fn no_fact(fact: &str) -> String {
    format!(
        "{fact:?} is no fact; lease, endpoint, session, deleting and undesired are, and attempt=, template=, desired=, progress=, \
         pending=, pending-deadline=, in-doubt=, failures=, next-effect-at=, probe-at=, restart-at=, stage-deadline="
    )
}

fn code_of(word: &str) -> Result<u8, String> {
    if let Some(code) = word.strip_prefix("stage=") {
        return number(code, "code");
    }
    let names = || Stage::ALL.iter().map(|stage| stage.label()).collect::<Vec<_>>().join(", ");
    stage(word).map(Stage::code).ok_or_else(|| format!("{word:?} is no stage; the stages are {}", names()))
}

fn operation(word: &str) -> Result<u8, String> {
    let known = OperationKind::ALL.iter().find(|kind| kind.label() == word).map(|kind| kind.code());
    known.or_else(|| word.parse().ok()).ok_or_else(|| {
        let names: Vec<&str> = OperationKind::ALL.iter().map(|kind| kind.label()).collect();
        format!("{word:?} is no operation; the operations are {}", names.join(", "))
    })
}

fn progress(word: &str) -> Result<u8, String> {
    let known = Progress::ALL.iter().find(|progress| progress.label().replace(' ', "-") == word);
    known
        .map(|progress| progress.code())
        .or_else(|| word.parse().ok())
        .ok_or_else(|| format!("{word:?} is no progress"))
}
