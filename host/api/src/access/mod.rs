//! Who may ask. Over the Unix socket: the owner and root, which the kernel says. Over TCP: who shows the token, a session that
//! was opened with it, or a client certificate; and only under a name that is this server's.

mod host;
mod login;
mod session;

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONNECTION, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response, StatusCode};
use axum::response::IntoResponse;

pub(crate) use login::login;

use crate::limits::{Bucket, Rate};
use crate::problem::Fault;

/// The token that opens the TCP listener, without the token: what compares, and what sessions of browsers are sealed with.
#[derive(Clone)]
pub struct Tokens {
    accepts: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    session_key: Arc<[u8]>,
}

impl Tokens {
    /// `accepts` compares in constant time. `session_key` is secret, at least 32 bytes, and the same after a restart if sessions
    /// should outlive it.
    pub fn new(accepts: impl Fn(&str) -> bool + Send + Sync + 'static, session_key: impl Into<Vec<u8>>) -> Self {
        Tokens { accepts: Arc::new(accepts), session_key: session_key.into().into() }
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Tokens")
    }
}

/// The TCP listener, as far as access is concerned.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) tokens: Option<Tokens>,
    pub(crate) tls: bool,
    pub(crate) port: u16,
    /// Names besides `localhost` and addresses.
    pub(crate) names: Vec<String>,
    wrong: Bucket,
}

impl Door {
    pub(crate) fn new(tokens: Option<Tokens>, tls: bool, port: u16, names: Vec<String>, wrong: Rate) -> Self {
        Door { tokens, tls, port, names, wrong: Bucket::new(wrong) }
    }

    /// Whether the token is right; says so at a bounded pace when it is not.
    fn shown(&self, token: &str) -> Result<(), Denied> {
        match &self.tokens {
            Some(tokens) if (tokens.accepts)(token) => Ok(()),
            _ => match self.wrong.take() {
                Ok(()) => Err(Denied::WrongToken),
                Err(seconds) => Err(Denied::TooMany(seconds)),
            },
        }
    }
}

/// Who is at the other end.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// The owner of the socket, or root.
    Owner,
    /// Somebody over TCP.
    Remote {
        /// Through which listener.
        door: Arc<Door>,
        /// Whether a certificate was shown that the listener's authority signed.
        certified: bool,
    },
}

enum Denied {
    Nothing,
    WrongToken,
    TooMany(u64),
    Fault(Fault),
}

impl From<Fault> for Denied {
    fn from(fault: Fault) -> Self {
        Denied::Fault(fault)
    }
}

/// What to answer instead, if the request is not let through.
pub(crate) fn refusal(peer: &Peer, request: &Parts) -> Option<Response<Body>> {
    let Peer::Remote { door, certified } = peer else { return None };
    if let Err(fault) = host::check(door, request) {
        return Some(fault.into_response());
    }
    if *certified {
        // A browser shows the certificate whoever made it ask.
        return foreign(request).err().map(IntoResponse::into_response);
    }
    credentials(door, request).err().map(|denied| denied.answer(door, request))
}

fn credentials(door: &Door, request: &Parts) -> Result<(), Denied> {
    let mut shown = request.headers.get_all(AUTHORIZATION).iter();
    if let Some(value) = shown.next() {
        if shown.next().is_some() {
            return Err(Fault::malformed("Authorization: it is there more than once").into());
        }
        return door.shown(bearer(value).ok_or(Denied::WrongToken)?);
    }
    let Some(tokens) = &door.tokens else { return Err(Denied::Nothing) };
    if !session::is_open(&tokens.session_key, &session::name(door), &request.headers) {
        return Err(Denied::Nothing);
    }
    // A browser sends the cookie whoever made it ask: a page of somebody else must not give commands.
    if !matches!(request.method, Method::GET | Method::HEAD) && !same_origin(&request.headers) {
        return Err(Fault::forbidden("a session of a browser takes commands only from this server's own pages").into());
    }
    Ok(())
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether the request comes from a page of this server: the browser says so, and no page can say it for the browser.
fn same_origin(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match (headers.get(ORIGIN).and_then(|value| value.to_str().ok()), text("host")) {
        (Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, authority)| authority == host),
        _ => false,
    }
}

/// Refuses what a browser says comes from a page of somebody else, unless it only reads.
fn foreign(request: &Parts) -> Result<(), Fault> {
    let says = request.headers.contains_key("sec-fetch-site") || request.headers.contains_key(ORIGIN);
    let reads = matches!(request.method, Method::GET | Method::HEAD);
    match says && !reads && !same_origin(&request.headers) {
        true => Err(Fault::forbidden("a browser may ask for this only from this server's own pages")),
        false => Ok(()),
    }
}

impl Denied {
    fn answer(self, door: &Door, request: &Parts) -> Response<Body> {
        let unauthorized = |detail: &str| {
            if let Some(page) = wants_page(door, request).then(|| login::page(StatusCode::UNAUTHORIZED, "")) {
                return page;
            }
            Fault::new(StatusCode::UNAUTHORIZED, "unauthorized", detail).into_response()
        };
        let mut response = match self {
            Denied::Nothing => unauthorized("show the token: `Authorization: Bearer TOKEN`, or a client certificate"),
            Denied::WrongToken => unauthorized("this is not the token"),
            Denied::TooMany(seconds) => {
                let mut response = Fault::rate("too many wrong tokens", seconds).into_response();
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                return response;
            }
            Denied::Fault(fault) => return fault.into_response(),
        };
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"homeostat\""));
        response
    }
}

/// Whether a person with a browser is asking, who can type the token into a page.
fn wants_page(door: &Door, request: &Parts) -> bool {
    let accepts = request.headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    door.tokens.is_some() && request.method == Method::GET && accepts.contains("text/html")
}
