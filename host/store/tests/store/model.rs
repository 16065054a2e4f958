//! Random steps, crashes and failures, on both stores, against a model of a few lines.

use std::collections::BTreeMap;

use journal::{Chain, EncodedLine, Hash};
use proptest::prelude::*;
use store::{
    Begun, Command, FailAt, FailPoint, MemoryStore, Point, Retention, SqliteStore, StateDir, Store, StoreError, records,
};

use crate::fixture::lines;

#[derive(Clone, Debug)]
enum Step {
    Append(u64),
    Sync,
    Snapshot { back: u64 },
    Compact { max_records: u64, max_age_ms: u64 },
    Begin { id: u8, body: u8 },
    End { id: u8 },
    Put { key: u8, value: u8 },
    Crash,
    FailNext(Point),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..6u64).prop_map(Step::Append),
        4 => Just(Step::Sync),
        2 => (0..20u64).prop_map(|back| Step::Snapshot { back }),
        2 => (0..60u64, 0..600u64).prop_map(|(max_records, max_age_ms)| Step::Compact { max_records, max_age_ms }),
        2 => (0..4u8, 0..2u8).prop_map(|(id, body)| Step::Begin { id, body }),
        2 => (0..4u8).prop_map(|id| Step::End { id }),
        1 => (0..3u8, 0..3u8).prop_map(|(key, value)| Step::Put { key, value }),
        2 => Just(Step::Crash),
        1 => (0..Point::ALL.len()).prop_map(|at| Step::FailNext(Point::ALL[at])),
    ]
}

/// What is kept, in a form that cannot be wrong.
#[derive(Clone, Debug, Default, PartialEq)]
struct Kept {
    all: Vec<EncodedLine>,
    dropped: usize,
    snapshot: Option<(u64, Vec<u8>)>,
    commands: BTreeMap<String, Command>,
    values: BTreeMap<String, Vec<u8>>,
}

impl Kept {
    fn head(&self) -> Chain {
        self.all.last().map_or(Chain::default(), EncodedLine::after)
    }

    fn chain_at(&self, seq: u64) -> Chain {
        seq.checked_sub(1).map_or(Chain::default(), |before| self.all[before as usize].after())
    }

    /// The rule, said another way than in the stores: one record after the other.
    fn compact(&mut self, keep: Retention, now_ms: u64) -> u64 {
        let cutoff = now_ms.saturating_sub(keep.max_age_ms);
        let covered = self.snapshot.as_ref().map_or(0, |(at, _)| *at);
        let before = self.dropped;
        while let Some(line) = self.all.get(self.dropped) {
            let too_many = (self.all.len() - self.dropped) as u64 > keep.max_records;
            let too_old = line.at_ms < cutoff;
            if line.seq >= covered || !(too_many || too_old) {
                break;
            }
            self.dropped += 1;
        }
        self.commands.retain(|_, command| command.result.is_none() || command.at_ms >= cutoff);
        (self.dropped - before) as u64
    }
}

trait Subject {
    fn store(&mut self) -> &mut dyn Store;
    fn crash(&mut self);
    fn hang(&mut self, point: Option<Box<dyn FailPoint>>);
}

impl Subject for MemoryStore {
    fn store(&mut self) -> &mut dyn Store {
        self
    }

    fn crash(&mut self) {
        MemoryStore::crash(self);
    }

    fn hang(&mut self, point: Option<Box<dyn FailPoint>>) {
        self.set_fail_point(point);
    }
}

struct OnDisk {
    folder: tempfile::TempDir,
    store: Option<SqliteStore>,
}

impl OnDisk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut subject = OnDisk { folder, store: None };
        subject.crash();
        subject
    }
}

impl Subject for OnDisk {
    fn store(&mut self) -> &mut dyn Store {
        self.store.as_mut().unwrap()
    }

    fn crash(&mut self) {
        self.store = None;
        self.store = Some(SqliteStore::open(&StateDir::open(self.folder.path()).unwrap()).unwrap());
    }

    fn hang(&mut self, point: Option<Box<dyn FailPoint>>) {
        self.store.as_mut().unwrap().set_fail_point(point);
    }
}

fn check(store: &mut dyn Store, durable: &Kept, now: &Kept) {
    assert_eq!(store.durable(), durable.head());
    assert_eq!(store.head(), now.head());
    let loaded = store.load().unwrap();
    assert_eq!(loaded.first, durable.chain_at(durable.dropped as u64));
    assert_eq!(loaded.head, durable.head());
    assert_eq!(loaded.snapshot.map(|saved| (saved.at_seq, saved.bytes)), durable.snapshot);
    let read: Vec<u64> = records(store, loaded.first.next_seq).unwrap().map(|line| line.unwrap().seq).collect();
    assert_eq!(read, (durable.dropped as u64..durable.all.len() as u64).collect::<Vec<_>>());
    for id in 0..4 {
        let id = format!("c{id}");
        assert_eq!(store.command(&id).unwrap(), now.commands.get(&id).cloned());
    }
    let open: Vec<Command> = now.commands.values().filter(|command| command.result.is_none()).cloned().collect();
    assert_eq!(store.open_commands().unwrap(), open);
    for key in 0..3 {
        let key = format!("k{key}");
        assert_eq!(store.meta(&key).unwrap(), now.values.get(&key).cloned());
    }
    for seq in [0, loaded.first.next_seq.saturating_sub(1), now.all.len() as u64, now.all.len() as u64 + 1] {
        let is_kept = (durable.dropped as u64..=now.all.len() as u64).contains(&seq);
        match store.chain_at(seq) {
            Ok(chain) => assert!(is_kept && chain == now.chain_at(seq), "{seq}"),
            Err(StoreError::OutOfRange { .. }) => assert!(!is_kept, "{seq}"),
            Err(other) => panic!("{other}"),
        }
    }
}

/// What became of a step.
enum Became {
    Done,
    Failed { is_durable: bool, is_taken: bool },
}

fn became<T>(result: Result<T, StoreError>) -> (Became, Option<T>) {
    match result {
        Ok(value) => (Became::Done, Some(value)),
        Err(StoreError::Injected { at }) => {
            let is_durable = matches!(at, Point::SyncAfter | Point::SnapshotAfter | Point::CompactAfter);
            (Became::Failed { is_durable, is_taken: at == Point::AppendAfter }, None)
        }
        Err(other) => panic!("{other}"),
    }
}

fn play(subject: &mut dyn Subject, steps: &[Step]) {
    let (mut durable, mut now) = (Kept::default(), Kept::default());
    for (number, step) in steps.iter().enumerate() {
        let at_ms = number as u64 * 30;
        let store = subject.store();
        match step.clone() {
            Step::Append(count) => {
                let new = lines(now.head(), count);
                let (became, _) = became(store.append(&new));
                if matches!(became, Became::Done | Became::Failed { is_taken: true, .. }) {
                    now.all.extend(new);
                }
            }
            Step::Sync => {
                let (became, _) = became(store.sync());
                ended(became, subject, &mut durable, &mut now, |_| ());
            }
            Step::Snapshot { back } => {
                let oldest = now.snapshot.as_ref().map_or(now.dropped as u64, |(at, _)| *at);
                let at = (now.all.len() as u64).saturating_sub(back).max(oldest);
                let bytes = format!("checkpoint {number}").into_bytes();
                let (became, _) = became(store.snapshot(at, &bytes));
                ended(became, subject, &mut durable, &mut now, |kept| kept.snapshot = Some((at, bytes.clone())));
            }
            Step::Compact { max_records, max_age_ms } => {
                let keep = Retention { max_records, max_age_ms };
                let (became, done) = became(store.compact(keep, at_ms));
                let mut dropped = 0;
                ended(became, subject, &mut durable, &mut now, |kept| dropped = kept.compact(keep, at_ms));
                if let Some(done) = done {
                    assert_eq!((done.records, done.more), (dropped, false));
                }
            }
            Step::Begin { id, body } => {
                let (id, body) = (format!("c{id}"), Hash::of(&[body]));
                let known = now.commands.get(&id).cloned();
                let (became, begun) = became(store.begin_command(&id, body, at_ms));
                let expected = match &known {
                    None => Begun::New,
                    Some(known) if known.body == body => Begun::Again(known.clone()),
                    Some(known) => Begun::OtherBody(known.clone()),
                };
                assert!(begun.is_none_or(|begun| begun == expected));
                if known.is_none() && matches!(became, Became::Done | Became::Failed { is_taken: true, .. }) {
                    now.commands.insert(id.clone(), Command { id, body, at_ms, result: None });
                }
            }
            Step::End { id } => {
                let id = format!("c{id}");
                match (now.commands.get_mut(&id), store.end_command(&id, b"done")) {
                    (None, Err(StoreError::UnknownCommand { .. })) => {}
                    (Some(command), Err(StoreError::CommandEnded { .. })) => assert!(command.result.is_some()),
                    (_, Err(StoreError::Injected { at: Point::AppendBefore })) => {}
                    (Some(command), Ok(()) | Err(StoreError::Injected { at: Point::AppendAfter })) => {
                        command.result = Some(b"done".to_vec());
                    }
                    (_, other) => panic!("{other:?}"),
                }
            }
            Step::Put { key, value } => {
                let (became, _) = became(store.put_meta(&format!("k{key}"), &[value]));
                if matches!(became, Became::Done | Became::Failed { is_taken: true, .. }) {
                    now.values.insert(format!("k{key}"), vec![value]);
                }
            }
            Step::Crash => {
                subject.crash();
                now = durable.clone();
            }
            Step::FailNext(point) => subject.hang(Some(Box::new(FailAt::new(Some(point), 1)))),
        }
        check(subject.store(), &durable, &now);
    }
}

/// After a step that makes things durable. After a failure, only opening it again helps.
fn ended(
    became: Became,
    subject: &mut dyn Subject,
    durable: &mut Kept,
    now: &mut Kept,
    mut change: impl FnMut(&mut Kept),
) {
    if matches!(became, Became::Done | Became::Failed { is_durable: true, .. }) {
        change(now);
        *durable = now.clone();
    }
    if matches!(became, Became::Done) {
        return;
    }
    let store = subject.store();
    for refused in [store.sync(), store.append(&[]), store.load().map(drop), store.put_meta("k0", b"x")] {
        assert!(matches!(refused, Err(StoreError::Poisoned { .. })), "{refused:?}");
    }
    subject.crash();
    *now = durable.clone();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_in_memory_does_what_the_model_does(steps in prop::collection::vec(step(), 1..60)) {
        play(&mut MemoryStore::new(), &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_on_disk_does_what_the_model_does(steps in prop::collection::vec(step(), 1..60)) {
        play(&mut OnDisk::new(), &steps);
    }
}

#[test]
fn lines_that_do_not_follow_are_refused_and_none_is_taken() {
    let mut store = MemoryStore::new();
    let four = lines(Chain::default(), 4);
    store.append(&four[..1]).unwrap();
    for wrong in [&four[2..], &four[..1], &[four[1].clone(), four[3].clone()]] {
        assert!(matches!(store.append(wrong), Err(StoreError::NotNext { .. })));
        assert_eq!(store.head(), four[0].after());
    }
    store.append(&four[1..]).unwrap();
    store.sync().unwrap();
    assert_eq!(store.durable(), four[3].after());
}

#[test]
fn commands_need_an_id() {
    let mut store = MemoryStore::new();
    assert!(matches!(store.begin_command("", Hash::of(b""), 0), Err(StoreError::EmptyCommandId)));
    assert!(matches!(store.begin_command(&"x".repeat(257), Hash::of(b""), 0), Err(StoreError::TooLarge { .. })));
}

#[test]
fn a_large_history_is_dropped_in_steps() {
    let mut subject = OnDisk::new();
    let store = subject.store();
    store.append(&lines(store.head(), 10_000)).unwrap();
    store.snapshot(10_000, b"all of it").unwrap();
    let (keep, mut dropped, mut calls) = (Retention { max_records: 100, max_age_ms: u64::MAX }, 0, 0);
    loop {
        let done = store.compact(keep, 0).unwrap();
        (dropped, calls) = (dropped + done.records, calls + 1);
        if !done.more {
            break;
        }
    }
    assert_eq!((dropped, calls), (9_900, 3));
    let before = subject.store.as_ref().unwrap().size_bytes().unwrap();
    subject.crash();
    let after = subject.store.as_ref().unwrap().size_bytes().unwrap();
    assert!(after < 300_000 && after <= before, "{before} bytes, then {after}");
    let store = subject.store();
    assert_eq!(store.load().unwrap().first.next_seq, 9_900);
    assert_eq!(records(store, 9_900).unwrap().filter(Result::is_ok).count(), 100);
}
