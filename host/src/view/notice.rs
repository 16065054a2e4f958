//! What the driver has to say, in words.

use ::journal::SwapStep;
use engine::io::Notice;
use step::text::counted;

/// Names that one line lists.
const NAMES: usize = 12;

/// How bad it is (`info`, `warning` or `error`), and in a line.
pub fn notice(notice: &Notice) -> (&'static str, String) {
    match notice {
        Notice::DeciderFailed { nodes, failure } => {
            let whom = if nodes.is_empty() { "every snapshot".into() } else { named(nodes) };
            let (class, detail, decider) = (&failure.class, &failure.detail, &failure.decider);
            ("error", format!("the decider fails for {whom}: {class}: {detail} ({decider})"))
        }
        Notice::DeciderRecovered => ("info", "the decider decides again".into()),
        Notice::Inconsistent { node, facts } => {
            ("error", format!("{node} waits for a person, its facts contradict each other: {facts}"))
        }
        Notice::AwaitsPerson { node, rule, facts } => {
            let text = format!(
                "{node} waits for a person, as the rule {rule} of the decider says; `homeostat explain {node}` has it \
                 in words: {facts}"
            );
            ("warning", text)
        }
        Notice::Orphan { provider, lease, key } => {
            let text = format!(
                "orphan: {provider} holds {lease}, labelled {key}, which was never authorised; it is left alone until \
                 somebody adopts or destroys it"
            );
            ("warning", text)
        }
        Notice::OrphanGone { provider, lease } => ("info", format!("the orphan {lease} of {provider} is gone")),
        Notice::Reaping { provider, lease, key } => {
            ("warning", format!("{provider} holds {lease} of the retired attempt {key}: removing it"))
        }
        Notice::StateIsOlder { orphans } => {
            let text = format!(
                "the state is older than the world, or was lost: it has never heard of {} of this run {} there. \
                 Nothing new is made until {} adopted or destroyed, or somebody resumes",
                counted(*orphans as u64, "resource"),
                if *orphans == 1 { "that is" } else { "that are" },
                if *orphans == 1 { "it is" } else { "they are" },
            );
            ("error", text)
        }
        Notice::Missing { provider, node, attempt, lease } => {
            let text = format!(
                "{provider} does not show {lease} of {node} ({attempt}); nothing follows from that by itself: \
                 `homeostat kill {node}` replaces it"
            );
            ("warning", text)
        }
        Notice::Paused { scope, only } => ("info", format!("paused: {} of {}", only.label(), whole(scope))),
        Notice::Resumed { scope, only } => ("info", format!("resumed: {} of {}", only.label(), whole(scope))),
        Notice::GuardTripped { guard, limit, group } => {
            let (guard, group) = (guard.label(), whole(group));
            ("error", format!("the guard {guard} ({limit}) is breached: {group} waits until somebody resumes"))
        }
    }
}

fn whole(scope: &Option<String>) -> &str {
    scope.as_deref().unwrap_or("the whole run")
}

/// Names, the first of many.
pub fn named(names: &[String]) -> String {
    let shown = names.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// How bad a step of a swap is: `info`, `warning` or `error`.
pub fn weight(step: SwapStep) -> &'static str {
    match step {
        SwapStep::RolledBack | SwapStep::Quarantined => "error",
        SwapStep::Refused | SwapStep::Failed => "warning",
        _ => "info",
    }
}
