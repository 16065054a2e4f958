//! Spans of passes, operations and commands, for whoever looks for where time goes: on standard error, or to a collector.

use std::str::FromStr;

use anyhow::anyhow;
use clap::Args;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

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
    provider: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

/// Starts what is asked for. To be called before any runtime is entered: the exporter has a thread of its own.
pub(super) fn start(args: &TraceArgs, terminal: &Terminal) -> Result<Traces, Failure> {
    let lines = args.trace.map(|level| {
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_span_events(FmtSpan::CLOSE)
            .with_target(false);
        match terminal.format {
            Format::Json => layer.json().with_filter(level).boxed(),
            Format::Text => layer.with_ansi(false).with_filter(level).boxed(),
        }
    });
    #[cfg(feature = "otlp")]
    let (provider, spans) = match &args.otlp {
        Some(url) => {
            let (provider, layer) = otlp(url)?;
            (Some(provider), Some(layer))
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
        provider,
    })
}

#[cfg(feature = "otlp")]
fn otlp<S>(url: &str) -> Result<(opentelemetry_sdk::trace::SdkTracerProvider, impl Layer<S>), Failure>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    use opentelemetry::trace::TracerProvider;
    use opentelemetry_otlp::{Protocol, WithExportConfig};

    let endpoint = format!("{}/v1/traces", url.trim_end_matches('/'));
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(endpoint)
        .build()
        .map_err(|error| anyhow!("--otlp {url}: {error}"))?;
    let service = opentelemetry_sdk::Resource::builder().with_service_name("homeostat").build();
    let provider = opentelemetry_sdk::trace::SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(service)
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("homeostat"));
    Ok((provider, layer.with_filter(LevelFilter::INFO)))
}

impl Drop for Traces {
    fn drop(&mut self) {
        #[cfg(feature = "otlp")]
        if let Some(provider) = &self.provider {
            // What is left is sent; a collector that is gone loses it.
            let _ = provider.shutdown();
        }
    }
}
