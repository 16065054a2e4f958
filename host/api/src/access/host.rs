//! Under which name the server is asked. A page of somebody else can make its own name point to this machine and then ask
//! this server in the browser's name (DNS rebinding); it cannot make the browser send another `Host`.

use std::net::IpAddr;

use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::uri::Authority;

use super::Door;
use crate::problem::{Fault, quoted};

/// Refuses a request for another server. Under TLS the certificate has already said which names are this server's.
pub(super) fn check(door: &Door, request: &Parts) -> Result<(), Fault> {
    let mut hosts = request.headers.get_all(HOST).iter();
    let Some(host) = hosts.next() else { return Err(Fault::malformed("Host: it is missing")) };
    if hosts.next().is_some() {
        return Err(Fault::malformed("Host: it is there more than once"));
    }
    let text = host.to_str().map_err(|_| Fault::malformed("Host: it is no text"))?;
    let authority = text
        .parse()
        .ok()
        .filter(|authority| is_name_with_port(authority, text))
        .ok_or_else(|| Fault::malformed(format!("Host: {} is not a name with a port", quoted(text))))?;
    for authority in [Some(&authority), request.uri.authority()].into_iter().flatten() {
        if !door.tls && !is_ours(door, authority.host()) {
            let name = quoted(authority.host());
            return Err(Fault::new(
                StatusCode::MISDIRECTED_REQUEST,
                "forbidden",
                format!("Host: {name} is not a name of this server"),
            ));
        }
    }
    Ok(())
}

fn is_name_with_port(authority: &Authority, text: &str) -> bool {
    let port = text.strip_prefix(authority.host());
    port.is_some_and(|port| {
        port.is_empty() || port.strip_prefix(':').is_some_and(|digits| digits.parse::<u16>().is_ok())
    })
}

fn is_ours(door: &Door, host: &str) -> bool {
    let host = host.trim_end_matches('.');
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    address.parse::<IpAddr>().is_ok()
        || host.eq_ignore_ascii_case("localhost")
        || door.names.iter().any(|name| name.eq_ignore_ascii_case(host))
}
