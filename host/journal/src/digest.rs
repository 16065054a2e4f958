//! The digest of a snapshot: SHA-256 over one canonical form of it, so that it means the same on every machine.

use decider::v1_0::{self, without_surge};
use decider::{Group, Nodes, Settings, Snapshot, Template};

use crate::chain::Hash;

/// Names the form; it changes when the form does. There is one for each version of the contract: what is digested is what
/// the decider is shown.
const FORM: &str = "homeostat.snapshot/2";
const FORM_1_0: &str = "homeostat.snapshot/1";

/// `sha256:` and 64 digits, over what a decider that speaks this version of the contract is shown. Numbers are little-endian, as wide as in the contract; texts and lists are preceded by their
/// length as 8 bytes, what may be missing by one byte that says whether it is there; fields come in the order of the contract.
pub fn snapshot_digest(snapshot: &Snapshot, contract: &str) -> String {
    let mut bytes = Vec::with_capacity(256 + 95 * snapshot.nodes.len());
    if v1_0::is_spoken(contract) {
        FORM_1_0.put(&mut bytes);
        v1_0::Snapshot::from(without_surge(snapshot).as_ref()).put(&mut bytes);
    } else {
        FORM.put(&mut bytes);
        snapshot.put(&mut bytes);
    }
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

impl<T: Put> Put for [T] {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|item| item.put(out));
    }
}

impl<T: Put> Put for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_slice().put(out);
    }
}

impl<T: Put> Put for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(self.is_some()).put(out);
        self.iter().for_each(|item| item.put(out));
    }
}

impl<T: Put + ?Sized> Put for &T {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
}

impl<A: Put, B: Put> Put for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
}

macro_rules! fields {
    ($($record:ty { $($field:ident),+ $(,)? })+) => { $(impl Put for $record {
        fn put(&self, out: &mut Vec<u8>) {
            // Taken apart by name, so that a new field cannot be forgotten.
            let Self { $($field),+ } = self;
            $($field.put(out);)+
        }
    })+ };
}
fields! {
    Snapshot { now_ms, run, generation, settings, groups, templates, nodes }
    Settings { backoff_initial_ms, backoff_cap_ms, probe_interval_ms }
    Group {
        name, count, nodes, ready, failed, deleting, pending, max_unavailable, max_surge, available, failing, trying,
        max_failing, pauses, parameters,
    }
    Template { provider, role, labels }
    Nodes {
        node, attempt, group, slot, stage, intent, template, desired_template, live, progress, pending, pending_deadline,
        ambiguous, failures, next_effect_at, probe_at, restart_at, stage_deadline, turn, marks,
    }
    v1_0::Snapshot<'_> { now_ms, run, generation, settings, groups, templates, nodes }
    v1_0::Group<'_> { name, count, nodes, ready, failed, deleting, pending }
    v1_0::Nodes<'_> {
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
        let (max_unavailable, max_failing) = (Some(1), Some(2));
        let parameters = vec![("window".into(), "night".into())];
        whole.groups.push(Group { name: "web".into(), max_unavailable, max_failing, parameters, ..Group::default() });
        whole.templates.push(Template { labels: vec![("a".into(), "b".into())], ..Template::default() });
        whole.nodes.push(NodeRow::vacant(0, 0, 0, 0));
        let snapshot_digest = |snapshot: &Snapshot| snapshot_digest(snapshot, decider::CONTRACT);
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

    #[test]
    fn a_decider_of_contract_1_0_is_shown_what_it_always_was() {
        let mut whole = Snapshot { now_ms: 5, run: "demo".into(), ..Snapshot::default() };
        whole.groups.push(Group { name: "web".into(), count: 2, ..Group::default() });
        whole.nodes.push(NodeRow::vacant(0, 0, 0, 0));
        let digest = snapshot_digest(&whole, v1_0::CONTRACT);
        // As it was before there was contract 1.1.
        assert_eq!(digest, "sha256:343fda98ddb1b8b9902f9503bd7871c871591bccb17b861ccd680c762c0dc92d");
        assert_ne!(digest, snapshot_digest(&whole, decider::CONTRACT));
        // What it is not shown does not count.
        whole.groups[0].max_surge = 3;
        whole.nodes.turn[0] = 4;
        whole.nodes.push(NodeRow { marks: decider::marks::SURGE, ..NodeRow::vacant(1, 0, 2, 0) });
        assert_eq!(snapshot_digest(&whole, v1_0::CONTRACT), digest);
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
