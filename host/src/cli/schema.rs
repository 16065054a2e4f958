//! `homeostat schema`.

use super::{Failure, Terminal};

pub(super) fn run(terminal: &Terminal) -> Result<(), Failure> {
    terminal.print_json(&crate::fleet::schema::json_schema())
}
