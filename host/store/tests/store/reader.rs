//! Reading beside a store that is written.

use journal::{Hash, Reader, verify};
use store::{Retention, SqliteReader, SqliteStore, StateDir, Store, StoreError, records};

use crate::fixture::{append, furnish, open};

fn count(reader: &mut SqliteReader) -> usize {
    let first = reader.first().next_seq;
    records(reader, first).unwrap().inspect(|line| assert!(line.is_ok(), "{line:?}")).count()
}

#[test]
fn a_reader_sees_one_instant_until_it_is_refreshed() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).unwrap();
    furnish(&mut store);
    let mut reader = SqliteReader::open(folder.path()).unwrap();
    assert_eq!(count(&mut reader), 70);
    append(&mut store, 5);
    store.sync().unwrap();
    let kept = Retention { max_records: 50, max_age_ms: u64::MAX };
    assert_eq!(store.compact(kept, 0).unwrap().records, 25);
    assert_eq!((count(&mut reader), reader.first().next_seq), (70, 0));
    reader.refresh().unwrap();
    assert_eq!((count(&mut reader), reader.first().next_seq), (50, 25));
    assert_eq!(reader.head(), store.head());
    assert_eq!(reader.chain_at(30).unwrap(), store.chain_at(30).unwrap());
    assert!(matches!(reader.chain_at(24), Err(StoreError::OutOfRange { .. })));
    assert_eq!(reader.command("first").unwrap().unwrap().body, Hash::of(b"scale web=3"));
    assert!(SqliteReader::open(&folder.path().join("elsewhere")).is_err());
}

#[test]
fn what_is_kept_is_the_journal_that_a_file_would_have() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).unwrap();
    furnish(&mut store);
    let export = |store: &mut SqliteStore, from: u64| {
        let (mut bytes, mut reader) = (Vec::new(), records(store, from).unwrap());
        while let Some((_, line)) = reader.next_line().unwrap() {
            bytes.extend(line);
            bytes.push(b'\n');
        }
        bytes
    };
    let whole = export(&mut store, 0);
    let found = verify(&mut Reader::new(&whole[..])).unwrap();
    assert_eq!((found.records, found.last_hash), (70, store.head().last));
    store.compact(Retention { max_records: 45, max_age_ms: u64::MAX }, 0).unwrap();
    let first = store.load().unwrap().first;
    let rest = export(&mut store, first.next_seq);
    assert!(whole.ends_with(&rest) && rest.len() < whole.len());
    let mut reader = Reader::resume(&rest[..], first, 0);
    assert_eq!(verify(&mut reader).unwrap().last_hash, store.head().last);
    drop(store);
    assert!(SqliteStore::open(&StateDir::open(folder.path()).unwrap()).is_ok());
}
