//! One node, closely.

use api::wire::{NodeDetail, Operation, TemplateView};
use step::text::{counted, escape};

use super::history::history_item;
use super::status::why;
use super::text::{Pen, ago, until};

/// All that is known of it.
pub fn node(detail: &NodeDetail, pen: &Pen) -> String {
    let node = &detail.node;
    let attempt = node.attempt.map_or_else(|| "vacant".into(), |attempt| format!("attempt {attempt}"));
    let state = match (node.ready, node.deleting) {
        (_, true) => pen.yellow("being taken down"),
        (true, _) => pen.green("ready"),
        (false, _) => pen.yellow("not ready"),
    };
    let mut text = format!("{}  {attempt}  {}  {state}\n", pen.bold(&escape(&node.node)), escape(&node.stage));
    let due = |at: Option<u64>| at.map(|at| until(at, detail.now_ms)).unwrap_or_default();
    let words = why(node);
    let next = match node.until_ms {
        Some(at) if !words.is_empty() => format!("{words} ({} at the latest)", until(at, detail.now_ms)),
        _ => words,
    };
    if !node.ready || node.deleting || node.held.is_some() {
        pen.field(&mut text, "why", &next);
    }
    pen.field(&mut text, "rule", node.rule.as_deref().unwrap_or_default());
    if !node.desired {
        pen.field(&mut text, "desired", "no");
    }
    if detail.drifted {
        pen.field(&mut text, "drift", "its template is not the one that is desired: it is to be replaced");
    }
    if node.failures > 0 {
        pen.field(&mut text, "failures", &format!("{} in a row", node.failures));
    }
    pen.field(&mut text, "last error", node.error.as_deref().unwrap_or_default());
    pen.field(&mut text, "progress", if node.progress == "none" { "" } else { &node.progress });
    pen.field(&mut text, "endpoint", node.endpoint.as_deref().unwrap_or_default());
    pen.field(&mut text, "provider", detail.provider.as_deref().unwrap_or_default());
    pen.field(&mut text, "lease", detail.lease.as_deref().unwrap_or_default());
    pen.field(&mut text, "session", detail.session.as_deref().unwrap_or_default());
    pen.field(&mut text, "key", detail.key.as_deref().unwrap_or_default());
    if let Some(operation) = &detail.operation {
        pen.field(&mut text, "operation", &operation_line(operation, detail.now_ms, "sent"));
    }
    if let Some(operation) = &detail.doubt {
        pen.field(&mut text, "in doubt", &operation_line(operation, detail.now_ms, "outcome unknown since"));
    }
    pen.field(&mut text, "next effect", &due(detail.next_effect_ms));
    pen.field(&mut text, "next look", &due(detail.probe_ms));
    pen.field(&mut text, "next attempt", &due(detail.restart_ms));
    let given_up = due(detail.stage_deadline_ms);
    if !given_up.is_empty() {
        pen.field(&mut text, "given up", &format!("{given_up}, unless it gets on"));
    }
    if let Some(template) = &detail.template {
        text.push_str("\ntemplate\n");
        text.push_str(&template_lines(template, pen));
    }
    if !detail.recent.is_empty() {
        text.push_str("\nlately\n");
        for item in &detail.recent {
            text.push_str(&format!("  {}\n", history_item(item, false)));
        }
    }
    text.push_str(&format!(
        "\n{}\n",
        pen.dim(&format!("homeostat explain {0} says why; homeostat history {0} says all", escape(&node.node)))
    ));
    text
}

fn operation_line(operation: &Operation, now_ms: u64, verb: &str) -> String {
    let asked = operation.deadline_ms.map(|at| format!(", asked about {}", until(at, now_ms))).unwrap_or_default();
    format!("{} {} {verb} {}{asked}", operation.id, operation.kind, ago(operation.since_ms, now_ms))
}

fn template_lines(template: &TemplateView, pen: &Pen) -> String {
    let mut text = String::new();
    pen.field(&mut text, "provider", &template.provider);
    pen.field(&mut text, "image", template.image.as_deref().unwrap_or_default());
    pen.field(&mut text, "role", &template.role);
    pen.field(&mut text, "command", &step_words(&template.command));
    pen.field(&mut text, "join", &template.join);
    let hidden = |names: &[String], what: &str| match names.len() {
        0 => String::new(),
        number => format!("{} ({} not shown)", names.join(", "), counted(number as u64, what)),
    };
    pen.field(&mut text, "env", &hidden(&template.env, "value"));
    pen.field(&mut text, "files", &hidden(&template.files, "content"));
    for (name, value) in &template.settings {
        pen.field(&mut text, "setting", &format!("{name} = {value}"));
    }
    for (name, value) in &template.labels {
        pen.field(&mut text, "label", &format!("{name} = {value}"));
    }
    text
}

/// A command as one would type it.
fn step_words(command: &[String]) -> String {
    let is_plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./:={}@%+,".contains(c));
    let quoted = |word: &String| match is_plain(word) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    command.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
