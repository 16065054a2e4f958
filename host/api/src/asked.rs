//! What is asked, taken apart: bodies, their types, their contents.

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use tokio::time::timeout;

use crate::problem::{Fault, quoted};
use crate::shared::Shared;

/// Bodies up to this size, in bytes, need no turn: they do not fill the memory, and whoever has no token yet must not make
/// others wait.
const SMALL: usize = 16 * 1024;

/// Refuses any other type than this one.
pub(crate) fn content_type(headers: &HeaderMap, wanted: &str) -> Result<(), Fault> {
    let given = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let essence = given.as_deref().and_then(|given| given.split(';').next()).map(str::trim);
    if essence.is_some_and(|essence| essence.eq_ignore_ascii_case(wanted)) {
        return Ok(());
    }
    let detail = match given {
        Some(given) => format!("Content-Type: {} is not {wanted}", quoted(&given)),
        None => format!("Content-Type: it is missing; this is {wanted}"),
    };
    Err(Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "type", detail))
}

/// The whole body, within its size and its time.
pub(crate) async fn receive(shared: &Shared, headers: &HeaderMap, body: Body, most: usize) -> Result<Bytes, Fault> {
    let too_large = || {
        let detail = format!("the body has more than {most} bytes");
        Fault::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
    };
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    if declared.is_some_and(|bytes: u64| bytes > most as u64) {
        return Err(too_large());
    }
    let all = async {
        let _turn = if most > SMALL { shared.bodies.acquire().await.ok() } else { None };
        let mut whole = BytesMut::new();
        let mut parts = body.into_data_stream();
        while let Some(part) = parts.next().await {
            let part = part.map_err(|error| Fault::malformed(format!("the body breaks off: {error}")))?;
            if whole.len() + part.len() > most {
                return Err(too_large());
            }
            whole.extend_from_slice(&part);
        }
        Ok(whole.freeze())
    };
    let limit = shared.limits.body_time;
    timeout(limit, all).await.unwrap_or_else(|_| {
        let detail = format!("the body was not there within {} s", limit.as_secs_f64());
        Err(Fault::new(StatusCode::REQUEST_TIMEOUT, "slow", detail))
    })
}

/// A JSON body of this type, and nothing after it.
pub(crate) async fn json<T: DeserializeOwned>(shared: &Shared, headers: &HeaderMap, body: Body) -> Result<T, Fault> {
    content_type(headers, "application/json")?;
    let bytes = receive(shared, headers, body, shared.limits.body_bytes).await?;
    let mut reader = serde_json::Deserializer::from_slice(&bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        let at = if path == "." { String::new() } else { format!("{path}: ") };
        match inner.classify() {
            Category::Data => Fault::invalid(format!("{at}{inner}")),
            _ => Fault::malformed(format!("the body is not JSON: {inner}")),
        }
    })?;
    reader.end().map_err(|error| Fault::malformed(format!("the body is not JSON: {error}")))?;
    Ok(value)
}
