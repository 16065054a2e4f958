//! What runs on the machine, what the journal says, and whether the two fit.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use decider::{Intent, Stage};
use engine::driver::Driver;
use engine::id::AttemptId;
use journal::Walk;
use serde_json::Value;
use store::{SqliteStore, StateDir, Store, records};

use crate::fixture::{PATIENCE, Place, Up, is_running};

/// A fleet has to settle in this time, however busy the machine is.
pub const BOUND: Duration = PATIENCE;

/// Numbers that are the same for the same seed.
pub struct Numbers(u64);

impl Numbers {
    /// A sequence of its own for each name; `HOMEOSTAT_CRASH_SEED` gives others.
    pub fn of(name: &str) -> Self {
        let seed = std::env::var("HOMEOSTAT_CRASH_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1_u64);
        let start = name.bytes().fold(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        println!("{name}: HOMEOSTAT_CRASH_SEED={seed}");
        Numbers(start)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }
}

/// A lease as the machine shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    pub slot: String,
    pub attempt: u64,
    /// The boot process that is recorded, running or not.
    pub pid: Option<i32>,
    /// The last word of its command: which template it was made from.
    pub script: String,
}

/// The leases of a place, half made and half removed ones left out.
pub fn leases(place: &Place) -> Vec<Held> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(place.state().join("demo/leases")).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let Ok(marker) = std::fs::read(entry.path().join("lease.json")) else { continue };
        let Ok(marker) = serde_json::from_slice::<Value>(&marker) else { continue };
        if name.starts_with('.') {
            continue;
        }
        let (slot, attempt) = name.rsplit_once('.').unwrap();
        let pid = marker["boot"]["started"]["pid"].as_i64().map(|pid| i32::try_from(pid).unwrap());
        let command = marker["request"]["template"]["boot"]["command"].as_array().unwrap();
        let script = command.last().unwrap().as_str().unwrap().to_owned();
        found.push(Held { slot: slot.into(), attempt: attempt.parse().unwrap(), pid, script });
    }
    found.sort();
    found
}

/// The running processes of a place: slot, attempt, process.
pub fn processes(place: &Place) -> Vec<(String, u64, i32)> {
    let labelled = place.labelled().into_iter();
    let mut all: Vec<_> = labelled
        .map(|(name, pid)| {
            let (slot, attempt) = name.rsplit_once('.').unwrap();
            (slot.to_owned(), attempt.parse().unwrap(), pid)
        })
        .collect();
    all.sort();
    all
}

/// Whether a process leads its group: it is a boot command, and not what that started.
fn leads(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let group = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(2)?.parse().ok());
    group == Some(pid)
}

/// What was ever seen at a place: ids are never used again.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The boot process of each attempt: there is never another one.
    boots: BTreeMap<(String, u64), i32>,
    /// Whose each attempt id is.
    owners: BTreeMap<u64, String>,
    /// What was there at the last look, and what is gone for good.
    there: BTreeSet<(String, u64)>,
    gone: BTreeSet<(String, u64)>,
    newest: BTreeMap<String, u64>,
}

impl Ledger {
    /// Looks at the machine while no daemon changes it, and judges what can be judged without the journal.
    #[track_caller]
    pub fn look(&mut self, place: &Place) -> Vec<Held> {
        let held = leases(place);
        let running = processes(place);
        let mut slots = BTreeMap::<&str, BTreeSet<u64>>::new();
        for Held { slot, attempt, .. } in &held {
            slots.entry(slot).or_default().insert(*attempt);
        }
        for (slot, attempt, _) in &running {
            slots.entry(slot).or_default().insert(*attempt);
        }
        for (slot, attempts) in &slots {
            assert!(attempts.len() < 2, "S8: {slot} has the attempts {attempts:?} at once: {held:?} {running:?}");
        }
        let mut leaders = BTreeMap::new();
        for (slot, attempt, pid) in running.iter().filter(|(.., pid)| leads(*pid)) {
            let other = leaders.insert((slot, attempt), pid);
            assert!(other.is_none(), "S8: {slot}.{attempt} runs twice: {other:?} and {pid}");
        }
        let there: BTreeSet<_> = held.iter().map(|one| (one.slot.clone(), one.attempt)).collect();
        self.gone.extend(self.there.difference(&there).cloned());
        for one in &held {
            let key = (one.slot.clone(), one.attempt);
            assert!(!self.gone.contains(&key), "S3: {key:?} was given back, and is there again");
            let owner = self.owners.entry(one.attempt).or_insert_with(|| one.slot.clone());
            assert_eq!(*owner, one.slot, "S3: attempt {} was used for two slots", one.attempt);
            let newest = self.newest.entry(one.slot.clone()).or_default();
            assert!(*newest <= one.attempt, "S3: {} went from attempt {newest} to {}", one.slot, one.attempt);
            *newest = one.attempt;
            if let Some(pid) = one.pid {
                let first = *self.boots.entry(key.clone()).or_insert(pid);
                assert_eq!(first, pid, "{key:?} was booted twice");
            }
        }
        self.there = there;
        held
    }

    /// Looks at the machine, and compares it with what is durable.
    #[track_caller]
    pub fn compare(&mut self, place: &Place) -> Option<Driver> {
        let held = self.look(place);
        let driver = known(&place.state().join("demo"));
        let Some(driver) = &driver else {
            assert!(held.is_empty(), "S1: nothing is durable, and there is {held:?}");
            return None;
        };
        let state = driver.state();
        let slot = |name: &str| state.names.get(name).and_then(|node| state.slots.get(node.0 as usize));
        for Held { slot: name, attempt, .. } in &held {
            let authorised =
                state.attempts.get(&AttemptId(*attempt)).and_then(|one| state.slots.get(one.node.0 as usize));
            assert_eq!(authorised.map(|slot| &slot.name), Some(name), "S1: {name}.{attempt} was never recorded");
            let node = slot(name).and_then(|slot| slot.node.as_ref());
            let is_held = node.is_some_and(|node| node.attempt.0 == *attempt && node.stage != Stage::Destroyed);
            let is_reaped = state.reaps.contains_key(&AttemptId(*attempt));
            assert!(is_held || is_reaped, "S6: {name}.{attempt} is there and nobody knows: {node:?}");
        }
        for slot in &state.slots {
            let Some(node) = &slot.node else { continue };
            let is_there = held.iter().any(|one| one.slot == slot.name && one.attempt == node.attempt.0);
            let kept = node.intent == Intent::Active && node.lease.is_some();
            assert!(is_there || !kept, "S9: {} was taken down while it was wanted: {node:?}", slot.name);
        }
        Some(driver.clone())
    }
}

/// What is durable in a state directory: the chain is whole, the journal leads a driver where the checkpoint says, and to what
/// is answered.
#[track_caller]
pub fn known(dir: &Path) -> Option<Driver> {
    if !dir.join("state.db").exists() {
        return None;
    }
    let copy = tempfile::tempdir().unwrap();
    for name in ["state.db", "state.db-wal", "head", "key"] {
        let from = dir.join(name);
        if from.exists() {
            std::fs::copy(&from, copy.path().join(name)).unwrap();
        }
    }
    std::fs::write(copy.path().join("lock"), "").unwrap();
    let held = StateDir::open(copy.path()).unwrap();
    let mut store = SqliteStore::open(&held).unwrap();
    store.verify().unwrap();
    let loaded = store.load().unwrap();
    if loaded.is_fresh() {
        return None;
    }
    assert_eq!(loaded.first.next_seq, 0, "too short to be compacted");
    let mut walk = Walk::new();
    let mut restored =
        loaded.snapshot.as_ref().map(|saved| (saved, Walk::after(Driver::restore(&saved.bytes).unwrap())));
    for line in records(&mut store, 0).unwrap() {
        let line = line.unwrap();
        if let Some((saved, after)) = &mut restored {
            if saved.at_seq == line.seq {
                let whole = walk.driver().unwrap().checkpoint().unwrap();
                assert!(whole == saved.bytes, "the checkpoint at {} is not what the journal leads to", line.seq);
            }
            if saved.at_seq <= line.seq {
                after.follow(&line).unwrap();
            }
        }
        walk.follow(&line).unwrap_or_else(|error| panic!("record {}: {error}", line.seq));
    }
    let driver = walk.into_parts()?.0;
    if let Some((_, after)) = restored
        && let Some((after, _)) = after.into_parts()
    {
        assert!(*after.state() == *driver.state(), "the checkpoint and the journal lead to different states");
    }
    Some(driver)
}

/// Whether the machine has exactly these nodes, ready to be told apart by their scripts, and nothing else.
pub fn is_as_wanted(place: &Place, slots: &[String], script: &str) -> bool {
    let held = leases(place);
    held.len() == slots.len()
        && held.iter().all(|one| slots.contains(&one.slot) && one.script == script && one.pid.is_some_and(is_running))
        && processes(place)
            .iter()
            .all(|(slot, attempt, _)| held.iter().any(|one| one.slot == *slot && one.attempt == *attempt))
}

/// How a daemon ended by itself: `None` while it runs.
pub fn ended(daemon: &mut Up) -> Option<i32> {
    let status = daemon.child.try_wait().unwrap()?;
    Some(status.signal().map_or_else(|| status.code().unwrap(), |signal| -signal))
}

/// Polls until it holds, or the daemon ends: then `Err`, with how it ended.
#[track_caller]
pub fn until_or_ended(what: &str, daemon: &mut Up, mut holds: impl FnMut(&Up) -> bool) -> Result<(), i32> {
    let began = Instant::now();
    loop {
        if holds(daemon) {
            return Ok(());
        }
        if let Some(how) = ended(daemon) {
            return Err(how);
        }
        let lines = daemon.lines.lock().unwrap().iter().map(|line| format!("{line}\n")).collect::<String>();
        assert!(began.elapsed() < BOUND, "L1: not in time: {what}\n{}\n{lines}", daemon.errors());
        std::thread::sleep(Duration::from_millis(15));
    }
}
