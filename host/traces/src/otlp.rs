//! To a collector: OTLP over HTTP, in batches, by a thread of the exporter's own.

use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::registry::LookupSpan;

/// How long the collector has for the last spans.
const LAST_SPANS: Duration = Duration::from_secs(1);

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {error}")]
pub struct OtlpError {
    /// The collector.
    pub url: String,
    /// What is wrong with it.
    pub error: ExporterBuildError,
}

/// Sends until it is dropped; then what is left is sent, for a second at most. A collector that is gone loses it.
#[derive(Debug)]
pub struct Exporter(SdkTracerProvider);

/// Sends spans of level `INFO` and above to the collector at a URL such as `http://127.0.0.1:4318`: the layer takes them. To be
/// called before any runtime is entered.
///
/// # Errors
///
/// The URL is none.
pub fn exporter<S>(url: &str) -> Result<(Exporter, impl Layer<S> + use<S>), OtlpError>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let endpoint = format!("{}/v1/traces", url.trim_end_matches('/'));
    let built = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary).with_endpoint(endpoint).build();
    let exporter = built.map_err(|error| OtlpError { url: url.into(), error })?;
    let service = Resource::builder().with_service_name("homeostat").build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(service).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("homeostat"));
    Ok((Exporter(provider), layer.with_filter(LevelFilter::INFO)))
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // What it does not take until then is lost: the end of the program is not kept.
        let _ = self.0.shutdown_with_timeout(LAST_SPANS);
    }
}
