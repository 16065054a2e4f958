//! Writes records, one after the other.

use std::io::Write;

use engine::id::Millis;

use crate::chain::Chain;
use crate::entry::Entry;
use crate::error::WriteError;
use crate::line::encode;

/// Appends records to anything that bytes can be written to. It makes nothing durable.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    chain: Chain,
    line: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// A journal that begins here.
    pub fn new(out: W) -> Self {
        Writer::after(out, Chain::default())
    }

    /// A journal that goes on where another one ended.
    pub fn after(out: W, chain: Chain) -> Self {
        Writer { out, chain, line: Vec::new() }
    }

    /// Appends a record.
    ///
    /// # Errors
    ///
    /// The system refuses, or the record would be too long to be read again; then nothing of it is written.
    pub fn append(&mut self, at_ms: Millis, entry: &Entry) -> Result<(), WriteError> {
        self.line.clear();
        let chain = encode(self.chain, at_ms, entry, &mut self.line)?;
        self.out.write_all(&self.line)?;
        self.chain = chain;
        Ok(())
    }

    /// Where it stands.
    pub fn chain(&self) -> Chain {
        self.chain
    }

    /// What it writes to.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// What it wrote to.
    pub fn into_inner(self) -> W {
        self.out
    }
}
