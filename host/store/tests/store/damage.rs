//! Whatever happens to the files: an error that names the file, or all that was kept. Never less, never a fresh start.

use std::path::Path;

use store::{StateDir, Store, StoreError};

use crate::fixture::{Content, Numbers, append, content, copy, furnish, open, read};

/// A directory as it is at rest, one as a killed process leaves it, and what is in them.
fn furnished() -> (tempfile::TempDir, tempfile::TempDir, Content) {
    let (rest, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut store = open(rest.path()).unwrap();
    furnish(&mut store);
    copy(rest.path(), killed.path());
    let all = content(&mut store).unwrap();
    drop(store);
    assert!(!rest.path().join("state.db-wal").exists());
    assert!(std::fs::metadata(killed.path().join("state.db-wal")).unwrap().len() > 50_000);
    (rest, killed, all)
}

/// Changes a copy of a directory, and reads it.
fn after(original: &Path, change: impl FnOnce(&Path)) -> Result<Content, StoreError> {
    let folder = tempfile::tempdir().unwrap();
    copy(original, folder.path());
    change(folder.path());
    let found = read(folder.path());
    if let Err(error) = &found {
        assert!(error.to_string().contains(&folder.path().display().to_string()), "{error} names no file");
        // A second look says the same: nothing was repaired, nothing was begun.
        assert!(read(folder.path()).is_err(), "{error}, and then nothing");
    }
    found
}

fn flip(path: &Path, at: usize, bit: u8) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 1 << bit;
    std::fs::write(path, bytes).unwrap();
}

fn flips(original: &Path, name: &str, all: &Content, count: u64) -> u64 {
    let size = std::fs::metadata(original.join(name)).unwrap().len();
    let (mut numbers, mut noticed) = (Numbers(size), 0);
    for turn in 0..count {
        // Headers first, then anywhere.
        let at = if turn < 100 { turn } else { numbers.below(size) } as usize;
        let bit = numbers.below(8) as u8;
        match after(original, |folder| flip(&folder.join(name), at, bit)) {
            Ok(found) => assert_eq!(found, *all, "{name}: bit {bit} of byte {at} changed what is read"),
            Err(_) => noticed += 1,
        }
    }
    noticed
}

#[test]
fn a_flipped_bit_in_the_database_is_noticed_or_does_no_harm() {
    let (rest, _, all) = furnished();
    let noticed = flips(rest.path(), "state.db", &all, 400);
    println!("{noticed} of 400 noticed; the others are in space that is not used");
    assert!(noticed > 150, "{noticed}");
}

#[test]
fn a_flipped_bit_in_the_log_is_noticed_or_does_no_harm() {
    let (_, killed, all) = furnished();
    let noticed = flips(killed.path(), "state.db-wal", &all, 300);
    println!("{noticed} of 300 noticed; the others are in pages that were written again later");
    assert!(noticed > 100, "{noticed}");
}

#[test]
fn a_flipped_bit_in_the_witness_is_noticed() {
    let (rest, _, all) = furnished();
    let size = std::fs::metadata(rest.path().join("head")).unwrap().len();
    assert_eq!(flips(rest.path(), "head", &all, size.min(100)), size.min(100));
}

#[test]
fn a_flipped_bit_in_the_shared_memory_does_no_harm() {
    let (_, killed, all) = furnished();
    assert_eq!(flips(killed.path(), "state.db-shm", &all, 120), 0);
}

#[test]
fn a_torn_log_is_cut_back_to_the_last_whole_commit_unless_that_was_acknowledged() {
    let (_, killed, all) = furnished();
    let log = |folder: &Path| folder.join("state.db-wal");
    let size = std::fs::metadata(log(killed.path())).unwrap().len();
    // After a loss of power: the last commits were never acknowledged, and the witness is an older one.
    let older = tempfile::tempdir().unwrap();
    let mut store = open(older.path()).unwrap();
    furnish(&mut store);
    let witness = std::fs::read(older.path().join("head")).unwrap();
    append(&mut store, 5);
    store.sync().unwrap();
    let torn = tempfile::tempdir().unwrap();
    copy(older.path(), torn.path());
    drop(store);
    std::fs::write(torn.path().join("head"), &witness).unwrap();
    assert_eq!(read(torn.path()).unwrap().lines.len(), all.lines.len() + 5);
    let torn = tempfile::tempdir().unwrap();
    copy(killed.path(), torn.path());
    let mut numbers = Numbers(3);
    for _ in 0..60 {
        let length = numbers.below(size);
        let cut = |folder: &Path| {
            std::fs::OpenOptions::new().write(true).open(log(folder)).unwrap().set_len(length).unwrap();
        };
        let error = after(killed.path(), cut).unwrap_err();
        assert!(matches!(error, StoreError::Behind { .. }), "{length} of {size} bytes: {error}");
    }
    // The same, when nobody was told of what is missing.
    for missing in [1, 100, 4_000] {
        let (rest, killed, all) = unacknowledged(5);
        let size = std::fs::metadata(log(killed.path())).unwrap().len();
        let cut = |folder: &Path| {
            std::fs::OpenOptions::new().write(true).open(log(folder)).unwrap().set_len(size - missing).unwrap();
        };
        assert_eq!(after(killed.path(), cut).unwrap(), all);
        drop(rest);
    }
}

/// A directory with a last commit of `count` records that the witness does not know of; what is in it without them.
fn unacknowledged(count: u64) -> (tempfile::TempDir, tempfile::TempDir, Content) {
    let (rest, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut store = open(rest.path()).unwrap();
    furnish(&mut store);
    let all = content(&mut store).unwrap();
    let witness = std::fs::read(rest.path().join("head")).unwrap();
    append(&mut store, count);
    store.sync().unwrap();
    copy(rest.path(), killed.path());
    std::fs::write(killed.path().join("head"), witness).unwrap();
    (rest, killed, all)
}

#[test]
fn a_truncated_database_is_refused() {
    let (rest, _, _) = furnished();
    let size = std::fs::metadata(rest.path().join("state.db")).unwrap().len();
    let mut lengths: Vec<u64> = (0..size).step_by(4_096).collect();
    lengths.extend([1, 16, 99, 100, 101, 5_000, size - 1]);
    for length in lengths {
        let cut = |folder: &Path| {
            let file = std::fs::OpenOptions::new().write(true).open(folder.join("state.db")).unwrap();
            file.set_len(length).unwrap();
        };
        let error = after(rest.path(), cut).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. } | StoreError::Damaged { .. }), "{length}: {error}");
    }
}

#[test]
fn a_database_that_is_gone_is_no_fresh_start() {
    let (rest, killed, _) = furnished();
    let gone = |folder: &Path| std::fs::remove_file(folder.join("state.db")).unwrap();
    for folder in [rest.path(), killed.path()] {
        assert!(matches!(after(folder, gone).unwrap_err(), StoreError::Missing { .. }));
    }
    // With any one trace alone.
    for name in ["key", "head", "state.db-wal", "state.db-shm", "state.db-journal", "key.new"] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), "x").unwrap();
        let error = read(folder.path()).unwrap_err();
        assert!(matches!(&error, StoreError::Missing { trace, .. } if trace.ends_with(name)), "{error}");
        assert!(!folder.path().join("state.db").exists());
    }
}

#[test]
fn an_older_copy_is_refused_until_an_operator_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (database, old) = (folder.path().join("state.db"), folder.path().join("copy"));
    let mut store = open(folder.path()).unwrap();
    furnish(&mut store);
    drop(store);
    let before = read(folder.path()).unwrap();
    std::fs::copy(&database, &old).unwrap();
    let mut store = open(folder.path()).unwrap();
    append(&mut store, 5);
    store.sync().unwrap();
    drop(store);
    std::fs::rename(&old, &database).unwrap();
    let error = read(folder.path()).unwrap_err();
    let StoreError::Behind { found: 70, acknowledged: 75, .. } = error else { panic!("{error}") };
    std::fs::remove_file(folder.path().join("head")).unwrap();
    assert_eq!(read(folder.path()).unwrap(), before);
    // A copy that went its own way is no better.
    let witness = std::fs::read(folder.path().join("head")).unwrap();
    let mut store = open(folder.path()).unwrap();
    store.put_meta("colour", b"red").unwrap();
    store.sync().unwrap();
    drop(store);
    assert!(read(folder.path()).is_ok());
    std::fs::write(folder.path().join("head"), witness).unwrap();
    assert!(read(folder.path()).is_ok(), "a witness may be behind");
}

#[test]
fn what_is_not_ours_is_refused_and_kept() {
    let other = tempfile::tempdir().unwrap();
    let sqlite = other.path().join("other.db");
    let db = rusqlite::Connection::open(&sqlite).unwrap();
    db.execute_batch("CREATE TABLE precious (x); INSERT INTO precious VALUES (1);").unwrap();
    drop(db);
    for (bytes, what) in [
        (b"precious notes, and many of them".repeat(10), "no SQLite database"),
        (std::fs::read(&sqlite).unwrap(), "application 0x00000000"),
        (vec![], "is empty"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        std::fs::write(&path, &bytes).unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("state.db"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        assert!(!folder.path().join("head").exists() && !folder.path().join("state.db-wal").exists());
    }
}

#[test]
fn a_newer_or_unknown_schema_is_refused_and_kept() {
    let (rest, _, _) = furnished();
    let set = |sql: &'static str| {
        move |folder: &Path| rusqlite::Connection::open(folder.join("state.db")).unwrap().execute_batch(sql).unwrap()
    };
    let newer = after(rest.path(), set("PRAGMA user_version = 2")).unwrap_err();
    assert!(matches!(newer, StoreError::Newer { found: 2, known: 1, .. }), "{newer}");
    for (sql, what) in [
        ("PRAGMA user_version = 0", "schema 0 never existed"),
        ("PRAGMA application_id = 5", "application 0x00000005"),
        ("CREATE TABLE more (x)", "tables are not those"),
        ("DROP TABLE commands", "tables are not those"),
        ("PRAGMA journal_mode = DELETE", "not in the mode"),
        ("DELETE FROM snapshot; UPDATE place SET commits = commits + 1", "was changed"),
        ("DELETE FROM records WHERE seq = 50", "record 50 is missing"),
        ("DELETE FROM records WHERE seq = 69", "records 0 to 68"),
        ("DELETE FROM records", "no records"),
        (
            "UPDATE records SET line = replace(line, '\"at\":100,', '\"at\":101,') WHERE seq = 10",
            "record 10 was changed",
        ),
        ("UPDATE commands SET result = NULL", "command \"first\" was changed"),
        ("UPDATE commands SET id = 'second'", "command \"second\" was changed"),
        ("UPDATE meta SET value = x'00'", "value \"colour\" was changed"),
        ("UPDATE snapshot SET bytes = x'00'", "snapshot was changed"),
        ("UPDATE snapshot SET at_seq = 31", "snapshot was changed"),
        ("DELETE FROM place", "gone"),
    ] {
        let error = after(rest.path(), set(sql)).unwrap_err().to_string();
        assert!(error.contains(what), "{sql}: {error}");
    }
}

#[test]
fn a_database_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let (rest, _, all) = furnished();
    for mode in [0o644, 0o640, 0o606] {
        let set = |folder: &Path| {
            std::fs::set_permissions(folder.join("state.db"), PermissionsExt::from_mode(mode)).unwrap();
        };
        let error = after(rest.path(), set).unwrap_err();
        assert!(matches!(error, StoreError::Unsafe { .. }) && error.to_string().contains("chmod 600"), "{error}");
    }
    assert_eq!(read(rest.path()).unwrap(), all);
    for name in ["state.db", "state.db-wal", "state.db-shm", "key"] {
        if let Ok(found) = std::fs::metadata(rest.path().join(name)) {
            assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
        }
    }
}

#[test]
fn one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let error = open(folder.path()).unwrap_err();
    let StoreError::Locked { holder, .. } = &error else { panic!("{error}") };
    assert_eq!(*holder, std::process::id().to_string());
    drop(store);
    // Somebody who goes round the lock and holds the database.
    let other = rusqlite::Connection::open(folder.path().join("state.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let dir = StateDir::open(folder.path()).unwrap();
    let refused = store::SqliteStore::open(&dir).and_then(|mut store| {
        append(&mut store, 1);
        store.sync()
    });
    assert!(matches!(refused, Err(StoreError::Busy { .. })), "{refused:?}");
    other.execute_batch("ROLLBACK").unwrap();
    let mut store = store::SqliteStore::open(&dir).unwrap();
    append(&mut store, 1);
    store.sync().unwrap();
}
