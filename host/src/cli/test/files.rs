//! The scenario files of a folder.

use std::path::{Path, PathBuf};

use super::super::{Failure, InputError};

/// No scenario file is longer.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// No run plays more files.
const MAX_FILES: usize = 100_000;
/// Folders in folders, at most.
const MAX_DEPTH: usize = 64;

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    refused(path, error.to_string(), None)
}

fn refused(path: &Path, message: String, line: Option<usize>) -> Failure {
    let file = Some(path.display().to_string());
    InputError { message, file, line, ..InputError::default() }.into()
}

/// Every scenario file below the paths, each once, in order. A file that is named itself may be called anything.
pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        let kind = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if !kind.is_dir() {
            found.push(path.clone());
            continue;
        }
        let before = found.len();
        walk(path, 0, &mut found)?;
        if found.len() == before {
            let message = "there is no scenario in it: no file that ends in .txt".into();
            return Err(refused(path, message, None));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|path| seen.insert(path.clone()));
    Ok(found)
}

/// Links to folders are not followed: they could lead in a circle.
fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))? {
        entries.push(entry.map_err(|error| unreadable(folder, &error))?);
    }
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let kind = entry.file_type().map_err(|error| unreadable(&path, &error))?;
        if kind.is_dir() {
            // What is not looked into could hold tests: that must not look as if all had been played.
            if depth >= MAX_DEPTH {
                return Err(refused(&path, format!("folders are nested deeper than {MAX_DEPTH}"), None));
            }
            walk(&path, depth + 1, found)?;
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            // A link that leads nowhere is an error.
            let leads_to = std::fs::metadata(&path).map_err(|error| unreadable(&path, &error))?;
            if leads_to.is_file() {
                found.push(path);
            }
        }
        if found.len() > MAX_FILES {
            let message = format!("more than {MAX_FILES} scenario files");
            return Err(refused(folder, message, None));
        }
    }
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let bytes = crate::fleet::read_bytes(path, MAX_FILE_BYTES).map_err(InputError::from)?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        refused(path, "not UTF-8".into(), Some(line))
    })
}
