//! The limits of the sandbox, on the command line.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::{Failure, InputError};
use crate::sandbox::{LimitError, Limits};

/// What a decider may use. It is for who runs the program to say, not for a fleet file: the limits protect the host from what
/// a fleet's operator brings.
#[derive(Clone, Debug, Default, Args)]
pub struct LimitArgs {
    /// A TOML file of limits for the decider, such as `memory-bytes = 536_870_912`; `decider inspect` shows all.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub limits: Option<PathBuf>,
    /// A limit for the decider, before that of the file.
    #[arg(long = "limit", value_name = "NAME=NUMBER")]
    pub single: Vec<String>,
}

impl LimitArgs {
    /// The limits: the file's and then the single ones, over the defaults.
    pub(super) fn limits(&self) -> Result<Limits, Failure> {
        let mut limits = self.limits.as_deref().map_or_else(|| Ok(Limits::default()), file)?;
        for setting in &self.single {
            let wrong = |message| InputError { message, value: Some(setting.clone()), ..InputError::default() };
            let Some((name, value)) = setting.split_once('=') else {
                return Err(wrong(format!("--limit {setting}: a limit is set as NAME=NUMBER")).into());
            };
            let set = limits.set(name.trim(), value.trim());
            set.map_err(|error| wrong(format!("--limit {setting}: {error}")))?;
        }
        Ok(limits)
    }
}

fn file(path: &Path) -> Result<Limits, Failure> {
    let bytes = crate::fleet::read_bytes(path, crate::fleet::MAX_FILE_BYTES).map_err(InputError::from)?;
    let file = Some(path.display().to_string());
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(InputError { message: "it is not text".into(), file, ..InputError::default() }.into());
    };
    let limits: Limits = toml::from_str(&text).map_err(|error| {
        let place = error.span().map(|span| crate::fleet::position(&text, span.start));
        let (line, column) = place.unzip();
        InputError { message: error.message().to_owned(), file: file.clone(), line, column, ..InputError::default() }
    })?;
    limits.check().map_err(|error| {
        let field = match &error {
            LimitError::OutOfRange { name, .. } => Some((*name).to_owned()),
            LimitError::Unknown { .. } | LimitError::NotANumber { .. } => None,
        };
        let line = field.as_ref().and_then(|field| text.lines().position(|line| line.trim_start().starts_with(field)));
        InputError { message: error.to_string(), file, line: line.map(|at| at + 1), field, ..InputError::default() }
    })?;
    Ok(limits)
}
