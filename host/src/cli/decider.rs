//! `homeostat decider`.

use clap::Subcommand;

use super::{Failure, Terminal};

/// What can be done with a decider.
#[derive(Debug, Subcommand)]
pub enum DeciderVerb {}

pub(super) fn run(_verb: &DeciderVerb, _terminal: &Terminal) -> Result<(), Failure> {
    Ok(())
}
