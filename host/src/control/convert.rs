//! Between the wire and the engine: the wire stays as it is when the engine changes.

use api::{Refusal, wire};
use engine::command::{Command, Consequences};
use engine::pause::Only;
use step::text::counted;

use crate::runtime::{Refused, Why};

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
