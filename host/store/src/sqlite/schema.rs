//! The database file: how it is made, known again, and opened.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use journal::Chain;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::rows::{self, Place};
use crate::dir::{StateDir, check_file, is_there};
use crate::error::StoreError;
use crate::fault::{io, sqlite};

/// The database's name in the state directory.
pub(crate) const FILE: &str = "state.db";
/// The version of the tables, in `user_version`.
pub const SCHEMA: u32 = 1;
/// `Home`, in `application_id`: `file` and `sqlite3` show it.
const APPLICATION: u32 = 0x486f_6d65;
const MAGIC: &[u8] = b"SQLite format 3\0";
const BUSY: Duration = Duration::from_secs(5);

const TABLES: &str = "
CREATE TABLE place (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    commits INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    first_hash BLOB NOT NULL,
    head_seq INTEGER NOT NULL,
    head_hash BLOB NOT NULL,
    sum BLOB NOT NULL
) STRICT;
CREATE TABLE records (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, line TEXT NOT NULL) STRICT;
CREATE TABLE snapshot (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at_seq INTEGER NOT NULL,
    prev BLOB NOT NULL,
    sum BLOB NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE TABLE commands (
    id TEXT PRIMARY KEY,
    body BLOB NOT NULL,
    at_ms INTEGER NOT NULL,
    result BLOB,
    sum BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL, sum BLOB NOT NULL) STRICT, WITHOUT ROWID;
";

pub(crate) const PUT_PLACE: &str = "INSERT OR REPLACE INTO place
    (id, commits, first_seq, first_hash, head_seq, head_hash, sum) VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)";

/// Makes a database under another name, durable before it gets its own: an empty one, or one that goes on from a checkpoint, with
/// these values.
pub(crate) fn create(
    dir: &StateDir,
    from: Option<(Chain, &[u8])>,
    values: &[(&str, Vec<u8>)],
) -> Result<(), StoreError> {
    let (path, fresh) = (dir.path().join(FILE), dir.path().join("state.db.new"));
    for left in ["state.db.new", "state.db.new-journal", "state.db.new-wal", "state.db.new-shm"] {
        let left = dir.path().join(left);
        if is_there(&left)? {
            std::fs::remove_file(&left).map_err(|error| io("remove", &left, error))?;
        }
    }
    // SQLite gives its side files the mode of the database.
    drop(crate::private_file(&fresh)?);
    let fill = || -> rusqlite::Result<()> {
        let db = Connection::open_with_flags(&fresh, flags())?;
        // Has to come before the first table.
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        db.execute_batch(&format!("BEGIN; {TABLES}"))?;
        let at = from.map_or_else(Chain::default, |(at, _)| at);
        Place { commits: 0, first: at, head: at }.write(&db)?;
        if let Some((at, checkpoint)) = from {
            rows::put_snapshot(&db, at, checkpoint)?;
        }
        for (key, value) in values {
            rows::put_value(&db, key, value)?;
        }
        db.pragma_update(None, "application_id", APPLICATION)?;
        db.pragma_update(None, "user_version", SCHEMA)?;
        db.execute_batch("COMMIT")?;
        db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        db.close().map_err(|(_, error)| error)
    };
    fill().map_err(|error| sqlite("make", &fresh, error))?;
    File::open(&fresh).and_then(|file| file.sync_all()).map_err(|error| io("sync", &fresh, error))?;
    std::fs::rename(&fresh, &path).map_err(|error| io("name", &path, error))?;
    dir.sync()
}

fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

/// Looks at the first bytes, before SQLite does: it would begin to repair what it takes for its own.
pub(crate) fn recognise(path: &Path, was_ours: bool) -> Result<(), StoreError> {
    check_file(path, 0)?;
    let mut header = Vec::new();
    let file = File::open(path).map_err(|error| io("open", path, error))?;
    file.take(100).read_to_end(&mut header).map_err(|error| io("read", path, error))?;
    let other = |found: String| {
        let path = path.to_path_buf();
        if was_ours {
            StoreError::Corrupt { path, reason: format!("it is no state database ({found})") }
        } else {
            StoreError::Foreign { path, found }
        }
    };
    if header.is_empty() {
        return Err(StoreError::Corrupt { path: path.into(), reason: "it is empty".into() });
    }
    if !header.starts_with(MAGIC) {
        return Err(other("it is no SQLite database".into()));
    }
    let number = |at: usize| header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    match (number(68), number(60)) {
        // It holds what fleet files hold, passwords in an environment included: for its owner only.
        (Some(APPLICATION), Some(SCHEMA)) => check_file(path, 0o077).map(drop),
        (Some(APPLICATION), Some(found)) if found > SCHEMA => {
            Err(StoreError::Newer { path: path.into(), found, known: SCHEMA })
        }
        (Some(APPLICATION), Some(found)) => {
            Err(StoreError::Corrupt { path: path.into(), reason: format!("schema {found} never existed") })
        }
        (Some(found), Some(_)) => Err(other(format!("it is the database of application {found:#010x}"))),
        _ => Err(StoreError::Corrupt { path: path.into(), reason: format!("only {} bytes are left", header.len()) }),
    }
}

/// Opens it for writing, and lets SQLite finish what a crash interrupted.
pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    let db = Connection::open_with_flags(path, flags()).map_err(|error| sqlite("open", path, error))?;
    let prepare = || -> rusqlite::Result<()> {
        db.busy_timeout(BUSY)?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        db.pragma_update(None, "trusted_schema", false)?;
        db.pragma_update(None, "cell_size_check", true)?;
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "temp_store", "MEMORY")?;
        db.pragma_update(None, "cache_size", -16_384)?;
        db.pragma_update_and_check(None, "journal_size_limit", 64 << 20, |_| Ok(()))?;
        db.set_prepared_statement_cache_capacity(64);
        Ok(())
    };
    prepare().map_err(|error| sqlite("open", path, error))?;
    let corrupt = |reason: String| StoreError::Corrupt { path: path.into(), reason };
    let text = |pragma: &str| -> Result<String, StoreError> {
        let value = db.pragma_query_value(None, pragma, |row| row.get(0));
        value.map_err(|error| sqlite("read", path, error))
    };
    if text("journal_mode")? != "wal" {
        return Err(corrupt("it is not in the mode that it was made in".into()));
    }
    // An earlier sync that failed may have left pages in the system's cache that are not on the disk: they are written again, to
    // the database itself, before anything relies on them.
    let moved = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    moved.map_err(|error| sqlite("recover", path, error))?;
    let version: u32 =
        db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(|error| sqlite("read", path, error))?;
    if version > SCHEMA {
        return Err(StoreError::Newer { path: path.into(), found: version, known: SCHEMA });
    }
    let tables =
        "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid)";
    let found: Option<Option<String>> =
        db.query_row(tables, [], |row| row.get(0)).optional().map_err(|error| sqlite("read", path, error))?;
    let words = |text: &str| text.replace(';', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    if words(&found.flatten().unwrap_or_default()) != words(TABLES) {
        return Err(corrupt("its tables are not those of its schema".into()));
    }
    Ok(db)
}

/// Opens it for reading, beside whoever writes it.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(|db| {
        db.busy_timeout(BUSY)?;
        db.pragma_update(None, "trusted_schema", false)?;
        db.pragma_update(None, "cell_size_check", true)?;
        Ok(db)
    });
    opened.map_err(|error| sqlite("open", path, error))
}

/// SQLite's own look at its pages: quick, or, with the indices, thorough.
pub(crate) fn check_pages(db: &Connection, path: &Path, is_thorough: bool) -> Result<(), StoreError> {
    let pragma = if is_thorough { "integrity_check(1)" } else { "quick_check(1)" };
    let found: String = db
        .query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))
        .map_err(|error| sqlite("check", path, error))?;
    if found == "ok" { Ok(()) } else { Err(StoreError::Corrupt { path: path.into(), reason: found }) }
}
