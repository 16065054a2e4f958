//! Spans of passes, operations and commands, for whoever looks for where time goes: on standard error, or to a collector.

use std::str::FromStr;

use anyhow::anyhow;
use clap::Args;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::priority::Lines;
use super::{Failure, Format, Terminal};

/// What is traced, and where to.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Write each pass, operation and command to standard error when it ends: `error`, `warn`, `info`, `debug` or `trace`.
    #[arg(long, value_name = "LEVEL", value_parser = LevelFilter::from_str)]
    pub trace: Option<LevelFilter>,
    /// Send them to an OpenTelemetry collector too, such as http://127.0.0.1:4318 (OTLP over HTTP).
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
}

/// Traces until it is dropped.
#[derive(Debug)]
pub(super) struct Traces {
    #[cfg(feature = "otlp")]
    _exporter: Option<traces::Exporter>,
}

/// Starts what is asked for. To be called before any runtime is entered: the exporter has a thread of its own.
pub(super) fn start(args: &TraceArgs, terminal: &Terminal) -> Result<Traces, Failure> {
    let lines = args.trace.map(|level| {
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(Lines { to_journal: terminal.to_journal })
            .with_span_events(FmtSpan::CLOSE)
            .with_target(false);
        match terminal.format {
            Format::Json => layer.json().with_filter(level).boxed(),
            Format::Text => layer.with_ansi(false).with_filter(level).boxed(),
        }
    });
    #[cfg(feature = "otlp")]
    let (exporter, spans) = match &args.otlp {
        Some(url) => {
            let (exporter, layer) = traces::exporter(url).map_err(|error| anyhow!("--otlp {error}"))?;
            (Some(exporter), Some(layer))
        }
        None => (None, None),
    };
    #[cfg(feature = "otlp")]
    let some = lines.is_some() || spans.is_some();
    #[cfg(not(feature = "otlp"))]
    let some = lines.is_some();
    // Without anybody who listens a span costs a load and a branch.
    if some {
        let registry = tracing_subscriber::registry().with(lines);
        #[cfg(feature = "otlp")]
        let registry = registry.with(spans);
        registry.try_init().map_err(|error| anyhow!("tracing cannot be started: {error}"))?;
    }
    Ok(Traces {
        #[cfg(feature = "otlp")]
        _exporter: exporter,
    })
}
