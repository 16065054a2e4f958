//! The rows, each with a sum over its content: a bit that flips in one is noticed when it is read.

use journal::{Chain, EncodedLine, Hash};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::schema::PUT_PLACE;
use super::witness::Seen;
use crate::command::Command;

/// What reading a row gives: SQLite's error, or what is wrong with the row.
#[derive(Debug)]
pub(crate) enum RowError {
    Sqlite(rusqlite::Error),
    Wrong(String),
    Line(journal::Damage),
}

impl From<rusqlite::Error> for RowError {
    fn from(error: rusqlite::Error) -> Self {
        RowError::Sqlite(error)
    }
}

type Read<T> = Result<T, RowError>;

/// Where the journal stands: the one row of `place`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub commits: u64,
    pub first: Chain,
    pub head: Chain,
}

impl Place {
    pub fn seen(self) -> Seen {
        Seen { commits: self.commits, head: self.head }
    }

    fn sum(self) -> Hash {
        let Place { commits, first, head } = self;
        let numbers = [commits, first.next_seq, head.next_seq].map(u64::to_le_bytes);
        let [commits, begin, end] = &numbers;
        sum("place", &[commits, begin, first.last.as_bytes(), end, head.last.as_bytes()])
    }

    pub fn read(db: &Connection) -> Read<Place> {
        let sql = "SELECT commits, first_seq, first_hash, head_seq, head_hash, sum FROM place WHERE id = 1";
        let row = db.prepare_cached(sql)?.query_row([], |row| {
            let chain = |at: usize| -> rusqlite::Result<Chain> {
                Ok(Chain { next_seq: row.get(at)?, last: hash(row, at + 1)? })
            };
            Ok((Place { commits: row.get(0)?, first: chain(1)?, head: chain(3)? }, hash(row, 5)?))
        });
        let (place, found) = row.optional()?.ok_or_else(|| RowError::Wrong("the row of `place` is gone".into()))?;
        if place.sum() == found { Ok(place) } else { Err(changed("the row of `place`")) }
    }

    pub fn write(self, db: &Connection) -> rusqlite::Result<()> {
        let Place { commits, first, head } = self;
        db.prepare_cached(PUT_PLACE)?.execute(params![
            commits,
            first.next_seq,
            first.last.as_bytes(),
            head.next_seq,
            head.last.as_bytes(),
            self.sum().as_bytes()
        ])?;
        Ok(())
    }
}

/// The sum over a row: each field preceded by its length.
fn sum(table: &str, fields: &[&[u8]]) -> Hash {
    let mut bytes = Vec::new();
    for field in [table.as_bytes()].iter().chain(fields) {
        bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
        bytes.extend_from_slice(field);
    }
    Hash::of(&bytes)
}

fn changed(what: &str) -> RowError {
    RowError::Wrong(format!("{what} was changed after it was written"))
}

fn hash(row: &Row<'_>, at: usize) -> rusqlite::Result<Hash> {
    row.get(at).map(Hash::from_bytes)
}

fn blob(row: &Row<'_>, at: usize) -> rusqlite::Result<Vec<u8>> {
    Ok(row.get_ref(at)?.as_bytes()?.to_vec())
}

pub(crate) fn put_lines(db: &Connection, lines: &[EncodedLine]) -> rusqlite::Result<()> {
    let mut put = db.prepare_cached("INSERT INTO records (seq, at_ms, line) VALUES (?1, ?2, ?3)")?;
    for line in lines {
        // For the age only; the line has the exact number.
        let at_ms = i64::try_from(line.at_ms).unwrap_or(i64::MAX);
        // Lines are JSON, and an operator reads them with `sqlite3`.
        let text = std::str::from_utf8(&line.bytes).map_err(|error| rusqlite::Error::Utf8Error(2, error))?;
        put.execute(params![line.seq, at_ms, text])?;
    }
    Ok(())
}

/// A record as it is kept, with its hash checked.
pub(crate) fn line(db: &Connection, seq: u64) -> Read<Option<EncodedLine>> {
    let mut get = db.prepare_cached("SELECT line FROM records WHERE seq = ?1")?;
    let found = get.query_row([seq], |row| blob(row, 0)).optional()?;
    found.map(|bytes| EncodedLine::read(bytes, seq).map_err(RowError::Line)).transpose()
}

/// Lines from `seq` on, as they are kept: at least one, and not many more bytes than `most`.
pub(crate) fn page(db: &Connection, seq: u64, most: usize) -> Read<Vec<Vec<u8>>> {
    let mut get = db.prepare_cached("SELECT line FROM records WHERE seq >= ?1 ORDER BY seq")?;
    let mut rows = get.query([seq])?;
    let (mut page, mut bytes) = (Vec::new(), 0);
    while bytes < most
        && let Some(row) = rows.next()?
    {
        let line = blob(row, 0)?;
        bytes += line.len();
        page.push(line);
    }
    Ok(page)
}

/// The first of the records before `end` that is not older than `cutoff`, or `end`.
pub(crate) fn first_young(db: &Connection, end: u64, cutoff: u64) -> Read<u64> {
    let sql = "SELECT seq FROM records WHERE seq < ?1 AND at_ms >= ?2 ORDER BY seq LIMIT 1";
    let cutoff = i64::try_from(cutoff).unwrap_or(i64::MAX);
    let found = db.prepare_cached(sql)?.query_row(params![end, cutoff], |row| row.get(0)).optional()?;
    Ok(found.unwrap_or(end))
}

pub(crate) fn drop_lines(db: &Connection, end: u64) -> rusqlite::Result<usize> {
    db.prepare_cached("DELETE FROM records WHERE seq < ?1")?.execute([end])
}

/// The numbers of the oldest and the newest record that are there.
pub(crate) fn bounds(db: &Connection) -> Read<Option<(u64, u64)>> {
    // As two questions, each is answered from one end of the tree.
    let mut get = db.prepare_cached("SELECT (SELECT min(seq) FROM records), (SELECT max(seq) FROM records)")?;
    let (first, last): (Option<u64>, Option<u64>) = get.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(first.zip(last))
}

/// A checkpoint: the place in the journal that it belongs to, and its bytes.
pub(crate) fn snapshot(db: &Connection) -> Read<Option<(Chain, Vec<u8>)>> {
    let mut get = db.prepare_cached("SELECT at_seq, prev, bytes, sum FROM snapshot WHERE id = 1")?;
    let row = get
        .query_row([], |row| {
            let at = Chain { next_seq: row.get(0)?, last: hash(row, 1)? };
            Ok((at, blob(row, 2)?, hash(row, 3)?))
        })
        .optional()?;
    let Some((at, bytes, found)) = row else { return Ok(None) };
    if snapshot_sum(at, &bytes) == found { Ok(Some((at, bytes))) } else { Err(changed("the snapshot")) }
}

/// The place of the checkpoint alone; the sum is not looked at.
pub(crate) fn snapshot_at(db: &Connection) -> Read<Option<u64>> {
    let mut get = db.prepare_cached("SELECT at_seq FROM snapshot WHERE id = 1")?;
    Ok(get.query_row([], |row| row.get(0)).optional()?)
}

fn snapshot_sum(at: Chain, bytes: &[u8]) -> Hash {
    // The bytes by their hash, so that they are not copied.
    sum("snapshot", &[&at.next_seq.to_le_bytes(), at.last.as_bytes(), Hash::of(bytes).as_bytes()])
}

pub(crate) fn put_snapshot(db: &Connection, at: Chain, bytes: &[u8]) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO snapshot (id, at_seq, prev, bytes, sum) VALUES (1, ?1, ?2, ?3, ?4)";
    let sum = snapshot_sum(at, bytes);
    db.prepare_cached(sql)?.execute(params![at.next_seq, at.last.as_bytes(), bytes, sum.as_bytes()])?;
    Ok(())
}

fn command_of(row: &Row<'_>) -> Read<Command> {
    let id = String::from_utf8(blob(row, 0)?).map_err(|_| changed("the id of a command"))?;
    let result = row.get_ref(3)?.as_bytes_or_null().map_err(rusqlite::Error::from)?.map(<[u8]>::to_vec);
    let command = Command { id, body: hash(row, 1)?, at_ms: row.get(2)?, result };
    if command_sum(&command) == hash(row, 4)? {
        Ok(command)
    } else {
        Err(changed(&format!("the command {:?}", command.id)))
    }
}

fn command_sum(Command { id, body, at_ms, result }: &Command) -> Hash {
    let ended = [u8::from(result.is_some())];
    let result = result.as_deref().unwrap_or_default();
    sum("commands", &[id.as_bytes(), body.as_bytes(), &at_ms.to_le_bytes(), &ended, result])
}

pub(crate) fn command(db: &Connection, id: &str) -> Read<Option<Command>> {
    let mut get = db.prepare_cached("SELECT id, body, at_ms, result, sum FROM commands WHERE id = ?1")?;
    let mut rows = get.query([id])?;
    rows.next()?.map(command_of).transpose()
}

/// All commands, in the order of their ids, one by one.
pub(crate) fn each_command(db: &Connection, mut take: impl FnMut(Command)) -> Read<()> {
    let mut get = db.prepare_cached("SELECT id, body, at_ms, result, sum FROM commands ORDER BY id")?;
    let mut rows = get.query([])?;
    while let Some(row) = rows.next()? {
        take(command_of(row)?);
    }
    Ok(())
}

pub(crate) fn put_command(db: &Connection, command: &Command) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO commands (id, body, at_ms, result, sum) VALUES (?1, ?2, ?3, ?4, ?5)";
    let Command { id, body, at_ms, result } = command;
    let sum = command_sum(command);
    db.prepare_cached(sql)?.execute(params![id, body.as_bytes(), at_ms, result, sum.as_bytes()])?;
    Ok(())
}

/// Drops at most `most` commands that ended and are older than `cutoff`.
pub(crate) fn drop_commands(db: &Connection, cutoff: u64, most: usize) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM commands WHERE id IN
        (SELECT id FROM commands WHERE result IS NOT NULL AND at_ms < ?1 ORDER BY id LIMIT ?2)";
    let cutoff = i64::try_from(cutoff).unwrap_or(i64::MAX);
    let values: [&dyn ToSql; 2] = [&cutoff, &most];
    db.prepare_cached(sql)?.execute(values)
}

fn value_sum(key: &[u8], value: &[u8]) -> Hash {
    sum("meta", &[key, value])
}

pub(crate) fn value(db: &Connection, key: &str) -> Read<Option<Vec<u8>>> {
    let mut get = db.prepare_cached("SELECT key, value, sum FROM meta WHERE key = ?1")?;
    let mut rows = get.query([key])?;
    rows.next()?.map(value_of).transpose()
}

fn value_of(row: &Row<'_>) -> Read<Vec<u8>> {
    let (key, value) = (blob(row, 0)?, blob(row, 1)?);
    if value_sum(&key, &value) == hash(row, 2)? {
        Ok(value)
    } else {
        Err(changed(&format!("the value {:?}", String::from_utf8_lossy(&key))))
    }
}

/// Looks at all named values.
pub(crate) fn check_values(db: &Connection) -> Read<()> {
    let mut get = db.prepare_cached("SELECT key, value, sum FROM meta")?;
    let mut rows = get.query([])?;
    while let Some(row) = rows.next()? {
        value_of(row)?;
    }
    Ok(())
}

pub(crate) fn put_value(db: &Connection, key: &str, value: &[u8]) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO meta (key, value, sum) VALUES (?1, ?2, ?3)";
    db.prepare_cached(sql)?.execute(params![key, value, value_sum(key.as_bytes(), value).as_bytes()])?;
    Ok(())
}
