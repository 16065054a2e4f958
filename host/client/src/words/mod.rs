//! What the daemon answers, in words. All that comes from nodes and files is made visible before it is shown: no text of theirs
//! reaches the terminal as an order to it.

mod decider;
mod explain;
mod history;
mod node;
mod plan;
mod status;
mod swap;
mod table;
mod text;

pub(crate) use decider::decider_fields;
pub use decider::{decider, decider_in_force, decider_name, deciders};
pub use explain::explanation;
pub use history::{change, decided, history_item, log_line};
pub use node::node;
pub use plan::{differences, plan, ranges};
pub use status::{lines as status_lines, orphans, pauses, why};
pub(crate) use swap::swap_word;
pub use swap::{reports as swap_reports, stage_line, swap, swap_line, swaps, tally_words, verdict as swap_verdict};
pub use table::Table;
pub use text::{Pen, ago, diagnosis, until};
