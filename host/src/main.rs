//! The command line.

use clap::{Parser, Subcommand};
use homeostat::demo;

#[derive(Parser)]
#[command(name = "homeostat", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a page that says who it is (for the examples).
    #[command(hide = true)]
    DemoServer(demo::DemoServerArgs),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::DemoServer(args) => demo::run(args).await,
    }
}
