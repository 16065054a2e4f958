//! What is known of a journal as a whole.

use std::io::BufRead;

use engine::id::Millis;

use crate::chain::Hash;
use crate::entry::{DeciderRecord, Entry};
use crate::error::ReadError;
use crate::reader::Reader;

/// A journal whose chain is sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The whole records.
    pub records: u64,
    /// Their bytes.
    pub whole_bytes: u64,
    /// The bytes after them, of a record that was begun and not finished; 0 for a clean end.
    pub torn_bytes: u64,
    /// The hash of the last whole record: who knows it can tell whether records were cut off.
    pub last_hash: Hash,
    /// The lives of drivers in it, in order.
    pub segments: Vec<Segment>,
}

/// The life of one driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// The number of its start.
    pub first_seq: u64,
    /// The number of its last record.
    pub last_seq: u64,
    /// The instant of its start.
    pub from_ms: Millis,
    /// The instant of its last record.
    pub to_ms: Millis,
    /// The run.
    pub run: String,
    /// The decider it began with.
    pub decider: DeciderRecord,
    /// Whether it ends with an end mark. Without one the host was killed, still runs, or records were cut off: the chain
    /// alone cannot tell which.
    pub ended: bool,
}

impl Verdict {
    /// Whether the last life in it ends with an end mark and nothing follows.
    pub fn ends_well(&self) -> bool {
        self.torn_bytes == 0 && self.segments.last().is_some_and(|segment| segment.ended)
    }
}

/// Reads all of a journal.
///
/// # Errors
///
/// What is wrong with it, and where. Up to there it is sound: [`Reader::whole_bytes`].
pub fn verify<R: BufRead>(reader: &mut Reader<R>) -> Result<Verdict, ReadError> {
    let mut segments: Vec<Segment> = Vec::new();
    while let Some(line) = reader.next_line()? {
        if let Entry::Start(start) = &line.entry {
            segments.push(Segment {
                first_seq: line.seq,
                last_seq: line.seq,
                from_ms: line.at_ms,
                to_ms: line.at_ms,
                run: start.run.clone(),
                decider: start.decider.clone(),
                ended: false,
            });
        } else if let Some(segment) = segments.last_mut() {
            segment.last_seq = line.seq;
            segment.to_ms = line.at_ms;
            segment.ended = matches!(line.entry, Entry::End);
        }
    }
    Ok(Verdict {
        records: reader.chain().next_seq,
        whole_bytes: reader.whole_bytes(),
        torn_bytes: reader.torn_bytes(),
        last_hash: reader.chain().last,
        segments,
    })
}
