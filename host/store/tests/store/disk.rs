//! A full disk, and one that cannot be written: on a small file system in memory, where this may be mounted.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use store::{Store, StoreError};

use crate::fixture::{append, content, open, read};

struct Small(tempfile::TempDir);

impl Small {
    fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size},mode=0700");
        if let Err(why) = run(&["mount", "-t", "tmpfs", "-o", &options, "none"], folder.path()) {
            println!("skipped: no file system can be mounted here: {why}");
            return None;
        }
        Some(Small(folder))
    }

    fn remount(&self, options: &str) {
        run(&["mount", "-o", &format!("remount,{options}")], self.0.path()).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        run(&["umount"], self.0.path()).unwrap();
    }
}

/// Tries for a while where something is busy: a program that another test is just starting has for a moment whatever is open here.
fn run(words: &[&str], path: &Path) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let output = Command::new(words[0]).args(&words[1..]).arg(path).output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true => return Ok(()),
            false if said.contains("busy") && began.elapsed() < Duration::from_secs(60) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            false => return Err(said.trim().into()),
        }
    }
}

#[test]
fn a_full_disk_ends_the_store_and_keeps_what_was_acknowledged() {
    let Some(small) = Small::mount("1500k") else { return };
    let path = small.0.path();
    let mut store = open(path).unwrap();
    let error = loop {
        append(&mut store, 50);
        if let Err(error) = store.sync() {
            break error;
        }
    };
    assert!(matches!(error, StoreError::Full { .. }) && error.to_string().contains("state.db"), "{error}");
    let durable = store.durable();
    assert!(durable.next_seq > 500);
    assert!(matches!(store.sync(), Err(StoreError::Poisoned { .. })));
    drop(store);
    // While it is full it may or may not open; it never says less than was acknowledged.
    match open(path) {
        Ok(mut store) => assert_eq!(content(&mut store).unwrap().loaded.head, durable),
        Err(error) => assert!(matches!(error, StoreError::Full { .. } | StoreError::Io { .. }), "{error}"),
    }
    small.remount("size=8m");
    assert_eq!(read(path).unwrap().loaded.head, durable);
    let mut store = open(path).unwrap();
    append(&mut store, 50);
    store.sync().unwrap();
}

#[test]
fn a_disk_without_room_for_a_first_start_says_so() {
    let Some(small) = Small::mount("16k") else { return };
    let error = open(small.0.path()).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    small.remount("size=4m");
    assert!(read(small.0.path()).unwrap().loaded.is_fresh());
}

#[test]
fn a_read_only_disk_is_refused() {
    let Some(small) = Small::mount("4m") else { return };
    let path = small.0.path();
    small.remount("ro");
    let error = open(path).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    small.remount("rw");
    let mut store = open(path).unwrap();
    append(&mut store, 3);
    store.sync().unwrap();
    let durable = store.durable();
    drop(store);
    small.remount("ro");
    let error = open(path).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    small.remount("rw");
    assert_eq!(read(path).unwrap().loaded.head, durable);
}

#[test]
fn what_another_user_closed_cannot_be_opened() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        println!("skipped: nothing is closed to root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o000)).unwrap();
    let error = open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
}
