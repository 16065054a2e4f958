//! How a person with a browser shows the token: a form without script, and a session afterwards.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderValue, LOCATION, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use axum::response::IntoResponse;

use super::{Denied, Door, Peer, foreign, host, session};
use crate::asked;
use crate::problem::Fault;
use crate::shared::Shared;

/// The longest form, in bytes.
const FORM_BYTES: usize = 4 * 1024;

/// Answers `/login` and `/logout`, which need no credentials; none for any other path.
pub(crate) async fn login(
    shared: &Shared,
    peer: &Peer,
    request: &Parts,
    body: &mut Option<Body>,
) -> Option<Response<Body>> {
    let path = request.uri.path();
    let Peer::Remote { door, .. } = peer else { return None };
    if !matches!(path, "/login" | "/logout") || door.tokens.is_none() {
        return None;
    }
    let answered = match host::check(door, request) {
        Err(fault) => Err(fault),
        Ok(()) if path == "/logout" => logout(door, request),
        Ok(()) => enter(shared, door, request, body.take().unwrap_or_default()).await,
    };
    Some(answered.unwrap_or_else(IntoResponse::into_response))
}

async fn enter(shared: &Shared, door: &Door, request: &Parts, body: Body) -> Result<Response<Body>, Fault> {
    match request.method {
        Method::GET | Method::HEAD => return Ok(page(StatusCode::OK, "")),
        Method::POST => {}
        _ => return Err(Fault::method("`/login` is posted to", "GET,HEAD,POST")),
    }
    foreign(request)?;
    asked::content_type(&request.headers, "application/x-www-form-urlencoded")?;
    let form = asked::receive(shared, &request.headers, body, FORM_BYTES).await?;
    let token = field(&form, "token").ok_or_else(|| Fault::malformed("the form has no field `token`"))?;
    match (door.shown(token.trim()), &door.tokens) {
        (Ok(()), Some(tokens)) => see_other(&session::open(&tokens.session_key, door)),
        (Err(Denied::TooMany(seconds)), _) => {
            // Nobody who types is that fast.
            tokio::time::sleep(Duration::from_millis(200)).await;
            Err(Fault::rate("too many wrong tokens", seconds))
        }
        _ => Ok(page(StatusCode::UNAUTHORIZED, "<p role=\"alert\"><strong>This is not the token.</strong></p>")),
    }
}

fn logout(door: &Door, request: &Parts) -> Result<Response<Body>, Fault> {
    if request.method != Method::POST {
        return Err(Fault::method("`/logout` is posted to", "POST"));
    }
    foreign(request)?;
    see_other(&session::close(door))
}

fn see_other(cookie: &str) -> Result<Response<Body>, Fault> {
    let cookie = HeaderValue::from_str(cookie).map_err(|_| Fault::failed("the session has no text"))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

/// The form. No script, no style of its own: it works with whatever the security policy allows.
pub(super) fn page(status: StatusCode, note: &str) -> Response<Body> {
    let text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Homeostat</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\"></head>\n\
         <body><main><h1>Homeostat</h1>\n{note}\n\
         <form method=\"post\" action=\"/login\">\n\
         <p><label for=\"token\">Token</label><br>\n\
         <input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" size=\"40\" required autofocus></p>\n\
         <p><button type=\"submit\">Log in</button></p></form>\n\
         <p><code>homeostat token</code> prints it, on the machine of the daemon.</p></main></body></html>\n"
    );
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

/// A field of a form.
fn field(form: &[u8], name: &str) -> Option<String> {
    let form = std::str::from_utf8(form).ok()?;
    form.split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .and_then(|(_, value)| plain(value))
}

/// Undoes the encoding of forms.
fn plain(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_form() {
        assert_eq!(field(b"a=1&token=x%20y+z%2B", "token"), Some("x y z+".into()));
        assert_eq!(field(b"token=%zz", "token"), None);
        assert_eq!(field(b"token=%2", "token"), None);
        assert_eq!(field(b"token=%ff", "token"), None);
        assert_eq!(field(b"tok=1", "token"), None);
    }
}
