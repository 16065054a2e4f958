//! The journal of a state directory, read as the file that it would be: also while a daemon writes it.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use ::journal::Chain;
use store::{RecordSource, SqliteReader, StoreError};

/// The records as bytes, one a line, as they stood when this was opened. Memory is bounded by a page.
#[derive(Debug)]
pub struct KeptJournal {
    reader: SqliteReader,
    first: Chain,
    next: u64,
    page: Vec<u8>,
    at: usize,
}

impl KeptJournal {
    /// The folder that holds a database, when the path is one, or names the database in it.
    pub fn folder(path: &Path) -> Option<PathBuf> {
        let is_database = path.file_name().is_some_and(|name| name == "state.db");
        match is_database {
            true => path.parent().map(Path::to_path_buf),
            false => path.is_dir().then(|| path.to_path_buf()),
        }
    }

    /// Opens the database of a folder, without its lock.
    ///
    /// # Errors
    ///
    /// It is not there, or not one; or the system refuses.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let reader = SqliteReader::open(folder)?;
        let first = reader.first();
        Ok(KeptJournal { reader, first, next: first.next_seq, page: Vec::new(), at: 0 })
    }

    /// Where the journal stood before the oldest kept record.
    pub fn first(&self) -> Chain {
        self.first
    }
}

impl Read for KeptJournal {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for KeptJournal {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.page.len() {
            self.page.clear();
            self.at = 0;
            if self.next < self.reader.head().next_seq {
                for line in self.reader.page(self.next).map_err(io::Error::other)? {
                    self.page.extend_from_slice(&line);
                    self.page.push(b'\n');
                    self.next += 1;
                }
                if self.page.is_empty() {
                    return Err(io::Error::other(format!("record {} is gone from the database", self.next)));
                }
            }
        }
        Ok(self.page.get(self.at..).unwrap_or_default())
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}
