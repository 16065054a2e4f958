//! `homeostat decider`.

mod bench;
mod componentize;
mod fleet;
mod inspect;
mod new;
mod run;
mod snapshot;

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};

use super::{ExitCode, Failure, InputError, LimitArgs, Terminal};
use crate::sandbox::{Limits, LoadError, LoadedDecider, Sandbox};

/// What can be done with a decider.
#[allow(clippy::large_enum_variant)] // One is read for each start of the program.
#[derive(Debug, Subcommand)]
pub enum DeciderVerb {
    /// Show what a decider is: digest, name, version, contract, imports, exports, rules
    Inspect {
        /// The component [default: the built-in decider].
        #[arg(value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
        /// What it may use.
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// Ask a decider for the plan of one snapshot
    Run {
        /// The component; `built-in` is the built-in decider.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The snapshot, as JSON (see docs/cli.md).
        #[arg(value_hint = ValueHint::FilePath)]
        snapshot: PathBuf,
        /// What the decider may use.
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// Measure what deciders cost a call and a node, beside the built-in one
    Bench {
        /// The components.
        #[arg(value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// Sizes of the fleets that they are asked about.
        #[arg(long, value_delimiter = ',', default_values_t = [1, 1_000, 10_000],
            value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        nodes: Vec<u32>,
        /// What they may use.
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// What is asked of a daemon.
    #[command(flatten)]
    Operate(client::verbs::DeciderVerb),
    /// Begin a decider of your own: a project that builds and passes its tests as it is
    New {
        /// The decider's name, and the folder's.
        name: String,
        /// What it is written in.
        #[arg(long, value_enum, default_value_t = new::Lang::Rust)]
        lang: new::Lang,
        /// Another folder than NAME; it has to be missing or empty.
        #[arg(long, value_hint = ValueHint::DirPath)]
        folder: Option<PathBuf>,
    },
    /// Make a component of a core module, as the compilers of C, Rust and other languages write it
    Componentize {
        /// The core module.
        #[arg(value_hint = ValueHint::FilePath)]
        module: PathBuf,
        /// Where the component goes.
        #[arg(long, value_hint = ValueHint::FilePath)]
        out: PathBuf,
        /// The contract that the module was written for [default: this program's].
        #[arg(long, value_hint = ValueHint::FilePath)]
        wit: Option<PathBuf>,
    },
}

pub(super) fn run(verb: &DeciderVerb, terminal: &Terminal) -> Result<ExitCode, Failure> {
    match verb {
        DeciderVerb::Operate(verb) => return super::operate::decider(verb, terminal),
        DeciderVerb::Inspect { file, limits } => inspect::run(&load(file.as_deref(), &limits.limits()?)?, terminal),
        DeciderVerb::Run { file, snapshot, limits } => {
            // The snapshot first: it is cheap to refuse.
            let snapshot = snapshot::read(snapshot)?;
            let built_in = file.as_os_str() == "built-in";
            run::run(&load((!built_in).then_some(file), &limits.limits()?)?, &snapshot, terminal)
        }
        DeciderVerb::Bench { files, nodes, limits } => bench::run(files, nodes, &limits.limits()?, terminal),
        DeciderVerb::New { name, lang, folder } => new::run(name, *lang, folder.as_deref(), terminal),
        DeciderVerb::Componentize { module, out, wit } => componentize::run(module, wit.as_deref(), out, terminal),
    }?;
    Ok(ExitCode::Ok)
}

/// Loads a decider from a file, or the built-in one.
pub(super) fn load(file: Option<&std::path::Path>, limits: &Limits) -> Result<LoadedDecider, Failure> {
    let failed = |error: LoadError| Failure::Failed(anyhow::Error::from(error));
    let sandbox = Sandbox::new(limits.clone()).map_err(failed)?;
    let Some(file) = file else { return sandbox.built_in().map_err(failed) };
    let bytes = crate::fleet::read_bytes(file, sandbox.limits().component_bytes).map_err(InputError::from)?;
    sandbox.load(&bytes).map_err(|error| {
        Failure::from(InputError {
            message: format!("not a decider ({}): {error}", error.class()),
            file: Some(file.display().to_string()),
            ..InputError::default()
        })
    })
}
