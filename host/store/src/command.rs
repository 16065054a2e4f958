//! Commands of operators, remembered so that none acts twice (SPEC 10).

use engine::id::Millis;
use journal::Hash;

use crate::error::StoreError;

/// The longest id, in bytes.
pub const MAX_ID_BYTES: usize = 256;
/// The largest result, in bytes.
pub const MAX_RESULT_BYTES: usize = 16 << 20;

/// A command that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Whoever sent it chose this.
    pub id: String,
    /// The digest of what it asks for.
    pub body: Hash,
    /// When it was taken.
    pub at_ms: Millis,
    /// How it ended, in the daemon's own form; `None` while it runs, or when the daemon ended before it did.
    pub result: Option<Vec<u8>>,
}

impl Command {
    pub(crate) fn new(id: &str, body: Hash, at_ms: Millis) -> Self {
        // As far as a database counts: an age beyond that is none.
        Command { id: id.into(), body, at_ms: at_ms.min(i64::MAX.unsigned_abs()), result: None }
    }
}

/// What taking a command found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is new. It is durable after the next sync; nothing may be done for it before that.
    New,
    /// It was taken before: this is it, with its result if there is one.
    Again(Command),
    /// Another command was taken under this id.
    OtherBody(Command),
}

/// What a new command is compared with.
pub(crate) fn begin(known: Option<Command>, body: Hash) -> Begun {
    match known {
        None => Begun::New,
        Some(known) if known.body == body => Begun::Again(known),
        Some(known) => Begun::OtherBody(known),
    }
}

/// Refuses what is no id.
pub(crate) fn check_id(id: &str) -> Result<(), StoreError> {
    match id.len() {
        0 => Err(StoreError::EmptyCommandId),
        bytes if bytes > MAX_ID_BYTES => Err(StoreError::TooLarge { what: "a command id", bytes, most: MAX_ID_BYTES }),
        _ => Ok(()),
    }
}

/// The command with its result.
pub(crate) fn end(known: Option<Command>, id: &str, result: &[u8]) -> Result<Command, StoreError> {
    let bytes = result.len();
    if bytes > MAX_RESULT_BYTES {
        return Err(StoreError::TooLarge { what: "the result of a command", bytes, most: MAX_RESULT_BYTES });
    }
    match known {
        None => Err(StoreError::UnknownCommand { id: id.into() }),
        Some(Command { result: Some(_), .. }) => Err(StoreError::CommandEnded { id: id.into() }),
        Some(known) => Ok(Command { result: Some(result.into()), ..known }),
    }
}
