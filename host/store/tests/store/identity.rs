//! The key file, and what derives from it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use store::{MemoryStore, Secret, SqliteStore, StateDir, Store, StoreError};

fn open(path: &Path) -> Result<Secret, StoreError> {
    let dir = StateDir::open(path)?;
    let mut store = SqliteStore::open(&dir)?;
    Secret::open(&dir, &mut store)
}

#[test]
fn a_key_is_made_once_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let first = open(folder.path()).unwrap().token("api");
    let bytes = std::fs::read(&key).unwrap();
    assert_eq!(bytes.len(), 32);
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(open(folder.path()).unwrap().token("api"), first);
    assert_eq!(std::fs::read(&key).unwrap(), bytes);
    assert!(!folder.path().join("key.new").exists());
    let other = tempfile::tempdir().unwrap();
    assert_ne!(open(other.path()).unwrap().token("api"), first);
}

#[test]
fn tokens_differ_by_purpose_and_say_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let key = open(folder.path()).unwrap();
    let token = key.token("api");
    assert!(token.len() == 64 && token.bytes().all(|digit| digit.is_ascii_hexdigit()));
    assert_ne!(token, key.token("join"));
    assert!(key.accepts("api", &token));
    for wrong in [&key.token("join"), "", &token[1..], &token.to_uppercase(), &format!("{token} ")] {
        assert!(!key.accepts("api", wrong), "{wrong}");
    }
    assert!(!key.accepts("join", &token));
    assert_eq!(format!("{key:?}"), "Secret(..)");
    // By another implementation: HMAC-SHA256 over the parts, each after its length.
    std::fs::write(folder.path().join("key"), [7; 32]).unwrap();
    let known = Secret::open(&StateDir::open(folder.path()).unwrap(), &mut MemoryStore::new()).unwrap();
    assert_eq!(known.token("api"), KNOWN);
}

#[test]
fn what_is_no_key_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    open(folder.path()).unwrap();
    let own = std::fs::read(&key).unwrap();
    let refused = |what: &str| {
        let before = std::fs::read(&key).ok();
        let error = open(folder.path()).unwrap_err().to_string();
        assert!(error.contains(&key.display().to_string()) && error.contains(what), "{error}");
        assert_eq!(std::fs::read(&key).ok(), before);
    };
    for size in [0, 31, 33, 64] {
        std::fs::write(&key, vec![1; size]).unwrap();
        refused(&format!("has {size}"));
    }
    std::fs::write(&key, [1; 32]).unwrap();
    refused("not the key that state.db belongs to");
    std::fs::write(&key, &own).unwrap();
    for mode in [0o644, 0o640, 0o604] {
        std::fs::set_permissions(&key, PermissionsExt::from_mode(mode)).unwrap();
        refused("chmod 600");
    }
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::rename(&key, folder.path().join("elsewhere")).unwrap();
    refused("is missing");
    std::os::unix::fs::symlink("elsewhere", &key).unwrap();
    refused("not a regular file");
    std::fs::remove_file(&key).unwrap();
    std::fs::rename(folder.path().join("elsewhere"), &key).unwrap();
    open(folder.path()).unwrap();
}

#[test]
fn a_reset_voids_all_tokens_and_survives_a_crash_in_between() {
    let folder = tempfile::tempdir().unwrap();
    let old = open(folder.path()).unwrap();
    let (key, fresh) = (folder.path().join("key"), folder.path().join("key.new"));
    let old_bytes = std::fs::read(&key).unwrap();
    let new = {
        let dir = StateDir::open(folder.path()).unwrap();
        let mut store = SqliteStore::open(&dir).unwrap();
        Secret::reset(&dir, &mut store).unwrap()
    };
    assert!(!new.accepts("api", &old.token("api")));
    assert_eq!(open(folder.path()).unwrap().token("api"), new.token("api"));
    // The crash: the store knows of the new key, and the old one still has the name.
    std::fs::rename(&key, &fresh).unwrap();
    std::fs::write(&key, &old_bytes).unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(open(folder.path()).unwrap().token("api"), new.token("api"));
    // The crash before that: the store does not know of it yet.
    std::fs::write(&fresh, [9; 32]).unwrap();
    assert_eq!(open(folder.path()).unwrap().token("api"), new.token("api"));
}

#[test]
fn a_fail_point_store_remembers_its_key_too() {
    let folder = tempfile::tempdir().unwrap();
    let dir = StateDir::open(folder.path()).unwrap();
    let mut store = MemoryStore::new();
    let first = Secret::open(&dir, &mut store).unwrap().token("api");
    store.crash();
    assert_eq!(Secret::open(&dir, &mut store).unwrap().token("api"), first);
    std::fs::remove_file(folder.path().join("key")).unwrap();
    assert!(matches!(Secret::open(&dir, &mut store), Err(StoreError::Missing { .. })));
    assert!(store.load().unwrap().snapshot.is_none());
}

const KNOWN: &str = "00f4b4fd5c0eb4af4628ee1ccce48c83c62926f38614322821034ff710a3b714";
