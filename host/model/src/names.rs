//! What the model's provider calls things. A lease is named by its attempt and a number within it, the smallest that nobody
//! refers to, so that names are the same in all orders of events.

use engine::id::AttemptId;

/// The lease of an attempt's resource.
pub fn lease(attempt: AttemptId, number: u8) -> String {
    format!("L{}.{number}", attempt.0)
}

/// Where a resource can be reached.
pub fn endpoint(attempt: AttemptId, number: u8) -> String {
    format!("E{}.{number}", attempt.0)
}

/// A bootstrap session on a resource.
pub fn session(attempt: AttemptId, number: u8, session: u8) -> String {
    format!("S{}.{}", attempt.0, u32::from(number) << 4 | u32::from(session))
}

/// The attempt and the number of any of the three.
pub fn parse(name: &str) -> (AttemptId, u64) {
    let parts = name.get(1..).and_then(|rest| rest.split_once('.'));
    let parsed = parts.and_then(|(attempt, number)| Some((attempt.parse().ok()?, number.parse().ok()?)));
    // No name of this model looks like that; it is told apart by its text.
    let strange = || (0, name.bytes().fold(1 << 32, |sum: u64, byte| sum.wrapping_mul(31) ^ u64::from(byte)));
    let (attempt, number) = parsed.unwrap_or_else(strange);
    (AttemptId(attempt), number)
}

/// The number of a lease within its attempt.
pub fn number(lease: &str) -> u8 {
    u8::try_from(parse(lease).1).unwrap_or(u8::MAX)
}

/// The number of a session on its resource.
pub fn session_number(session: &str) -> u8 {
    (parse(session).1 & 15) as u8
}
