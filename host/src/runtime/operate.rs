//! What operators ask for (SPEC 10): once for each id, and durable before anything leaves.

use ::journal::{Chain, Hash};
use engine::command::{Command, CommandError, Consequences};
use engine::id::Millis;
use engine::io::Input;
use engine::shape::ShapeError;
use serde::{Deserialize, Serialize};
use store::Begun;

use super::HostError;
use super::declare::DECLARED;
use super::ending::Ending;
use super::select::Runtime;

/// The longest id of a command, in bytes.
const MAX_ID_BYTES: usize = 64;

/// A command with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// Names it for ever: 1 to 64 letters, digits, `-` and `_`.
    pub id: String,
    /// Refused unless this generation is in force.
    pub expect_generation: Option<u64>,
    /// What to do.
    pub command: Command,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandReport {
    /// When it was taken.
    pub at_ms: Millis,
    /// The generation that was in force before it.
    pub base_generation: u64,
    /// The id was used before: this is what was said then, and nothing was done now.
    pub replayed: bool,
    /// What it does, or why nothing.
    pub outcome: Result<Consequences, Refused>,
}

/// Why a command does nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// What kind of reason.
    pub why: Why,
    /// In words, with the value.
    pub text: String,
}

/// Why a command does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// There is nothing of that name.
    Unknown,
    /// It makes no sense.
    Invalid,
    /// Another generation is in force, or the state does not allow it now.
    Conflict,
    /// A guard.
    Guard,
}

/// A driver, to be put somewhere else.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// When.
    pub at_ms: Millis,
    /// Where the journal stood.
    pub head: Chain,
    /// What is remembered of the declared fleet.
    pub declared: Option<Vec<u8>>,
    /// The checkpoint, as JSON.
    pub checkpoint: Vec<u8>,
    /// What is known of deciders.
    pub deciders: crate::registry::Document,
}

/// What is kept of a command.
#[derive(Serialize, Deserialize)]
struct Kept {
    at_ms: Millis,
    base_generation: u64,
    outcome: Result<Consequences, Refused>,
}

impl Runtime {
    /// Carries a command out, or finds what came of it before. Command, result and effects become durable in one commit.
    pub fn operate(&mut self, order: Order) -> Result<CommandReport, HostError> {
        if self.ending != Ending::No {
            return Err(HostError::Ended("it is being shut down".into()));
        }
        check_id(&order.id)?;
        let span = traces::command(&order.id, order.command.label());
        let _entered = span.enter();
        let body = digest(&order.command)?;
        let at_ms = self.now_ms();
        let (base_generation, outcome) = self.outcome(&order);
        let kept = Kept { at_ms, base_generation, outcome };
        let words = serde_json::to_vec(&kept).map_err(|error| HostError::Order(error.to_string()))?;
        let store = self.parts.history.store();
        let store =
            store.ok_or_else(|| HostError::Order("this host keeps no state, so it takes no commands".into()))?;
        match store.command(&order.id, body, at_ms, || words)? {
            Begun::New if kept.outcome.is_ok() => {
                let entry = ::journal::Entry::Order { id: order.id.clone() };
                store.note(entry, at_ms)?;
            }
            Begun::New => {}
            Begun::Again(known) => {
                // What was said must not be forgotten either.
                self.parts.history.sync()?;
                return again(&known);
            }
            Begun::OtherBody(known) => {
                return Err(HostError::IdTaken { id: order.id, at_ms: known.at_ms });
            }
        }
        let Kept { at_ms, base_generation, outcome } = kept;
        if outcome.is_ok() {
            self.step(Input::Command(order.command))?;
        }
        self.parts.history.sync()?;
        self.publish();
        Ok(CommandReport { at_ms, base_generation, replayed: false, outcome })
    }

    /// The generation in force, and what a command would do now, also where a guard refuses it.
    pub fn foresee(&self, command: &Command) -> (u64, Result<Consequences, Refused>) {
        let foreseen = self.fits(command, None);
        let driver = &self.parts.driver;
        let foreseen = foreseen.and_then(|()| driver.foresee(command).map_err(|error| Refused::from(&error)));
        (self.generation(), foreseen)
    }

    /// The generation in force, and what a command does now.
    fn outcome(&self, order: &Order) -> (u64, Result<Consequences, Refused>) {
        let outcome = self.fits(&order.command, order.expect_generation);
        let driver = &self.parts.driver;
        let outcome = outcome.and_then(|()| driver.consequences(&order.command).map_err(|error| Refused::from(&error)));
        (self.generation(), outcome)
    }

    /// Whether it is for what is in force, and names what backends can make.
    fn fits(&self, command: &Command, expected: Option<u64>) -> Result<(), Refused> {
        let generation = self.generation();
        if let Some(expected) = expected.filter(|expected| *expected != generation) {
            let text = format!("generation {generation} is in force, not {expected}: look again before you change it");
            return Err(Refused { why: Why::Conflict, text });
        }
        if let Command::Apply { shape, .. } = command {
            self.check_shape(shape).map_err(|error| Refused { why: Why::Invalid, text: error.to_string() })?;
        }
        Ok(())
    }

    /// The driver as it is, and where the journal stands.
    pub fn export(&mut self) -> Result<Exported, HostError> {
        let checkpoint = self.parts.driver.checkpoint();
        let checkpoint = checkpoint.map_err(|error| HostError::Journal(store::KeepError::from(error).into()))?;
        let (at_ms, deciders) = (self.now_ms(), self.swaps.document.clone());
        let Some(store) = self.parts.history.store() else {
            return Ok(Exported { at_ms, head: Chain::default(), declared: None, checkpoint, deciders });
        };
        Ok(Exported { at_ms, head: store.head(), declared: store.meta(DECLARED)?, checkpoint, deciders })
    }

    /// Checks a shape by itself and with each backend.
    pub fn check_shape(&self, shape: &engine::shape::ClusterShape) -> Result<(), ShapeError> {
        let names = self.parts.backends.keys().cloned().collect();
        shape.check(&self.parts.driver.policy().limits, &names)?;
        for (at, group) in shape.groups.iter().enumerate() {
            let Some(backend) = self.parts.backends.get(&group.template.provider) else { continue };
            backend.check(&group.template).map_err(|refused| ShapeError::Invalid {
                field: format!("group[{at}].{}", refused.field),
                value: refused.value,
                why: refused.reason,
            })?;
        }
        Ok(())
    }
}

impl From<&CommandError> for Refused {
    fn from(error: &CommandError) -> Self {
        let why = match error {
            CommandError::BeyondGuard { .. } => Why::Guard,
            CommandError::UnknownGroup { .. }
            | CommandError::UnknownNode { .. }
            | CommandError::UnknownOrphan { .. } => Why::Unknown,
            CommandError::NoShape
            | CommandError::NotDesired { .. }
            | CommandError::NothingToKill { .. }
            | CommandError::Paused { .. }
            | CommandError::NotPaused { .. }
            | CommandError::OrphanRefused { .. }
            | CommandError::WrongBase { .. }
            | CommandError::WrongGeneration { .. }
            | CommandError::Exhausted { .. } => Why::Conflict,
            CommandError::Empty { .. } | CommandError::Shape(_) => Why::Invalid,
        };
        Refused { why, text: error.to_string() }
    }
}

pub(super) fn check_id(id: &str) -> Result<(), HostError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    match id.len() {
        0 => Err(HostError::Order("a command needs an id, and this one is empty".into())),
        MAX_ID_BYTES.. if id.len() > MAX_ID_BYTES => Err(HostError::Order(format!(
            "the id of a command has {} bytes; at most {MAX_ID_BYTES} are allowed",
            id.len()
        ))),
        _ if !id.bytes().all(plain) => {
            Err(HostError::Order(format!("the id {id:?} has something else than letters, digits, `-` and `_`")))
        }
        _ => Ok(()),
    }
}

/// What tells one command from another: what it asks for, not what its sender had seen when it asked.
fn digest(command: &Command) -> Result<Hash, HostError> {
    let mut command = command.clone();
    if let Command::Apply { shape, base_generation, .. } = &mut command {
        shape.generation = 0;
        *base_generation = 0;
    }
    let body = serde_json::to_vec(&command).map_err(|error| HostError::Order(error.to_string()))?;
    Ok(Hash::of(&body))
}

fn again(known: &store::Command) -> Result<CommandReport, HostError> {
    let bytes = known.result.as_deref().unwrap_or_default();
    let kept: Kept = serde_json::from_slice(bytes)
        .map_err(|error| HostError::Order(format!("what came of {:?} cannot be read: {error}", known.id)))?;
    let Kept { at_ms, base_generation, outcome } = kept;
    Ok(CommandReport { at_ms, base_generation, replayed: true, outcome })
}
