//! What belongs to one call: the store, and the account of what its guest asked for.

use wasmtime::{Engine, ResourceLimiter, Store};

use super::limits::Limits;

/// What was last refused to a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// A memory of so many bytes.
    Memory(u64),
    /// A table of so many elements.
    Table(u64),
}

/// Refuses what is over the limits, and remembers it: the guest only sees that it did not get it, and usually traps.
#[derive(Debug)]
pub(super) struct Usage {
    memory_bytes: usize,
    table_elements: usize,
    tables: usize,
    memories: usize,
    instances: usize,
    refused: Option<Refused>,
}

impl Usage {
    pub(super) fn refused(&self) -> Option<Refused> {
        self.refused
    }
}

impl ResourceLimiter for Usage {
    fn memory_growing(&mut self, _: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let allowed = desired <= self.memory_bytes && maximum.is_none_or(|maximum| desired <= maximum);
        if !allowed {
            self.refused = Some(Refused::Memory(desired as u64));
        }
        Ok(allowed)
    }

    fn table_growing(&mut self, _: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let allowed = desired <= self.table_elements && maximum.is_none_or(|maximum| desired <= maximum);
        if !allowed {
            self.refused = Some(Refused::Table(desired as u64));
        }
        Ok(allowed)
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.tables
    }

    fn memories(&self) -> usize {
        self.memories
    }
}

/// A store for one call with so many nodes. Dropped after the call, whatever became of it.
pub(super) fn store(engine: &Engine, limits: &Limits, ticks: u64, nodes: usize) -> wasmtime::Result<Store<Usage>> {
    let usage = Usage {
        memory_bytes: bytes(limits.memory_bytes),
        table_elements: limits.table_elements as usize,
        tables: limits.tables as usize,
        memories: limits.memories as usize,
        instances: limits.core_instances as usize,
        refused: None,
    };
    let mut store = Store::new(engine, usage);
    store.limiter(|usage| usage);
    store.set_fuel(limits.fuel(nodes))?;
    store.set_hostcall_fuel(bytes(limits.answer_bytes(nodes)));
    store.set_epoch_deadline(ticks);
    Ok(store)
}

/// A limit in bytes as a size on this machine.
pub(super) fn bytes(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
