//! A fleet's status, kept up to date by what is told of it.

use api::wire::{Change, GroupStatus, Node, Status, What};

/// The daemon's list has no more of them.
const SWAPS: usize = 12;

/// Carries a change over to the status. What only the daemon can say in words, why the fleet has not converged, is said here
/// as far as the nodes show it, until the next list.
pub fn fold(status: &mut Status, change: &Change) {
    status.revision.clone_from(&change.revision);
    status.now_ms = status.now_ms.max(change.at_ms);
    match &change.what {
        What::Node(node) => {
            place(status, (**node).clone());
            count(status);
            reconsider(status);
        }
        What::Gone { node } => {
            status.nodes.retain(|other| other.node != *node);
            count(status);
            reconsider(status);
        }
        What::Generation { generation } => {
            status.generation = *generation;
            status.converged = false;
            status.reason = format!("generation {generation} is new");
        }
        What::Converged { generation } => {
            status.generation = status.generation.max(*generation);
            status.observed_generation = *generation;
            status.converged = status.generation == *generation;
            status.reason.clear();
        }
        What::Orphan(orphan) => {
            let same =
                |other: &&mut api::wire::Orphan| other.provider == orphan.provider && other.lease == orphan.lease;
            match status.orphans.iter_mut().find(same) {
                Some(known) => known.clone_from(orphan),
                None => status.orphans.push(orphan.clone()),
            }
        }
        What::OrphanGone { provider, lease } => {
            status.orphans.retain(|orphan| orphan.provider != *provider || orphan.lease != *lease);
        }
        What::Paused(pause) => {
            status
                .pauses
                .retain(|other| other.group != pause.group || other.only != pause.only || other.by != pause.by);
            status.pauses.push(pause.clone());
        }
        What::Resumed { group, only } => {
            status.pauses.retain(|pause| pause.group != *group || (only != "all" && pause.only != *only));
        }
        What::Decider(decider) => status.decider.clone_from(decider),
        What::Swap(swap) => match status.swaps.iter_mut().find(|known| known.id == swap.id) {
            Some(known) => known.clone_from(swap),
            None => {
                status.swaps.insert(0, (**swap).clone());
                status.swaps.truncate(SWAPS);
            }
        },
        What::FileRefused(refused) => status.refused_file = Some(refused.clone()),
        What::FileTaken { .. } => status.refused_file = None,
        What::Command { .. } | What::Notice { .. } => {}
    }
}

/// In the order of groups and indices.
fn place(status: &mut Status, node: Node) {
    if let Some(known) = status.nodes.iter_mut().find(|other| other.node == node.node) {
        *known = node;
        return;
    }
    let after = |other: &Node| other.group == node.group && other.index > node.index;
    let at = status
        .nodes
        .iter()
        .position(after)
        .or_else(|| status.nodes.iter().rposition(|other| other.group == node.group).map(|last| last + 1));
    status.nodes.insert(at.unwrap_or(status.nodes.len()), node);
}

fn count(status: &mut Status) {
    for node in &status.nodes {
        if !status.groups.iter().any(|group| group.group == node.group) {
            status.groups.push(GroupStatus { group: node.group.clone(), ..GroupStatus::default() });
        }
    }
    for group in &mut status.groups {
        let of = || status.nodes.iter().filter(|node| node.group == group.group);
        let number = |wanted: fn(&&Node) -> bool| u32::try_from(of().filter(wanted).count()).unwrap_or(u32::MAX);
        group.desired = number(|node| node.desired);
        group.ready = number(|node| node.desired && node.ready);
        group.failing = number(|node| node.stage == "failed" || node.failures > 0 && !node.ready);
        group.deleting = number(|node| node.deleting);
    }
    let nodes = &status.nodes;
    status.groups.retain(|group| group.desired > 0 || nodes.iter().any(|node| node.group == group.group));
}

/// One node that is not as it should be suffices; that all are is for the daemon to say.
fn reconsider(status: &mut Status) {
    let out = |node: &&Node| node.desired != node.ready || node.deleting;
    let Some(first) = status.nodes.iter().find(out) else { return };
    let number = status.nodes.iter().filter(out).count();
    status.converged = false;
    let what = if first.waits_for.is_empty() { "is at" } else { "waits for" };
    let text = if first.waits_for.is_empty() { &first.stage } else { &first.waits_for };
    status.reason = match number {
        1 => format!("{} {what} {text}", first.node),
        more => format!("{more} nodes are not settled; {} {what} {text}", first.node),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(group: &str, index: u32, ready: bool) -> Node {
        let waits_for = if ready { String::new() } else { "the join probe".into() };
        let node = format!("{group}-{index}");
        Node { node, group: group.into(), index, desired: true, ready, waits_for, ..Node::default() }
    }

    fn told(status: &mut Status, what: What) {
        fold(status, &Change { schema: String::new(), revision: "7-2".into(), at_ms: 5, what });
    }

    #[test]
    fn nodes_come_and_go_in_their_order() {
        let mut status = Status { converged: true, ..Status::default() };
        for (group, index) in [("web", 1), ("db", 0), ("web", 10), ("web", 0), ("web", 2)] {
            told(&mut status, What::Node(Box::new(node(group, index, index != 2))));
        }
        let names: Vec<&str> = status.nodes.iter().map(|node| node.node.as_str()).collect();
        assert_eq!(names, ["web-0", "web-1", "web-2", "web-10", "db-0"]);
        assert!(!status.converged);
        assert_eq!(status.reason, "web-2 waits for the join probe");
        assert_eq!((status.groups[0].desired, status.groups[0].ready), (4, 3));
        told(&mut status, What::Node(Box::new(node("web", 2, true))));
        told(&mut status, What::Converged { generation: 1 });
        assert!(status.converged && status.reason.is_empty());
        told(&mut status, What::Gone { node: "db-0".into() });
        assert_eq!(status.groups.len(), 1);
        assert_eq!(status.revision, "7-2");
    }

    #[test]
    fn a_refused_file_is_known_until_it_is_taken_over() {
        let mut status = Status::default();
        let refused = api::wire::RefusedFile { file: "f".into(), reason: "broken".into(), since_ms: 4 };
        told(&mut status, What::FileRefused(refused.clone()));
        assert_eq!(status.refused_file, Some(refused));
        told(&mut status, What::FileTaken { file: "f".into() });
        assert_eq!(status.refused_file, None);
    }

    #[test]
    fn a_resume_of_all_ends_each_pause_of_that_scope() {
        let mut status = Status::default();
        for (group, only) in [(None, "create"), (None, "destroy"), (Some("web".to_owned()), "create")] {
            told(&mut status, What::Paused(api::wire::Pause { group, only: only.into(), ..Default::default() }));
        }
        told(&mut status, What::Resumed { group: None, only: "all".into() });
        assert_eq!(status.pauses.len(), 1);
        told(&mut status, What::Resumed { group: Some("web".into()), only: "create".into() });
        assert!(status.pauses.is_empty());
    }
}
