//! The fleet in a few lines: what it is, why it is not what it should be, what a person can do.

use api::wire::{Node, Orphan, Pause, Status};
use step::text::{counted, escape, lasting};

use super::table::{Table, Tint};
use super::text::{Pen, ago, until};
use super::{decider_fields, swap_line, swap_word};

/// The status. With `groups`, only nodes of these, or these nodes. Where there are more than `most` of them, the groups are
/// summed up, and only nodes that need a look are listed.
pub fn lines(status: &Status, groups: &[String], most: usize, pen: &Pen) -> String {
    let mut text = head(status, pen);
    let chosen: Vec<&Node> = status
        .nodes
        .iter()
        .filter(|node| groups.is_empty() || groups.iter().any(|name| *name == node.group || *name == node.node))
        .collect();
    if chosen.is_empty() {
        text.push_str("\nno nodes\n");
        return text;
    }
    let is_short = chosen.len() <= most;
    if !is_short {
        text.push('\n');
        text.push_str(&groups_table(status, groups, pen));
    }
    let shown: Vec<&Node> = match is_short {
        true => chosen.clone(),
        false => {
            // What failed or is held comes first: the rest of it is on its way by itself.
            let mut waiting: Vec<&Node> = chosen.iter().copied().filter(|node| !is_settled(node)).collect();
            waiting.sort_by_key(|node| !is_bad(node));
            waiting.truncate(most);
            waiting
        }
    };
    if !shown.is_empty() {
        text.push('\n');
        text.push_str(&nodes_table(&shown, pen));
    }
    if shown.len() < chosen.len() {
        let hidden = chosen.len() - shown.len();
        let settled = chosen.iter().filter(|node| is_settled(node)).count();
        let which = if hidden == settled { "ready and" } else { "" };
        let nodes = counted(hidden as u64, "node");
        text.push_str(&pen.dim(&format!("{nodes} {which} not shown; --all shows every one").replace("  ", " ")));
        text.push('\n');
    }
    text
}

/// Ready, desired, and nothing holds it: needs no look.
fn is_settled(node: &Node) -> bool {
    node.ready && node.desired && !node.deleting && node.held.is_none() && node.error.is_none()
}

fn is_bad(node: &Node) -> bool {
    node.held.is_some() || node.stage == "failed" || (node.failures > 0 && !node.ready) || is_doubtful(node)
}

/// Counts as ready, and something is wrong with it all the same: its resource was not shown at the start, say.
fn is_doubtful(node: &Node) -> bool {
    node.ready && !node.deleting && node.error.is_some()
}

/// What is above the table.
fn head(status: &Status, pen: &Pen) -> String {
    let desired = status.nodes.iter().filter(|node| node.desired).count();
    let ready = status.nodes.iter().filter(|node| node.desired && node.ready).count();
    let state = if status.converged { pen.green("converged") } else { pen.yellow("not converged") };
    let run = pen.bold(&escape(&status.run));
    let title = format!("{run}  generation {}  {ready}/{desired} ready  {state}", status.generation);
    let mut text = match pen.width {
        Some(width) => console::truncate_str(&title, width, "…").into_owned(),
        None => title,
    };
    text.push('\n');
    if !status.converged {
        pen.field(&mut text, "why", &status.reason);
    }
    decider_fields(&mut text, &status.decider, pen);
    for swap in status.swaps.iter().filter(|swap| swap.ended_ms.is_none()) {
        pen.field(&mut text, swap_word(swap), &swap_line(swap));
    }
    if let Some(refused) = &status.refused_file {
        let since = lasting(pen.now_ms.saturating_sub(refused.since_ms));
        let line = format!("refused for {since}, what was taken over before stays in force: {}", refused.reason);
        pen.field(&mut text, "fleet file", &line);
    }
    let doubtful: Vec<&Node> = status.nodes.iter().filter(|node| is_doubtful(node)).collect();
    if let Some(first) = doubtful.first() {
        let number = counted(doubtful.len() as u64, "node");
        let (count, has) = if doubtful.len() == 1 { ("counts", "has") } else { ("count", "have") };
        let line = format!("{number} {count} as ready and {has} an error: {}: {}", first.node, why(first));
        pen.field(&mut text, "in doubt", &line);
    }
    for pause in &status.pauses {
        pen.field(&mut text, "paused", &pause_line(pause, pen.now_ms));
    }
    match status.orphans.len() {
        0 => {}
        number => {
            let (are, them) = if number == 1 { ("is", "it") } else { ("are", "them") };
            pen.field(
                &mut text,
                "orphans",
                &format!("{number} {are} there that nobody asked for: `homeostat orphans` lists {them}"),
            );
        }
    }
    if let Some(first) = status.reaping.first() {
        let next = first.next_at_ms.map(|at| format!(", next try {}", until(at, pen.now_ms))).unwrap_or_default();
        let failed = match first.failures {
            0 => String::new(),
            failures => format!(", failed {}{next}", counted(failures.into(), "time")),
        };
        let what = match status.reaping.len() {
            1 => "what a retired attempt left is being removed".to_owned(),
            many => format!("what {many} retired attempts left is being removed"),
        };
        pen.field(&mut text, "left-overs", &format!("{what}: {} a{}{failed}", first.node, first.attempt));
    }
    text
}

fn pause_line(pause: &Pause, now_ms: u64) -> String {
    let since = lasting(now_ms.saturating_sub(pause.since_ms));
    format!("{}, for {since}; `{}` ends it", pause.reason, pause.resume)
}

/// Each pause in a line.
pub fn pauses(status: &Status, pen: &Pen) -> String {
    let mut text = String::new();
    for pause in &status.pauses {
        text.push_str(&format!("{}\n", escape(&pause_line(pause, pen.now_ms))));
    }
    text
}

fn groups_table(status: &Status, groups: &[String], pen: &Pen) -> String {
    let mut table = Table::new(&["GROUP", "READY", "FAILING", "DELETING"]);
    for group in status.groups.iter().filter(|group| groups.is_empty() || groups.contains(&group.group)) {
        let tint = if group.ready == group.desired { Tint::Good } else { Tint::Busy };
        let number = |number: u32, tint| match number {
            0 => ("-".to_owned(), Some(Tint::Dim)),
            some => (some.to_string(), Some(tint)),
        };
        table.push_tinted([
            (group.group.clone(), None),
            (format!("{}/{}", group.ready, group.desired), Some(tint)),
            number(group.failing, Tint::Bad),
            number(group.deleting, Tint::Busy),
        ]);
    }
    table.render(pen)
}

fn nodes_table(nodes: &[&Node], pen: &Pen) -> String {
    let mut table = Table::new(&["NODE", "ATTEMPT", "STAGE", "READY", "NEXT", "WHY"]).spare(&[1, 3]);
    for node in nodes {
        let tint = if is_bad(node) {
            Tint::Bad
        } else if is_settled(node) {
            Tint::Good
        } else {
            Tint::Busy
        };
        let stage = match node.deleting && node.stage != "destroyed" {
            true => format!("{} (deleting)", node.stage),
            false => node.stage.clone(),
        };
        table.push_tinted([
            (node.node.clone(), None),
            (node.attempt.map_or_else(|| "-".into(), |attempt| format!("a{attempt}")), None),
            (stage, Some(tint)),
            (if node.ready { "yes" } else { "no" }.into(), Some(tint)),
            (node.until_ms.map(|at| until(at, pen.now_ms)).unwrap_or_default(), None),
            (why(node), None),
        ]);
    }
    table.render(pen)
}

/// Why a node is where it is and what it waits for, in a line. For one that is ready, where it can be reached.
pub fn why(node: &Node) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Some(held) = &node.held {
        parts.push(held.clone());
    }
    if !node.waits_for.is_empty() && node.held.as_ref() != Some(&node.waits_for) {
        let waits = match node.waits_for.as_str() {
            // Already a sentence.
            text if text.starts_with("paused") || text.starts_with("guard") || text.starts_with("wait") => {
                text.to_owned()
            }
            // An operation's name is no thing to wait for.
            text @ ("create-lease" | "lookup-endpoint" | "start-bootstrap" | "cancel-bootstrap" | "destroy-lease") => {
                format!("waits for the answer to {text}")
            }
            text => format!("waits for {text}"),
        };
        parts.push(waits);
    }
    if !node.desired && node.held.is_none() {
        parts.push("not wanted any more".into());
    }
    if let Some(error) = &node.error {
        parts.push(match node.failures {
            // Nothing follows from it by itself.
            _ if is_doubtful(node) && !error.contains("`homeostat kill") => {
                format!("{error}; `homeostat kill {}` replaces it", node.node)
            }
            _ if is_doubtful(node) => error.clone(),
            0 | 1 => error.clone(),
            failures => format!("failed {failures} times in a row, last: {error}"),
        });
    }
    if parts.is_empty() {
        return match (&node.endpoint, node.ready) {
            (Some(endpoint), true) => endpoint.clone(),
            (_, true) => String::new(),
            (_, false) => "a decision is outstanding".into(),
        };
    }
    parts.join("; ")
}

/// What is there that nobody asked for, and how to get rid of it.
pub fn orphans(orphans: &[Orphan], pen: &Pen) -> String {
    if orphans.is_empty() {
        return "no orphans\n".into();
    }
    let mut table = Table::new(&["ORPHAN", "LABEL", "SEEN", "STATE"]).spare(&[2]);
    for orphan in orphans {
        let label = format!("{} a{}", orphan.node, orphan.attempt);
        table.push([
            format!("{}/{}", orphan.provider, orphan.lease).as_str(),
            label.as_str(),
            ago(orphan.seen_ms, pen.now_ms).as_str(),
            if orphan.destroying { "being destroyed" } else { "left alone" },
        ]);
    }
    let mut text = table.render(pen);
    text.push_str("\nhomeostat adopt ORPHAN             takes it as the node that its label names\n");
    text.push_str("homeostat destroy --orphan ORPHAN  ends it\n");
    text
}
