//! Verbs that ask once and show the answer.

use api::wire::{Diagnosis, Explanation, History, HistoryItem, NodeDetail, Orphan, Status, Verdict};
use serde::Serialize;

use super::{EventsArgs, HistoryArgs, StatusArgs};
use crate::error::{ClientError, Ending};
use crate::offline;
use crate::place::DaemonArgs;
use crate::screen::Screen;
use crate::session::{Session, Waits, encoded};
use crate::words::{self, Pen};

/// More nodes than this are not all listed, unless that is asked for.
pub(super) const SCREENFUL: usize = 40;
/// What one page of history has at most.
const PAGE: u32 = 1_000;

/// How the screen takes words at this instant.
pub(super) fn pen(screen: &Screen, now_ms: u64) -> Pen {
    Pen { style: screen.style(), width: screen.width(), now_ms }
}

pub(super) async fn status(args: &StatusArgs, session: &Session, screen: &mut Screen) -> Result<(), ClientError> {
    let mut status: Status = session.get("/v1/status").await?;
    check_names(&status, &args.groups)?;
    if screen.is_json {
        narrow(&mut status, &args.groups);
        return screen.json(&status);
    }
    let most = if args.all { usize::MAX } else { SCREENFUL };
    let text = words::status_lines(&status, &args.groups, most, &pen(screen, status.now_ms));
    screen.print(&text)
}

/// Names that are neither groups nor nodes are mistakes.
pub(super) fn check_names(status: &Status, names: &[String]) -> Result<(), ClientError> {
    let known = |name: &String| {
        status.groups.iter().any(|group| group.group == *name)
            || status.nodes.iter().any(|node| node.node == *name || node.group == *name)
    };
    match names.iter().find(|name| !known(name)) {
        None => Ok(()),
        Some(name) => {
            let groups: Vec<&str> = status.groups.iter().take(20).map(|group| group.group.as_str()).collect();
            Err(ClientError::Failed(format!("no group or node {name:?}; the groups are: {}", groups.join(", "))))
        }
    }
}

/// Leaves only these groups and nodes.
pub(super) fn narrow(status: &mut Status, names: &[String]) {
    if names.is_empty() {
        return;
    }
    status.nodes.retain(|node| names.contains(&node.group) || names.contains(&node.node));
    let nodes = &status.nodes;
    status.groups.retain(|group| names.contains(&group.group) || nodes.iter().any(|node| node.group == group.group));
}

pub(super) async fn describe(node: &str, session: &Session, screen: &mut Screen) -> Result<(), ClientError> {
    let detail: NodeDetail = session.get(&format!("/v1/nodes/{}", encoded(node))).await?;
    if screen.is_json {
        return screen.json(&detail);
    }
    let text = words::node(&detail, &pen(screen, detail.now_ms));
    screen.print(&text)
}

pub(super) async fn explain(node: &str, session: &Session, screen: &mut Screen) -> Result<(), ClientError> {
    let found: Explanation = session.get(&format!("/v1/nodes/{}/explanation", encoded(node))).await?;
    if screen.is_json {
        return screen.json(&found);
    }
    let text = words::explanation(&found, &pen(screen, found.now_ms));
    screen.print(&text)
}

pub(super) async fn history(args: &HistoryArgs, session: &Session, screen: &mut Screen) -> Result<(), ClientError> {
    let most = if args.all { None } else { Some(args.limit) };
    let found = pages(session, Some(&args.node), args.before, most).await?;
    show(&found, false, screen)
}

pub(super) async fn events(args: &EventsArgs, session: &Session, screen: &mut Screen) -> Result<(), ClientError> {
    let found = pages(session, None, None, Some(args.limit)).await?;
    show(&found, true, screen)
}

fn show(found: &History, names: bool, screen: &mut Screen) -> Result<(), ClientError> {
    if screen.is_json {
        return screen.json(found);
    }
    if found.items.is_empty() {
        screen.note("nothing is recorded");
        return Ok(());
    }
    let lines: Vec<String> = found.items.iter().map(|item| words::history_item(item, names)).collect();
    screen.print(&lines.join("\n"))?;
    match (found.more, found.items.first()) {
        (true, Some(first)) if !names => {
            screen.note(&format!("there is older history: --before {}, or --all", first.seq));
        }
        (false, _) if found.first_kept_seq > 0 && !names => {
            screen.note(&format!("what came before record {} is not kept any more", found.first_kept_seq));
        }
        _ => {}
    }
    Ok(())
}

/// The latest records, page by page, until there are enough of them.
async fn pages(
    session: &Session,
    node: Option<&str>,
    mut before: Option<u64>,
    most: Option<u32>,
) -> Result<History, ClientError> {
    let mut newest_first: Vec<Vec<HistoryItem>> = Vec::new();
    let mut left = most;
    loop {
        let mut path = format!("/v1/history?limit={}", left.unwrap_or(PAGE).min(PAGE));
        if let Some(node) = node {
            path.push_str(&format!("&node={}", encoded(node)));
        }
        if let Some(before) = before {
            path.push_str(&format!("&before={before}"));
        }
        let mut page: History = session.get(&path).await?;
        let items = std::mem::take(&mut page.items);
        left = left.map(|left| left.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX)));
        let next = items.first().map(|first| first.seq);
        // A page that does not lead back would be asked for for ever.
        let goes_on = page.more && left != Some(0) && next.is_some() && (before.is_none() || next < before);
        newest_first.push(items);
        if !goes_on {
            page.items = newest_first.into_iter().rev().flatten().collect();
            return Ok(page);
        }
        before = next;
    }
}

#[derive(Serialize)]
struct Orphans<'a> {
    schema: &'static str,
    run: &'a str,
    orphans: &'a [Orphan],
}

pub(super) async fn orphans(session: &Session, screen: &mut Screen) -> Result<(), ClientError> {
    let status: Status = session.get("/v1/status").await?;
    if screen.is_json {
        return screen.json(&Orphans { schema: "homeostat.orphans/v1", run: &status.run, orphans: &status.orphans });
    }
    let text = words::orphans(&status.orphans, &pen(screen, status.now_ms));
    screen.print(&text)
}

/// Asks the daemon how it is; where it does not answer, looks at what it left.
pub(super) async fn doctor(daemon: &DaemonArgs, waits: Waits, screen: &mut Screen) -> Result<Ending, ClientError> {
    let asked = match daemon.place() {
        Ok(place) => Session::new(place, waits).get::<Diagnosis>("/v1/diagnosis").await,
        Err(error) => Err(error),
    };
    let diagnosis = match asked {
        Ok(diagnosis) => diagnosis,
        // Only what is on this machine can be looked at without it.
        Err(error @ ClientError::Unreachable { .. }) if daemon.address.is_none() && daemon.socket.is_none() => {
            offline::diagnose(daemon, &error)
        }
        Err(error) => return Err(error),
    };
    if screen.is_json {
        screen.json(&diagnosis)?;
    } else {
        let text = words::diagnosis(&diagnosis, &pen(screen, 0));
        screen.print(&text)?;
    }
    let is_bad = diagnosis.checks.iter().any(|check| check.verdict == Verdict::Bad);
    Ok(if is_bad { Ending::Unwell } else { Ending::Done })
}
