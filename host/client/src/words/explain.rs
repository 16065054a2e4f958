//! Why a node is where it is.

use api::wire::Explanation;
use step::text::{escape, time_of_day};

use super::table::{Table, Tint};
use super::text::{Pen, ago, until};

/// One line that says it all, then the rule, the facts that it rests on, what ends it, and what a person can do.
pub fn explanation(of: &Explanation, pen: &Pen) -> String {
    let attempt = of.attempt.map(|attempt| format!(" (attempt {attempt})")).unwrap_or_default();
    let mut text = format!("{}{attempt}: {}\n\n", pen.bold(&escape(&of.node)), escape(&of.summary));
    match &of.rule {
        Some(rule) => {
            let verb = of.verb.as_deref().map(|verb| format!(" → {verb}")).unwrap_or_default();
            let when = of.decided_ms.map(|at| format!(" ({})", ago(at, of.now_ms))).unwrap_or_default();
            pen.field(&mut text, "rule", &format!("{}{verb}{when}", rule.id));
            pen.field(&mut text, "", &rule.reason);
            for condition in &rule.when {
                pen.field(&mut text, "when", condition);
            }
        }
        None => pen.field(&mut text, "rule", "none yet: a decision is outstanding"),
    }
    pen.field(&mut text, "ends with", &of.ends);
    if let Some(at) = of.until_ms {
        pen.field(&mut text, "at latest", &format!("{} ({})", until(at, of.now_ms), time_of_day(at)));
    }
    pen.field(&mut text, "you can", if of.next_step.is_empty() { "nothing to do for you" } else { &of.next_step });
    if !of.facts.is_empty() {
        let mut table = Table::new(&["", "FACT", "VALUE"]);
        for fact in &of.facts {
            let tint = if fact.matters { None } else { Some(Tint::Dim) };
            let mark = if fact.matters { "*" } else { "" };
            table.push_tinted([(mark.to_owned(), None), (fact.name.clone(), tint), (fact.value.clone(), tint)]);
        }
        text.push('\n');
        for line in table.render(pen).lines() {
            text.push_str(&format!("  {line}\n"));
        }
        text.push_str(&format!("  {}\n", pen.dim("* what the rule asks for")));
    }
    text
}
