//! The spans. `docs/metrics.md` lists them.

use std::fmt::Display;

use engine::io::Operation;
use tracing::{Span, info_span};

/// A pass: from the question to the decider until its answer was applied. No part of anything else.
pub fn pass(call: u64, nodes: usize) -> Span {
    info_span!(parent: None, "pass", call, nodes)
}

/// An operator's command: until it is durable and answered. No part of anything else.
pub fn command(id: &str, command: &str) -> Span {
    info_span!(parent: None, "command", id, command)
}

/// An operation at a backend, from its submission to its result. A part of the pass that decided it.
pub fn operation(operation: &Operation) -> Span {
    info_span!(
        "operation",
        id = %operation.id,
        kind = operation.request.kind().label(),
        node = operation.key.slot,
        backend = operation.provider,
        outcome = tracing::field::Empty,
    )
}

/// How an operation ended: `done`, or the fault in words. One that is given up says nothing.
pub fn ended<T, E: Display>(span: &Span, result: &Result<T, E>) {
    match result {
        Ok(_) => span.record("outcome", "done"),
        Err(fault) => span.record("outcome", tracing::field::display(fault)),
    };
}
