//! Operator commands in the scenario language: written as the engine prints them.

use engine::command::Command;
use engine::pause::Only;

use crate::words::{number, parse_shape};

/// How orders are written.
pub(crate) const USAGE: &str = "command scale GROUP COUNT, add-node GROUP, kill NODE..., destroy [NODE...] [group GROUP]..., pause|resume [GROUP] \
     all|create|destroy, adopt-orphan|destroy-orphan PROVIDER LEASE, or apply BASE GENERATION GROUP=COUNT...";

/// Parses what follows `command`.
pub(crate) fn parse_order(words: &[&str]) -> Result<Command, String> {
    let usage = || format!("command is written: {USAGE}");
    let owned = |word: &str| word.to_string();
    let Some((verb, rest)) = words.split_first() else { return Err(usage()) };
    Ok(match (*verb, rest) {
        ("scale", [group, count]) => Command::Scale { group: owned(group), count: number(count, "count")? },
        ("add-node", [group]) => Command::AddNode { group: owned(group) },
        ("kill", nodes) => Command::Kill { nodes: nodes.iter().map(|node| owned(node)).collect() },
        ("destroy", names) => {
            let (mut nodes, mut groups) = (Vec::new(), Vec::new());
            let mut names = names.iter();
            while let Some(name) = names.next() {
                match *name {
                    // No node has this name: it has no index.
                    "group" => groups.push(owned(names.next().ok_or_else(usage)?)),
                    name => nodes.push(owned(name)),
                }
            }
            Command::Destroy { nodes, groups }
        }
        ("pause", [scope @ .., only]) if scope.len() <= 1 => {
            Command::Pause { group: scope.first().map(|group| owned(group)), only: parse_only(only)? }
        }
        ("resume", [scope @ .., only]) if scope.len() <= 1 => {
            Command::Resume { group: scope.first().map(|group| owned(group)), only: parse_only(only)? }
        }
        ("adopt-orphan", [provider, lease]) => Command::AdoptOrphan { provider: owned(provider), lease: owned(lease) },
        ("destroy-orphan", [provider, lease]) => {
            Command::DestroyOrphan { provider: owned(provider), lease: owned(lease) }
        }
        ("apply", [base, generation, groups @ ..]) => Command::Apply {
            shape: parse_shape(generation, groups)?,
            policy: None,
            base_generation: number(base, "generation")?,
        },
        _ => return Err(usage()),
    })
}

fn parse_only(word: &str) -> Result<Only, String> {
    match word {
        "all" => Ok(Only::All),
        "create" => Ok(Only::Create),
        "destroy" => Ok(Only::Destroy),
        _ => Err(format!("{word:?} is nothing that can be paused; there are all, create, destroy")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_order_is_read_as_it_is_printed() {
        for text in [
            "scale web 5",
            "add-node web",
            "kill web-0 web-1",
            "destroy web-1 db-0 group cache group queue",
            "destroy group web",
            "pause all",
            "pause create create",
            "resume web destroy",
            "resume all",
            "adopt-orphan fake L1",
            "destroy-orphan fake L1",
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(parse_order(&words).unwrap().to_string(), text);
        }
        for text in
            ["", "scale web", "scale web x", "pause", "pause a b all", "resume web", "destroy group", "burn web-0"]
        {
            let words: Vec<&str> = text.split_whitespace().collect();
            assert!(parse_order(&words).is_err(), "{text}");
        }
    }
}
