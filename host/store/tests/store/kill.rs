//! A process that keeps things, killed with SIGKILL at any instant: what it acknowledged is there.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use journal::{Chain, Hash};
use store::{Begun, KillAt, Point, Retention, Secret, SqliteStore, StateDir, Store};

use crate::fixture::{Numbers, append, lines, open, read};

const FOLDER: &str = "STORE_TEST_FOLDER";
/// Not the variable that every database looks for when it is opened: the steps are counted from later on.
const POINT: &str = "STORE_TEST_POINT";
const KILLS: u64 = 100;

fn spawn(folder: &Path, fail_point: Option<&str>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["kill::child", "--exact", "--ignored", "--nocapture"]).env(FOLDER, folder);
    if let Some(fail_point) = fail_point {
        command.env(POINT, fail_point);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
}

/// What a child said, up to its last whole line.
#[derive(Debug, Default)]
struct Said {
    acknowledged: Chain,
    commands: BTreeMap<String, bool>,
    snapshot: u64,
    key: Option<String>,
}

impl Said {
    fn hear(&mut self, line: &str) {
        // The test runner writes the beginning of the first line.
        let words: Vec<&str> = line.split_whitespace().skip_while(|word| !word.starts_with('@')).collect();
        match words[..] {
            ["@synced", seq, hash, "."] => {
                let last = Hash::from_hex(hash.as_bytes()).unwrap();
                self.acknowledged = Chain { next_seq: seq.parse().unwrap(), last };
            }
            ["@command", id, ended, "."] => drop(self.commands.insert(id.into(), ended == "ended")),
            ["@snapshot", at, "."] => self.snapshot = at.parse().unwrap(),
            ["@key", key, "."] => self.key = Some(key.into()),
            _ => {}
        }
    }
}

fn output(child: &mut Child) -> Lines<BufReader<ChildStdout>> {
    BufReader::new(child.stdout.take().unwrap()).lines()
}

fn listen(child: &mut Child) -> Said {
    let mut said = Said::default();
    output(child).map_while(Result::ok).for_each(|line| said.hear(&line));
    said
}

/// Everything acknowledged is there, and everything fits.
fn check(folder: &Path, said: &Said) -> u64 {
    let dir = StateDir::open(folder).unwrap();
    let mut store = SqliteStore::open(&dir).unwrap();
    store.verify().unwrap();
    let durable = store.durable();
    let seen = said.acknowledged;
    assert!(durable.next_seq >= seen.next_seq, "{seen:?} was acknowledged, {durable:?} is there");
    let loaded = store.load().unwrap();
    if seen.next_seq >= loaded.first.next_seq {
        assert_eq!(store.chain_at(seen.next_seq).unwrap(), seen);
    }
    assert!(loaded.snapshot.map_or(0, |saved| saved.at_seq) >= said.snapshot);
    for (id, ended) in &said.commands {
        let found = store.command(id).unwrap().unwrap_or_else(|| panic!("command {id} is gone"));
        assert!(found.result.is_some() || !ended, "command {id} has lost its result");
        let again = store.begin_command(id, Hash::of(id.as_bytes()), 0).unwrap();
        assert_eq!(again, Begun::Again(found));
    }
    if let Some(key) = &said.key {
        assert_eq!(Secret::open(&dir, &mut store).unwrap().token("test"), *key);
    }
    durable.next_seq
}

#[test]
#[ignore = "run by the tests in this file, in a process of its own"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let dir = StateDir::open(folder).unwrap();
    let mut store = SqliteStore::open(&dir).unwrap();
    let key = Secret::open(&dir, &mut store).unwrap();
    println!("\n@key {} .", key.token("test"));
    if let Some(point) = std::env::var(POINT).ok().and_then(|text| KillAt::parse(&text)) {
        store.set_fail_point(Some(Box::new(point)));
    }
    let mut numbers = Numbers(u64::from(std::process::id()));
    for turn in 0u64.. {
        let count = 1 + numbers.below(20);
        append(&mut store, count);
        let id = format!("{}-{turn}", std::process::id());
        store.begin_command(&id, Hash::of(id.as_bytes()), u64::MAX).unwrap();
        store.sync().unwrap();
        let durable = store.durable();
        println!("@synced {} {} .\n@command {id} begun .", durable.next_seq, durable.last);
        store.end_command(&id, b"ok").unwrap();
        if turn % 4 == 3 {
            store.snapshot(durable.next_seq, &b"checkpoint ".repeat(500)).unwrap();
            println!("@snapshot {} .\n@command {id} ended .", durable.next_seq);
            store.compact(Retention { max_records: 400, max_age_ms: u64::MAX }, 0).unwrap();
        }
    }
}

#[test]
fn what_was_acknowledged_outlives_a_hundred_kills_at_any_instant() {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(7);
    let (mut at, mut early) = (0, 0);
    for kill in 0..KILLS {
        let mut child = spawn(folder.path(), None);
        let (mut said, mut lines) = (Said::default(), output(&mut child));
        // Every second one while it writes, the others also while it starts: how long that takes is the machine's affair.
        while kill % 2 == 1 && said.acknowledged.next_seq == 0 {
            said.hear(&lines.next().expect("it ended by itself").unwrap());
        }
        std::thread::sleep(Duration::from_micros(1_000 + numbers.below(60_000)));
        child.kill().unwrap();
        lines.map_while(Result::ok).for_each(|line| said.hear(&line));
        assert_eq!(child.wait().unwrap().signal(), Some(9), "it ended by itself");
        early += u64::from(said.acknowledged.next_seq == 0);
        let now = check(folder.path(), &said);
        assert!(now >= at, "kill {kill}: {now} records, {at} before");
        at = now;
    }
    println!("{KILLS} kills, {early} before the first commit; {at} records");
    assert!(at > KILLS);
}

#[test]
fn a_kill_at_every_boundary_leaves_what_was_before_or_what_was_after() {
    for point in Point::ALL {
        for nth in [1, 2, 5] {
            let folder = tempfile::tempdir().unwrap();
            let mut child = spawn(folder.path(), Some(&format!("{point}:{nth}")));
            let said = listen(&mut child);
            assert_eq!(child.wait().unwrap().signal(), Some(9), "{point}: it ended by itself");
            let there = check(folder.path(), &said);
            let more = there - said.acknowledged.next_seq;
            match point {
                Point::SyncAfter => assert!(more > 0, "{point} {nth}: the batch is durable"),
                _ => assert_eq!(more, 0, "{point} {nth}"),
            }
        }
    }
}

#[test]
fn a_start_that_is_interrupted_is_repeated() {
    // Each of these is what a crash in the first start can leave.
    for left in [&["lock"][..], &["lock", "state.db.new"], &["lock", "state.db.new", "state.db.new-wal"]] {
        let folder = tempfile::tempdir().unwrap();
        for name in left {
            std::fs::write(folder.path().join(name), "half").unwrap();
        }
        assert!(read(folder.path()).unwrap().loaded.is_fresh(), "{left:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    std::fs::remove_file(folder.path().join("head")).unwrap();
    assert!(read(folder.path()).unwrap().loaded.is_fresh());
    assert_eq!(lines(Chain::default(), 1)[0].seq, 0);
}
