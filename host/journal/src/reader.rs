//! Reads records and checks the chain on the way. Memory is bounded by the longest line.

use std::io::{BufRead, Read};

use crate::chain::Chain;
use crate::error::{Damage, ReadError};
use crate::line::{FORMAT, Line, MAX_LINE_BYTES, OPENING, decode, version};

/// Reads a journal from its beginning.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    chain: Chain,
    line: u64,
    whole_bytes: u64,
    torn_bytes: u64,
    buffer: Vec<u8>,
    ended: bool,
}

impl<R: BufRead> Reader<R> {
    /// A reader of these bytes.
    pub fn new(input: R) -> Self {
        Reader::resume(input, Chain::default(), 0)
    }

    /// A reader that goes on behind the record where the journal stood at `chain`, after `whole_bytes`.
    pub fn resume(input: R, chain: Chain, whole_bytes: u64) -> Self {
        Reader { input, chain, line: chain.next_seq, whole_bytes, torn_bytes: 0, buffer: Vec::new(), ended: false }
    }

    /// The next record; `None` after the last whole one.
    ///
    /// # Errors
    ///
    /// What is wrong, and where. A torn tail is no error: see [`Reader::torn_bytes`].
    pub fn next_line(&mut self) -> Result<Option<Line>, ReadError> {
        if self.ended {
            return Ok(None);
        }
        self.buffer.clear();
        let limit = MAX_LINE_BYTES as u64 + 1;
        let read = self.input.by_ref().take(limit).read_until(b'\n', &mut self.buffer)?;
        self.line += 1;
        let first = self.chain.next_seq == 0;
        if first {
            self.begins_well()?;
        }
        let damaged = |damage| ReadError::Damaged { line: self.line, seq: self.chain.next_seq, damage };
        if read > MAX_LINE_BYTES && first {
            let why = format!("its first line is longer than {MAX_LINE_BYTES} bytes");
            return Err(ReadError::NotAJournal { why });
        }
        if read > MAX_LINE_BYTES {
            return Err(damaged(Damage::TooLong { seq: self.chain.next_seq }));
        }
        let Some((b'\n', bytes)) = self.buffer.split_last() else {
            // A record is whole when its line break is there.
            self.ended = true;
            self.torn_bytes = read as u64;
            if first {
                return Err(ReadError::NotAJournal { why: "it holds no whole record".into() });
            }
            return Ok(None);
        };
        let line = decode(bytes, self.chain).map_err(damaged)?;
        self.chain = Chain { next_seq: line.seq + 1, last: line.hash };
        self.whole_bytes += read as u64;
        Ok(Some(line))
    }

    /// Looks at the first line: whether this is a journal at all, and one that this program knows.
    fn begins_well(&self) -> Result<(), ReadError> {
        if self.buffer.is_empty() {
            return Err(ReadError::Empty);
        }
        let opening = &self.buffer[..self.buffer.len().min(OPENING.len())];
        if !OPENING.starts_with(opening) {
            let shown: String = String::from_utf8_lossy(opening).escape_debug().collect();
            return Err(ReadError::NotAJournal { why: format!("it begins with \"{shown}\"") });
        }
        match version(&self.buffer) {
            Some(found) if found > FORMAT => Err(ReadError::Newer { found }),
            _ => Ok(()),
        }
    }

    /// Where the journal stands after what was read.
    pub fn chain(&self) -> Chain {
        self.chain
    }

    /// The bytes of the whole records read: where a torn or damaged journal can be cut.
    pub fn whole_bytes(&self) -> u64 {
        self.whole_bytes
    }

    /// After the last record, the bytes of a record that was begun and not finished; 0 for a clean end.
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }
}
