//! What the daemon answers, in words. All that comes from nodes and files is made visible before it is shown: no text of theirs
//! reaches the terminal as an order to it.

mod explain;
mod history;
mod node;
mod plan;
mod status;
mod table;
mod text;

pub use explain::explanation;
pub use history::{change, decided, history_item, log_line};
pub use node::node;
pub use plan::{differences, plan, ranges};
pub use status::{lines as status_lines, orphans, pauses, why};
pub use table::Table;
pub use text::{Pen, ago, diagnosis, until};
