//! What the store costs here: `cargo run --release -p store --example speed [FOLDER] [RECORDS] [NODES]`.
//!
//! Commits one by one and in batches; then the size of a fleet's checkpoint, and how long a start takes with it and a long
//! journal.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use decider::OperationKind;
use engine::driver::{Driver, DriverConfig};
use engine::id::{AttemptId, ExternalKey, OperationId};
use engine::io::{DeciderIdentity, Done, Input, Output, Promise};
use engine::policy::Policy;
use engine::shape::{Boot, ClusterShape, GroupShape, Join, Probe, ShapeLimits, Template};
use journal::{EncodedLine, Entry, Start};
use store::{Retention, SqliteStore, StateDir, Store, records};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (count, nodes) = (number(1_000_000)?, number(100_000)?);
    let folder = tempfile::tempdir_in(folder)?;
    let dir = StateDir::open(folder.path())?;
    let mut out = std::io::stdout();
    let config = config(u32::try_from(nodes)?);

    let mut store = SqliteStore::open(&dir)?;
    let start = Entry::Start(Box::new(Start::new(&config, &decider::describe())));
    store.append_entry(0, &start)?;
    store.sync()?;
    for batch in [1, 64, 1_024] {
        let began = Instant::now();
        let (mut commits, mut kept) = (0u32, 0u64);
        while began.elapsed().as_secs() < 3 {
            for _ in 0..batch {
                store.append_entry(kept, &dispatch(kept))?;
                kept += 1;
            }
            store.sync()?;
            commits += 1;
        }
        let seconds = began.elapsed().as_secs_f64();
        let (rate, records) = (f64::from(commits) / seconds, kept as f64 / seconds);
        writeln!(out, "batches of {batch}: {rate:.0} commits/s, {records:.0} records/s")?;
    }

    let mut timed = |what: &str, began: Instant| writeln!(out, "{what}: {:.2} s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    let driver = fleet(config)?;
    timed(&format!("{nodes} nodes driven until they boot"), began)?;
    let began = Instant::now();
    let checkpoint = driver.checkpoint()?;
    timed(&format!("their checkpoint, {:.1} MB", checkpoint.len() as f64 / 1e6), began)?;
    let began = Instant::now();
    let at = store.head().next_seq;
    store.snapshot(at, &checkpoint)?;
    timed("keeping it", began)?;
    let began = Instant::now();
    while store.head().next_seq < at + count {
        let mut chain = store.head();
        let mut lines = Vec::new();
        for _ in 0..1_024.min(at + count - chain.next_seq) {
            lines.push(EncodedLine::encode(chain, chain.next_seq, &dispatch(chain.next_seq))?);
            chain = lines.last().map_or(chain, EncodedLine::after);
        }
        store.append(&lines)?;
        store.sync()?;
    }
    timed(&format!("{count} more records"), began)?;
    let size = store.size_bytes()? as f64 / 1e6;
    timed(&format!("({size:.0} MB on disk)"), Instant::now())?;
    drop(store);

    let whole = Instant::now();
    let began = Instant::now();
    let mut store = SqliteStore::open(&dir)?;
    timed("opening it, checks included", began)?;
    let began = Instant::now();
    let loaded = store.load()?;
    timed("loading the checkpoint", began)?;
    let began = Instant::now();
    let from = loaded.replay_from();
    let saved = loaded.snapshot.ok_or("no snapshot")?;
    let restored = Driver::restore(&saved.bytes)?;
    timed("restoring the driver", began)?;
    let began = Instant::now();
    let mut read = 0;
    for line in records(&mut store, from)? {
        line?;
        read += 1;
    }
    timed(&format!("reading and checking {read} records"), began)?;
    timed("the start as a whole", whole)?;
    if restored.checkpoint()? != checkpoint {
        return Err("the driver came back as another one".into());
    }
    let began = Instant::now();
    store.verify()?;
    timed("verifying everything", began)?;
    let at = store.durable().next_seq;
    store.snapshot(at, &checkpoint)?;
    let (began, mut longest, mut steps) = (Instant::now(), 0.0f64, 0);
    loop {
        let step = Instant::now();
        let done = store.compact(Retention { max_records: 100_000, max_age_ms: u64::MAX }, at)?;
        longest = longest.max(step.elapsed().as_secs_f64());
        steps += 1;
        if !done.more {
            break;
        }
    }
    timed(&format!("compaction to 100000 records, {steps} steps, the longest {:.0} ms", longest * 1e3), began)?;
    Ok(())
}

fn dispatch(seq: u64) -> Entry {
    let key = ExternalKey { run: "demo".into(), slot: format!("web-{}", seq % 10_000), attempt: AttemptId(seq) };
    Entry::Dispatch {
        id: OperationId { attempt: AttemptId(seq), sequence: 1 },
        kind: OperationKind::CreateLease,
        key,
        provider: "process".into(),
    }
}

fn config(nodes: u32) -> DriverConfig {
    let policy = Policy { limits: ShapeLimits { max_group_count: nodes, max_nodes: nodes }, ..Policy::default() };
    DriverConfig {
        run: "demo".into(),
        policy,
        providers: BTreeMap::from([("process".into(), Promise::Keyed)]),
        decider: DeciderIdentity::native(),
        next_attempt: 1,
        epoch: 0,
    }
}

/// A fleet whose nodes all have a resource, an address and a bootstrap that runs.
fn fleet(config: DriverConfig) -> Outcome<Driver> {
    let boot = Boot { command: vec!["run".into()], env: BTreeMap::new(), files: BTreeMap::new() };
    let join = Join { probe: Probe::Tcp("{endpoint}".into()), interval_ms: 200, timeout_ms: 1_000 };
    let (settings, labels) = (BTreeMap::new(), BTreeMap::new());
    let template =
        Template { provider: "process".into(), settings, image: None, role: "web".into(), boot, join, labels };
    let count = config.policy.limits.max_nodes;
    let group = GroupShape::new("web", count, Arc::new(template));
    let shape = ClusterShape { run: config.run.clone(), generation: 1, groups: vec![group] };
    let mut driver = Driver::new(config)?;
    let mut inputs = std::collections::VecDeque::from([Input::Desired(shape)]);
    while let Some(input) = inputs.pop_front() {
        driver.handle(input, 1_000)?;
        while let Some(output) = driver.poll_output() {
            match output {
                // First, as a decision does not wait for the operations.
                Output::Decide { call, snapshot } => {
                    inputs.push_back(Input::Decided { call, result: Ok(decider::reconcile(&snapshot)) });
                }
                Output::Submit(operation) => {
                    let id = operation.id;
                    let reference = format!("r-{}", id.attempt.0);
                    let done = match operation.request.kind() {
                        OperationKind::CreateLease => Done::Leased { lease: reference, adopted: false },
                        OperationKind::LookupEndpoint => Done::Found { endpoint: reference },
                        OperationKind::StartBootstrap => Done::Started { session: reference, adopted: false },
                        other => return Err(format!("{other:?} was not expected").into()),
                    };
                    inputs.push_back(Input::Completed { id, result: Ok(done) });
                }
                _ => {}
            }
        }
    }
    Ok(driver)
}
