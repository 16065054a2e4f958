//! The store on disk: one SQLite database, `state.db`, in the state directory (`docs/store.md`).

mod reader;
mod rows;
mod schema;
mod steps;
mod witness;

use std::path::{Path, PathBuf};

use journal::{Chain, Damage, EncodedLine};
use rusqlite::{Connection, TransactionBehavior};

use self::rows::{Place, RowError};
use self::witness::Witness;
use crate::batch::Batch;
use crate::command::Command;
use crate::dir::{StateDir, is_there};
use crate::error::StoreError;
use crate::fault::sqlite;
use crate::point::{Hook, Point};

pub use reader::SqliteReader;
pub(crate) use schema::FILE;
pub use schema::SCHEMA;

/// A directory with one of these had a database before.
const TRACES: [&str; 6] = ["key", "key.new", witness::FILE, "state.db-wal", "state.db-shm", "state.db-journal"];

/// Keeps everything in `state.db`. One connection, which writes; a commit is durable when it returns (WAL,
/// `synchronous=FULL`).
#[derive(Debug)]
pub struct SqliteStore {
    db: Connection,
    path: PathBuf,
    place: Place,
    batch: Batch,
    witness: Witness,
    poisoned: Option<String>,
    hook: Hook,
    /// Held as long as the database is open.
    dir: StateDir,
}

impl SqliteStore {
    /// Opens the database of a state directory, or makes it where there was none.
    ///
    /// # Errors
    ///
    /// It is damaged, foreign, newer, older than what was acknowledged, or gone; or the system refuses. Nothing is made anew
    /// in its place (SPEC 10).
    pub fn open(dir: &StateDir) -> Result<Self, StoreError> {
        let path = dir.path().join(FILE);
        let mut trace = None;
        for name in TRACES {
            let at = dir.path().join(name);
            if trace.is_none() && is_there(&at)? {
                trace = Some(at);
            }
        }
        if !is_there(&path)? {
            if let Some(trace) = trace {
                return Err(StoreError::Missing { path, trace });
            }
            schema::create(dir, None, &[])?;
        }
        schema::recognise(&path, trace.is_some())?;
        let seen = Witness::read(dir.path())?;
        let db = schema::open(&path)?;
        schema::check_pages(&db, &path, false)?;
        let place = Place::read(&db).map_err(|error| row_error("read", &path, error))?;
        let witness = Witness::open(dir.path())?;
        let (batch, dir) = (Batch::default(), dir.clone());
        let mut store = SqliteStore { db, path, place, batch, witness, poisoned: None, hook: Hook::at_opening(), dir };
        store.check_ends()?;
        if let Some(seen) = seen {
            seen.check(store.place, &store.path, |seq| store.chain(seq))?;
        }
        store.check_chain()?;
        store.witness.write(store.place.seen())?;
        store.witness.sync()?;
        store.dir.sync()?;
        Ok(store)
    }

    /// Makes a database that goes on from a checkpoint, where there is none and never was one. The records before it are not
    /// there; the next one follows the chain that `at` names. These values are in it from the beginning.
    ///
    /// # Errors
    ///
    /// There is or was one, the checkpoint or a value is too large, or the system refuses.
    pub fn begin_at(
        dir: &StateDir,
        at: Chain,
        checkpoint: &[u8],
        values: &[(&str, Vec<u8>)],
    ) -> Result<Self, StoreError> {
        Self::check_vacant(dir)?;
        crate::store::check_snapshot(None, at.next_seq, at, checkpoint)?;
        values.iter().try_for_each(|(key, value)| crate::store::check_meta(key, value))?;
        schema::create(dir, Some((at, checkpoint)), values)?;
        SqliteStore::open(dir)
    }

    /// That there is no database, and never was one.
    ///
    /// # Errors
    ///
    /// There is or was one.
    pub fn check_vacant(dir: &StateDir) -> Result<(), StoreError> {
        for name in [FILE].iter().chain(&TRACES) {
            let path = dir.path().join(name);
            if is_there(&path)? {
                return Err(StoreError::Occupied { path });
            }
        }
        Ok(())
    }

    /// Puts all that is kept in a state directory aside, the key included, into a folder in it that gets this name: the next
    /// start finds nothing. Where it is cut off half-way, a start refuses, and this can be done again.
    ///
    /// # Errors
    ///
    /// The folder is there already, or the system refuses.
    pub fn put_aside(dir: &StateDir, name: &str) -> Result<PathBuf, StoreError> {
        let aside = dir.path().join(name);
        let made = std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&aside);
        made.map_err(|error| crate::fault::io("make", &aside, error))?;
        // The database last: without it, and with a trace of it, a start knows that something is missing.
        for name in TRACES.iter().chain(&[FILE]) {
            let from = dir.path().join(name);
            if is_there(&from)? {
                std::fs::rename(&from, aside.join(name)).map_err(|error| crate::fault::io("move", &from, error))?;
            }
        }
        dir.sync()?;
        Ok(aside)
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The state directory, which this store holds.
    pub fn dir(&self) -> &StateDir {
        &self.dir
    }

    /// The bytes of the database and its log, as they are on the file system.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn size_bytes(&self) -> Result<u64, StoreError> {
        let mut bytes = 0;
        for name in [FILE, "state.db-wal"] {
            let at = self.dir.path().join(name);
            if is_there(&at)? {
                bytes += std::fs::metadata(&at).map_err(|error| crate::fault::io("look at", &at, error))?.len();
            }
        }
        Ok(bytes)
    }

    /// Looks at everything: each page, each index, each row, the whole chain; opening leaves out the indices only. Takes as
    /// long as reading the file.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn verify(&mut self) -> Result<(), StoreError> {
        use crate::store::Store;
        schema::check_pages(&self.db, &self.path, true)?;
        self.load()?;
        self.check_chain()
    }

    /// Each kept record follows the one before it, also those that a start does not need: what flipped in them shows that the
    /// file cannot be relied on.
    fn check_chain(&mut self) -> Result<(), StoreError> {
        use crate::store::Store;
        let mut chain = self.place.first;
        while chain != self.place.head {
            let page = self.page(chain.next_seq)?;
            if page.is_empty() {
                let (expected, found) = (chain.next_seq, self.place.head.next_seq);
                return Err(self.damaged(Damage::Missing { expected, found }));
            }
            for bytes in page {
                let seq = chain.next_seq;
                let line = EncodedLine::read(bytes, seq).map_err(|damage| self.damaged(damage))?;
                if line.prev != chain.last || seq >= self.place.head.next_seq {
                    return Err(self.damaged(Damage::Broken { seq }));
                }
                chain = line.after();
            }
        }
        Ok(())
    }

    /// Asks this at every boundary from now on.
    #[cfg(feature = "fail-points")]
    pub fn set_fail_point(&mut self, fail_point: Option<Box<dyn crate::FailPoint>>) {
        self.hook = Hook(fail_point);
    }

    /// The first and the last record are there, and fit what the database says of itself.
    fn check_ends(&self) -> Result<(), StoreError> {
        let Place { first, head, .. } = self.place;
        let found = rows::bounds(&self.db).map_err(|error| self.row("read", error))?;
        let expected = head.next_seq.checked_sub(1).filter(|last| *last >= first.next_seq);
        if found != expected.map(|last| (first.next_seq, last)) {
            let there = found.map_or("no records".into(), |(from, to)| format!("records {from} to {to}"));
            let reason =
                format!("it holds {there}, and says that it holds records {} to {}", first.next_seq, head.next_seq);
            return Err(StoreError::Corrupt { path: self.path.clone(), reason });
        }
        let Some((from, to)) = found else { return Ok(()) };
        let broken = |seq| Err(self.broken(seq));
        match self.line(from)? {
            Some(line) if line.before() == first => {}
            _ => return broken(from),
        }
        match self.line(to)? {
            Some(line) if line.after() == head => Ok(()),
            _ => broken(to),
        }
    }

    fn line(&self, seq: u64) -> Result<Option<EncodedLine>, StoreError> {
        rows::line(&self.db, seq).map_err(|error| self.row("read", error))
    }

    /// Where the journal stood before a record.
    fn chain(&self, seq: u64) -> Result<Chain, StoreError> {
        let Place { first, head, .. } = self.place;
        if seq == first.next_seq {
            return Ok(first);
        }
        if seq == head.next_seq {
            return Ok(head);
        }
        if seq < first.next_seq || seq > head.next_seq {
            let in_batch = self.batch.chain_at(seq);
            let end = self.batch.head(head).next_seq;
            return in_batch.ok_or(StoreError::OutOfRange { seq, first: first.next_seq, end });
        }
        match self.line(seq)? {
            Some(line) => Ok(line.before()),
            None => Err(self.missing(seq)),
        }
    }

    fn missing(&self, seq: u64) -> StoreError {
        let damage = Damage::Missing { expected: seq, found: seq + 1 };
        StoreError::Damaged { path: self.path.clone(), damage }
    }

    fn broken(&self, seq: u64) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), damage: Damage::Broken { seq } }
    }

    fn known(&self, id: &str) -> Result<Option<Command>, StoreError> {
        match self.batch.commands.get(id) {
            Some(command) => Ok(Some(command.clone())),
            None => rows::command(&self.db, id).map_err(|error| self.row("read", error)),
        }
    }

    fn row(&self, doing: &'static str, error: RowError) -> StoreError {
        row_error(doing, &self.path, error)
    }

    fn living(&self) -> Result<(), StoreError> {
        match &self.poisoned {
            Some(why) => Err(StoreError::Poisoned { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// A step after which, when it fails, nothing is known.
    fn fatal<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let done = step(self);
        if let Err(error) = &done {
            self.poisoned = Some(error.to_string());
        }
        done
    }

    /// One transaction: the batch, then what `more` does, then the place. The witness follows.
    fn commit<T>(
        &mut self,
        within: Point,
        more: impl FnOnce(&Connection, &mut Place) -> Result<T, RowError>,
    ) -> Result<T, StoreError> {
        let mut place = self.place;
        place.commits += 1;
        place.head = self.batch.head(place.head);
        let Self { db, path, batch, hook, .. } = self;
        let failed = |error: rusqlite::Error| sqlite("write", path, error);
        let writing = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let Batch { lines, commands, meta } = batch;
        rows::put_lines(&writing, lines).map_err(failed)?;
        for command in commands.values() {
            rows::put_command(&writing, command).map_err(failed)?;
        }
        for (key, value) in meta.iter() {
            rows::put_value(&writing, key, value).map_err(failed)?;
        }
        let done = more(&writing, &mut place).map_err(|error| row_error("write", path, error))?;
        place.write(&writing).map_err(failed)?;
        hook.reached(within)?;
        writing.commit().map_err(failed)?;
        *batch = Batch::default();
        self.place = place;
        self.witness.write(place.seen())?;
        Ok(done)
    }
}

fn row_error(doing: &'static str, path: &Path, error: RowError) -> StoreError {
    match error {
        RowError::Sqlite(error) => sqlite(doing, path, error),
        RowError::Wrong(reason) => StoreError::Corrupt { path: path.into(), reason },
        RowError::Line(damage) => StoreError::Damaged { path: path.into(), damage },
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // It may be behind after a loss of power; a clean end leaves it exact. Nobody is left to be told.
        let _ = self.witness.sync();
    }
}
