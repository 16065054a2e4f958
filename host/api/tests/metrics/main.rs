//! The metrics: the text, the counting, the names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod counting;
mod documents;
mod text;

use api::metrics::Metrics;
use api::wire::{DeciderStatus, GroupStatus, Node, Orphan, Pause, Reaping, RefusedFile, Status};

pub fn metrics() -> Metrics {
    Metrics::new("demo", "0.1.0").unwrap()
}

/// Two groups, one of which fails; a pause, a breached guard, an orphan.
pub fn status() -> Status {
    let group =
        |name: &str, desired, ready| GroupStatus { group: name.into(), desired, ready, ..GroupStatus::default() };
    let node = |group: &str, index, stage: &str| Node {
        node: format!("{group}-{index}"),
        group: group.into(),
        index,
        stage: stage.into(),
        ..Node::default()
    };
    let pause = |group: Option<&str>, only: &str, by: &str| Pause {
        group: group.map(str::to_owned),
        only: only.into(),
        by: by.into(),
        ..Pause::default()
    };
    Status {
        run: "demo".into(),
        generation: 4,
        observed_generation: 3,
        decider: DeciderStatus {
            name: "say \"hi\"\nback\\slash".into(),
            version: "1.2.3".into(),
            digest: "sha256:ab".into(),
            failure: Some("it ran out of fuel".into()),
            ..DeciderStatus::default()
        },
        groups: vec![group("web", 2, 1), GroupStatus { failing: 1, ..group("db", 1, 0) }],
        refused_file: Some(RefusedFile::default()),
        nodes: vec![
            Node {
                ready: true,
                error: Some("process did not show it at the start".into()),
                ..node("web", 0, "dormant")
            },
            Node { held: Some("paused".into()), ..node("web", 1, "new") },
            node("db", 0, "failed"),
        ],
        orphans: vec![Orphan::default()],
        reaping: vec![Reaping::default(), Reaping::default()],
        pauses: vec![pause(None, "destroy", "destroys-per-minute"), pause(Some("web"), "create", "operator")],
        ..Status::default()
    }
}
