//! `homeostat completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Failure, Terminal};

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs, terminal: &Terminal) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "homeostat", &mut script);
    terminal.print(&String::from_utf8_lossy(&script))
}
