//! A store that outlives the hosts that use it.

use std::sync::{Arc, Mutex, MutexGuard};

use engine::id::Millis;
use journal::{Chain, Damage, EncodedLine, Hash};
use store::{Begun, Command, Compacted, Loaded, MemoryStore, Retention, Store, StoreError};

/// A disk: it outlives the hosts that use it.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<MemoryStore>>);

impl Disk {
    pub fn held(&self) -> MutexGuard<'_, MemoryStore> {
        self.0.lock().unwrap()
    }
}

impl Store for Disk {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        self.held().load()
    }
    fn head(&self) -> Chain {
        self.held().head()
    }
    fn durable(&self) -> Chain {
        self.held().durable()
    }
    fn append(&mut self, lines: &[EncodedLine]) -> Result<(), StoreError> {
        self.held().append(lines)
    }
    fn sync(&mut self) -> Result<(), StoreError> {
        self.held().sync()
    }
    fn snapshot(&mut self, at_seq: u64, checkpoint: &[u8]) -> Result<(), StoreError> {
        self.held().snapshot(at_seq, checkpoint)
    }
    fn compact(&mut self, keep: Retention, now_ms: Millis) -> Result<Compacted, StoreError> {
        self.held().compact(keep, now_ms)
    }
    fn chain_at(&mut self, seq: u64) -> Result<Chain, StoreError> {
        self.held().chain_at(seq)
    }
    fn page(&mut self, from_seq: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        self.held().page(from_seq)
    }
    fn damaged(&self, damage: Damage) -> StoreError {
        self.held().damaged(damage)
    }
    fn begin_command(&mut self, id: &str, body: Hash, at_ms: Millis) -> Result<Begun, StoreError> {
        self.held().begin_command(id, body, at_ms)
    }
    fn end_command(&mut self, id: &str, result: &[u8]) -> Result<(), StoreError> {
        self.held().end_command(id, result)
    }
    fn command(&mut self, id: &str) -> Result<Option<Command>, StoreError> {
        self.held().command(id)
    }
    fn open_commands(&mut self) -> Result<Vec<Command>, StoreError> {
        self.held().open_commands()
    }
    fn meta(&mut self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.held().meta(key)
    }
    fn put_meta(&mut self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.held().put_meta(key, value)
    }
}
