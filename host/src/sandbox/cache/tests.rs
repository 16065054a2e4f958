#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::symlink;

use super::*;
use crate::sandbox::{BUILT_IN, Limits, Sandbox, digest};

const KEY: [u8; 32] = [7; 32];

struct Shelf {
    dir: tempfile::TempDir,
    sandbox: Sandbox,
    digest: String,
}

/// A sandbox whose cache has the built-in decider.
fn shelf() -> Shelf {
    let dir = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::with_cache(Limits::default(), Cache::open(dir.path().join("code"), KEY)).unwrap();
    assert!(!sandbox.built_in().unwrap().from_cache());
    Shelf { dir, sandbox, digest: digest(BUILT_IN) }
}

impl Shelf {
    fn cache(&self) -> &Cache {
        self.sandbox.cache().unwrap()
    }

    fn entry(&self) -> PathBuf {
        self.cache().path(&fingerprint(&self.sandbox.engine), &self.digest).unwrap()
    }

    fn hits(&self) -> bool {
        self.cache().get(&self.sandbox.engine, &self.digest).is_some()
    }

    /// Whatever is there: the load works, compiles, and puts a good entry in its place.
    fn heals(&self) {
        assert!(!self.sandbox.built_in().unwrap().from_cache());
        assert!(self.sandbox.built_in().unwrap().from_cache());
    }
}

#[test]
fn a_second_load_finds_the_code_and_decides_the_same() {
    let shelf = shelf();
    let cached = shelf.sandbox.built_in().unwrap();
    assert!(cached.from_cache());
    let compiled = Sandbox::new(Limits::default()).unwrap().built_in().unwrap();
    assert_eq!(cached.inspect(), compiled.inspect());
    let snapshot = decider::Snapshot::default();
    assert_eq!(cached.reconcile(&snapshot), compiled.reconcile(&snapshot));
    // Another process with the same key.
    let again = Cache::open(shelf.cache().folder(), KEY);
    let again = Sandbox::with_cache(Limits::default(), again).unwrap();
    assert!(again.built_in().unwrap().from_cache());
    let usage = shelf.cache().usage();
    assert_eq!((usage.hits, usage.misses, usage.refused, usage.entries), (1, 1, 0, 1));
    assert_eq!(usage.trouble, None);
}

#[test]
fn nobody_else_can_read_or_write_it() {
    let shelf = shelf();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(shelf.cache().folder()), mode(&shelf.entry())), (0o700, 0o600));
    std::fs::set_permissions(shelf.cache().folder(), std::fs::Permissions::from_mode(0o777)).unwrap();
    Cache::open(shelf.cache().folder(), KEY);
    assert_eq!(mode(shelf.cache().folder()), 0o700);
}

#[test]
fn a_flipped_bit_is_never_run() {
    let shelf = shelf();
    let good = std::fs::read(shelf.entry()).unwrap();
    let head = 0..HEAD_BYTES + 64;
    let body = (HEAD_BYTES + 64..good.len()).step_by(good.len() / 500);
    for (turn, at) in head.chain(body).chain([good.len() - 1]).enumerate() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (turn % 8);
        std::fs::write(shelf.entry(), bad).unwrap();
        assert!(!shelf.hits(), "byte {at}");
    }
    assert!(shelf.cache().usage().trouble.unwrap().contains("damaged"));
    shelf.heals();
}

#[test]
fn a_cut_or_longer_entry_is_never_run() {
    let shelf = shelf();
    let good = std::fs::read(shelf.entry()).unwrap();
    let lengths = (0..HEAD_BYTES + 2).chain((HEAD_BYTES + 2..good.len()).step_by(good.len() / 100));
    for length in lengths.chain([good.len() - 1]) {
        std::fs::write(shelf.entry(), &good[..length]).unwrap();
        assert!(!shelf.hits(), "{length} bytes");
    }
    std::fs::write(shelf.entry(), [&good[..], &[0]].concat()).unwrap();
    assert!(!shelf.hits());
    shelf.heals();
}

#[test]
fn code_of_another_key_engine_or_component_is_never_run() {
    let shelf = shelf();
    let entry = std::fs::read(shelf.entry()).unwrap();

    let foreign = Cache::open(shelf.cache().folder(), [8; 32]);
    assert!(foreign.get(&shelf.sandbox.engine, &shelf.digest).is_none());
    assert_eq!(foreign.usage().refused, 1);

    // An engine with other settings has another name for it, and does not run this one under that name either.
    let mut config = wasmtime::Config::new();
    config.module_version(wasmtime::ModuleVersionStrategy::Custom("48.0.7".into())).unwrap();
    let older = Engine::new(&config).unwrap();
    assert_ne!(fingerprint(&older), fingerprint(&shelf.sandbox.engine));
    let theirs = shelf.cache().path(&fingerprint(&older), &shelf.digest).unwrap();
    assert_ne!(theirs, shelf.entry());
    std::fs::write(&theirs, &entry).unwrap();
    assert!(shelf.cache().get(&older, &shelf.digest).is_none());

    let other = format!("sha256:{}", "0".repeat(64));
    let path = shelf.cache().path(&fingerprint(&shelf.sandbox.engine), &other).unwrap();
    std::fs::write(path, &entry).unwrap();
    assert!(shelf.cache().get(&shelf.sandbox.engine, &other).is_none());
    assert_eq!(shelf.cache().usage().refused, 2);
}

#[test]
fn what_wasmtime_would_run_is_not_run_without_the_tag() {
    let shelf = shelf();
    let code = Component::from_binary(&shelf.sandbox.engine, BUILT_IN).unwrap().serialize().unwrap();
    for planted in [code.clone(), [MAGIC.as_slice(), &[0; TAG_BYTES], &code].concat()] {
        std::fs::write(shelf.entry(), planted).unwrap();
        assert!(!shelf.hits());
    }
    shelf.heals();
}

#[test]
fn what_is_no_file_is_left_alone_or_replaced() {
    let shelf = shelf();
    let elsewhere = shelf.dir.path().join("elsewhere");
    std::fs::rename(shelf.entry(), &elsewhere).unwrap();
    // Even a link to an entry of our own.
    symlink(&elsewhere, shelf.entry()).unwrap();
    let before = std::fs::read(&elsewhere).unwrap();
    shelf.heals();
    assert!(std::fs::symlink_metadata(shelf.entry()).unwrap().is_file());
    assert!(std::fs::read(&elsewhere).unwrap() == before);

    // A pipe without a writer is not waited for.
    std::fs::remove_file(shelf.entry()).unwrap();
    let made = std::process::Command::new("mkfifo").arg(shelf.entry()).status().unwrap();
    assert!(made.success());
    shelf.heals();

    std::fs::remove_file(shelf.entry()).unwrap();
    std::fs::create_dir(shelf.entry()).unwrap();
    for _ in 0..2 {
        assert!(!shelf.sandbox.built_in().unwrap().from_cache());
    }
    assert!(shelf.cache().usage().trouble.is_some());
    assert_eq!(shelf.cache().usage().entries, 0, "a file that never got its name was left");
}

#[test]
fn a_folder_that_cannot_be_used_fails_no_load() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    // A file in its place, a folder that cannot be made, and a device that is always full.
    for folder in [dir.path().join("file"), dir.path().join("file/code"), "/proc/code".into(), "/dev/full".into()] {
        let sandbox = Sandbox::with_cache(Limits::default(), Cache::open(&folder, KEY)).unwrap();
        for _ in 0..2 {
            assert!(!sandbox.built_in().unwrap().from_cache());
        }
        let trouble = sandbox.cache().unwrap().usage().trouble.unwrap();
        assert!(trouble.starts_with(folder.to_str().unwrap()), "{trouble}");
    }
}

#[test]
fn it_makes_room_for_what_is_used() {
    let shelf = shelf();
    let size = std::fs::metadata(shelf.entry()).unwrap().len();
    let engine = &shelf.sandbox.engine;
    let component = Component::from_binary(engine, BUILT_IN).unwrap();
    let digest = |number: u32| format!("sha256:{number:064x}");
    // Room for two and a half.
    let cache = Cache::open(shelf.dir.path().join("small"), KEY).with_limit(size * 5 / 2);
    for number in 0..6 {
        cache.put(engine, &digest(number), &component);
        assert!(cache.usage().size_bytes <= size * 5 / 2);
        // The first is used again and again, and stays.
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(cache.get(engine, &digest(0)).is_some(), "{number}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(cache.get(engine, &digest(5)).is_some());
    assert!(cache.get(engine, &digest(3)).is_none());

    let tiny = Cache::open(shelf.dir.path().join("tiny"), KEY).with_limit(size - 1);
    tiny.put(engine, &digest(0), &component);
    assert_eq!(tiny.usage().entries, 0);
    assert!(tiny.usage().trouble.unwrap().contains("is the cache's limit"));
}

#[test]
fn collecting_keeps_what_is_named_and_what_is_not_its_own() {
    let shelf = shelf();
    let folder = shelf.cache().folder().to_owned();
    let names = [
        format!("{}-{}.code", "0".repeat(64), "1".repeat(16)),
        "fresh-1-0.code".into(),
        "notes.txt".into(),
        "fleet.code".into(),
    ];
    for name in &names {
        std::fs::write(folder.join(name), "x").unwrap();
    }
    assert_eq!(shelf.sandbox.collect(&[&shelf.digest, "no digest"]), 2);
    assert!(shelf.sandbox.built_in().unwrap().from_cache());
    assert!(folder.join("notes.txt").exists() && folder.join("fleet.code").exists());
    assert_eq!(shelf.sandbox.collect(&[]), 1);
    shelf.heals();
}

#[test]
fn what_is_refused_is_not_kept() {
    let shelf = shelf();
    let limits = Limits { fuel_base: 1, fuel_per_node: 0, ..Limits::default() };
    let strict = Sandbox::with_cache(limits, Cache::open(shelf.dir.path().join("other"), KEY)).unwrap();
    assert!(strict.built_in().is_err());
    assert_eq!(strict.cache().unwrap().usage().entries, 0);
}

#[test]
fn many_loads_at_once_leave_one_good_entry() {
    let dir = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::with_cache(Limits::default(), Cache::open(dir.path(), KEY)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| sandbox.built_in().unwrap());
        }
    });
    assert_eq!(sandbox.cache().unwrap().usage().entries, 1);
    assert!(sandbox.built_in().unwrap().from_cache());
}
