//! What was given to a store and is not durable yet. Both stores use it, so they agree on what follows what.

use std::collections::BTreeMap;

use journal::{Chain, EncodedLine};

use crate::command::Command;
use crate::error::StoreError;

/// The next group commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub lines: Vec<EncodedLine>,
    pub commands: BTreeMap<String, Command>,
    pub meta: BTreeMap<String, Vec<u8>>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.commands.is_empty() && self.meta.is_empty()
    }

    /// Where the journal stands with these records.
    pub fn head(&self, durable: Chain) -> Chain {
        self.lines.last().map_or(durable, EncodedLine::after)
    }

    /// Takes all of these lines, or none.
    pub fn append(&mut self, durable: Chain, lines: &[EncodedLine]) -> Result<(), StoreError> {
        let mut expected = self.head(durable);
        for line in lines {
            if line.before() != expected {
                return Err(StoreError::NotNext { expected, found: line.before() });
            }
            expected = line.after();
        }
        self.lines.extend_from_slice(lines);
        Ok(())
    }

    /// Where the journal stands before a record of this batch, or after its last one.
    pub fn chain_at(&self, seq: u64) -> Option<Chain> {
        let first = self.lines.first()?;
        let at = usize::try_from(seq.checked_sub(first.seq)?).ok()?;
        match self.lines.get(at) {
            Some(line) => Some(line.before()),
            None => self.lines.last().map(EncodedLine::after).filter(|after| after.next_seq == seq),
        }
    }
}
