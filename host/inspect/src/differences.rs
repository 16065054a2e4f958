//! The fields that an `apply` would change. What may be secret is named and not shown.

use std::collections::BTreeMap;

use api::wire::Difference;
use engine::driver::Driver;
use engine::policy::Policy;
use engine::shape::{ClusterShape, GroupShape};
use serde_json::Value;
use step::text::counted;

/// Fields of a template whose values may be secret.
const SECRET: [&str; 2] = ["boot.env.", "boot.files."];
/// A change of everything is told in so many lines.
const MOST: usize = 1_000;

/// What differs between what is in force and a shape with its settings.
pub fn differences(driver: &Driver, shape: &ClusterShape, policy: Option<&Policy>) -> Vec<Difference> {
    let mut found = Vec::new();
    let known = driver.state().desired.as_ref().map(|known| known.groups.as_slice()).unwrap_or_default();
    let find = |groups: &[GroupShape], id: &str| groups.iter().find(|group| group.id == id).cloned();
    for group in known.iter().filter(|group| find(&shape.groups, &group.id).is_none()) {
        let (field, from) = (format!("group {}", group.id), counted(group.count.into(), "node"));
        found.push(Difference { field, from: Some(from), to: None });
    }
    for group in &shape.groups {
        let path = format!("group {}", group.id);
        let Some(before) = find(known, &group.id) else {
            found.push(Difference { field: path, from: None, to: Some(counted(group.count.into(), "node")) });
            continue;
        };
        if before.count != group.count {
            let (from, to) = (Some(before.count.to_string()), Some(group.count.to_string()));
            found.push(Difference { field: format!("{path}: count"), from, to });
        }
        if before.template != group.template {
            compare(&path, &before.template, &group.template, &mut found);
        }
    }
    if let Some(policy) = policy.filter(|policy| *policy != driver.policy()) {
        compare("settings", driver.policy(), policy, &mut found);
    }
    found.truncate(MOST);
    found
}

fn compare<T: serde::Serialize>(of: &str, before: &T, after: &T, found: &mut Vec<Difference>) {
    let leaves = |value: &T| {
        let mut leaves = BTreeMap::new();
        if let Ok(value) = serde_json::to_value(value) {
            flatten(String::new(), &value, &mut leaves);
        }
        leaves
    };
    let (before, after) = (leaves(before), leaves(after));
    let paths: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for path in paths {
        let (from, to) = (before.get(path), after.get(path));
        if from == to {
            continue;
        }
        let secret = SECRET.iter().any(|prefix| path.starts_with(prefix));
        let shown = |value: Option<&String>| value.filter(|_| !secret).cloned();
        found.push(Difference { field: format!("{of}: {path}"), from: shown(from), to: shown(to) });
    }
}

/// Every value that holds no other, by its path.
fn flatten(path: String, value: &Value, leaves: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(path, value, leaves);
            }
        }
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                flatten(format!("{path}[{at}]"), value, leaves);
            }
        }
        Value::Null => {}
        Value::String(text) => drop(leaves.insert(path, text.clone())),
        other => drop(leaves.insert(path, other.to_string())),
    }
}
