//! One record as one line:
//!
//! ```text
//! {"v":1,"seq":7,"at":1700000000000,"prev":"<64 digits>","record":{…},"hash":"<64 digits>"}
//! ```
//!
//! `hash` is over all bytes before `,"hash"`. The layout is exact: no spaces, no other order.

use engine::id::Millis;

use crate::chain::{Chain, Hash};
use crate::entry::Entry;
use crate::error::{Damage, WriteError};

/// The version of the format.
pub const FORMAT: u64 = 1;
/// The longest line, its line break included.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// How every line begins.
pub(crate) const OPENING: &[u8] = b"{\"v\":";
const HASH: &[u8] = b",\"hash\":\"";
const CLOSING: &[u8] = b"\"}";
const TAIL: usize = HASH.len() + 64 + CLOSING.len();

/// A record and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its number, from 0.
    pub seq: u64,
    /// The instant that the driver was given.
    pub at_ms: Millis,
    /// What it says.
    pub entry: Entry,
    /// Its hash.
    pub hash: Hash,
}

impl Line {
    /// Reads a line, without its line break, that has to follow `chain`.
    ///
    /// # Errors
    ///
    /// It is not what was written there.
    pub fn decode(bytes: &[u8], chain: Chain) -> Result<Self, Damage> {
        decode(bytes, chain)
    }
}

/// A record as the bytes that are kept, and its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedLine {
    /// Its number, from 0.
    pub seq: u64,
    /// The instant that the driver was given.
    pub at_ms: Millis,
    /// The hash of the record before it.
    pub prev: Hash,
    /// Its hash.
    pub hash: Hash,
    /// The line, without its line break.
    pub bytes: Vec<u8>,
}

impl EncodedLine {
    /// The record that follows `chain`.
    ///
    /// # Errors
    ///
    /// The record would be too long to be read again.
    pub fn encode(chain: Chain, at_ms: Millis, entry: &Entry) -> Result<Self, WriteError> {
        let mut bytes = Vec::new();
        let after = encode(chain, at_ms, entry, &mut bytes)?;
        bytes.pop();
        Ok(EncodedLine { seq: chain.next_seq, at_ms, prev: chain.last, hash: after.last, bytes })
    }

    /// A kept line, without its line break, whose number is known. Its hash is checked; its record is not looked at.
    ///
    /// # Errors
    ///
    /// It is not what was written there.
    pub fn read(bytes: Vec<u8>, seq: u64) -> Result<Self, Damage> {
        let Framed { at_ms, prev, hash, .. } = frame(&bytes, seq)?;
        Ok(EncodedLine { seq, at_ms, prev, hash, bytes })
    }

    /// What it has to follow.
    pub fn before(&self) -> Chain {
        Chain { next_seq: self.seq, last: self.prev }
    }

    /// Where the journal stands after it.
    pub fn after(&self) -> Chain {
        Chain { next_seq: self.seq + 1, last: self.hash }
    }
}

/// Appends a record to `out` as a line with its line break; gives the chain after it.
pub(crate) fn encode(chain: Chain, at_ms: Millis, entry: &Entry, out: &mut Vec<u8>) -> Result<Chain, WriteError> {
    let begin = out.len();
    let Chain { next_seq: seq, last } = chain;
    out.extend_from_slice(
        format!("{{\"v\":{FORMAT},\"seq\":{seq},\"at\":{at_ms},\"prev\":\"{last}\",\"record\":").as_bytes(),
    );
    serde_json::to_writer(&mut *out, entry).map_err(std::io::Error::from)?;
    let hash = Hash::of(&out[begin..]);
    out.extend_from_slice(HASH);
    out.extend_from_slice(&hash.hex());
    out.extend_from_slice(CLOSING);
    out.push(b'\n');
    let bytes = out.len() - begin;
    if bytes > MAX_LINE_BYTES {
        out.truncate(begin);
        return Err(WriteError::TooLong { seq, bytes });
    }
    Ok(Chain { next_seq: seq + 1, last: hash })
}

/// The format version that a line states.
pub(crate) fn version(line: &[u8]) -> Option<u64> {
    number(line.strip_prefix(OPENING)?).map(|(version, _)| version)
}

/// Reads a line, without its line break, that has to follow `chain`.
pub(crate) fn decode(line: &[u8], chain: Chain) -> Result<Line, Damage> {
    let seq = chain.next_seq;
    let Framed { at_ms, prev, hash, record } = frame(line, seq)?;
    if prev != chain.last {
        return Err(Damage::Broken { seq });
    }
    let unreadable = |why: String| Damage::Unreadable { seq, why };
    let entry = serde_json::from_slice(record).map_err(|error| unreadable(error.to_string()))?;
    if seq == 0 && !matches!(entry, Entry::Start(_)) {
        return Err(unreadable("a journal begins with a start".into()));
    }
    Ok(Line { seq, at_ms, entry, hash })
}

/// All of a line but the content of its record.
struct Framed<'l> {
    at_ms: Millis,
    prev: Hash,
    hash: Hash,
    record: &'l [u8],
}

/// Takes apart the line of a record and checks its hash.
fn frame(line: &[u8], seq: u64) -> Result<Framed<'_>, Damage> {
    let malformed = |why: &str| Damage::Malformed { seq, why: why.into() };
    let cut = line.len().checked_sub(TAIL).ok_or_else(|| malformed("it is too short"))?;
    let (content, tail) = line.split_at(cut);
    let digits = tail
        .strip_prefix(HASH)
        .and_then(|tail| tail.strip_suffix(CLOSING))
        .ok_or_else(|| malformed("it does not end with a hash"))?;
    let hash = Hash::of(content);
    if digits != hash.hex() {
        return Err(Damage::Changed { seq });
    }
    // From here on the line is as somebody wrote it.
    let unreadable = |why: String| Damage::Unreadable { seq, why };
    let layout = |what: &str| unreadable(format!("{what} is not where it should be"));
    let rest = content.strip_prefix(OPENING).ok_or_else(|| layout("v"))?;
    let (version, rest) = number(rest).ok_or_else(|| layout("v"))?;
    if version != FORMAT {
        return Err(unreadable(format!("it says format {version}")));
    }
    let (found, rest) = field(rest, b",\"seq\":").ok_or_else(|| layout("seq"))?;
    let (at_ms, rest) = field(rest, b",\"at\":").ok_or_else(|| layout("at"))?;
    match found {
        _ if found > seq => return Err(Damage::Missing { expected: seq, found }),
        _ if found < seq => return Err(Damage::Repeated { expected: seq, found }),
        _ => {}
    }
    let rest = rest.strip_prefix(b",\"prev\":\"").ok_or_else(|| layout("prev"))?;
    let (prev, rest) = rest.split_at_checked(64).ok_or_else(|| layout("prev"))?;
    let prev = Hash::from_hex(prev).ok_or_else(|| layout("prev"))?;
    let record = rest.strip_prefix(b"\",\"record\":").ok_or_else(|| layout("record"))?;
    Ok(Framed { at_ms, prev, hash, record })
}

fn field<'a>(text: &'a [u8], name: &[u8]) -> Option<(u64, &'a [u8])> {
    number(text.strip_prefix(name)?)
}

/// A number without signs or leading zeros, and what follows it.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at(digits);
    let value: u64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    (number.len() == 1 || number.first() != Some(&b'0')).then_some((value, rest))
}
