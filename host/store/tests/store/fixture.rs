//! Lines to keep, and folders to keep them in.

use std::collections::BTreeMap;
use std::path::Path;

use engine::driver::DriverConfig;
use engine::id::AttemptId;
use engine::io::DeciderIdentity;
use engine::policy::Policy;
use journal::{Chain, EncodedLine, Entry, Hash, Start};
use store::{Loaded, SqliteStore, StateDir, Store, StoreError, records};

pub fn start() -> Entry {
    let config = DriverConfig {
        run: "demo".into(),
        policy: Policy::default(),
        providers: BTreeMap::new(),
        decider: DeciderIdentity::native(),
        next_attempt: 1,
        epoch: 0,
    };
    Entry::Start(Box::new(Start::new(&config, &decider::describe())))
}

/// `count` lines that follow `chain`; their instants are ten times their numbers.
pub fn lines(mut chain: Chain, count: u64) -> Vec<EncodedLine> {
    (0..count)
        .map(|_| {
            let seq = chain.next_seq;
            let entry = if seq == 0 { start() } else { Entry::Reserved { below: AttemptId(seq) } };
            let line = EncodedLine::encode(chain, seq * 10, &entry).unwrap();
            chain = line.after();
            line
        })
        .collect()
}

pub fn append(store: &mut dyn Store, count: u64) {
    store.append(&lines(store.head(), count)).unwrap();
}

pub fn open(dir: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(&StateDir::open(dir)?)
}

/// All that can be read of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    pub loaded: Loaded,
    pub lines: Vec<Vec<u8>>,
    pub command: Option<store::Command>,
    pub value: Option<Vec<u8>>,
}

pub fn content(store: &mut dyn Store) -> Result<Content, StoreError> {
    let loaded = store.load()?;
    let mut reader = records(store, loaded.first.next_seq)?;
    let mut lines = Vec::new();
    while let Some((_, bytes)) = reader.next_line()? {
        lines.push(bytes);
    }
    assert_eq!(reader.stand(), loaded.head);
    Ok(Content { loaded, lines, command: store.command("first")?, value: store.meta("colour")? })
}

/// Opens and reads all of a directory, and looks at every page.
pub fn read(dir: &Path) -> Result<Content, StoreError> {
    let mut store = open(dir)?;
    store.verify()?;
    content(&mut store)
}

/// A store with something of everything; its last commit is not in the database file but in the log.
pub fn furnish(store: &mut SqliteStore) {
    append(store, 40);
    store.begin_command("first", Hash::of(b"scale web=3"), 5).unwrap();
    store.end_command("first", b"{\"done\":true}").unwrap();
    store.put_meta("colour", b"blue").unwrap();
    store.sync().unwrap();
    store.snapshot(30, &b"checkpoint ".repeat(2_000)).unwrap();
    for _ in 0..10 {
        append(store, 3);
        store.sync().unwrap();
    }
}

/// Copies the files of a directory.
pub fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A stream of numbers that is the same each time.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
