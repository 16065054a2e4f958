//! How wasmtime is set up: deterministic, metered, pooled (SPEC 9).

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OperatorCost, PoolingAllocationConfig, VariableOperatorCost,
};

use super::limits::Limits;
use super::store::bytes;

/// What of a slot's memory is zeroed after a call instead of being given back: page faults are what a call with many
/// nodes costs.
const KEEP_RESIDENT_BYTES: usize = 128 << 20;
/// Fuel for one page of `memory.grow`; growing is free by default.
const FUEL_PER_PAGE: u8 = 255;

pub(super) fn engine(limits: &Limits) -> wasmtime::Result<Engine> {
    let mut pool = PoolingAllocationConfig::new();
    let calls = limits.concurrent_calls;
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(limits.core_instances))
        .total_memories(calls.saturating_mul(limits.memories))
        .total_tables(calls.saturating_mul(limits.tables))
        .max_core_instances_per_component(limits.core_instances)
        .max_memories_per_component(limits.memories)
        .max_memories_per_module(limits.memories)
        .max_tables_per_component(limits.tables)
        .max_tables_per_module(limits.tables)
        .table_elements(limits.table_elements as usize)
        .max_memory_size(bytes(limits.memory_bytes))
        .max_unused_warm_slots(calls)
        .linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
        .table_keep_resident(limits.table_elements as usize * size_of::<usize>())
        .pagemap_scan(Enabled::Auto);

    let mut variable = VariableOperatorCost::new();
    variable.memory_grow_per_page = FUEL_PER_PAGE;
    let cost = OperatorCost { variable, ..OperatorCost::new() };

    let mut config = Config::new();
    config
        .consume_fuel(true)
        .operator_cost(cost)
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .concurrency_support(false)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .max_wasm_stack(bytes(limits.native_stack_bytes))
        .wasm_backtrace_max_frames(None)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}

/// Advances an engine's epoch, so that a guest that outstays the wall-clock limit is interrupted. Ends when dropped.
pub(super) struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    ticks: u64,
}

impl Ticker {
    pub(super) fn start(engine: &Engine, limit_ms: u64) -> std::io::Result<Ticker> {
        let period_ms = (limit_ms / 8).clamp(1, 250);
        let (stop, stopped) = channel::<()>();
        let engine = engine.weak();
        let thread = std::thread::Builder::new().name("sandbox-clock".into()).spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(Duration::from_millis(period_ms)) {
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => return,
                }
            }
        })?;
        // One more, since the first tick may come at once.
        Ok(Ticker { stop: Some(stop), thread: Some(thread), ticks: limit_ms.div_ceil(period_ms).saturating_add(1) })
    }

    /// The epochs that a call may last.
    pub(super) fn ticks(&self) -> u64 {
        self.ticks
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked; if it had, it would be over too.
            let _ = thread.join();
        }
    }
}
