//! Every way in which a guest fails, by a name of its own (SPEC 9).

use engine::io::DeciderFailure;
use wasmtime::{PoolConcurrencyLimitError, Trap};

use super::limits::Limits;
use super::store::{Refused, Usage};

/// How a call into a guest failed. The pass has no plan; nothing else changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuestFailure {
    /// It ran out of fuel: a loop without an end, or too much work for so few nodes.
    #[error(
        "all {fuel} units of fuel for {nodes} nodes are used up: a loop without an end, or the limits fuel-base and fuel-per-node are too low for it"
    )]
    OutOfFuel {
        /// What it was given.
        fuel: u64,
        /// For a snapshot of so many nodes.
        nodes: usize,
    },
    /// It was stopped by the wall-clock guard.
    #[error("stopped after {limit_ms} ms of wall-clock time, before its fuel was used up")]
    WallClock {
        /// The guard.
        limit_ms: u64,
    },
    /// It wanted more memory than it may have, and gave up.
    #[error("it asked for {wanted} bytes of memory; {limit} is the limit")]
    OutOfMemory {
        /// What it asked for last.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// It wanted a larger table than it may have, and gave up.
    #[error("it asked for a table of {wanted} elements; {limit} is the limit")]
    TableLimit {
        /// What it asked for last.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// Its calls went deeper than the native stack.
    #[error("its calls are nested too deeply: {limit} bytes of native stack are used up")]
    StackOverflow {
        /// The limit.
        limit: u64,
    },
    /// It touched memory that it does not have.
    #[error(
        "it reached outside its memory; a recursion without an end, which overruns the guest's own stack, looks like this"
    )]
    MemoryOutOfBounds,
    /// It stopped itself.
    #[error("it stopped itself: {reason} (a panic, or a failed assertion)")]
    Panicked {
        /// The trap.
        reason: String,
    },
    /// Any other trap.
    #[error("{reason}")]
    Trap {
        /// The trap.
        reason: String,
    },
    /// Its answer is larger than an answer may be.
    #[error("its answer is larger than the {limit} bytes that {nodes} nodes allow")]
    AnswerTooLarge {
        /// The limit.
        limit: u64,
        /// For a snapshot of so many nodes.
        nodes: usize,
    },
    /// Its answer is not what the contract says, such as a list that ends outside its memory.
    #[error("its answer, or its allocator, breaks the component model's rules: {reason}")]
    MalformedAnswer {
        /// What is wrong.
        reason: String,
    },
    /// No instance is free.
    #[error("all {limit} instances of the sandbox are in use")]
    PoolExhausted {
        /// The limit.
        limit: u32,
    },
    /// The host could not ask it.
    #[error("the host could not call it: {reason}")]
    Host {
        /// Why.
        reason: String,
    },
}

impl GuestFailure {
    /// A short, stable name.
    pub fn class(&self) -> &'static str {
        match self {
            GuestFailure::OutOfFuel { .. } => "out-of-fuel",
            GuestFailure::WallClock { .. } => "wall-clock",
            GuestFailure::OutOfMemory { .. } => "out-of-memory",
            GuestFailure::TableLimit { .. } => "table-limit",
            GuestFailure::StackOverflow { .. } => "stack-overflow",
            GuestFailure::MemoryOutOfBounds => "memory-out-of-bounds",
            GuestFailure::Panicked { .. } => "panicked",
            GuestFailure::Trap { .. } => "trap",
            GuestFailure::AnswerTooLarge { .. } => "answer-too-large",
            GuestFailure::MalformedAnswer { .. } => "malformed-answer",
            GuestFailure::PoolExhausted { .. } => "pool-exhausted",
            GuestFailure::Host { .. } => "host",
        }
    }

    /// As the engine takes it.
    pub fn of_decider(&self, digest: &str) -> DeciderFailure {
        DeciderFailure { decider: digest.into(), class: self.class().into(), detail: self.to_string() }
    }

    /// The name for what wasmtime reports, with the limits that were in force.
    pub(super) fn classify(error: &wasmtime::Error, usage: &Usage, limits: &Limits, nodes: usize) -> Self {
        if error.is::<PoolConcurrencyLimitError>() {
            return GuestFailure::PoolExhausted { limit: limits.concurrent_calls };
        }
        let Some(trap) = error.downcast_ref::<Trap>() else { return Self::without_trap(error, usage, limits, nodes) };
        match trap {
            Trap::OutOfFuel => GuestFailure::OutOfFuel { fuel: limits.fuel(nodes), nodes },
            Trap::Interrupt => GuestFailure::WallClock { limit_ms: limits.wall_clock_ms },
            Trap::StackOverflow => GuestFailure::StackOverflow { limit: limits.native_stack_bytes },
            Trap::MemoryOutOfBounds => GuestFailure::MemoryOutOfBounds,
            Trap::UnreachableCodeReached => {
                Self::refused(usage, limits).unwrap_or_else(|| GuestFailure::Panicked { reason: trap.to_string() })
            }
            Trap::ListOutOfBounds | Trap::StringOutOfBounds | Trap::InvalidChar => {
                GuestFailure::MalformedAnswer { reason: trap.to_string() }
            }
            _ => GuestFailure::Trap { reason: trap.to_string() },
        }
    }

    /// Errors without a trap code come from lifting the answer, from lowering the arguments through the guest's
    /// allocator, or from a limit.
    fn without_trap(error: &wasmtime::Error, usage: &Usage, limits: &Limits, nodes: usize) -> Self {
        let reason = error.root_cause().to_string();
        if reason.contains(HOSTCALL_FUEL) {
            return GuestFailure::AnswerTooLarge { limit: limits.answer_bytes(nodes), nodes };
        }
        // A null from the guest's allocator after a refused growth.
        Self::refused(usage, limits).unwrap_or(GuestFailure::MalformedAnswer { reason })
    }

    fn refused(usage: &Usage, limits: &Limits) -> Option<Self> {
        Some(match usage.refused()? {
            Refused::Memory(wanted) => GuestFailure::OutOfMemory { wanted, limit: limits.memory_bytes },
            Refused::Table(wanted) => GuestFailure::TableLimit { wanted, limit: u64::from(limits.table_elements) },
        })
    }
}

/// wasmtime keeps the type of this error to itself; a test holds the words.
const HOSTCALL_FUEL: &str = "fuel allocated for hostcalls has been exhausted";
