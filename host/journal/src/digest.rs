//! The digest of a snapshot: SHA-256 over one canonical form of it, so that it means the same on every machine.

use decider::{Group, Nodes, Settings, Snapshot, Template};

use crate::chain::Hash;

/// Names the form; it changes when the form does.
const FORM: &str = "homeostat.snapshot/1";

/// `sha256:` and 64 digits. Numbers are little-endian, as wide as in the contract; texts and lists are preceded by their
/// length as 8 bytes; fields come in the order of the contract.
pub fn snapshot_digest(snapshot: &Snapshot) -> String {
    let mut bytes = Vec::with_capacity(256 + 90 * snapshot.nodes.len());
    // Taken apart by name, so that a new field cannot be forgotten.
    let Snapshot { now_ms, run, generation, settings, groups, templates, nodes } = snapshot;
    FORM.put(&mut bytes);
    now_ms.put(&mut bytes);
    run.put(&mut bytes);
    generation.put(&mut bytes);
    settings.put(&mut bytes);
    groups.put(&mut bytes);
    templates.put(&mut bytes);
    nodes.put(&mut bytes);
    format!("sha256:{}", Hash::of(&bytes))
}

trait Put {
    fn put(&self, out: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($number:ty),+) => { $(impl Put for $number {
        #[inline]
        fn put(&self, out: &mut Vec<u8>) { out.extend_from_slice(&self.to_le_bytes()); }
    })+ };
}
numbers!(u8, u32, u64);

impl Put for str {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }
}

impl Put for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_str().put(out);
    }
}

impl<T: Put> Put for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|item| item.put(out));
    }
}

impl<A: Put, B: Put> Put for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
}

macro_rules! fields {
    ($($record:ident { $($field:ident),+ $(,)? })+) => { $(impl Put for $record {
        fn put(&self, out: &mut Vec<u8>) {
            let $record { $($field),+ } = self;
            $($field.put(out);)+
        }
    })+ };
}
fields! {
    Settings { backoff_initial_ms, backoff_cap_ms, probe_interval_ms }
    Group { name, count, nodes, ready, failed, deleting, pending }
    Template { provider, role, labels }
    Nodes {
        node, attempt, group, slot, stage, intent, template, desired_template, live, progress, pending, pending_deadline,
        ambiguous, failures, next_effect_at, probe_at, restart_at, stage_deadline,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]
    use decider::NodeRow;

    use super::*;

    #[test]
    fn every_field_counts() {
        let mut whole = Snapshot { run: "demo".into(), ..Snapshot::default() };
        whole.groups.push(Group { name: "web".into(), ..Group::default() });
        whole.templates.push(Template { labels: vec![("a".into(), "b".into())], ..Template::default() });
        whole.nodes.push(NodeRow::vacant(0, 0, 0, 0));
        let digest = snapshot_digest(&whole);
        assert_eq!(digest.len(), 71);
        assert_eq!(digest, snapshot_digest(&whole.clone()));
        // Each leaf of its JSON, changed, gives another digest.
        let json = serde_json::to_value(&whole).unwrap();
        let mut leaves = Vec::new();
        collect(&json, String::new(), &mut leaves);
        assert!(leaves.len() > 30, "{leaves:?}");
        for leaf in leaves {
            let mut other = json.clone();
            let at = other.pointer_mut(&leaf).unwrap();
            *at = match at.as_str() {
                Some(text) => format!("{text}x").into(),
                None => (at.as_u64().unwrap() ^ 1).into(),
            };
            let other: Snapshot = serde_json::from_value(other).unwrap();
            assert_ne!(snapshot_digest(&other), digest, "{leaf}");
        }
    }

    fn collect(value: &serde_json::Value, at: String, leaves: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) => {
                map.iter().for_each(|(key, value)| collect(value, format!("{at}/{key}"), leaves));
            }
            serde_json::Value::Array(items) => {
                items.iter().enumerate().for_each(|(key, value)| collect(value, format!("{at}/{key}"), leaves));
            }
            _ => leaves.push(at),
        }
    }
}
