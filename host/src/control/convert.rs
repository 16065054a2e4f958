//! Between the wire and the engine: the wire stays as it is when the engine changes.

use std::time::Duration;

use api::{Refusal, wire};
use engine::command::{Command, Consequences};
use engine::pause::Only;
use step::text::counted;

use crate::registry::FailedLimit;
use crate::runtime::{Refused, Why};
use crate::swap::{Accept, Terms};

/// What the engine is asked.
pub(super) fn command(asked: wire::Command) -> Command {
    match asked {
        wire::Command::Apply { shape, policy, base_generation } => Command::Apply { shape, policy, base_generation },
        wire::Command::Scale { group, count } => Command::Scale { group, count },
        wire::Command::AddNode { group } => Command::AddNode { group },
        wire::Command::Kill { nodes } => Command::Kill { nodes },
        wire::Command::Destroy { nodes, groups } => Command::Destroy { nodes, groups },
        wire::Command::Pause { group, only } => Command::Pause { group, only: scope(only) },
        wire::Command::Resume { group, only } => Command::Resume { group, only: scope(only) },
        wire::Command::AdoptOrphan { provider, lease } => Command::AdoptOrphan { provider, lease },
        wire::Command::DestroyOrphan { provider, lease } => Command::DestroyOrphan { provider, lease },
    }
}

fn scope(only: wire::Only) -> Only {
    match only {
        wire::Only::All => Only::All,
        wire::Only::Create => Only::Create,
        wire::Only::Destroy => Only::Destroy,
    }
}

/// What is said of it. `base` is the generation before.
pub(super) fn consequences(of: &Consequences, base: u64) -> wire::Consequences {
    let mut parts = Vec::new();
    for (names, verb) in [(&of.creates, "create"), (&of.replaces, "replace"), (&of.destroys, "destroy")] {
        if !names.is_empty() {
            parts.push(format!("{verb} {}", names.len()));
        }
    }
    let mut text = if parts.is_empty() { "no node changes".to_owned() } else { parts.join(", ") };
    text.push_str(&format!("; {} as they are", counted(u64::from(of.keeps), "node")));
    if let Some(note) = &of.note {
        text = format!("{note}; {text}");
    }
    wire::Consequences {
        text,
        generation: of.generation,
        changes: of.generation != base,
        creates: of.creates.clone(),
        destroys: of.destroys.clone(),
        replaces: of.replaces.clone(),
        keeps: of.keeps,
    }
}

/// Why a command does nothing.
pub(super) fn refusal(why: &Refused) -> Refusal {
    let text = why.text.clone();
    match why.why {
        Why::Unknown => Refusal::NotFound(text),
        Why::Invalid => Refusal::Invalid(text),
        Why::Conflict => Refusal::Conflict(text),
        Why::Guard => Refusal::Guard(text),
    }
}

/// How a candidate is judged, as it was asked for.
pub(super) fn terms(asked: &wire::SwapTerms) -> Terms {
    let time = |ms: u64| Some(Duration::from_millis(ms)).filter(|time| !time.is_zero());
    Terms {
        replay: time(asked.replay_ms),
        shadow: time(asked.shadow_ms),
        watch: time(asked.watch_ms),
        watch_failed: asked.watch_failed.map(|limit| match limit {
            wire::FailedNodes::Nodes(nodes) => FailedLimit::Nodes(nodes),
            wire::FailedNodes::Percent(percent) => FailedLimit::Percent(percent),
        }),
        accept: asked.accept.iter().map(accept).collect(),
    }
}

/// The same back.
pub(super) fn swap_terms(terms: &Terms) -> wire::SwapTerms {
    let ms = |time: Option<Duration>| time.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    wire::SwapTerms {
        replay_ms: ms(terms.replay),
        shadow_ms: ms(terms.shadow),
        watch_ms: ms(terms.watch),
        watch_failed: terms.watch_failed.map(|limit| match limit {
            FailedLimit::Nodes(nodes) => wire::FailedNodes::Nodes(nodes),
            FailedLimit::Percent(percent) => wire::FailedNodes::Percent(percent),
        }),
        accept: terms.accept.iter().map(accepted).collect(),
    }
}

fn accept(asked: &wire::Accept) -> Accept {
    match asked {
        wire::Accept::Destroys => Accept::Destroys,
        wire::Accept::Creates => Accept::Creates,
        wire::Accept::Failures => Accept::Failures,
        wire::Accept::History => Accept::History,
        wire::Accept::Quarantine => Accept::Quarantine,
        wire::Accept::All => Accept::All,
        wire::Accept::Rules(from, to) => Accept::Rules(from.clone(), to.clone()),
    }
}

/// What would have to be accepted.
pub(super) fn accepted(accept: &Accept) -> wire::Accept {
    match accept {
        Accept::Destroys => wire::Accept::Destroys,
        Accept::Creates => wire::Accept::Creates,
        Accept::Failures => wire::Accept::Failures,
        Accept::History => wire::Accept::History,
        Accept::Quarantine => wire::Accept::Quarantine,
        Accept::All => wire::Accept::All,
        Accept::Rules(from, to) => wire::Accept::Rules(from.clone(), to.clone()),
    }
}
