//! What a decider may say of itself: bounded, and printable on an operator's terminal.

use std::collections::BTreeSet;

use decider::Description;

use super::error::LoadError;

const MAX_NAME_BYTES: usize = 64;
const MAX_VERSION_BYTES: usize = 64;
const MAX_RULES: usize = 255;
const MAX_RULE_ID_BYTES: usize = 32;
const MAX_SENTENCE_BYTES: usize = 1_000;

pub(super) fn check(description: &Description) -> Result<(), LoadError> {
    text("name", &description.name, MAX_NAME_BYTES, "is longer than 64 bytes")?;
    text("version", &description.version, MAX_VERSION_BYTES, "is longer than 64 bytes")?;
    if semver::Version::parse(&description.version).is_err() {
        return wrong("version", &description.version, "is not a semantic version");
    }
    text("contract", &description.contract, MAX_VERSION_BYTES, "is longer than 64 bytes")?;
    if description.rules.len() > MAX_RULES {
        return wrong("rules", &description.rules.len().to_string(), "rules are more than 255");
    }
    let mut ids = BTreeSet::new();
    for (at, rule) in description.rules.iter().enumerate() {
        let field = format!("rules[{at}].id");
        text(&field, &rule.id, MAX_RULE_ID_BYTES, "is longer than 32 bytes")?;
        if !ids.insert(rule.id.as_str()) {
            return wrong(&field, &rule.id, "is the id of an earlier rule too");
        }
        text(&format!("rules[{at}].sentence"), &rule.sentence, MAX_SENTENCE_BYTES, "is longer than 1000 bytes")?;
    }
    Ok(())
}

fn text(field: &str, value: &str, limit: usize, too_long: &'static str) -> Result<(), LoadError> {
    if value.is_empty() {
        wrong(field, value, "is empty")
    } else if value.len() > limit {
        wrong(field, value, too_long)
    } else if value.chars().any(char::is_control) {
        wrong(field, value, "has control characters")
    } else {
        Ok(())
    }
}

fn wrong(field: &str, value: &str, reason: &'static str) -> Result<(), LoadError> {
    Err(LoadError::Description { field: field.into(), value: shorten(value), reason })
}

/// Long values are cut for people.
pub(super) fn shorten(value: &str) -> String {
    match value.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", &value[..cut]),
        None => value.into(),
    }
}
