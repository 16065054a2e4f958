//! Bytes in JSON: base64 with padding (RFC 4648, section 4). What is no such text, to the last bit, is refused.

use ::base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::{Deserialize, Deserializer, Serializer};

/// Writes bytes as a string.
pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
}

/// Reads them.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
    BASE64_STANDARD
        .decode(text.as_bytes())
        .map_err(|error| serde::de::Error::custom(format!("a component is not in base64: {error}")))
}
