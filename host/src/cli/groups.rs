//! The verbs in the help, in groups: what one looks for is among its like.

use clap::Command;

/// The groups, and the verbs of each.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    ("Keep a fleet", &["up", "daemon"]),
    (
        "Look at a fleet",
        &["status", "describe", "explain", "history", "events", "logs", "orphans", "dashboard", "doctor"],
    ),
    ("Change a fleet", &["diff", "apply", "scale", "add-node", "kill", "destroy", "pause", "resume", "adopt"]),
    ("Look after its state", &["snapshot", "reset-state", "token", "journal", "replay", "step"]),
    ("Before it runs", &["plan", "validate", "schema", "simulate", "check", "test", "decider"]),
    ("Else", &["completions"]),
];

/// The program with its verbs listed in groups.
pub(super) fn grouped(command: Command) -> Command {
    let about = |name: &str| command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
    let wide = GROUPS.iter().flat_map(|(_, verbs)| *verbs).map(|verb| verb.len()).max().unwrap_or_default();
    let mut list = String::new();
    for (group, verbs) in GROUPS {
        list.push_str(&format!("\n{group}:\n"));
        for verb in *verbs {
            list.push_str(&format!("  {verb:wide$}  {}\n", about(verb).unwrap_or_default()));
        }
    }
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_verb_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        let command = Cli::command();
        let shown: BTreeSet<&str> =
            command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), shown);
        assert_eq!(grouped.len(), shown.len());
    }

    #[test]
    fn the_help_has_every_verb_with_what_it_does() {
        let help = super::grouped(Cli::command()).render_help().to_string();
        assert!(help.contains("Look at a fleet:\n  status       Show the fleet"), "{help}");
        assert!(help.contains("Exit codes:") && help.contains("--output"), "{help}");
    }
}
