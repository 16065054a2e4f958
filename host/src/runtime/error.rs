//! Why a host does not start, refuses a wish, or ended.

use engine::command::CommandError;
use engine::driver::DriverError;
use engine::io::Fault;
use engine::shape::ShapeError;

use crate::journal::JournalError;
use crate::registry::RegistryError;

/// What a host reports to its caller.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The host cannot be built so.
    #[error("{0}")]
    Setup(String),
    /// The shape is refused whole; nothing changed.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The host was to go on with the shape in force, and none is. Nothing changed.
    #[error("no shape is in force that the host could go on with")]
    NoShape,
    /// A backend gave no complete listing at the start: what it holds is not known, so nothing may be made.
    #[error("backend {provider:?} gave no complete listing in {tries} tries: {fault}")]
    Adoption {
        /// Which backend.
        provider: String,
        /// How often it was asked.
        tries: u32,
        /// Its last words.
        fault: Fault,
    },
    /// What has to be durable is not.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A command without a usable id, or that this host cannot take. Nothing changed.
    #[error("{0}")]
    Order(String),
    /// The id of a command was used for another one.
    #[error("the id {id:?} was used for another command, at {at}", at = step::text::time_of_day(*at_ms))]
    IdTaken {
        /// The id.
        id: String,
        /// When.
        at_ms: u64,
    },
    /// A decider cannot be had. Nothing changed.
    #[error(transparent)]
    Decider(Box<RegistryError>),
    /// The driver refuses a command. Nothing changed.
    #[error(transparent)]
    Command(CommandError),
    /// The driver cannot go on.
    #[error(transparent)]
    Driver(DriverError),
    /// Something of the caller's own panicked: a store, a journal, a closure. With a store or a journal, the host has ended.
    #[error("{what} panicked: {words}")]
    Panicked {
        /// What.
        what: &'static str,
        /// Its words.
        words: String,
    },
    /// The host is ending, or has ended.
    #[error("the host has ended: {0}")]
    Ended(String),
}
