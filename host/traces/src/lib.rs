//! Where time goes: a span for each pass, operation and command, and, with the feature `otlp`, the way of them to an
//! OpenTelemetry collector. Without anybody who listens a span costs a load and a branch.

#[cfg(feature = "otlp")]
mod otlp;
mod spans;

#[cfg(feature = "otlp")]
pub use otlp::{Exporter, OtlpError, exporter};
pub use spans::{command, ended, operation, pass};
