//! `[rollout]` and `[parameters]`: of the whole file, and of a group, whose own settings come before those of the file.

use std::collections::BTreeMap;

use engine::rollout::{MAX_PARAMETER_NAME_BYTES, MAX_PARAMETER_VALUE_BYTES, Rollout, Share};
use toml::de::DeValue;

use super::policy::MAX_NODES;
use super::walk::{Field, Section, Walk};

const SHARE: &str = "a whole number of nodes, or a percentage in quotes, such as \"25%\"";

/// The table; what it does not say is as in `default`.
pub(super) fn rollout<'s>(walk: &mut Walk<'s>, field: &Field<'_, 's>, default: Rollout) -> Rollout {
    let mut rollout = default;
    let Some(mut section) = walk.table(field, "a table of rollout settings") else { return rollout };
    share(walk, &mut section, "max-unavailable", &mut rollout.max_unavailable);
    share(walk, &mut section, "max-surge", &mut rollout.max_surge);
    share(walk, &mut section, "max-failing", &mut rollout.max_failing);
    if let Some(field) = walk.get(&mut section, "paused") {
        match field.value {
            DeValue::Boolean(paused) => rollout.paused = *paused,
            _ => walk.wrong_type(&field, "true or false", None),
        }
    }
    walk.close(section);
    rollout
}

fn share<'s>(walk: &mut Walk<'s>, section: &mut Section<'_, 's>, name: &'static str, to: &mut Option<Share>) {
    let Some(field) = walk.get(section, name) else { return };
    match field.value {
        DeValue::Integer(_) => {
            if let Some(nodes) = walk.whole(&field, 0, u64::from(MAX_NODES), SHARE) {
                *to = Some(Share::Nodes(u32::try_from(nodes).unwrap_or(MAX_NODES)));
            }
        }
        DeValue::String(text) => match Share::percent(text) {
            Ok(percent) => *to = Some(percent),
            Err(reason) => walk.refuse(&field, reason),
        },
        _ => walk.wrong_type(&field, SHARE, None),
    }
}

/// A table of texts, over those of the file.
pub(super) fn parameters<'s>(
    walk: &mut Walk<'s>,
    field: &Field<'_, 's>,
    default: &BTreeMap<String, String>,
) -> Option<BTreeMap<String, String>> {
    let texts = walk.text_table(field)?;
    let section = walk.table(field, "a table of texts")?;
    for entry in section.entries() {
        if entry.name.is_empty() || entry.name.len() > MAX_PARAMETER_NAME_BYTES {
            walk.refuse(&entry.field, format!("a parameter's name has 1 to {MAX_PARAMETER_NAME_BYTES} bytes"));
        }
        if texts.get(entry.name).is_some_and(|text| text.len() > MAX_PARAMETER_VALUE_BYTES) {
            walk.refuse(&entry.field, format!("a parameter has at most {MAX_PARAMETER_VALUE_BYTES} bytes"));
        }
    }
    let mut parameters = default.clone();
    parameters.extend(texts);
    Some(parameters)
}
