//! Turns what the system and SQLite say into errors with names.

use std::io::{self, ErrorKind};
use std::path::Path;

use rusqlite::ffi;

use crate::error::StoreError;

/// An error of the system.
pub(crate) fn io(doing: &'static str, path: &Path, error: io::Error) -> StoreError {
    let path = path.to_path_buf();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full { path },
        ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly { path },
        ErrorKind::PermissionDenied => StoreError::Denied { path, reason: format!("cannot {doing} it: {error}") },
        _ => StoreError::Io { doing, path, error },
    }
}

/// An error of SQLite.
pub(crate) fn sqlite(doing: &'static str, path: &Path, error: rusqlite::Error) -> StoreError {
    let at = path.to_path_buf();
    let words = error.to_string();
    let rusqlite::Error::SqliteFailure(failure, _) = &error else {
        // What comes back has another type or another form than what was written.
        return StoreError::Corrupt { path: at, reason: words };
    };
    match failure.extended_code & 0xff {
        ffi::SQLITE_FULL => StoreError::Full { path: at },
        ffi::SQLITE_READONLY => StoreError::ReadOnly { path: at },
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => StoreError::Busy { path: at },
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB | ffi::SQLITE_CONSTRAINT | ffi::SQLITE_ERROR => {
            StoreError::Corrupt { path: at, reason: words }
        }
        ffi::SQLITE_CANTOPEN | ffi::SQLITE_PERM | ffi::SQLITE_AUTH => StoreError::Denied { path: at, reason: words },
        _ => {
            let said = format!("{words} (SQLite's code {})", failure.extended_code);
            StoreError::Io { doing, path: at, error: io::Error::other(said) }
        }
    }
}
