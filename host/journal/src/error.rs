//! What is wrong with a journal, or with its replay: each by name, with the place.

use std::io;

use engine::driver::DriverError;

use crate::line::{FORMAT, MAX_LINE_BYTES};

/// Why a journal cannot be read any further.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// There is nothing in it.
    #[error("not a journal: it is empty")]
    Empty,
    /// It does not begin as a journal does.
    #[error("not a journal: {why}")]
    NotAJournal {
        /// How it begins.
        why: String,
    },
    /// A newer program wrote it.
    #[error("the journal has format {found}; this program knows {FORMAT}: use the newer program")]
    Newer {
        /// Its format.
        found: u64,
    },
    /// It is not as it was written.
    #[error("line {line}: {damage}")]
    Damaged {
        /// Where, from 1.
        line: u64,
        /// The number of the record that is expected there.
        seq: u64,
        /// What is wrong.
        damage: Damage,
    },
}

/// How a journal differs from what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The line does not have the form of a record.
    #[error("record {seq} is expected here, and this is none: {why}")]
    Malformed {
        /// The record that is expected.
        seq: u64,
        /// What is wrong with its form.
        why: String,
    },
    /// The bytes do not have the hash that they bear.
    #[error("record {seq} was changed after it was written: its hash does not fit")]
    Changed {
        /// The record that is expected.
        seq: u64,
    },
    /// One or more records are not there.
    #[error("{} missing: the next one here is record {found}", missing(*expected, *found))]
    Missing {
        /// The record that is expected.
        expected: u64,
        /// The one that is there.
        found: u64,
    },
    /// A record is there a second time, or in a wrong place.
    #[error("record {found} is here again, or in the wrong place: record {expected} is expected")]
    Repeated {
        /// The record that is expected.
        expected: u64,
        /// The one that is there.
        found: u64,
    },
    /// The record is whole and follows another one than the one before it.
    #[error("record {seq} does not follow the record before it: the chain is broken between the two")]
    Broken {
        /// The record.
        seq: u64,
    },
    /// The line is too long for a record.
    #[error("record {seq} is expected here, and the line is longer than {MAX_LINE_BYTES} bytes")]
    TooLong {
        /// The record that is expected.
        seq: u64,
    },
    /// The hash fits, and the content is none of this format.
    #[error("record {seq} is not one of format {FORMAT}: {why}")]
    Unreadable {
        /// The record.
        seq: u64,
        /// Why.
        why: String,
    },
}

fn missing(expected: u64, found: u64) -> String {
    match found - expected {
        1 => format!("record {expected} is"),
        _ => format!("records {expected} to {} are", found - 1),
    }
}

/// Why a record cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It cannot be read again.
    #[error("record {seq} would have {bytes} bytes; {MAX_LINE_BYTES} is the most")]
    TooLong {
        /// The record.
        seq: u64,
        /// Its size.
        bytes: usize,
    },
}

/// Why a replay cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The journal cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The engine does something else than the recorded one did.
    #[error("record {seq}: {mismatch}")]
    Engine {
        /// The record that does not fit.
        seq: u64,
        /// How.
        mismatch: Mismatch,
    },
}

/// How the engine of this program differs from the one that was recorded. Its version differs, or the journal was not
/// written by a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The start is refused.
    #[error("the engine refuses to begin so: {0}")]
    Start(DriverError),
    /// A journal begins with a start.
    #[error("{label} before the start")]
    NotStarted {
        /// What is there instead.
        label: &'static str,
    },
    /// After an end only another start can follow.
    #[error("{label} after the end")]
    Ended {
        /// What is there instead.
        label: &'static str,
    },
    /// One refused the input, the other one folded it.
    #[error("the recorded engine {}, this one {}", folded(recorded.as_deref()), folded(found.as_deref()))]
    Folded {
        /// The recorded words; `None` when it was folded.
        recorded: Option<String>,
        /// This engine's words.
        found: Option<String>,
    },
    /// The decider was asked with another snapshot.
    #[error("call {call}: the recorded snapshot has the digest {recorded}, the engine's has {found}")]
    Snapshot {
        /// The number of the call.
        call: u64,
        /// The recorded digest.
        recorded: String,
        /// This engine's.
        found: String,
    },
    /// An answer to a call was recorded that this engine did not make, or the other way round.
    #[error("call {call} was recorded as {}, and the engine has it {}", awaited(*recorded), awaited(!*recorded))]
    Call {
        /// The number of the call.
        call: u64,
        /// Whether the recorded engine waited for it.
        recorded: bool,
    },
    /// Another operation leaves, or another reservation is made.
    #[error("recorded is {recorded}, the engine has {found}")]
    Output {
        /// What was recorded.
        recorded: String,
        /// What the engine has.
        found: String,
    },
}

fn folded(error: Option<&str>) -> String {
    error.map_or_else(|| "took it".into(), |words| format!("said: {words}"))
}

fn awaited(is: bool) -> &'static str {
    if is { "awaited" } else { "not awaited" }
}
