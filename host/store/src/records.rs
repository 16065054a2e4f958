//! Reads records back, checking the chain on the way, a page at a time.

use std::collections::VecDeque;

use journal::{Chain, Damage, Line};

use crate::error::StoreError;
use crate::store::Store;

/// What records are read from: any [`Store`], or a database that another process writes.
pub trait RecordSource {
    /// Where the durable part of the journal stands.
    fn durable(&self) -> Chain;

    /// Where the journal stood before a kept record, or stands after the last one.
    ///
    /// # Errors
    ///
    /// It is not kept.
    fn chain_at(&mut self, seq: u64) -> Result<Chain, StoreError>;

    /// Some durable lines from `from_seq` on; see [`Store::page`].
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn page(&mut self, from_seq: u64) -> Result<Vec<Vec<u8>>, StoreError>;

    /// The error that says whose journal is damaged, and how.
    fn damaged(&self, damage: Damage) -> StoreError;
}

impl<S: Store + ?Sized> RecordSource for S {
    fn durable(&self) -> Chain {
        Store::durable(self)
    }

    fn chain_at(&mut self, seq: u64) -> Result<Chain, StoreError> {
        Store::chain_at(self, seq)
    }

    fn page(&mut self, from_seq: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        Store::page(self, from_seq)
    }

    fn damaged(&self, damage: Damage) -> StoreError {
        Store::damaged(self, damage)
    }
}

/// The durable records from `from_seq` on, checked.
///
/// # Errors
///
/// That record is not kept.
pub fn records<S: RecordSource + ?Sized>(store: &mut S, from_seq: u64) -> Result<Records<'_, S>, StoreError> {
    let chain = store.chain_at(from_seq)?;
    let end = store.durable();
    Ok(Records { store, chain, end, page: VecDeque::new(), is_over: false })
}

/// Walks over records; memory is bounded by a page.
#[derive(Debug)]
pub struct Records<'s, S: ?Sized> {
    store: &'s mut S,
    chain: Chain,
    end: Chain,
    page: VecDeque<Vec<u8>>,
    is_over: bool,
}

impl<S: RecordSource + ?Sized> Records<'_, S> {
    /// Where the journal stands after what was read.
    pub fn stand(&self) -> Chain {
        self.chain
    }

    /// The next line with its bytes, without its line break; `None` after the last durable one.
    ///
    /// # Errors
    ///
    /// Damage, or the system refuses.
    pub fn next_line(&mut self) -> Result<Option<(Line, Vec<u8>)>, StoreError> {
        let seq = self.chain.next_seq;
        if self.is_over || seq >= self.end.next_seq {
            // What is there in the end is what was committed last.
            let broken = !self.is_over && self.chain != self.end;
            self.is_over = true;
            return if broken { Err(self.store.damaged(Damage::Broken { seq })) } else { Ok(None) };
        }
        if self.page.is_empty() {
            self.page = self.store.page(seq)?.into();
        }
        let Some(bytes) = self.page.pop_front() else {
            self.is_over = true;
            return Err(self.store.damaged(Damage::Missing { expected: seq, found: self.end.next_seq }));
        };
        match Line::decode(&bytes, self.chain) {
            Ok(line) => {
                self.chain = Chain { next_seq: line.seq + 1, last: line.hash };
                Ok(Some((line, bytes)))
            }
            Err(damage) => {
                self.is_over = true;
                Err(self.store.damaged(damage))
            }
        }
    }
}

impl<S: RecordSource + ?Sized> Iterator for Records<'_, S> {
    type Item = Result<Line, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_line().map(|found| found.map(|(line, _)| line)).transpose()
    }
}
