//! What attempts wrote last whose directories are gone: the end of it, for the last one of each slot, so that people can
//! still see why it failed. Bounded in each way; nothing is decided from it, and losing it loses nothing else.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Inner;
use super::calls::blocking;
use super::lease::{OUTPUT, fault};
use super::logs::Piece;
use super::output::kept_path;
use crate::backends::{ExternalKey, Fault, LastOutput, OutputQuery};

/// The directory, beside the leases.
const DIR: &str = "last-output";
const NEW: &str = ".new-";
/// What is kept of an attempt, in bytes.
const KEPT_BYTES: u64 = 64 << 10;
/// Slots of which something is kept; beyond that, what is oldest goes.
const MOST_SLOTS: usize = 1_024;
/// A larger first line is not ours.
const HEAD_MAX_BYTES: usize = 1_024;

/// The first line of what is kept; the output follows.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    schema: u32,
    key: ExternalKey,
    /// Where it begins in the log that it is the end of; below 0 where it has some of the log before that was cut.
    from: i64,
}

const SCHEMA: u32 = 1;

fn name_of(slot: &str) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (!slot.is_empty() && slot.len() <= 80 && slot.bytes().all(plain)).then_some(slot)
}

/// Keeps the end of what an attempt wrote into its directory `lease`, in place of what was kept of the slot. An attempt that
/// never ran a command leaves that as it is.
fn keep(state: &Path, lease: &Path, key: &ExternalKey) -> io::Result<()> {
    let Some(slot) = name_of(&key.slot) else { return Ok(()) };
    let log = lease.join(OUTPUT);
    let (current, from) = match end_of(&log, KEPT_BYTES) {
        Ok(end) => end,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let room = KEPT_BYTES.saturating_sub(current.len() as u64);
    let mut before = match from {
        0 if room > 0 => end_of(&kept_path(&log), room).map(|(bytes, _)| bytes).unwrap_or_default(),
        _ => Vec::new(),
    };
    // Neither begins in the middle of a line.
    let whole = |bytes: &[u8]| bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    let (cut_before, cut_current) = (whole(&before), if from > 0 { whole(&current) } else { 0 });
    before.drain(..cut_before);
    let current = &current[cut_current..];
    let from = (from as i64).saturating_add(cut_current as i64).saturating_sub(before.len() as i64);
    let head = serde_json::to_vec(&Head { schema: SCHEMA, key: key.clone(), from })?;

    let dir = state.join(DIR);
    DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    let new = dir.join(format!("{NEW}{slot}"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    for part in [&head[..], b"\n", &before, current] {
        file.write_all(part)?;
    }
    drop(file);
    fs::rename(&new, dir.join(slot))?;
    prune(&dir, MOST_SLOTS)
}

/// The last bytes of a file, and where they begin.
fn end_of(path: &Path, most: u64) -> io::Result<(Vec<u8>, u64)> {
    let mut file = File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(most);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok((bytes, from))
}

/// Removes what is oldest beyond so many.
fn prune(dir: &Path, most: usize) -> io::Result<()> {
    let entries: Vec<_> = fs::read_dir(dir)?.flatten().collect();
    if entries.len() <= most {
        return Ok(());
    }
    let age =
        |entry: &fs::DirEntry| entry.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut aged: Vec<(SystemTime, PathBuf)> = entries.iter().map(|entry| (age(entry), entry.path())).collect();
    aged.sort();
    let surplus = aged.len().saturating_sub(most);
    aged.iter().take(surplus).try_for_each(|(_, path)| fs::remove_file(path))
}

/// What is kept of a slot; `None` where nothing is.
fn read(state: &Path, run: &str, slot: &str, query: OutputQuery) -> io::Result<Option<LastOutput>> {
    let Some(name) = name_of(slot) else { return Ok(None) };
    let mut bytes = Vec::new();
    match File::open(state.join(DIR).join(name)) {
        Ok(file) => file.take(KEPT_BYTES + HEAD_MAX_BYTES as u64).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let end = bytes.iter().position(|byte| *byte == b'\n').filter(|end| *end <= HEAD_MAX_BYTES);
    let head = end.and_then(|end| serde_json::from_slice::<Head>(&bytes[..end]).ok());
    // What is damaged, or of another run or version, is as good as nothing.
    let (Some(end), Some(head)) = (end, head) else { return Ok(None) };
    if head.schema != SCHEMA || head.key.run != run || head.key.slot != slot {
        return Ok(None);
    }
    let piece = Piece { bytes: &bytes[end + 1..], from: head.from, begun_before: false, has_ended: true };
    Ok(Some(LastOutput { attempt: head.key.attempt, page: piece.page(query) }))
}

impl Inner {
    /// Keeps what an attempt wrote, before its directory goes. That it cannot be kept holds nothing up.
    pub(super) fn keep_output(&self, name: &str, key: &ExternalKey) {
        if let Err(error) = keep(&self.config.state_dir, &self.leases.join(name), key) {
            tracing::warn!(%key, %error, "what it wrote last cannot be kept");
        }
    }

    pub(super) async fn last_output(
        self: Arc<Self>,
        run: String,
        slot: String,
        query: OutputQuery,
    ) -> Result<Option<LastOutput>, Fault> {
        blocking(move || {
            let state = &self.config.state_dir;
            read(state, &run, &slot, query).map_err(|error| fault("read", &state.join(DIR).join(&slot), &error))
        })
        .await
    }

    /// Everything was taken down and nobody will ask.
    pub(super) fn forget_output(&self) {
        // It is of no use to anybody; what stays of it harms nobody.
        let _ = fs::remove_dir_all(self.config.state_dir.join(DIR));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use engine::id::AttemptId;

    use super::*;

    fn key(slot: &str, attempt: u64) -> ExternalKey {
        ExternalKey { run: "demo".into(), slot: slot.into(), attempt: AttemptId(attempt) }
    }

    /// The attempt, its lines, and where the next ones begin.
    type Page = (u64, Vec<(u64, String)>, u64);

    fn asked(state: &Path, slot: &str, after: Option<u64>, lines: usize) -> Option<Page> {
        let found = read(state, "demo", slot, OutputQuery { after, lines }).unwrap();
        found.map(|last| (last.attempt.0, last.page.lines, last.page.next))
    }

    #[test]
    fn the_end_of_the_last_attempt_of_each_slot() {
        let dir = tempfile::tempdir().unwrap();
        let lease = dir.path().join("lease");
        fs::create_dir(&lease).unwrap();
        let state = dir.path();
        keep(state, &lease, &key("web-0", 1)).unwrap();
        assert_eq!(asked(state, "web-0", None, 10), None, "it never ran");
        fs::write(lease.join(OUTPUT), "a\nno such device").unwrap();
        keep(state, &lease, &key("web-0", 2)).unwrap();
        let lines = vec![(2, "a".to_owned()), (16, "no such device".into())];
        assert_eq!(asked(state, "web-0", None, 10), Some((2, lines, 16)));
        // Whoever followed it goes on where they were, and hears the last words although nothing ended them.
        assert_eq!(asked(state, "web-0", Some(2), 10), Some((2, vec![(16, "no such device".into())], 16)));
        assert_eq!(asked(state, "web-0", Some(16), 10), Some((2, vec![], 16)));
        assert_eq!(asked(state, "web-1", None, 10), None);
        assert_eq!(read(state, "other", "web-0", OutputQuery { after: None, lines: 9 }).unwrap(), None);
        // Names lead nowhere else.
        for odd in ["", "..", "../lease", "web-0/", ".new-web-0"] {
            assert_eq!(asked(state, odd, None, 10), None, "{odd:?}");
        }
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(state.join(DIR)), mode(state.join(DIR).join("web-0"))), (0o700, 0o600));
        // Damage is as good as nothing.
        for text in ["", "{", "{}\nx", "\n\n"] {
            fs::write(state.join(DIR).join("web-0"), text).unwrap();
            assert_eq!(asked(state, "web-0", None, 10), None, "{text:?}");
        }
    }

    #[test]
    fn it_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let lease = dir.path().join("lease");
        fs::create_dir(&lease).unwrap();
        let long: String = (0..100_000).map(|at| format!("line {at}\n")).collect();
        fs::write(lease.join(OUTPUT), &long).unwrap();
        keep(dir.path(), &lease, &key("web-0", 1)).unwrap();
        let kept = fs::metadata(dir.path().join(DIR).join("web-0")).unwrap().len();
        assert!((KEPT_BYTES - 20..KEPT_BYTES + HEAD_MAX_BYTES as u64).contains(&kept), "{kept}");
        let (_, lines, next) = asked(dir.path(), "web-0", None, 10_000).unwrap();
        assert_eq!((lines.last().unwrap().1.as_str(), next), ("line 99999", long.len() as u64));
        assert!(lines[0].1.starts_with("line "), "whole lines: {:?}", lines[0]);
        // A log that was cut a moment ago: what was before it is kept too.
        fs::write(kept_path(&lease.join(OUTPUT)), "half\nbefore\n").unwrap();
        fs::write(lease.join(OUTPUT), "after\n").unwrap();
        keep(dir.path(), &lease, &key("web-0", 2)).unwrap();
        let lines = vec![(0, "before".to_owned()), (6, "after".into())];
        assert_eq!(asked(dir.path(), "web-0", None, 10), Some((2, lines, 6)));
        assert_eq!(asked(dir.path(), "web-0", Some(0), 10), Some((2, vec![(6, "after".into())], 6)));
        // As many slots as there may be, and no more: the oldest goes.
        for at in 1..6 {
            keep(dir.path(), &lease, &key(&format!("web-{at}"), 1)).unwrap();
            let past = SystemTime::now() - std::time::Duration::from_secs(100 - at);
            File::options()
                .write(true)
                .open(dir.path().join(DIR).join(format!("web-{at}")))
                .unwrap()
                .set_modified(past)
                .unwrap();
        }
        prune(&dir.path().join(DIR), 4).unwrap();
        let there = |slot| asked(dir.path(), slot, None, 1).is_some();
        assert_eq!(["web-0", "web-1", "web-2", "web-3", "web-5"].map(there), [true, false, false, true, true]);
    }
}
