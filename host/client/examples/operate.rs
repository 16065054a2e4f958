//! The operator's verbs alone, without the program around them: for trying them against a daemon that is not there.
//!
//! `operate VERB …`, as `homeostat VERB …`; fleet files are shapes in JSON, and state is not touched.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use api::wire::Export;
use clap::Parser;
use client::verbs::{Declared, Known, Program, Verb};
use client::{Class, ClientError, Ending, Screen, Waits};

#[derive(Parser)]
struct Cli {
    #[arg(short, long, global = true, default_value = "text")]
    output: String,
    #[command(subcommand)]
    verb: Verb,
}

struct Alone;

impl Program for Alone {
    type Error = ClientError;

    fn load(&self, file: &Path) -> Result<Declared, ClientError> {
        let text = std::fs::read(file)?;
        let shape = serde_json::from_slice(&text).map_err(|error| ClientError::Usage(error.to_string()))?;
        Ok(Declared { shape, policy: engine::policy::Policy::default(), generation: None })
    }

    fn known(&self, _: &Path) -> Result<Vec<Known>, ClientError> {
        Ok(Vec::new())
    }

    fn reset(&self, folder: &Path) -> Result<PathBuf, ClientError> {
        Err(ClientError::Failed(format!("{} is not touched", folder.display())))
    }

    fn import(&self, folder: &Path, _: &Export) -> Result<(), ClientError> {
        Err(ClientError::Failed(format!("{} is not touched", folder.display())))
    }
}

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    let color = std::io::stdout().is_terminal();
    let mut screen = Screen::system(cli.output == "json", color, color);
    let code = match client::verbs::run(&cli.verb, Waits::default(), &mut screen, &Alone) {
        Ok(Ending::Done) => 0,
        Ok(Ending::Unwell) => 1,
        Ok(Ending::Refused) => 5,
        Ok(Ending::Differs) => 6,
        Ok(Ending::Interrupted) => 130,
        Err(error) if error.is_closed_pipe() => 0,
        Err(error) => {
            screen.note(&format!("error: {error}"));
            screen.note(&error.remedy().map(|remedy| format!("  {remedy}")).unwrap_or_default());
            match error.class() {
                Class::Failed => 1,
                Class::Usage => 2,
                Class::Timeout => 3,
                Class::Unreachable => 4,
                Class::Guard => 5,
            }
        }
    };
    code.into()
}
