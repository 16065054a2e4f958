//! What people see of a running fleet: a live table on a terminal, else a line for each change.

mod change;
mod live;
mod notice;
mod row;
mod table;
#[cfg(test)]
mod tests;

pub use ::step::text::lasting;
pub use change::{NodeChange, changes};
pub use live::LiveTable;
pub use notice::{named, notice, weight};
pub use row::{Row, Summary, rows, summary};
pub use table::{not_ready, table};
