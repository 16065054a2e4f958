//! What a decider may use (SPEC 9).

use std::fmt;

use serde::{Deserialize, Serialize};

/// The limits of one sandbox. All but `wall_clock_ms` trip at the same place on every machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Limits {
    /// The largest component that is loaded, in bytes.
    pub component_bytes: u64,
    /// The most functions that a component may have: each costs a compiler time and memory, even when it is empty.
    pub functions: u32,
    /// What compiling a component may cost, at most: the sum, over its functions, of 500, the bytes, and the blocks times the
    /// variables and ten times the deepest nesting of loops. A tenth of it for a single function.
    pub complexity: u64,
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
            component_bytes: 16 << 20,
            functions: 20_000,
            complexity: 100_000_000,
            fuel_base: 50_000_000,
            fuel_per_node: 100_000,
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

/// A limit by its name: its range, and how to read and set it.
#[derive(Clone, Copy)]
pub struct Limit {
    /// As in a file of limits.
    pub name: &'static str,
    /// What it counts.
    pub unit: &'static str,
    /// The least it may be.
    pub least: u64,
    /// The most it may be.
    pub most: u64,
    get: fn(&Limits) -> u64,
    set: fn(&mut Limits, u64),
}

/// What is wrong with a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// There is none of this name.
    #[error("{name:?} is no limit; the limits are {}", names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// It is not a whole number.
    #[error("{name}: {value:?} is not a whole number")]
    NotANumber {
        /// Which.
        name: &'static str,
        /// What was given.
        value: String,
    },
    /// It is outside of its range.
    #[error("{name}: {value} is not between {least} and {most} {unit}")]
    OutOfRange {
        /// Which.
        name: &'static str,
        /// What was given.
        value: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
        /// What it counts.
        unit: &'static str,
    },
}

fn names() -> String {
    Limits::ALL.map(|limit| limit.name).join(", ")
}

macro_rules! limit {
    ($name:literal, $field:ident: $type:ty, $least:expr, $most:expr, $unit:literal) => {
        Limit {
            name: $name,
            unit: $unit,
            least: $least,
            most: $most,
            get: |limits| u64::from(limits.$field),
            // In range, so that nothing is cut.
            set: |limits, value| limits.$field = <$type>::try_from(value).unwrap_or(<$type>::MAX),
        }
    };
}

impl Limits {
    /// Every limit.
    pub const ALL: [Limit; 15] = [
        limit!("component-bytes", component_bytes: u64, 8, 1 << 30, "bytes"),
        limit!("functions", functions: u32, 1, 1_000_000, "functions"),
        limit!("complexity", complexity: u64, 1_000, 100_000_000_000, "units"),
        limit!("fuel-base", fuel_base: u64, 1, u64::MAX, "units of fuel"),
        limit!("fuel-per-node", fuel_per_node: u64, 0, u64::MAX, "units of fuel"),
        limit!("memory-bytes", memory_bytes: u64, 64 << 10, 4 << 30, "bytes"),
        limit!("table-elements", table_elements: u32, 1, 10_000_000, "elements"),
        limit!("tables", tables: u32, 1, 100, "tables"),
        limit!("memories", memories: u32, 1, 100, "memories"),
        limit!("core-instances", core_instances: u32, 1, 100, "instances"),
        limit!("concurrent-calls", concurrent_calls: u32, 1, 100, "calls"),
        limit!("answer-bytes-base", answer_bytes_base: u64, 1 << 10, 1 << 30, "bytes"),
        limit!("answer-bytes-per-node", answer_bytes_per_node: u64, 0, 1 << 20, "bytes"),
        limit!("wall-clock-ms", wall_clock_ms: u64, 1, 3_600_000, "milliseconds"),
        limit!("native-stack-bytes", native_stack_bytes: u64, 64 << 10, Limits::MAX_NATIVE_STACK_BYTES, "bytes"),
    ];

    /// Sets a limit by its name.
    ///
    /// # Errors
    ///
    /// There is none of this name, or the value is none, or out of range.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), LimitError> {
        let known = Limits::ALL.into_iter().find(|limit| limit.name == name);
        let limit = known.ok_or_else(|| LimitError::Unknown { name: name.into() })?;
        let digits = value.replace('_', "");
        let number = digits.parse().map_err(|_| LimitError::NotANumber { name: limit.name, value: value.into() })?;
        limit.check(number)?;
        (limit.set)(self, number);
        Ok(())
    }

    /// Whether each is within its range.
    ///
    /// # Errors
    ///
    /// The first that is not.
    pub fn check(&self) -> Result<(), LimitError> {
        Limits::ALL.iter().try_for_each(|limit| limit.check(limit.of(self)))
    }

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

impl Limit {
    /// Its value.
    pub fn of(&self, limits: &Limits) -> u64 {
        (self.get)(limits)
    }

    fn check(&self, value: u64) -> Result<(), LimitError> {
        let Limit { name, unit, least, most, .. } = *self;
        if (least..=most).contains(&value) {
            return Ok(());
        }
        Err(LimitError::OutOfRange { name, value, least, most, unit })
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}
