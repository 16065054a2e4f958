//! `homeostat decider new`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use scaffold::{Language, ProjectError};
use serde::Serialize;

use super::super::terminal::quoted;
use super::super::{Failure, InputError, Terminal};

/// What a new decider is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lang {
    /// Rust.
    #[value(name = "rust")]
    Rust,
    /// JavaScript.
    #[value(name = "javascript", alias = "js")]
    JavaScript,
    /// TypeScript.
    #[value(name = "typescript", alias = "ts")]
    TypeScript,
    /// C.
    #[value(name = "c")]
    C,
    /// AssemblyScript.
    #[value(name = "assemblyscript", alias = "as")]
    AssemblyScript,
}

impl Lang {
    fn language(self) -> Language {
        match self {
            Lang::Rust => Language::Rust,
            Lang::JavaScript => Language::JavaScript,
            Lang::TypeScript => Language::TypeScript,
            Lang::C => Language::C,
            Lang::AssemblyScript => Language::AssemblyScript,
        }
    }
}

#[derive(Serialize)]
struct Created {
    schema: &'static str,
    folder: String,
    language: &'static str,
    files: Vec<String>,
}

pub(super) fn run(name: &str, lang: Lang, folder: Option<&Path>, terminal: &Terminal) -> Result<(), Failure> {
    let folder = folder.map_or_else(|| PathBuf::from(name), Path::to_path_buf);
    let files = scaffold::create(&folder, name, lang.language()).map_err(|error| match error {
        ProjectError::Io { .. } => Failure::Failed(error.into()),
        ProjectError::Name(_) => Failure::from(InputError { message: error.to_string(), ..InputError::default() }),
        ProjectError::Occupied(_) => Failure::from(InputError {
            message: "something is there already; --folder names another place".into(),
            file: Some(folder.display().to_string()),
            ..InputError::default()
        }),
    })?;
    let (folder, language) = (folder.display().to_string(), lang.language().word());
    if terminal.is_json() {
        let files = files.iter().map(|file| file.display().to_string()).collect();
        return terminal.print_json(&Created { schema: "homeostat.new/v1", folder, language, files });
    }
    terminal.print(&format!(
        "{folder}: {} files, a decider in {language} that decides as the built-in one does\n\n  \
         cd {}\n  \
         ./build.sh                                     # makes {name}.wasm; README.md says what it needs\n  \
         homeostat decider inspect {name}.wasm\n  \
         homeostat test tests --decider {name}.wasm\n",
        files.len(),
        quoted(&folder),
    ))
}
