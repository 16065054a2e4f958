//! What differs between the fleet that is in force and another one, field by field, without what may be secret.

use engine::policy::Policy;
use engine::shape::{ClusterShape, GroupShape};
use serde_json::Value;

use crate::wire::Difference;

/// What stands for a value that is not shown.
const HIDDEN: &str = "(not shown)";

/// The fields that differ, in the order of the groups that are in force, then of those that are new. Without `next_policy` the
/// settings stay.
pub fn differences(
    shape: &ClusterShape,
    policy: &Policy,
    next: &ClusterShape,
    next_policy: Option<&Policy>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    for group in &shape.groups {
        match next.groups.iter().find(|other| other.id == group.id) {
            Some(other) => {
                walk(&format!("group {}: ", group.id), "count", &json(&group.count), &json(&other.count), &mut found);
                if group.template != other.template {
                    let prefix = format!("group {}: ", group.id);
                    walk(&prefix, "", &json(&*group.template), &json(&*other.template), &mut found);
                }
            }
            None => found.push(Difference { field: format!("group {}", group.id), from: Some(words(group)), to: None }),
        }
    }
    for group in next.groups.iter().filter(|group| shape.groups.iter().all(|other| other.id != group.id)) {
        found.push(Difference { field: format!("group {}", group.id), from: None, to: Some(words(group)) });
    }
    let order = |shape: &ClusterShape| -> Vec<String> { shape.groups.iter().map(|group| group.id.clone()).collect() };
    let (before, after) = (order(shape), order(next));
    if found.is_empty() && before != after {
        let [from, to] = [before, after].map(|ids| Some(ids.join(", ")));
        found.push(Difference { field: "order of groups".into(), from, to });
    }
    if let Some(next) = next_policy {
        walk("settings: ", "", &json(policy), &json(next), &mut found);
    }
    found
}

fn words(group: &GroupShape) -> String {
    let nodes = if group.count == 1 { "node" } else { "nodes" };
    format!("{} {nodes}, provider {}", group.count, group.template.provider)
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Whether a field may be secret: what is below it is compared, and not shown.
fn is_secret(path: &str) -> bool {
    path.starts_with("boot.env.") || path.starts_with("boot.files.")
}

fn walk(prefix: &str, path: &str, from: &Value, to: &Value, found: &mut Vec<Difference>) {
    if from == to {
        return;
    }
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (from, to) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                walk(prefix, &below(name), value, b.get(name).unwrap_or(&Value::Null), found);
            }
            for (name, value) in b.iter().filter(|(name, _)| !a.contains_key(*name)) {
                walk(prefix, &below(name), &Value::Null, value, found);
            }
        }
        // A table that is new or gone: each of its fields.
        (Value::Object(a), Value::Null) if !a.is_empty() => {
            a.iter().for_each(|(name, value)| walk(prefix, &below(name), value, &Value::Null, found));
        }
        (Value::Null, Value::Object(b)) if !b.is_empty() => {
            b.iter().for_each(|(name, value)| walk(prefix, &below(name), &Value::Null, value, found));
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                walk(prefix, &format!("{path}[{at}]"), a, b, found);
            }
        }
        _ => {
            let shown = |value: &Value| match value {
                Value::Null => None,
                _ if is_secret(path) => Some(HIDDEN.to_owned()),
                value => Some(value.to_string()),
            };
            let (from, to) = match (shown(from), shown(to)) {
                (Some(from), Some(_)) if from == HIDDEN => (None, None),
                other => other,
            };
            found.push(Difference { field: format!("{prefix}{path}"), from, to });
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn shape(groups: Value) -> ClusterShape {
        serde_json::from_value(serde_json::json!({"run": "demo", "generation": 1, "groups": groups})).unwrap()
    }

    fn group(id: &str, count: u32, command: &[&str], env: Value) -> Value {
        serde_json::json!({"id": id, "count": count, "template": {
            "provider": "process", "boot": {"command": command, "env": env},
            "join": {"probe": {"tcp": "127.0.0.1:1"}, "interval_ms": 1, "timeout_ms": 2},
        }})
    }

    fn line(difference: &Difference) -> String {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".into());
        format!("{} {} {}", difference.field, side(&difference.from), side(&difference.to))
    }

    #[test]
    fn each_field_is_named_and_secrets_are_not_shown() {
        let none = serde_json::json!({});
        let one = shape(Value::Array(vec![
            group("web", 2, &["serve", "--port", "1"], serde_json::json!({"TOKEN": "hush", "OLD": "hush"})),
            group("db", 1, &["db"], none.clone()),
        ]));
        let two = shape(Value::Array(vec![
            group("web", 3, &["serve", "--port", "2"], serde_json::json!({"TOKEN": "quiet", "NEW": "quiet"})),
            group("cache", 4, &["cache"], none),
        ]));
        let policy = Policy::default();
        let next = Policy { probe_interval_ms: 5, ..policy };
        let found = differences(&one, &policy, &two, Some(&next));
        let lines: Vec<String> = found.iter().map(line).collect();
        assert_eq!(
            lines,
            [
                "group web: count 2 3",
                "group web: boot.command[2] \"1\" \"2\"",
                "group web: boot.env.OLD (not shown) -",
                "group web: boot.env.TOKEN - -",
                "group web: boot.env.NEW - (not shown)",
                "group db 1 node, provider process -",
                "group cache - 4 nodes, provider process",
                "settings: probe_interval_ms 1000 5",
            ]
        );
        assert!(!format!("{found:?}").contains("hush") && !format!("{found:?}").contains("quiet"));
        assert!(differences(&one, &policy, &one, Some(&policy)).is_empty());
        assert!(differences(&one, &policy, &one, None).is_empty());
    }

    #[test]
    fn another_order_is_a_difference() {
        let none = serde_json::json!({});
        let [a, b] = ["a", "b"].map(|id| group(id, 1, &["x"], none.clone()));
        let one = shape(Value::Array(vec![a.clone(), b.clone()]));
        let two = shape(Value::Array(vec![b, a]));
        let found = differences(&one, &Policy::default(), &two, None);
        assert_eq!(found.iter().map(line).collect::<Vec<_>>(), ["order of groups a, b b, a"]);
    }
}
