//! Bytes in JSON: base64 with padding (RFC 4648, section 4). What is no such text, to the last bit, is refused.

use serde::{Deserialize, Deserializer, Serializer};

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes bytes as a string.
pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encoded(bytes))
}

/// Reads them.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
    decoded(text.as_bytes()).ok_or_else(|| serde::de::Error::custom("a component is not in base64"))
}

fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let last = text.len().saturating_sub(4);
    for (at, chunk) in text.chunks(4).enumerate() {
        let pads = chunk.iter().rev().take_while(|digit| **digit == b'=').count();
        if pads > 2 || (pads > 0 && at * 4 != last) {
            return None;
        }
        let mut bits = 0u32;
        for digit in &chunk[..4 - pads] {
            bits = bits << 6 | u32::from(value(*digit)?);
        }
        bits <<= 6 * pads;
        let [_, whole @ ..] = bits.to_be_bytes();
        if whole[3 - pads..].iter().any(|left| *left != 0) {
            return None;
        }
        bytes.extend_from_slice(&whole[..3 - pads]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_nothing_else_is_taken() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (b"\xff\xfe\xfd\x00", "//79AA=="),
        ] {
            assert_eq!(encoded(bytes), text);
            assert_eq!(decoded(text.as_bytes()).as_deref(), Some(bytes));
        }
        let all: Vec<u8> = (0..=255).cycle().take(1_000).collect();
        assert_eq!(decoded(encoded(&all).as_bytes()), Some(all));
        for wrong in ["Z", "Zg", "Zg=", "Zg===", "=g==", "Zg==Zg==", "Zh==", "Zm9=", "Zm9v\n", "Zm9 ", "Zm-v", "===="] {
            assert_eq!(decoded(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
