//! A whole text, with the built-in decider, for tests that look into its sessions.

use std::collections::BTreeSet;

use super::{Bounds, Miss, Player};
use crate::case::{Malformed, Script};
use crate::session::{Session, Subject};

/// What a run of a scenario gave.
pub struct Run {
    /// The scenario, rendered anew.
    pub text: String,
    /// Violations of S1-S15, none expected.
    pub violations: Vec<String>,
    /// Expectations that are not met.
    pub misses: Vec<Miss>,
    /// The rules that acted or held, by their index.
    pub rules: BTreeSet<u8>,
}

/// Plays all cases of a text against the built-in decider. `with` may change each session before anything happens in it.
///
/// # Errors
///
/// It is no scenario, or cannot be followed.
pub fn run(text: &str, with: impl Fn(&mut Session)) -> Result<Run, Malformed> {
    let script = Script::parse(text)?;
    let mut run = Run { text: String::new(), violations: Vec::new(), misses: Vec::new(), rules: BTreeSet::new() };
    let mut texts = Vec::new();
    for case in &script.cases {
        let played = Player::new(&Subject::native(), &Bounds::default(), &with).play(&script, case)?;
        if let Some(cut) = played.cut {
            return Err(Malformed::new(played.misses.last().map_or(case.line, |miss| miss.line), cut));
        }
        texts.push(played.text);
        run.violations.extend(played.violations.iter().map(|(_, v)| format!("{}: {}", v.id, v.what)));
        let counted = played.counts.rules.iter().enumerate().filter(|(_, count)| **count > 0);
        run.rules.extend(counted.map(|(rule, _)| rule as u8));
        run.misses.extend(played.misses);
    }
    run.text = script.rendered(texts.iter().map(String::as_str));
    Ok(run)
}
