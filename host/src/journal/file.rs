//! The journal in a file (`docs/journal.md`): a thread writes it, so that hashing a large snapshot delays nothing; a sync waits
//! for the thread.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufReader, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use ::journal::{Chain, Draft, Entry, Reader, Recorder, WriteError, Writer, verify};
use decider::Description;
use engine::driver::{DriverConfig, DriverError};
use engine::id::Millis;
use engine::io::{Input, Output};
use store::{Store, StoreError, records};

use super::JournalError;

/// Records that may wait for the thread.
const QUEUE: usize = 1_024;

/// A journal file that this process writes, and nobody else: it is locked.
#[derive(Debug)]
pub struct JournalFile {
    path: PathBuf,
    orders: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<()>>,
    recorder: Option<Recorder>,
    /// Something was announced that is not durable yet.
    dirty: bool,
    continued: Continued,
    /// Where the file stood when it was opened.
    opened_at: Chain,
}

/// What was in the file before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Continued {
    /// Whole records.
    pub records: u64,
    /// Bytes of a torn record that were cut off.
    pub cut_bytes: u64,
}

#[derive(Debug)]
enum Order {
    Append(Millis, Box<Draft>),
    Copy(Millis, Box<Entry>),
    /// Make durable what was appended, and say how that went.
    Sync(SyncSender<Result<(), WriteError>>),
}

impl JournalFile {
    /// Opens a journal for a run: a new file, or one that the same run wrote before, which is continued. All of it is checked
    /// first; a torn tail is cut back to the last whole record.
    ///
    /// # Errors
    ///
    /// The file cannot be used; nothing of it was changed.
    pub fn open(path: impl Into<PathBuf>, run: &str) -> Result<Self, JournalError> {
        let path = path.into();
        let io = |doing, error| JournalError::Io { doing, path: path.clone(), error };
        // Looked at first, because opening a device can do things.
        match std::fs::metadata(&path) {
            Ok(found) if !found.is_file() => return Err(JournalError::NotAFile { path }),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(io("open", error)),
        }
        // It holds what the fleet file holds, passwords in an environment included: for its owner only.
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = opened.map_err(|error| io("open", error))?;
        lock(&file, &path)?;
        let size = file.metadata().map_err(|error| io("look at", error))?.len();
        let (mut chain, mut continued) = (Chain::default(), Continued::default());
        if size > 0 {
            let mut reader = Reader::new(BufReader::new(&file));
            let found = verify(&mut reader).map_err(|error| JournalError::History { path: path.clone(), error })?;
            if let Some(other) = found.segments.iter().find(|segment| segment.run != run) {
                return Err(JournalError::OtherRun { path, found: other.run.clone(), expected: run.into() });
            }
            chain = reader.chain();
            continued = Continued { records: found.records, cut_bytes: found.torn_bytes };
            file.set_len(found.whole_bytes).map_err(|error| io("cut", error))?;
            file.seek(SeekFrom::End(0)).map_err(|error| io("seek in", error))?;
        }
        // The name is durable before anything relies on it.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| io("sync the folder of", error))?;
        let (orders, waiting) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || write(Writer::after(BufWriter::new(file), chain), &waiting))
            .map_err(|error| io("start a thread for", error))?;
        Ok(JournalFile {
            path,
            orders: Some(orders),
            thread: Some(thread),
            recorder: None,
            dirty: false,
            continued,
            opened_at: chain,
        })
    }

    /// What was in the file before.
    pub fn continued(&self) -> Continued {
        self.continued
    }

    /// Goes on as a copy of a store's journal: what the file lacks of it is written first.
    ///
    /// # Errors
    ///
    /// The file has another history, or lacks one that the store has dropped.
    pub(crate) fn copy_of(&mut self, store: &mut dyn Store) -> Result<(), JournalError> {
        let at = self.opened_at;
        match store.chain_at(at.next_seq) {
            Ok(known) if known == at => {}
            Ok(_) | Err(StoreError::OutOfRange { .. }) => {
                return Err(JournalError::OtherHistory { path: self.path.clone() });
            }
            Err(error) => return Err(error.into()),
        }
        for line in records(store, at.next_seq)? {
            let line = line?;
            self.copy(line.at_ms, line.entry)?;
        }
        self.settle()
    }

    /// Takes a record of the store that it is a copy of.
    pub(crate) fn copy(&mut self, at_ms: Millis, entry: Entry) -> Result<(), JournalError> {
        self.order(Order::Copy(at_ms, Box::new(entry)))
    }

    /// A driver begins.
    pub(crate) fn start(
        &mut self,
        config: &DriverConfig,
        description: &Description,
        at_ms: Millis,
    ) -> Result<(), JournalError> {
        let (recorder, draft) = Recorder::start(config, description);
        self.recorder = Some(recorder);
        self.append(at_ms, draft)
    }

    /// An input was given to the driver, and this is what it said.
    pub(crate) fn folded(
        &mut self,
        input: Input,
        error: Option<&DriverError>,
        at_ms: Millis,
    ) -> Result<(), JournalError> {
        match self.recorder.as_mut().and_then(|recorder| recorder.folded(input, error)) {
            Some(draft) => self.append(at_ms, draft),
            None => Ok(()),
        }
    }

    /// The driver gave an output.
    pub(crate) fn output(&mut self, output: &Output, at_ms: Millis) -> Result<(), JournalError> {
        match self.recorder.as_mut().and_then(|recorder| recorder.output(output)) {
            Some(draft) => {
                self.dirty = true;
                self.append(at_ms, draft)
            }
            None => Ok(()),
        }
    }

    /// Keeps a record that folds nothing.
    pub(crate) fn note(&mut self, entry: Entry, at_ms: Millis) -> Result<(), JournalError> {
        self.append(at_ms, entry.into())
    }

    /// Makes durable what announces an effect, and all before it.
    pub(crate) fn sync(&mut self) -> Result<(), JournalError> {
        if !self.dirty {
            return Ok(());
        }
        self.settle()?;
        self.dirty = false;
        Ok(())
    }

    /// The driver ended.
    pub(crate) fn end(&mut self, at_ms: Millis) -> Result<(), JournalError> {
        if let Some(recorder) = self.recorder.take() {
            self.append(at_ms, recorder.end())?;
            self.settle()?;
        }
        Ok(())
    }

    fn append(&mut self, at_ms: Millis, draft: Draft) -> Result<(), JournalError> {
        self.order(Order::Append(at_ms, Box::new(draft)))
    }

    fn order(&mut self, order: Order) -> Result<(), JournalError> {
        let sent = self.orders.as_ref().is_some_and(|orders| orders.send(order).is_ok());
        if sent { Ok(()) } else { Err(self.gone()) }
    }

    pub(crate) fn settle(&mut self) -> Result<(), JournalError> {
        let (reply, answer) = sync_channel(1);
        let sent = self.orders.as_ref().is_some_and(|orders| orders.send(Order::Sync(reply)).is_ok());
        match answer.recv() {
            Ok(written) if sent => written.map_err(|error| JournalError::Write { path: self.path.clone(), error }),
            _ => Err(self.gone()),
        }
    }

    fn gone(&self) -> JournalError {
        let error = std::io::Error::other("its thread has ended");
        JournalError::Io { doing: "write", path: self.path.clone(), error }
    }
}

impl Drop for JournalFile {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // It writes what is left; whether that worked, the last sync said.
            let _ = thread.join();
        }
    }
}

pub(crate) fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    file.try_lock().map_err(|refused| match refused {
        TryLockError::WouldBlock => JournalError::InUse { path: path.into() },
        TryLockError::Error(error) => JournalError::Io { doing: "lock", path: path.into(), error },
    })
}

/// The thread: writes what comes, hands it to the system whenever nothing more waits, and makes it durable when asked.
fn write(mut writer: Writer<BufWriter<File>>, orders: &Receiver<Order>) {
    let mut failed = None;
    loop {
        let order = match orders.try_recv() {
            Ok(order) => order,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                if failed.is_none() {
                    failed = writer.get_mut().flush().err().map(WriteError::from);
                }
                match orders.recv() {
                    Ok(order) => order,
                    Err(_) => break,
                }
            }
        };
        match order {
            // After a failure the file ends where it failed: nothing may follow.
            Order::Append(..) | Order::Copy(..) if failed.is_some() => {}
            Order::Copy(at_ms, entry) => failed = writer.append(at_ms, &entry).err(),
            Order::Append(at_ms, draft) => failed = writer.append(at_ms, &draft.entry()).err(),
            Order::Sync(reply) => {
                let synced = match failed.take() {
                    Some(error) => Err(error),
                    None => writer
                        .get_mut()
                        .flush()
                        .and_then(|()| writer.get_mut().get_ref().sync_data())
                        .map_err(Into::into),
                };
                let over = synced.is_err();
                // Whoever asked waits for it.
                let _ = reply.send(synced);
                if over {
                    return;
                }
            }
        }
    }
    if failed.is_none() {
        // Nobody is left to be told.
        let _ = writer.get_mut().flush();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::collections::BTreeMap;

    use engine::io::DeciderIdentity;
    use engine::policy::Policy;

    use super::*;

    fn config(run: &str) -> DriverConfig {
        DriverConfig {
            run: run.into(),
            policy: Policy::default(),
            providers: BTreeMap::new(),
            decider: DeciderIdentity::native(),
            next_attempt: 1,
            epoch: 0,
        }
    }

    fn life(path: &Path, ends: bool) -> Continued {
        let mut file = JournalFile::open(path, "demo").unwrap();
        let continued = file.continued();
        file.start(&config("demo"), &decider::describe(), 5).unwrap();
        file.folded(Input::Tick, None, 6).unwrap();
        if ends {
            file.end(7).unwrap();
        }
        continued
    }

    fn verdict(path: &Path) -> ::journal::Verdict {
        verify(&mut Reader::new(BufReader::new(File::open(path).unwrap()))).unwrap()
    }

    #[test]
    fn a_journal_is_continued_and_a_torn_tail_cut_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j.jsonl");
        assert_eq!(life(&path, true), Continued::default());
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], &whole[..100]].concat()).unwrap();
        assert_eq!(life(&path, false), Continued { records: 3, cut_bytes: 100 });
        assert_eq!(life(&path, true), Continued { records: 5, cut_bytes: 0 });
        let found = verdict(&path);
        assert_eq!((found.records, found.ends_well()), (8, true));
        assert_eq!(found.segments.iter().map(|segment| segment.ended).collect::<Vec<_>>(), [true, false, true]);
        assert!(std::fs::read(&path).unwrap().starts_with(&whole));
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_cannot_be_continued_is_refused_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j.jsonl");
        life(&path, true);
        let whole = std::fs::read(&path).unwrap();
        let text = String::from_utf8(whole.clone()).unwrap();
        let refused = |bytes: &[u8], run: &str| {
            std::fs::write(&path, bytes).unwrap();
            let error = JournalFile::open(&path, run).unwrap_err().to_string();
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "{error}");
            error
        };
        assert!(refused(text.replacen("tick", "tock", 1).as_bytes(), "demo").contains("line 2: record 1 was changed"));
        assert!(refused(b"precious notes", "demo").contains("not a journal"));
        assert!(refused(&whole, "other").contains("of the run \"demo\""));
        let held = JournalFile::open(&path, "demo").unwrap();
        assert!(matches!(JournalFile::open(&path, "demo"), Err(JournalError::InUse { .. })));
        drop(held);
        assert!(matches!(JournalFile::open(dir.path(), "demo"), Err(JournalError::NotAFile { .. })));
        assert!(matches!(JournalFile::open("/dev/full", "demo"), Err(JournalError::NotAFile { .. })));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_noticed_by_the_next_sync() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (orders, waiting) = sync_channel(8);
        let thread = std::thread::spawn(move || write(Writer::new(BufWriter::new(full)), &waiting));
        let (recorder, draft) = Recorder::start(&config("demo"), &decider::describe());
        let mut file = JournalFile {
            path: "/dev/full".into(),
            orders: Some(orders),
            thread: Some(thread),
            recorder: Some(recorder),
            dirty: true,
            continued: Continued::default(),
            opened_at: Chain::default(),
        };
        file.append(0, draft).unwrap();
        let error = file.sync().unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("No space left"), "{error}");
        assert!(file.sync().is_err(), "it stays so");
    }
}
