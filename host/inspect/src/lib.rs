//! Looks into a running driver and its journal, and says what it sees in the terms of the daemon's interface (SPEC 12). It
//! changes nothing, and has no runtime.

mod decisions;
mod differences;
mod explain;
mod feed;
mod history;
mod node;
mod status;

pub use decisions::{Candidate, DecisionLog};
pub use differences::differences;
pub use explain::explain;
pub use feed::Feed;
pub use history::{Roster, history, with_notices};
pub use node::node;
pub use status::{About, status};
