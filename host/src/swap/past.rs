//! Where history is read from: a database beside the loop that writes it, or, with any other store, the loop itself, a page at a
//! time.

use std::path::PathBuf;

use journal::{Chain, Damage};
use store::{RecordSource, Saved, SqliteReader, StoreError};
use tokio::sync::{mpsc, oneshot};

use crate::runtime::{Ask, HostError, Runtime};

/// Where history is read from.
#[derive(Clone, Debug)]
pub(crate) enum Past {
    /// The database of this state directory.
    Beside(PathBuf),
    /// The loop's own store.
    Loop(mpsc::WeakSender<Ask>),
}

/// What is kept, as it stood when it was opened.
pub(crate) struct Opened {
    pub records: Box<dyn RecordSource + Send>,
    /// The newest checkpoint.
    pub checkpoint: Option<Saved>,
    /// Where the journal stood before the oldest kept record.
    pub first: Chain,
}

impl Past {
    /// Opens it. Blocks: not on an async worker.
    pub fn open(&self) -> Result<Opened, String> {
        match self {
            Past::Beside(folder) => {
                let open = || -> Result<Opened, StoreError> {
                    let reader = SqliteReader::open(folder)?;
                    let (checkpoint, first) = (reader.snapshot()?, reader.first());
                    Ok(Opened { records: Box::new(reader), checkpoint, first })
                };
                open().map_err(|error| error.to_string())
            }
            Past::Loop(asks) => {
                let asked = ask(asks, |runtime| runtime.past()).map_err(|error| error.to_string())?;
                let (checkpoint, first, durable) = asked.ok_or("this host keeps no history")?;
                Ok(Opened { records: Box::new(LoopPast { asks: asks.clone(), durable }), checkpoint, first })
            }
        }
    }
}

/// Asks the loop, from a thread that may block.
fn ask<T: Send + 'static>(
    asks: &mpsc::WeakSender<Ask>,
    act: impl FnOnce(&mut Runtime) -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    let ended = || HostError::Ended("it ended while its history was read".into());
    let (reply, answer) = oneshot::channel();
    let act = Ask::within(act, reply);
    asks.upgrade().ok_or_else(ended)?.blocking_send(act).map_err(|_| ended())?;
    answer.blocking_recv().map_err(|_| ended())?
}

struct LoopPast {
    asks: mpsc::WeakSender<Ask>,
    durable: Chain,
}

impl LoopPast {
    fn ask<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut dyn store::Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let asked = ask(&self.asks, |runtime| Ok(runtime.read_store(read)));
        let gone = || StoreError::Poisoned { why: "the host has ended".into() };
        asked.map_err(|_| gone())?.unwrap_or_else(|| Err(gone()))
    }
}

impl RecordSource for LoopPast {
    fn durable(&self) -> Chain {
        self.durable
    }

    fn chain_at(&mut self, seq: u64) -> Result<Chain, StoreError> {
        self.ask(move |store| store.chain_at(seq))
    }

    fn page(&mut self, from_seq: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        self.ask(move |store| store.page(from_seq))
    }

    fn damaged(&self, damage: Damage) -> StoreError {
        StoreError::Damaged { path: "the host's store".into(), damage }
    }
}
