//! The live table as lines: a pure function of the rows and the terminal's size.

use std::collections::BTreeMap;

use console::{Style, measure_text_width, truncate_str};

use super::lasting;
use super::row::{Row, Summary};
use crate::fleet::{cut, escape};

const HEADING: [&str; COLUMNS] = ["group", "node", "attempt", "stage", "ready", "waits for", "left", "note"];
const COLUMNS: usize = 8;
const GROUP: usize = 0;
const ATTEMPT: usize = 2;
const STAGE: usize = 3;
const READY: usize = 4;
const WAITS: usize = 5;
const NOTE: usize = 7;
/// How narrow "waits for" and the note become before other columns give way.
const WAITS_LEAST: usize = 10;
const NOTE_LEAST: usize = 6;
/// Notes can be long; the terminal cuts them anyway.
const NOTE_CHARS: usize = 300;

/// The table as lines, none wider than `width` and not more than `height` of them. When there are too many nodes, a line
/// for each group, and those nodes that are not ready.
pub fn table(summary: &Summary, rows: &[Row], width: usize, height: usize, color: bool) -> Vec<String> {
    let style = Style::new().force_styling(color);
    let mut lines = vec![title(summary, &style)];
    if rows.len() + 2 <= height {
        if !rows.is_empty() {
            lines.extend(columns(rows, width, &style));
        }
    } else {
        crowded(rows, (width, height.saturating_sub(1)), &style, &mut lines);
    }
    lines.truncate(height);
    lines.iter().map(|line| truncate_str(line, width, "…").into_owned()).collect()
}

fn title(summary: &Summary, style: &Style) -> String {
    let Summary { run, generation, ready, desired, converged, ending } = summary;
    let state = if *ending {
        style.clone().magenta().apply_to("being taken down")
    } else if *converged {
        style.clone().green().apply_to("converged")
    } else {
        style.clone().yellow().apply_to("converging")
    };
    format!("{}  generation {generation}  {ready}/{desired} ready  {state}", style.clone().bold().apply_to(run))
}

fn cells(row: &Row) -> [String; COLUMNS] {
    // What is destroyed is not being deleted any more, whatever was wanted of it.
    let stage = if row.deleting && row.stage != decider::Stage::Destroyed.label() {
        format!("{} (deleting)", row.stage)
    } else {
        row.stage.clone()
    };
    [
        row.group.clone(),
        row.node.clone(),
        row.attempt.map_or_else(|| "-".into(), |attempt| format!("a{attempt}")),
        stage,
        if row.ready { "yes" } else { "no" }.into(),
        escape(&cut(&row.waits_for, NOTE_CHARS)),
        row.left_ms.map(lasting).unwrap_or_default(),
        escape(&cut(row.note.as_deref().unwrap_or_default(), NOTE_CHARS)),
    ]
}

/// Which columns there is room for, and how wide each is. "Waits for" gives way first, then what the node's name and
/// its stage say as well; the note takes what is left.
fn fit(cells: &[[String; COLUMNS]], width: usize) -> Vec<(usize, usize)> {
    let widest = |column: usize| {
        let widest = cells.iter().map(|row| measure_text_width(&row[column])).max().unwrap_or_default();
        (column, widest.max(HEADING[column].len()))
    };
    let mut columns: Vec<(usize, usize)> = (0..COLUMNS).map(widest).collect();
    let note = columns[NOTE].1.min(NOTE_LEAST);
    let over = |columns: &[(usize, usize)]| {
        let all: usize = columns.iter().map(|(column, wide)| if *column == NOTE { note } else { wide + 2 }).sum();
        all.saturating_sub(width)
    };
    let shrink = |columns: &mut Vec<(usize, usize)>, least: usize| {
        let over = over(columns);
        if let Some((_, wide)) = columns.iter_mut().find(|(column, _)| *column == WAITS) {
            *wide = wide.saturating_sub(over).max(least.min(*wide));
        }
    };
    shrink(&mut columns, WAITS_LEAST);
    for column in [GROUP, ATTEMPT, READY] {
        if over(&columns) > 0 {
            columns.retain(|(other, _)| *other != column);
        }
    }
    shrink(&mut columns, HEADING[NOTE].len());
    columns
}

fn columns(rows: &[Row], width: usize, style: &Style) -> Vec<String> {
    let cells: Vec<[String; COLUMNS]> = rows.iter().map(cells).collect();
    let columns = fit(&cells, width);
    let pad = |text: &str, (column, wide): (usize, usize)| {
        if column == NOTE {
            return text.to_owned();
        }
        let text = truncate_str(text, wide, "…");
        let fill = wide.saturating_sub(measure_text_width(&text));
        format!("{text}{}  ", " ".repeat(fill))
    };
    let heading: String = columns.iter().map(|at| pad(HEADING[at.0], *at)).collect();
    let mut lines = vec![style.clone().dim().apply_to(heading.trim_end()).to_string()];
    for (row, cells) in rows.iter().zip(&cells) {
        let state = match row {
            Row { failed: true, .. } => style.clone().red(),
            Row { deleting: true, .. } => style.clone().magenta(),
            Row { ready: true, .. } => style.clone().green(),
            _ => style.clone().yellow(),
        };
        let line: String = columns
            .iter()
            .map(|at| {
                let text = pad(&cells[at.0], *at);
                if matches!(at.0, STAGE | READY) { state.apply_to(text).to_string() } else { text }
            })
            .collect();
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// More nodes than lines: totals of the groups, then who is not ready.
fn crowded(rows: &[Row], (width, height): (usize, usize), style: &Style, lines: &mut Vec<String>) {
    // In the order of their first node.
    let mut order: Vec<&str> = Vec::new();
    let mut totals: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for row in rows {
        let [nodes, ready, failed, deleting] = totals.entry(&row.group).or_insert_with(|| {
            order.push(&row.group);
            [0; 4]
        });
        *nodes += 1;
        *ready += usize::from(row.ready);
        *failed += usize::from(row.failed);
        *deleting += usize::from(row.deleting);
    }
    let groups = order.len().min((height / 2).max(1));
    let name_width = order.iter().take(groups).map(|group| measure_text_width(group)).max().unwrap_or_default();
    for group in order.iter().take(groups) {
        let [nodes, ready, failed, deleting] = totals.get(group).copied().unwrap_or_default();
        let mut line = format!("{group}{}  {ready}/{nodes} ready", " ".repeat(name_width - measure_text_width(group)));
        if failed > 0 {
            line.push_str(&format!("  {}", style.clone().red().apply_to(format!("{failed} failed"))));
        }
        if deleting > 0 {
            line.push_str(&format!("  {deleting} deleting"));
        }
        lines.push(line);
    }
    if order.len() > groups {
        let more = order.len() - groups;
        lines.push(format!("… and {more} more {}", if more == 1 { "group" } else { "groups" }));
    }
    // Failures first; else as they come.
    let mut waiting: Vec<Row> = rows.iter().filter(|row| !row.ready).cloned().collect();
    waiting.sort_by_key(|row| !row.failed);
    // A heading, and perhaps a line that says how many are left out.
    let room = (height + 1).saturating_sub(lines.len() + 1);
    if waiting.is_empty() || room < 2 {
        return;
    }
    let shown = if waiting.len() <= room { waiting.len() } else { room - 1 };
    lines.extend(columns(&waiting[..shown], width, style));
    if waiting.len() > shown {
        lines.push(format!("… and {} more not ready", waiting.len() - shown));
    }
}

/// For each node that is not ready, a line that says why.
pub fn not_ready(rows: &[Row]) -> Vec<String> {
    let waiting = rows.iter().filter(|row| !row.ready || row.deleting);
    waiting
        .map(|row| {
            let mut line = format!("{}: {}", row.node, cells(row)[3]);
            if !row.waits_for.is_empty() {
                line.push_str(&format!(", waits for {}", row.waits_for));
                if let Some(left) = row.left_ms {
                    line.push_str(&format!(" ({} at most)", lasting(left)));
                }
            }
            if let Some(note) = &row.note {
                line.push_str(&format!(": {note}"));
            }
            escape(&cut(&line, NOTE_CHARS))
        })
        .collect()
}
