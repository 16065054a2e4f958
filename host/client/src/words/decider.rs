//! Deciders and swaps.

use api::wire::{DeciderDetail, DeciderEntry, DeciderRef, DeciderStatus, Deciders, short};
use step::text::{counted, escape, time_of_day};

use super::table::{Table, Tint};
use super::text::{Pen, ago, until};

/// Digits of a digest that people see.
pub const DIGITS: usize = 12;

/// A decider, shortly: name, version, and the beginning of its digest.
pub fn decider_name(decider: &DeciderRef) -> String {
    let digest = short(&decider.digest, DIGITS);
    match decider.name.is_empty() {
        true => digest.to_owned(),
        false => format!("{} {} ({digest})", decider.name, decider.version),
    }
}

/// What is in force, in a line.
pub fn decider_in_force(decider: &DeciderStatus) -> String {
    let mut line = format!("{} {} ({})", decider.name, decider.version, short(&decider.digest, DIGITS));
    match &decider.rolled_back {
        Some(back) => line.push_str(&format!(
            " is in force again: {} was rolled back by itself, because {}",
            decider_name(&back.from),
            back.why
        )),
        None => line.push_str(" is in force"),
    }
    if let Some(watching) = &decider.watching {
        line.push_str(&format!(", watched until {}", time_of_day(watching.until_ms)));
    }
    if decider.pinned {
        line.push_str(", pinned");
    }
    line
}

/// All that are kept.
pub fn deciders(list: &Deciders, pen: &Pen) -> String {
    let mut table = Table::new(&["DIGEST", "NAME", "VERSION", "CONTRACT", "LOADED", "STATE"]).spare(&[3, 4]);
    for entry in &list.deciders {
        let (state, tint) = state_of(entry);
        let loaded = match entry.built_in {
            true => "built in".to_owned(),
            false => ago(entry.loaded_ms, pen.now_ms),
        };
        let of = &entry.decider;
        table.push_tinted([
            (short(&of.digest, DIGITS).to_owned(), None),
            (of.name.clone(), None),
            (of.version.clone(), None),
            (of.contract.clone(), None),
            (loaded, None),
            (state, tint),
        ]);
    }
    table.render(pen)
}

fn state_of(entry: &DeciderEntry) -> (String, Option<Tint>) {
    let mut words = Vec::new();
    for (is_so, word) in [
        (entry.active, "active"),
        (entry.previous, "previous"),
        (entry.pinned, "pinned"),
        (entry.shadowing, "in shadow"),
    ] {
        if is_so {
            words.push(word.to_owned());
        }
    }
    let tint = match (entry.active, entry.shadowing) {
        (true, _) => Some(Tint::Good),
        (_, true) => Some(Tint::Busy),
        _ => None,
    };
    match &entry.quarantine {
        Some(quarantine) => {
            words.push(format!("quarantined: {}", quarantine.why));
            (words.join(", "), Some(Tint::Bad))
        }
        None => (words.join(", "), tint),
    }
}

/// All that is known of one.
pub fn decider(detail: &DeciderDetail, pen: &Pen) -> String {
    let DeciderDetail { entry, imports, exports, rules, limits, in_force, .. } = detail;
    let of = &entry.decider;
    let mut text = format!("{}  {}\n", pen.bold(&escape(&of.name)), escape(&of.version));
    let list = |names: &[String]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    let (state, _) = state_of(entry);
    let loaded = match (entry.built_in, &entry.by) {
        (true, _) => "part of the daemon".to_owned(),
        (_, Some(by)) => format!("{}, for the command {by}", ago(entry.loaded_ms, pen.now_ms)),
        (_, None) => ago(entry.loaded_ms, pen.now_ms),
    };
    pen.field(&mut text, "digest", &of.digest);
    pen.field(&mut text, "contract", &of.contract);
    pen.field(&mut text, "size", &format!("{} bytes", entry.size_bytes));
    pen.field(&mut text, "loaded", &loaded);
    pen.field(&mut text, "state", if state.is_empty() { "kept" } else { &state });
    if let Some(quarantine) = &entry.quarantine {
        let by = quarantine.swap.as_ref().map(|swap| format!(", in the swap {swap}")).unwrap_or_default();
        pen.field(&mut text, "quarantined", &format!("{}{by}", ago(quarantine.at_ms, pen.now_ms)));
    }
    pen.field(&mut text, "imports", &list(imports));
    pen.field(&mut text, "exports", &list(exports));
    let limits: Vec<String> = limits.iter().map(|(name, value)| format!("{name} {value}")).collect();
    pen.field(&mut text, "limits", &limits.join(", "));
    for term in in_force {
        let to = term.to_ms.map_or_else(|| "now".to_owned(), |at| ago(at, pen.now_ms));
        let by = term.by.as_ref().map(|by| format!(", by {by}")).unwrap_or_default();
        pen.field(&mut text, "in force", &format!("{} until {to}{by}", ago(term.from_ms, pen.now_ms)));
    }
    if !rules.is_empty() {
        let mut table = Table::new(&["RULE", "SENTENCE"]);
        for rule in rules {
            table.push([rule.id.as_str(), &rule.sentence]);
        }
        text.push_str(&format!("\n{}", table.render(pen)));
    }
    text
}

/// What a status says of its decider, above the nodes: only what a person should see.
pub(crate) fn decider_fields(text: &mut String, decider: &DeciderStatus, pen: &Pen) {
    if let Some(failure) = &decider.failure {
        pen.field(text, "decider", &format!("{} {} fails: {failure}", decider.name, decider.version));
    }
    if let Some(back) = &decider.rolled_back {
        let line = format!(
            "{} was rolled back by itself {}, because {}; {} {} is in force: `homeostat decider show {}`",
            decider_name(&back.from),
            ago(back.at_ms, pen.now_ms),
            back.why,
            decider.name,
            decider.version,
            short(&back.from.digest, DIGITS),
        );
        pen.field(text, "rolled back", &line);
    }
    if let Some(watching) = &decider.watching {
        let line = format!(
            "{} {} is new and watched, which ends {}; `homeostat decider rollback` goes back to {}",
            decider.name,
            decider.version,
            until(watching.until_ms, pen.now_ms),
            decider.previous.as_ref().map_or_else(|| "the one before".into(), decider_name),
        );
        pen.field(text, "decider", &line);
    }
    if decider.pinned {
        let line = format!("{} {} is pinned: `homeostat decider unpin` lets others in", decider.name, decider.version);
        pen.field(text, "decider", &line);
    }
}

/// So many passes, in words.
pub(crate) fn passes(number: u64) -> String {
    match number {
        1 => "1 pass".into(),
        more => format!("{more} passes"),
    }
}

/// So many decisions of so many nodes, in words.
pub(crate) fn extent(decisions: u64, nodes: u64) -> String {
    match nodes {
        0 => passes(decisions),
        _ => format!("{} of {}", counted(decisions, "decision"), counted(nodes, "node")),
    }
}
