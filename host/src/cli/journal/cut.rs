//! `homeostat journal cut`.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ::journal::verify;
use ::step::text::counted;
use anyhow::Context;
use clap::{Args, ValueHint};
use serde::Serialize;

use super::super::{Failure, InputError, Terminal};
use super::{open_file, unreadable, unusable};
use crate::journal::lock;

/// Arguments of `journal cut`.
#[derive(Debug, Args)]
pub struct CutArgs {
    /// The journal.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Write what is whole to this new file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "in_place", conflicts_with = "in_place")]
    pub to: Option<PathBuf>,
    /// Cut the journal itself.
    #[arg(long)]
    pub in_place: bool,
}

#[derive(Serialize)]
struct Cut {
    schema: &'static str,
    file: String,
    records: u64,
    whole_bytes: u64,
    cut_bytes: u64,
}

pub(super) fn run(args: &CutArgs, terminal: &Terminal) -> Result<(), Failure> {
    let path = &args.file;
    // A host that writes it would be cut in its speech.
    let own = match args.in_place {
        true => {
            // Looked at like every journal, before it is opened for writing.
            open_file(path)?;
            let file = OpenOptions::new().read(true).write(true).open(path).with_context(|| opening(path))?;
            lock(&file, path).map_err(unusable)?;
            Some(file)
        }
        false => None,
    };
    let mut reader = open_file(path)?;
    let verdict = verify(&mut reader).map_err(|error| unreadable(path, &error))?;
    let (whole, torn) = (verdict.whole_bytes, verdict.torn_bytes);
    match (&own, &args.to) {
        (Some(file), _) if torn > 0 => {
            file.set_len(whole)
                .and_then(|()| file.sync_all())
                .with_context(|| format!("cutting {}", path.display()))?;
        }
        (None, Some(to)) => copy(path, to, whole)?,
        _ => {}
    }
    if terminal.is_json() {
        let file = args.to.as_ref().unwrap_or(path).display().to_string();
        let schema = "homeostat.journal-cut/v1";
        return terminal.print_json(&Cut {
            schema,
            file,
            records: verdict.records,
            whole_bytes: whole,
            cut_bytes: torn,
        });
    }
    let kept = format!("{} kept ({whole} bytes)", counted(verdict.records, "record"));
    let to = args.to.as_ref().map(|to| format!(", in {}", to.display())).unwrap_or_default();
    terminal.print(&match torn {
        0 => format!("{}: nothing is torn; {kept}{to}", path.display()),
        _ => format!("{}: {torn} bytes cut off; {kept}{to}", path.display()),
    })
}

fn opening(path: &Path) -> String {
    format!("opening {}", path.display())
}

fn copy(from: &Path, to: &Path, bytes: u64) -> Result<(), Failure> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    let mut out = made.map_err(|error| {
        let message = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "it exists; name a file that does not".into(),
            _ => error.to_string(),
        };
        InputError { message, file: Some(to.display().to_string()), ..InputError::default() }
    })?;
    let mut whole = File::open(from).with_context(|| opening(from))?.take(bytes);
    let copied = std::io::copy(&mut whole, &mut out)
        .and_then(|copied| out.flush().and_then(|()| out.sync_all()).map(|()| copied));
    match copied.with_context(|| format!("writing {}", to.display()))? {
        copied if copied == bytes => Ok(()),
        copied => Err(anyhow::anyhow!("{} ended after {copied} of {bytes} bytes", from.display()).into()),
    }
}
