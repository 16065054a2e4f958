//! What outlives the host (SPEC 10, 12): a snapshot of the driver, the journal after it, the commands that were taken.
//! [`Store`] names the steps; [`MemoryStore`] is for simulation and tests. `docs/store.md` is the
//! format.

mod batch;
mod command;
mod error;
mod memory;
mod point;
mod records;
mod store;

pub use command::{Begun, Command, MAX_ID_BYTES, MAX_RESULT_BYTES};
pub use error::StoreError;
pub use memory::MemoryStore;
#[cfg(feature = "fail-points")]
pub use point::KillAt;
pub use point::{FailAt, FailPoint, Point};
pub use records::{Records, records};
pub use store::{Compacted, Loaded, MAX_META_BYTES, MAX_SNAPSHOT_BYTES, Retention, Saved, Store};
