//! What people see of a running fleet: a live table on a terminal, else a line for each change.

mod lasting;
pub use lasting::lasting;
