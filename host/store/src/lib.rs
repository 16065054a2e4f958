//! What outlives the host (SPEC 10, 12): a snapshot of the driver, the journal after it, the commands that were taken.
//! [`Store`] names the steps; [`MemoryStore`] is for simulation and tests, [`SqliteStore`] keeps it all in a [`StateDir`], which
//! has one [`Secret`]. `docs/store.md` is the format, and says what to do when something is wrong.

mod batch;
mod command;
mod dir;
mod error;
mod fault;
mod keep;
mod memory;
mod point;
mod records;
mod secret;
mod sqlite;
mod store;

pub use command::{Begun, Command, MAX_ID_BYTES, MAX_RESULT_BYTES};
pub use dir::StateDir;
pub use error::StoreError;
pub use keep::{Keep, KeepError, Schedule, VOLATILE_MS, refold, refold_with};
pub use memory::MemoryStore;
#[cfg(feature = "fail-points")]
pub use point::KillAt;
pub use point::{FailAt, FailPoint, Point};
pub use records::{RecordSource, Records, records};
pub use secret::Secret;
pub use sqlite::{SCHEMA, SqliteReader, SqliteStore};
pub use store::{Compacted, Loaded, MAX_META_BYTES, MAX_SNAPSHOT_BYTES, Retention, Saved, Store};

/// A new file for this user only.
fn private_file(path: &std::path::Path) -> Result<std::fs::File, StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened.map_err(|error| fault::io("make", path, error))
}
