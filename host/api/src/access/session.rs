//! Sessions of browsers: a cookie that says until when, sealed. It is not the token and cannot be turned into it.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Door;

/// How long a session lasts, in seconds.
const LASTS_S: u64 = 12 * 3600;

/// The cookie's name. Cookies know no ports, so the port is in it; under TLS the prefix binds it to this host.
pub(super) fn name(door: &Door) -> String {
    let prefix = if door.tls { "__Host-" } else { "" };
    format!("{prefix}homeostat-{}", door.port)
}

/// The `Set-Cookie` that opens a session.
pub(super) fn open(key: &[u8], door: &Door) -> String {
    let until = now_s() + LASTS_S;
    let seal = hex(&mac(key, until).finalize().into_bytes());
    format!("{}={until}.{seal}; Path=/; Max-Age={LASTS_S}; HttpOnly; SameSite=Strict{}", name(door), secure(door))
}

/// The `Set-Cookie` that ends it in this browser.
pub(super) fn close(door: &Door) -> String {
    format!("{}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict{}", name(door), secure(door))
}

/// Whether a cookie of that name is sealed with the key and not over.
pub(super) fn is_open(key: &[u8], name: &str, headers: &HeaderMap) -> bool {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .any(|(key_name, value)| key_name == name && is_sealed(key, value, now_s()))
}

fn is_sealed(key: &[u8], value: &str, now_s: u64) -> bool {
    let Some((until, seal)) = value.split_once('.') else { return false };
    let (Ok(until), Some(seal)) = (until.parse::<u64>(), unhex(seal)) else { return false };
    mac(key, until).verify_slice(&seal).is_ok() && now_s < until
}

fn mac(key: &[u8], until: u64) -> Hmac<Sha256> {
    // Longer keys than the hash's block are hashed first, as RFC 2104 has it.
    let mut block = [0_u8; 64];
    if key.len() > block.len() {
        use sha2::Digest;
        for (to, from) in block.iter_mut().zip(Sha256::digest(key)) {
            *to = from;
        }
    } else {
        for (to, from) in block.iter_mut().zip(key) {
            *to = *from;
        }
    }
    let mut mac = <Hmac<Sha256> as KeyInit>::new(&block.into());
    mac.update(b"homeostat/session/1");
    mac.update(&until.to_le_bytes());
    mac
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn secure(door: &Door) -> &'static str {
    if door.tls { "; Secure" } else { "" }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || text.len() != 64 {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn a_session_holds_for_its_key_and_its_time() {
        let door = Door::new(None, true, 8443, Vec::new(), Limits::default().wrong_tokens);
        let cookie = open(b"key", &door);
        let (pair, rest) = cookie.split_once(';').unwrap();
        assert_eq!(rest, " Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure");
        let value = pair.strip_prefix("__Host-homeostat-8443=").unwrap();
        assert!(is_sealed(b"key", value, now_s()));
        assert!(!is_sealed(b"another", value, now_s()));
        assert!(!is_sealed(b"key", value, now_s() + LASTS_S + 2));
        let longer = value.replacen(|digit: char| digit.is_ascii_digit(), "9", 1);
        assert!(!is_sealed(b"key", &longer, now_s()), "{longer}");
        for wrong in ["", ".", "1.", "a.b", &value[..value.len() - 1], &format!("{value}0")] {
            assert!(!is_sealed(b"key", wrong, now_s()), "{wrong}");
        }
    }

    #[test]
    fn a_long_key_counts_whole() {
        let (one, two) = ([1_u8; 80], {
            let mut key = [1_u8; 80];
            key[79] = 2;
            key
        });
        assert_ne!(mac(&one, 5).finalize().into_bytes(), mac(&two, 5).finalize().into_bytes());
    }
}
