//! The hash chain: where a journal stands, and what its next record has to follow.

use std::fmt;

use sha2::{Digest, Sha256};

/// A SHA-256, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Hash(Sha256::digest(bytes).into())
    }

    /// A hash that was kept as its 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Hash(bytes)
    }

    /// Its 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A hash that was kept as its 64 digits; `None` where they are others.
    pub fn from_hex(digits: &[u8]) -> Option<Self> {
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let (pairs, rest) = digits.as_chunks::<2>();
        let mut bytes = [0; 32];
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = (value(*high)? << 4) | value(*low)?;
        }
        Some(Hash(bytes))
    }

    /// The 64 digits.
    pub fn hex(&self) -> [u8; 64] {
        let mut hex = [0; 64];
        for (digits, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            digits[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
            digits[1] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        hex
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hex().iter().try_for_each(|digit| write!(f, "{}", char::from(*digit)))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where a journal stands: what the next record has to bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Chain {
    /// The next record's number; the first one's is 0.
    pub next_seq: u64,
    /// The hash of the record before; all zeros before the first.
    pub last: Hash,
}
