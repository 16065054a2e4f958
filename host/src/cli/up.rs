//! `homeostat up`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::{ExitCode, Failure, Terminal};

/// Arguments of `up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// The fleet file.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Where leases live [default: $XDG_STATE_HOME/homeostat].
    #[arg(long, value_name = "DIR", env = "HOMEOSTAT_STATE", value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    /// End as soon as the fleet has converged (0), or when the time is over (3).
    #[arg(long)]
    pub until_converged: bool,
    /// How long `--until-converged` waits.
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "until_converged", value_parser = super::duration)]
    pub timeout: Duration,
    /// Leave the fleet running at the end; the next `up` of the same run adopts it.
    #[arg(long)]
    pub keep: bool,
    /// A decider to use instead of the built-in one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub decider: Option<PathBuf>,
}

/// Runs `up` until it is told to stop.
pub fn run(args: &UpArgs, _terminal: &Terminal) -> Result<ExitCode, Failure> {
    crate::fleet::Fleet::load(&args.file, &super::providers())?;
    // FOR THE LEAD: the run loop goes here.
    Err(Failure::Failed(anyhow::anyhow!("`up` is not yet wired to the runtime")))
}
