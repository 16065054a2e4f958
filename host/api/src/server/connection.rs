//! One connection, and each request on it.

use std::convert::Infallible;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse;
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tower_service::Service;

use super::stalled::Stalled;
use super::unparsed::Worded;
use crate::access::{self, Peer};
use crate::limits::{Bucket, Limits};
use crate::problem::Fault;
use crate::routes;
use crate::shared::{Shared, stopped};

/// Serves connections.
#[derive(Clone)]
pub(super) struct Serving {
    shared: Arc<Shared>,
    router: Router,
}

impl Serving {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Serving { router: routes::router(shared.clone()), shared }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(super) fn stopping(&self) -> watch::Receiver<bool> {
        self.shared.stopping.clone()
    }

    /// Until the other end closes, breaks a limit, or the server stops.
    pub(super) async fn connection<S: AsyncRead + AsyncWrite + Unpin>(self, stream: S, peer: Peer) {
        let limits = self.limits();
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.head_time)
            .max_buf_size(limits.head_bytes.max(8 * 1024))
            .max_headers(limits.head_lines);
        let stream = TokioIo::new(Worded::new(Stalled::new(stream, limits.write_time), limits));
        let pace = Bucket::new(limits.requests);
        let mut stopping = self.stopping();
        let (serving, peer, pace) = (&self, &peer, &pace);
        let answer = service_fn(move |request| serving.answer(peer, pace, request));
        let connection = http.serve_connection(stream, answer);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopped(&mut stopping) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        // The other end is told what it needs to know; the daemon's log is not for its mistakes.
        let refused = match ended {
            Err(error) if error.is_parse_too_large() => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Err(error) if error.is_parse() => StatusCode::BAD_REQUEST,
            _ => return,
        };
        if let Some(told) = &self.shared.on_answer {
            told(routes::known_path(""), refused);
        }
    }

    async fn answer(
        &self,
        peer: &Peer,
        pace: &Bucket,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let path = routes::known_path(request.uri().path());
        let answered = AssertUnwindSafe(self.answer_as_asked(peer, pace, request)).catch_unwind().await;
        let mut response = answered.unwrap_or_else(|_| Fault::failed("a mistake in the daemon").into_response());
        if response.status() == StatusCode::METHOD_NOT_ALLOWED && !response.headers().contains_key(CONTENT_TYPE) {
            response = method(&response);
        }
        protect(&mut response);
        if let Some(told) = &self.shared.on_answer {
            told(path, response.status());
        }
        Ok(response)
    }

    async fn answer_as_asked(&self, peer: &Peer, pace: &Bucket, request: Request<Incoming>) -> Response<Body> {
        if let Err(seconds) = pace.take() {
            return Fault::rate("too many requests of this connection", seconds).into_response();
        }
        let most = self.limits().target_bytes;
        let target = request.uri();
        let bytes = target.path().len() + target.query().map_or(0, str::len);
        if bytes > most {
            let detail = format!("the request's target has {bytes} bytes, and {most} are the limit");
            return Fault::new(StatusCode::URI_TOO_LONG, "too-large", detail).into_response();
        }
        let (parts, body) = request.into_parts();
        let mut body = Some(Body::new(body));
        if let Some(response) = access::login(&self.shared, peer, &parts, &mut body).await {
            return response;
        }
        if let Some(response) = access::refusal(peer, &parts) {
            return response;
        }
        let request = Request::from_parts(parts, body.unwrap_or_default());
        match self.router.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Another method is meant: which, in words too.
fn method(given: &Response<Body>) -> Response<Body> {
    let allow = given.headers().get(ALLOW).cloned().unwrap_or(HeaderValue::from_static("GET"));
    let detail = format!("this path takes {}", String::from_utf8_lossy(allow.as_bytes()));
    let mut response = Fault::method(detail, "GET").into_response();
    response.headers_mut().insert(ALLOW, allow);
    response
}

/// What a browser needs to be told about every answer.
fn protect(response: &mut Response<Body>) {
    const POLICY: &str =
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";
    // What was not read of the request is not waited for.
    if matches!(response.status(), StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// Answers one connection too many without a task of its own.
pub(super) fn refuse_crowd(stream: std::io::Result<impl Write>) {
    refuse(stream, "503 Service Unavailable", "Retry-After: 1\r\n", "unavailable", "too many connections");
}

/// Answers somebody that the socket is not for.
pub(super) fn refuse_stranger(stream: std::io::Result<impl Write>) {
    refuse(stream, "403 Forbidden", "", "forbidden", "this socket is for the daemon's owner");
}

fn refuse(stream: std::io::Result<impl Write>, status: &str, header: &str, kind: &str, detail: &str) {
    let Ok(mut stream) = stream else { return };
    let (number, title) = status.split_once(' ').unwrap_or((status, ""));
    let body = format!(
        "{{\"type\":\"urn:homeostat:{kind}\",\"title\":\"{title}\",\"status\":{number},\"detail\":\"{detail}\"}}"
    );
    let length = body.len();
    // The stream does not block: what does not fit at once is not sent.
    let _ = stream.write_all(
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/problem+json\r\n{header}Content-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        )
        .as_bytes(),
    );
}
