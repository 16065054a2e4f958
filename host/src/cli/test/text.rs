//! What `test` writes for people.

use std::fmt::Write as _;

use console::Style;
use scenario::{Covered, DiffLine, Miss, Report, Status, Tested, ms};

use super::super::Terminal;
use super::super::table::Table;
use crate::fleet::escape;
use ::step::text::counted;

pub(super) fn render(
    report: &Report,
    covers: bool,
    short: Option<u8>,
    written: &[String],
    terminal: &Terminal,
) -> String {
    let style = terminal.style();
    let mut text = String::new();
    let mut rest = report.tested.as_slice();
    while let Some(first) = rest.first() {
        let length = rest.iter().take_while(|tested| tested.file == first.file).count();
        let (suite, later) = rest.split_at(length);
        file(&mut text, suite, &style);
        rest = later;
    }
    for file in written {
        let _ = writeln!(text, "wrote {}", escape(file));
    }
    if covers {
        text.push_str(&coverage(report, &style));
    }
    if let Some(min) = short {
        let percent = report.coverage.percent();
        let words = format!("only {percent} % of the rules are exercised, less than {min} %");
        let _ = writeln!(text, "{}", style.clone().red().bold().apply_to(words));
    }
    let (passed, failed, cut) = (report.count(Status::Passed), report.count(Status::Failed), report.count(Status::Cut));
    let mut counts = vec![format!("{passed} passed")];
    counts.extend((failed > 0).then(|| format!("{failed} failed")));
    counts.extend((cut > 0).then(|| format!("{cut} cut before the end")));
    let counts = match failed + cut {
        0 => style.clone().green().apply_to(counts.join(", ")),
        _ => style.clone().red().bold().apply_to(counts.join(", ")),
    };
    let _ = writeln!(text, "{counts} ({}, {})", escape(&report.decider), report.digest);
    text
}

fn file(text: &mut String, suite: &[Tested], style: &Style) {
    let Some(first) = suite.first() else { return };
    let bad = suite.iter().filter(|tested| tested.status != Status::Passed).count();
    let name = escape(&first.file);
    let how_many = match suite.len() {
        1 => String::new(),
        all if bad == 0 => format!(" ({})", counted(all as u64, "test")),
        all => format!(" ({bad} of {})", counted(all as u64, "test")),
    };
    let sign = match bad {
        0 => style.clone().green().apply_to("ok  "),
        _ => style.clone().red().bold().apply_to("FAIL"),
    };
    let _ = writeln!(text, "{sign} {name}{how_many}");
    for tested in suite.iter().filter(|tested| tested.status != Status::Passed) {
        if tested.name != tested.file {
            let _ = writeln!(text, "     {}", style.clone().bold().apply_to(escape(&tested.name)));
        }
        for miss in &tested.misses {
            one(text, &first.file, miss, style);
        }
    }
}

fn one(text: &mut String, file: &str, miss: &Miss, style: &Style) {
    let node = miss.node.as_ref().map(|node| format!("{node}: ")).unwrap_or_default();
    let (line, at) = (miss.line, ms(miss.at_ms));
    let _ = writeln!(text, "       {}:{line}: {}", escape(file), escape(&miss.command));
    let _ = writeln!(text, "         at {at}: {}", escape(&format!("{node}{}", miss.what)));
    for DiffLine { sign, text: line } in &miss.diff {
        let line = format!("         {sign} {}", escape(line));
        let _ = match sign {
            '-' => writeln!(text, "{}", style.clone().red().apply_to(line)),
            '+' => writeln!(text, "{}", style.clone().green().apply_to(line)),
            _ => writeln!(text, "{line}"),
        };
    }
}

fn coverage(report: &Report, style: &Style) -> String {
    let coverage = &report.coverage;
    let table = |title: &'static str, rows: &[Covered]| {
        let mut table = Table::new(&["rule", "decisions", "tests", title]);
        for row in rows {
            let cell = |count: u64| if count == 0 { "-".into() } else { count.to_string() };
            table.push([escape(&row.rule), cell(row.decisions), cell(row.cases), escape(&row.sentence)]);
        }
        table.render(style)
    };
    let mut text = String::from("\n");
    match &coverage.rows {
        // The built-in ladder has more than one row for some rules.
        Some(rows) => text.push_str(&table("row of the ladder", rows)),
        None => text.push_str(&table("rule of the decider", &coverage.rules)),
    }
    let (uncovered, all) = (coverage.uncovered(), coverage.rules.len());
    let _ = writeln!(text, "\n{} of {} exercised", all - uncovered.len(), counted(all as u64, "rule"));
    if !uncovered.is_empty() {
        let words = format!("not exercised: {}", uncovered.join(", "));
        let _ = writeln!(text, "{}", style.clone().yellow().apply_to(escape(&words)));
    }
    for row in coverage.uncovered_rows() {
        if !uncovered.contains(&row.rule.as_str()) {
            let words = format!("not exercised: the row of {} for {}", row.rule, row.sentence);
            let _ = writeln!(text, "{}", style.clone().yellow().apply_to(escape(&words)));
        }
    }
    text
}
