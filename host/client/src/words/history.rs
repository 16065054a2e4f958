//! What happened, a line each.

use api::wire::{Change, Decided, HistoryItem, LogLine, What};
use step::text::{escape, time_of_day};

use super::status::why;
use super::{decider_in_force, swap_line, swap_word};

/// A record of the journal; with the node's name where the list is about several.
pub fn history_item(item: &HistoryItem, names: bool) -> String {
    let attempt = item.attempt.map(|attempt| format!("a{attempt}")).unwrap_or_default();
    let who = match (&item.node, names) {
        (Some(node), true) if attempt.is_empty() => format!("{node}  "),
        (Some(node), true) => format!("{node} {attempt}  "),
        _ if attempt.is_empty() => String::new(),
        _ => format!("{attempt}  "),
    };
    let command = item.command.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
    escape(&format!("{}  {:<11}  {who}{}{command}", time_of_day(item.at_ms), item.kind, item.text))
}

/// A change, as it is told.
pub fn change(change: &Change) -> String {
    let text = match &change.what {
        What::Node(node) => {
            let attempt = node.attempt.map(|attempt| format!(" a{attempt}")).unwrap_or_default();
            let ready = if node.ready && !node.deleting { ", ready" } else { "" };
            let deleting = if node.deleting && node.stage != "destroyed" { ", deleting" } else { "" };
            let why = match why(node) {
                words if words.is_empty() => String::new(),
                words => format!(": {words}"),
            };
            format!("{:<11}  {}{attempt}  {}{deleting}{ready}{why}", "node", node.node, node.stage)
        }
        What::Gone { node } => format!("{:<11}  {node}  nothing is left of it", "gone"),
        What::Generation { generation } => format!("{:<11}  generation {generation} is in force", "generation"),
        What::Converged { generation } => format!("{:<11}  generation {generation}", "converged"),
        What::Orphan(orphan) => format!(
            "{:<11}  {}/{} is there, labelled {} a{}: `homeostat orphans`",
            "orphan", orphan.provider, orphan.lease, orphan.node, orphan.attempt
        ),
        What::OrphanGone { provider, lease } => format!("{:<11}  {provider}/{lease} is no orphan any more", "orphan"),
        What::Paused(pause) => {
            let place = pause.group.as_ref().map_or_else(|| "all groups".to_owned(), |group| format!("group {group}"));
            format!("{:<11}  {} in {place}, by {}: `{}` ends it", "paused", pause.only, pause.by, pause.resume)
        }
        What::Resumed { group, only } => {
            let place = group.as_ref().map_or_else(|| "all groups".to_owned(), |group| format!("group {group}"));
            format!("{:<11}  {only} in {place}", "resumed")
        }
        What::Decider(decider) => format!("{:<11}  {}", "decider", decider_in_force(decider)),
        What::Swap(swap) => format!("{:<11}  {}", swap_word(swap), swap_line(swap)),
        What::FileRefused(refused) => {
            format!("{:<11}  refused, what was taken over before stays in force: {}", "fleet file", refused.reason)
        }
        What::FileTaken { file } => format!("{:<11}  {file} was taken over", "fleet file"),
        What::Command { id, text } => format!("{:<11}  {text} ({id})", "command"),
        What::Notice { level, text } => format!("{level:<11}  {text}"),
    };
    escape(&format!("{}  {text}", time_of_day(change.at_ms)))
}

/// A decision.
pub fn decided(decision: &Decided) -> String {
    let attempt = decision.attempt.map(|attempt| format!(" a{attempt}")).unwrap_or_default();
    let Decided { node, rule, verb, reason, .. } = decision;
    escape(&format!("{}  {node}{attempt}  {rule} {verb}: {reason}", time_of_day(decision.at_ms)))
}

/// A line that a node wrote.
pub fn log_line(line: &LogLine) -> String {
    match line.at_ms {
        Some(at) => escape(&format!("{}  {}", time_of_day(at), line.text)),
        None => escape(&line.text),
    }
}
