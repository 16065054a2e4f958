//! The command line: one file a verb.

mod appoint;
mod carried;
mod check;
mod completions;
mod daemon;
mod decider;
mod exit;
mod forecast;
mod groups;
mod interrupt;
mod journal;
mod keep;
mod limits;
mod operate;
mod origin;
mod plan;
mod priority;
mod replay;
mod schema;
mod simulate;
mod step;
mod table;
mod terminal;
mod test;
mod trace;
pub mod up;
mod validate;

use std::ffi::OsString;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use exit::{EXIT_CODES, ExitCode, Failure, InputError};
pub use limits::LimitArgs;
pub use terminal::{Color, Format, Terminal};

use crate::fleet::Providers;

/// Keeps a fleet in the shape that a file declares.
#[derive(Debug, Parser)]
#[command(name = "homeostat", version, about, after_help = EXIT_CODES, after_long_help = EXIT_CODES, disable_help_subcommand = true)]
pub struct Cli {
    /// What to write: for people, or for machines.
    #[arg(short, long, global = true, value_enum, default_value_t, value_name = "FORMAT", hide_default_value = true)]
    pub output: Format,
    /// When to use colours; `auto` respects NO_COLOR.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", hide_default_value = true)]
    pub color: Color,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Bring a fleet up, keep it, follow the file, and take it down at the end
    Up(up::UpArgs),
    /// Show what `up` would do, without touching anything
    Plan(plan::PlanArgs),
    /// Check a fleet file
    Validate(validate::ValidateArgs),
    /// Print the JSON Schema of the fleet file
    Schema,
    /// Look at a decider, or ask it
    #[command(subcommand)]
    Decider(decider::DeciderVerb),
    /// Decide a recorded history again: the same plans, or what another decider would have done
    Replay(replay::ReplayArgs),
    /// Keep a fleet for good: what is known of it survives stops, crashes and restarts
    Daemon(daemon::DaemonArgs),
    /// Simulate a fleet under faults, and check every guarantee
    Simulate(simulate::SimulateArgs),
    /// Play scenarios against a decider, and compare what it decides with what they expect
    Test(test::TestArgs),
    /// Walk a journal forwards and back: what changed, which rule decided, and by which row
    Step(step::StepArgs),
    /// Search every interleaving of a small fleet, with faults, and check every guarantee
    Check(check::CheckArgs),
    /// Look at a journal: what happened, whether it is sound
    #[command(subcommand)]
    Journal(journal::JournalVerb),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// What is asked of a daemon, or done to its state.
    #[command(flatten)]
    Operate(client::verbs::Verb),
    /// Serve a page that says who it is (for the examples)
    #[command(hide = true)]
    DemoServer(crate::demo::DemoServerArgs),
}

/// Runs the program: parses the command line, does what it says, writes what went wrong.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let parsed = groups::grouped(Cli::command()).try_get_matches_from(&args);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() && exit::asks_for_json(&args) {
                Terminal::new(Format::Json, Color::Never).print_failure(&Failure::Input(exit::usage(&error)));
                return ExitCode::Usage;
            }
            // Help and version come this way too; a reader that has gone is nothing to complain about.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::Usage } else { ExitCode::Ok };
        }
    };
    let terminal = Terminal::new(cli.output, cli.color);
    let result = match cli.verb {
        Verb::Up(args) => up::run(&args, &terminal),
        Verb::Plan(args) => plan::run(&args, &terminal).map(|()| ExitCode::Ok),
        Verb::Validate(args) => validate::run(&args, &terminal).map(|()| ExitCode::Ok),
        Verb::Schema => schema::run(&terminal).map(|()| ExitCode::Ok),
        Verb::Decider(verb) => decider::run(&verb, &terminal),
        Verb::Replay(args) => replay::run(&args, &terminal),
        Verb::Daemon(args) => daemon::run(&args, &terminal),
        Verb::Simulate(args) => simulate::run(&args, &terminal),
        Verb::Test(args) => test::run(&args, &terminal),
        Verb::Step(args) => step::run(&args, &terminal).map(|()| ExitCode::Ok),
        Verb::Check(args) => check::run(&args, &terminal),
        Verb::Journal(verb) => journal::run(&verb, &terminal),
        Verb::Completions(args) => completions::run(&args, &terminal).map(|()| ExitCode::Ok),
        Verb::Operate(verb) => operate::run(&verb, &terminal),
        Verb::DemoServer(args) => demo_server(args).map(|()| ExitCode::Ok),
    };
    result.unwrap_or_else(|failure| {
        terminal.print_failure(&failure);
        failure.code()
    })
}

fn demo_server(args: crate::demo::DemoServerArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(crate::demo::run(args))?)
}

/// The providers that a fleet file can name, for checks that touch nothing.
pub fn providers() -> Providers {
    Providers::new().with("process", crate::backends::process::check_template)
}

/// A length of time on the command line.
fn duration(text: &str) -> Result<Duration, String> {
    crate::fleet::duration_ms(text).map(Duration::from_millis)
}
