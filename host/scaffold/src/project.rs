//! New projects: the templates, compiled into this crate by its build script.

use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/templates.rs"));

/// A name is used for a package, a file and a decider.
const MAX_NAME: usize = 64;

/// What a decider is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust, with the types, the facts and the ladder of this repository, vendored.
    Rust,
    /// JavaScript.
    JavaScript,
    /// TypeScript, checked and made JavaScript of by its own compiler.
    TypeScript,
    /// C.
    C,
    /// AssemblyScript.
    AssemblyScript,
}

impl Language {
    /// Every language, in the order of the documentation.
    pub const ALL: &'static [Language] =
        &[Language::Rust, Language::JavaScript, Language::TypeScript, Language::C, Language::AssemblyScript];

    /// The word on the command line, and the template's folder.
    pub const fn word(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::JavaScript => "javascript",
            Language::TypeScript => "typescript",
            Language::C => "c",
            Language::AssemblyScript => "assemblyscript",
        }
    }

    /// The name in the template, which the project's own takes the place of.
    const fn placeholder(self) -> &'static str {
        match self {
            Language::Rust => "ladder-rust",
            Language::JavaScript => "ladder-javascript",
            Language::TypeScript => "ladder-typescript",
            Language::C => "ladder-c",
            Language::AssemblyScript => "ladder-assemblyscript",
        }
    }
}

/// Why there is no project.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The name cannot be a package's.
    #[error(
        "{0:?} cannot be the name of a decider: use a to z, 0 to 9 and single -, beginning with a letter, at most {MAX_NAME} characters"
    )]
    Name(String),
    /// Something is there already.
    #[error("{}: something is there already", .0.display())]
    Occupied(PathBuf),
    /// A file could not be written.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

/// Writes a project into `folder`, which has to be missing or empty, and returns its files, relative to it, in order.
pub fn create(folder: &Path, name: &str, language: Language) -> Result<Vec<PathBuf>, ProjectError> {
    check(name)?;
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |error| ProjectError::Io { path, error }
    };
    match std::fs::read_dir(folder) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(ProjectError::Occupied(folder.into()));
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            return Err(ProjectError::Occupied(folder.into()));
        }
        Err(error) => return Err(failed(folder)(error)),
    }
    let mut written = Vec::new();
    for (path, text) in files(language) {
        let file = folder.join(path);
        let parent = file.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(failed(parent))?;
        std::fs::write(&file, text.replace(language.placeholder(), name)).map_err(failed(&file))?;
        if text.starts_with("#!") {
            executable(&file).map_err(failed(&file))?;
        }
        written.push(PathBuf::from(path));
    }
    Ok(written)
}

fn check(name: &str) -> Result<(), ProjectError> {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.split('-').all(|part| !part.is_empty() && part.chars().all(letters));
    // A package of this name could not be built: it is that of the vendored crates, of the standard library, or of tests.
    let taken = ["decider", "decider-guest", "core", "alloc", "std", "test", "proc-macro"].contains(&name);
    if fits && !taken { Ok(()) } else { Err(ProjectError::Name(name.into())) }
}

/// The files of a language's template.
fn files(language: Language) -> impl Iterator<Item = (&'static str, &'static str)> {
    TEMPLATES.iter().filter(move |(word, _, _)| *word == language.word()).map(|(_, path, text)| (*path, *text))
}

#[cfg(unix)]
fn executable(file: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = std::fs::metadata(file)?.permissions();
    permissions.set_mode(permissions.mode() | 0o111);
    std::fs::set_permissions(file, permissions)
}

#[cfg(not(unix))]
fn executable(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn names_are_checked() {
        for name in ["a", "night-shift", "v2", "a-1"] {
            check(name).unwrap();
        }
        for name in ["", "A", "1a", "-a", "a-", "a--b", "a_b", "a/b", "ä", "core", &"a".repeat(65)] {
            assert!(check(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_template_of_each_language_has_the_contract_tests_and_the_name() {
        for language in Language::ALL {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path().join("new");
            let written = create(&folder, "night-shift", *language).unwrap();
            for path in [
                "README.md",
                ".gitignore",
                "wit/decider.wit",
                "tests/rules.txt",
                "tests/failures.txt",
                "tests/rollouts.txt",
                "build.sh",
            ] {
                assert!(written.contains(&PathBuf::from(path)), "{path} of {language:?}: {written:?}");
            }
            let mut named = 0;
            for path in &written {
                let text = std::fs::read_to_string(folder.join(path)).unwrap();
                assert!(!text.contains(language.placeholder()), "{}", path.display());
                assert!(!text.contains("workspace = true"), "{}", path.display());
                named += usize::from(text.contains("night-shift"));
            }
            assert!(named >= 3, "{named}");
            assert!(matches!(create(&folder, "night-shift", *language), Err(ProjectError::Occupied(_))));
        }
    }
}
