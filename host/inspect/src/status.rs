//! The fleet as it is, from the engine's view.

use std::collections::BTreeMap;

use api::wire::{DeciderStatus, GroupStatus, Node, Orphan, Pause, Reaping, Status};
use engine::view::{NodeView, View};
use step::text::{counted, lasting};

/// What the view does not know.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// When the daemon was started.
    pub started_ms: u64,
    /// The daemon's version.
    pub version: String,
    /// The decider in force. Its failure comes from the view.
    pub decider: DeciderStatus,
}

/// The fleet, for a list of changes that stands at this revision.
pub fn status(view: &View, about: &About, revision: String) -> Status {
    let failure = view.nodes.iter().find(|node| node.decider_fails).map(|node| failure_of(&node.waits_for));
    let mut status = Status {
        schema: "homeostat.status/v1".into(),
        run: view.run.clone(),
        revision,
        generation: view.generation,
        observed_generation: view.observed_generation,
        converged: view.converged,
        reason: String::new(),
        now_ms: view.now_ms,
        started_ms: about.started_ms,
        version: about.version.clone(),
        // The feed knows.
        listens: Vec::new(),
        decider: DeciderStatus { failure, ..about.decider.clone() },
        swaps: Vec::new(),
        groups: groups(view),
        nodes: view.nodes.iter().map(listed).collect(),
        orphans: view
            .orphans
            .iter()
            .map(|orphan| Orphan {
                provider: orphan.provider.clone(),
                lease: orphan.lease.clone(),
                node: orphan.node.clone(),
                attempt: orphan.attempt,
                seen_ms: orphan.seen_ms,
                destroying: orphan.destroying,
            })
            .collect(),
        reaping: view
            .reaping
            .iter()
            .map(|reap| Reaping {
                provider: reap.provider.clone(),
                lease: reap.lease.clone(),
                node: reap.node.clone(),
                attempt: reap.attempt,
                failures: reap.failures,
                next_at_ms: reap.next_at_ms,
            })
            .collect(),
        pauses: view.pauses.iter().map(paused).collect(),
        refused_file: None,
    };
    let undecided = view.nodes.iter().filter(|node| node.decider_fails).count();
    status.reason = reason(&status, undecided);
    status
}

/// How the decider fails, out of the words for what a node waits for.
fn failure_of(waits_for: &str) -> String {
    let inner = waits_for.split_once('(').and_then(|(_, inner)| inner.strip_suffix(')'));
    inner.unwrap_or(waits_for).to_owned()
}

/// A node as lists show it.
pub(crate) fn listed(node: &NodeView) -> Node {
    Node {
        node: node.node.clone(),
        group: node.group.clone(),
        index: node.index,
        desired: node.desired,
        attempt: node.attempt,
        stage: node.stage.to_owned(),
        deleting: node.deleting,
        ready: node.ready,
        endpoint: node.endpoint.clone(),
        progress: node.progress.to_owned(),
        failures: node.failures,
        rule: node.rule.clone(),
        // Who holds it says it all; the command that ends it stands with the pause.
        waits_for: if node.held.is_some() { String::new() } else { node.waits_for.clone() },
        until_ms: node.until_ms,
        error: node.error.clone(),
        held: node.held.as_deref().map(plainly),
    }
}

/// The engine's words end with the command that ends the pause.
fn without_remedy(words: &str) -> &str {
    words.split_once("; `").map_or(words, |(words, _)| words)
}

/// Who paused, as a person says it.
fn plainly(words: &str) -> String {
    without_remedy(words).replace(", by the start, which found", ", since the start found")
}

fn paused(pause: &engine::view::PauseView) -> Pause {
    let scope = pause.scope.as_deref().map(|group| format!(" {group}")).unwrap_or_default();
    let only = match pause.only {
        "all" => String::new(),
        only => format!(" --only {only}"),
    };
    Pause {
        group: pause.scope.clone(),
        only: pause.only.to_owned(),
        by: pause.by.to_owned(),
        since_ms: pause.since_ms,
        reason: plainly(&pause.words).trim_start_matches("paused: ").to_owned(),
        resume: format!("homeostat resume{scope}{only}"),
    }
}

fn groups(view: &View) -> Vec<GroupStatus> {
    let mut order: Vec<GroupStatus> = Vec::new();
    let mut place: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &view.nodes {
        let at = *place.entry(&node.group).or_insert_with(|| {
            order.push(GroupStatus { group: node.group.clone(), ..GroupStatus::default() });
            order.len() - 1
        });
        let Some(group) = order.get_mut(at) else { continue };
        group.desired += u32::from(node.desired);
        group.ready += u32::from(node.desired && node.ready);
        group.deleting += u32::from(node.deleting);
        group.failing += u32::from(!node.ready && (node.error.is_some() || node.decider_fails));
    }
    order
}

/// Why the fleet has not the declared shape: what most needs a person first.
fn reason(status: &Status, undecided: usize) -> String {
    if status.converged {
        return String::new();
    }
    if status.generation == 0 {
        return "no shape was declared yet".into();
    }
    if status.decider.failure.is_some() {
        let rest = if undecided < status.nodes.len() { "; the others go on" } else { "" };
        return format!("{} not decided about, because the decider fails{rest}", are(undecided as u64));
    }
    let held = status.nodes.iter().filter(|node| node.held.is_some()).count() as u64;
    if let Some(node) = status.nodes.iter().find(|node| node.held.is_some()) {
        let why = node.held.as_deref().unwrap_or_default();
        return format!("{} held: {}: {why}", are(held), node.node);
    }
    let open = |node: &&Node| !(node.desired && node.ready && !node.deleting);
    let waiting = status.nodes.iter().filter(open).count() as u64;
    let worst = status.nodes.iter().filter(open).max_by_key(|node| (node.error.is_some(), node.failures));
    match worst {
        Some(node) => format!("{} not there yet: {}", are(waiting), line(node, status.now_ms)),
        None => "the last pass has not seen everything yet".into(),
    }
}

fn are(nodes: u64) -> String {
    format!("{} {}", counted(nodes, "node"), if nodes == 1 { "is" } else { "are" })
}

/// One node in a line: where it is, what went wrong, what it waits for and how long at most.
pub(crate) fn line(node: &Node, now_ms: u64) -> String {
    let mut line = format!("{} is {}", node.node, if node.deleting { "being taken down" } else { &node.stage });
    if let Some(error) = &node.error {
        line.push_str(&format!(" after {}: {error}", times(node.failures)));
    }
    if !node.waits_for.is_empty() {
        line.push_str(&format!("; waits for {}", node.waits_for));
    }
    if let Some(until) = node.until_ms {
        line.push_str(&format!(", {} at most", lasting(until.saturating_sub(now_ms))));
    }
    line
}

fn times(failures: u32) -> String {
    if failures <= 1 { "a failure".into() } else { format!("{failures} failures in a row") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_engine_are_made_a_persons() {
        let waits = "a decider that does not fail for it (invalid-plan: begin-delete is illegal (R3))";
        assert_eq!(failure_of(waits), "invalid-plan: begin-delete is illegal (R3)");
        assert_eq!(failure_of("something else"), "something else");
        let words = "paused: create, by the start, which found 2 orphans that its state never heard of; `homeostat resume \
                     --only create` ends it";
        assert_eq!(plainly(words), "paused: create, since the start found 2 orphans that its state never heard of");
    }

    #[test]
    fn a_failing_decider_says_what_goes_on() {
        let mut status = Status { generation: 1, ..Status::default() };
        status.nodes = vec![Node::default(); 3];
        status.decider.failure = Some("out-of-fuel: x".into());
        assert_eq!(reason(&status, 1), "1 node is not decided about, because the decider fails; the others go on");
        assert_eq!(reason(&status, 3), "3 nodes are not decided about, because the decider fails");
    }
}
