//! What has to be durable before the effects it announces leave (SPEC 5, S1).

use serde::{Deserialize, Serialize};

use crate::id::AttemptId;
use crate::io::Operation;

/// One record. In memory and as the host's journal keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// Attempt ids below this one may be given out from now on; a restart continues from here (S3).
    AttemptsReserved {
        /// The first id that may not.
        below: AttemptId,
    },
    /// An operation is pending and about to leave.
    Pending(Box<Operation>),
}
