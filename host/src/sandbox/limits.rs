//! What a decider may use (SPEC 9).

use serde::{Deserialize, Serialize};

/// The limits of one sandbox. All but `wall_clock_ms` trip at the same place on every machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Limits {
    /// The largest component that is loaded, in bytes.
    pub component_bytes: u64,
    /// Fuel for a call, about one unit per instruction, whatever the number of nodes.
    pub fuel_base: u64,
    /// Fuel for a call, for each node of the snapshot.
    pub fuel_per_node: u64,
    /// The largest linear memory of an instance, in bytes. At most 4 GiB.
    pub memory_bytes: u64,
    /// The most elements in each table of an instance.
    pub table_elements: u32,
    /// The most tables of an instance.
    pub tables: u32,
    /// The most linear memories of an instance.
    pub memories: u32,
    /// The most core instances that a component may be made of.
    pub core_instances: u32,
    /// Calls that may run at the same moment; each holds an instance from the pool.
    pub concurrent_calls: u32,
    /// Bytes of an answer, whatever the number of nodes. It bounds the description too.
    pub answer_bytes_base: u64,
    /// Bytes of an answer, for each node of the snapshot. A decision takes 23.
    pub answer_bytes_per_node: u64,
    /// The longest stay in the guest in milliseconds of wall-clock time: a backstop for what fuel does not see. Where it
    /// trips differs from run to run.
    pub wall_clock_ms: u64,
    /// The native stack that a guest's calls may use, in bytes; at most [`Limits::MAX_NATIVE_STACK_BYTES`]. The guest's own stack lies in its memory.
    pub native_stack_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            component_bytes: 8 << 20,
            fuel_base: 50_000_000,
            fuel_per_node: 5_000,
            memory_bytes: 256 << 20,
            table_elements: 10_000,
            tables: 4,
            memories: 1,
            core_instances: 4,
            concurrent_calls: 4,
            answer_bytes_base: 64 << 10,
            answer_bytes_per_node: 32,
            wall_clock_ms: 10_000,
            native_stack_bytes: 512 << 10,
        }
    }
}

impl Limits {
    /// The most that `native_stack_bytes` may be: a guest runs on its caller's thread, whose stack has to be larger.
    pub const MAX_NATIVE_STACK_BYTES: u64 = 1 << 20;

    /// The fuel for a call with so many nodes.
    pub fn fuel(&self, nodes: usize) -> u64 {
        self.fuel_base.saturating_add(self.fuel_per_node.saturating_mul(nodes as u64))
    }

    /// The most bytes of an answer to a call with so many nodes.
    pub fn answer_bytes(&self, nodes: usize) -> u64 {
        self.answer_bytes_base.saturating_add(self.answer_bytes_per_node.saturating_mul(nodes as u64))
    }
}
