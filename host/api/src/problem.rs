//! Why something was not answered, as the caller reads it (RFC 9457).

use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;

use crate::control::Refusal;
use crate::wire::Problem;

/// The media type of a [`Problem`].
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The longest value that is repeated to the caller, in characters.
const QUOTED: usize = 200;

/// The longest `detail`, in characters: a plan that is refused may name many nodes.
const DETAIL: usize = 4_000;

/// A refusal on its way out.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    problem: Box<Problem>,
    allow: Option<&'static str>,
    retry_after_s: Option<u64>,
}

impl Fault {
    /// `kind` is the last part of the URN; `detail` may hold anything.
    pub(crate) fn new(status: StatusCode, kind: &str, detail: impl AsRef<str>) -> Self {
        let problem = Problem {
            kind: format!("urn:homeostat:{kind}"),
            title: status.canonical_reason().unwrap_or("Refused").to_owned(),
            status: status.as_u16(),
            detail: printable(detail.as_ref(), DETAIL),
        };
        Fault { problem: Box::new(problem), allow: None, retry_after_s: None }
    }

    pub(crate) fn malformed(detail: impl AsRef<str>) -> Self {
        Fault::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    pub(crate) fn invalid(detail: impl AsRef<str>) -> Self {
        Fault::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
    }

    pub(crate) fn not_found(detail: impl AsRef<str>) -> Self {
        Fault::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    pub(crate) fn forbidden(detail: impl AsRef<str>) -> Self {
        Fault::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(crate) fn failed(detail: impl AsRef<str>) -> Self {
        Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", detail)
    }

    /// Not now; ask again after so many seconds.
    pub(crate) fn unavailable(detail: impl AsRef<str>, retry_after_s: u64) -> Self {
        let fault = Fault::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail);
        Fault { retry_after_s: Some(retry_after_s), ..fault }
    }

    /// Too much was asked; ask again after so many seconds.
    pub(crate) fn rate(detail: impl AsRef<str>, retry_after_s: u64) -> Self {
        let fault = Fault::new(StatusCode::TOO_MANY_REQUESTS, "rate", detail);
        Fault { retry_after_s: Some(retry_after_s), ..fault }
    }

    /// Another method is meant.
    pub(crate) fn method(detail: impl AsRef<str>, allow: &'static str) -> Self {
        Fault { allow: Some(allow), ..Fault::new(StatusCode::METHOD_NOT_ALLOWED, "method", detail) }
    }
}

impl Fault {
    /// The problem as it is sent.
    pub(crate) fn body(&self) -> Vec<u8> {
        serde_json::to_vec(&self.problem).unwrap_or_default()
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            Refusal::NotFound(_) => Fault::not_found(detail),
            Refusal::Invalid(_) => Fault::invalid(detail),
            Refusal::Conflict(_) => Fault::new(StatusCode::CONFLICT, "conflict", detail),
            Refusal::Guard(_) => Fault::new(StatusCode::FORBIDDEN, "guard", detail),
            Refusal::Unavailable(_) => Fault::unavailable(detail, 1),
            Refusal::Failed(_) => Fault::failed(detail),
        }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body()));
        *response.status_mut() = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

/// A value that somebody sent, to be repeated: in quotes, short, without anything a terminal would obey.
pub(crate) fn quoted(value: &str) -> String {
    format!("\"{}\"", printable(value, QUOTED).replace('"', "\\\""))
}

/// At most so many characters, those that are not printed escaped.
fn printable(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (at, character) in text.chars().enumerate() {
        if at == most {
            out.push('…');
            break;
        }
        match character {
            // Characters that turn the direction of writing would make a value look like another one.
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => {
                out.extend(character.escape_unicode());
            }
            _ if character.is_control() => out.extend(character.escape_default()),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_repeated_short_and_without_what_a_terminal_obeys() {
        assert_eq!(quoted("web-\u{1b}[31m\n\"0\""), "\"web-\\u{1b}[31m\\n\\\"0\\\"\"");
        assert_eq!(quoted("a\u{202e}b"), "\"a\\u{202e}b\"");
        assert_eq!(quoted(&"x".repeat(5_000)).chars().count(), QUOTED + 3);
    }
}
