//! `homeostat validate`.

use std::path::PathBuf;

use ::step::text::counted;
use clap::{Args, ValueHint};
use serde::Serialize;

use super::{Failure, Terminal, providers};
use crate::fleet::Fleet;

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// The fleet file.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

#[derive(Serialize)]
struct Valid<'a> {
    schema: &'static str,
    valid: bool,
    file: String,
    run: &'a str,
    generation: Option<u64>,
    nodes: u64,
    groups: Vec<ValidGroup<'a>>,
}

#[derive(Serialize)]
struct ValidGroup<'a> {
    id: &'a str,
    count: u32,
    provider: &'a str,
}

pub(super) fn run(args: &ValidateArgs, terminal: &Terminal) -> Result<(), Failure> {
    let fleet = Fleet::load(&args.file, &providers())?;
    let shape = &fleet.shape;
    if terminal.is_json() {
        let groups = shape.groups.iter();
        return terminal.print_json(&Valid {
            schema: "homeostat.validate/v1",
            valid: true,
            file: args.file.display().to_string(),
            run: &shape.run,
            generation: fleet.generation,
            nodes: shape.slots(),
            groups: groups
                .map(|group| ValidGroup { id: &group.id, count: group.count, provider: &group.template.provider })
                .collect(),
        });
    }
    terminal.print(&format!(
        "{}: ok: run {}, {}, {}",
        args.file.display(),
        shape.run,
        counted(shape.groups.len() as u64, "group"),
        counted(shape.slots(), "node")
    ))
}
