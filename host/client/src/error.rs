//! What can go wrong between a person and the daemon, and how a verb ends.

use api::wire::Problem;

/// How the refusal of an id that is taken reads.
const ID_TAKEN: &str = "was used for another command";
/// How the refusal of a resumption begins where nothing fits it.
const NOT_PAUSED: &str = "nothing to resume";

/// How a verb that worked ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It worked.
    Done,
    /// It worked, and what was looked at is not well (`doctor`), or came to nothing (`decider swap`).
    Unwell,
    /// It worked, and there is a difference (`diff`).
    Differs,
    /// It was judged, and refused (`decider swap`).
    Refused,
    /// ^C ended it while it waited.
    Interrupted,
}

/// What kind of failure it is; the program's exit code follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It failed, or the daemon refused it.
    Failed,
    /// The command line or an input is wrong, or a person was needed and none was there. Nothing was changed.
    Usage,
    /// Not in time.
    Timeout,
    /// The daemon could not be reached, does not let us in, or does not answer.
    Unreachable,
    /// A guard refused it.
    Guard,
}

/// Why a verb did not work.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The command line is wrong, or a person is needed. Nothing was changed.
    #[error("{0}")]
    Usage(String),
    /// Nobody answers there, or we are not let in.
    #[error("the daemon cannot be reached at {tried}: {why}")]
    Unreachable {
        /// Where it was looked for.
        tried: String,
        /// What came of it.
        why: String,
        /// What a person can do.
        remedy: String,
    },
    /// A command was sent and no answer came: it may have been carried out.
    #[error("command {id}: no answer ({why}); whether it was carried out is not known")]
    Unanswered {
        /// The command's id.
        id: String,
        /// What came instead.
        why: String,
    },
    /// The daemon answered that it will not.
    #[error("{}", refused(.0))]
    Refused(Box<Problem>),
    /// What answered does not speak as a daemon does.
    #[error("{from} does not answer as a daemon of this version does: {why}")]
    Foreign {
        /// Who.
        from: String,
        /// How it shows.
        why: String,
    },
    /// What was waited for did not come in time.
    #[error("{0}")]
    Timeout(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
    /// The state directory is not as it should be.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

fn refused(problem: &Problem) -> String {
    match (problem.detail.is_empty(), problem.title.is_empty()) {
        (false, _) => problem.detail.clone(),
        (true, false) => problem.title.clone(),
        (true, true) => format!("refused with status {}", problem.status),
    }
}

impl ClientError {
    /// What kind it is.
    pub fn class(&self) -> Class {
        match self {
            ClientError::Usage(_) => Class::Usage,
            ClientError::Unreachable { .. } | ClientError::Unanswered { .. } => Class::Unreachable,
            ClientError::Refused(problem) => match (is_kind(problem, "guard"), problem.status) {
                (true, _) => Class::Guard,
                (false, 503) => Class::Unreachable,
                (false, _) => Class::Failed,
            },
            ClientError::Timeout(_) => Class::Timeout,
            ClientError::Foreign { .. } | ClientError::Failed(_) | ClientError::Store(_) | ClientError::Io(_) => {
                Class::Failed
            }
        }
    }

    /// What a person can do about it, where that is known.
    pub fn remedy(&self) -> Option<String> {
        match self {
            ClientError::Unreachable { remedy, .. } if !remedy.is_empty() => Some(remedy.clone()),
            ClientError::Unanswered { id, .. } => Some(format!(
                "give the same command again with `--id {id}`: it is carried out once, however often it is asked for"
            )),
            ClientError::Refused(problem) if problem.detail.contains(ID_TAKEN) => {
                Some("give this command another --id, or none: a new one is drawn then".into())
            }
            // It says itself what is paused, and what ends that.
            ClientError::Refused(problem) if problem.detail.starts_with(NOT_PAUSED) => None,
            ClientError::Refused(problem) if is_kind(problem, "conflict") => {
                Some("look at the fleet as it is now (`homeostat status`), then repeat".into())
            }
            ClientError::Foreign { .. } => {
                Some("look whether a homeostat daemon listens there, and of which version it is".into())
            }
            ClientError::Refused(problem) if is_kind(problem, "guard") => Some(
                "do less at once, or raise the limit under [guards] in the fleet file; docs/fleet-file.md says how"
                    .into(),
            ),
            _ => None,
        }
    }

    /// Whether it is the refusal of a resumption where nothing at all is paused.
    pub(crate) fn is_nothing_paused(&self) -> bool {
        matches!(self, ClientError::Refused(problem)
            if problem.detail.starts_with(NOT_PAUSED) && problem.detail.ends_with("nothing is paused"))
    }

    /// Whether only the reader of the output has gone.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, ClientError::Io(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

/// Whether a problem is of this kind; the daemon writes `urn:homeostat:KIND`.
pub(crate) fn is_kind(problem: &Problem, kind: &str) -> bool {
    problem.kind.rsplit([':', '/']).next() == Some(kind)
}
