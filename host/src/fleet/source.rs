//! Reading a fleet file: only regular files, only so large, and only text.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use super::error::FleetError;

/// The largest fleet file, in bytes.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

/// The text of a file. Never waits for a writer (a pipe is refused), never reads more than the limit.
pub fn read(path: &Path) -> Result<String, FleetError> {
    let bytes = read_bytes(path, MAX_FILE_BYTES)?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let before = String::from_utf8_lossy(&bytes[..valid]);
        let (line, column) = position(&before, before.len());
        FleetError::NotUtf8 { path: path.into(), byte: bytes.get(valid).copied().unwrap_or_default(), line, column }
    })
}

/// The bytes of a regular file of at most `limit_bytes`.
pub(crate) fn read_bytes(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, FleetError> {
    let unreadable = |error: std::io::Error| FleetError::Unreadable { path: path.into(), source: Arc::new(error) };
    let (file, size) = open(path, limit_bytes)?;
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(limit_bytes + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit_bytes {
        return Err(FleetError::TooLarge { path: path.into(), size_bytes: bytes.len() as u64, limit_bytes });
    }
    Ok(bytes)
}

/// A regular file of any size, to be read bit by bit.
pub(crate) fn open_regular(path: &Path) -> Result<File, FleetError> {
    open(path, u64::MAX).map(|(file, _)| file)
}

fn open(path: &Path, limit_bytes: u64) -> Result<(File, u64), FleetError> {
    let unreadable = |error: std::io::Error| FleetError::Unreadable { path: path.into(), source: Arc::new(error) };
    // Looked at before it is opened, because opening a device can do things; and again after, because it may have been swapped.
    regular(path, &std::fs::metadata(path).map_err(unreadable)?, limit_bytes)?;
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open(path)
        .map_err(unreadable)?;
    let size = regular(path, &file.metadata().map_err(unreadable)?, limit_bytes)?;
    Ok((file, size))
}

fn regular(path: &Path, found: &Metadata, limit_bytes: u64) -> Result<u64, FleetError> {
    let kind = found.file_type();
    if !kind.is_file() {
        let what = if kind.is_dir() {
            "a directory"
        } else if kind.is_fifo() {
            "a pipe"
        } else if kind.is_socket() {
            "a socket"
        } else {
            "a device"
        };
        return Err(FleetError::NotAFile { path: path.into(), what });
    }
    if found.len() > limit_bytes {
        return Err(FleetError::TooLarge { path: path.into(), size_bytes: found.len(), limit_bytes });
    }
    Ok(found.len())
}

/// Line and column, both from 1, of a byte offset; the column counts characters.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[start..].trim_start_matches('\u{feff}').chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}
