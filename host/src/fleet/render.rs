//! A refused fleet file for people (with the place in the file) and for machines.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::Serialize;

use super::error::{ContentError, Finding, FleetError, Problem, cut, escape};

/// The most lines that an error takes: less than one screen.
const MAX_LINES: usize = 34;
/// The most characters of a line of the file that are shown.
const LINE_CHARS: usize = 160;
/// How many of them stand before the place.
const BEFORE_CHARS: usize = 60;

/// The error as people read it, without a line break at its end; at most a screen.
pub fn render(error: &FleetError, color: bool) -> String {
    let renderer = if color { Renderer::styled().hyperlink(false) } else { Renderer::plain() };
    let renderer = renderer.term_width(LINE_CHARS + 20);
    let FleetError::Content(content) = error else {
        return renderer.render(&[title(&escape(&cut(&error.to_string(), 400)))]);
    };
    let mut text = String::new();
    let mut lines = 0;
    for (at, finding) in content.findings.iter().enumerate() {
        let one = renderer.render(&[report_of(content, finding)]);
        let count = one.lines().count() + 1;
        if at > 0 && lines + count > MAX_LINES {
            let more = content.findings.len() - at;
            let noun = if more == 1 { "error" } else { "errors" };
            text.push_str(&format!("\n\nand {more} more {noun}"));
            break;
        }
        if at > 0 {
            text.push_str("\n\n");
        }
        text.push_str(&one);
        lines += count;
    }
    text
}

fn title(text: &str) -> Group<'_> {
    Group::with_title(Level::ERROR.primary_title(text.to_owned()))
}

fn report_of<'a>(content: &'a ContentError, finding: &'a Finding) -> Group<'a> {
    let source = &content.source;
    let path = escape(&content.path.display().to_string());
    let title = Level::ERROR.primary_title(finding.message());
    let mut group = match both(source, finding) {
        Some(snippet) => title.element(snippet.path(path)),
        None => {
            let excerpt = Excerpt::of(source, &finding.span);
            if excerpt.is_cut {
                // The renderer counts columns in what it is given; here that is not where the line begins.
                let origin = Origin::path(path).line(finding.line).char_column(finding.column);
                title.element(origin).element(excerpt.snippet())
            } else {
                title.element(excerpt.snippet().path(path))
            }
        }
    };
    if let Problem::UnknownField { expected, nearest, .. } = &finding.problem {
        if let Some(nearest) = nearest {
            group = group.element(Level::HELP.message(format!("did you mean `{nearest}`?")));
        }
        group = group.element(Level::NOTE.message(format!("possible here: {}", expected.join(", "))));
    }
    if let Some(hint) = &finding.hint {
        group = group.element(Level::HELP.message(escape(hint)));
    }
    group
}

/// One line of the file, cut when long, with the part that is meant.
struct Excerpt {
    line: usize,
    text: String,
    span: Range<usize>,
    is_cut: bool,
}

impl Excerpt {
    fn of(source: &str, span: &Range<usize>) -> Self {
        let line = super::position(source, span.start).0;
        let mut at = span.start.min(source.len());
        while !source.is_char_boundary(at) {
            at -= 1;
        }
        let start = source[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = source[at..].find('\n').map_or(source.len(), |newline| at + newline);
        let whole = source[start..end].trim_end_matches('\r');
        // The byte order mark is not for people, and has no width.
        let (whole, start) = match whole.strip_prefix('\u{feff}') {
            Some(rest) => (rest, start + '\u{feff}'.len_utf8()),
            None => (whole, start),
        };
        let from = at.saturating_sub(start).min(whole.len());
        let to = span.end.saturating_sub(start).clamp(from, whole.len());
        let left = char_back(whole, from, BEFORE_CHARS);
        let left = if char_forward(whole, 0, LINE_CHARS) >= whole.len() { 0 } else { left };
        let right = char_forward(whole, left, LINE_CHARS);
        let head = if left > 0 { "…" } else { "" };
        let tail = if right < whole.len() { "…" } else { "" };
        // A control character is as wide as one, so that the marks stand right.
        let shown: String =
            whole[left..right].chars().map(|c| if c.is_control() && c != '\t' { '�' } else { c }).collect();
        let cells = |upto: usize| -> usize {
            head.len()
                + whole[left..upto]
                    .chars()
                    .map(|c| if c.is_control() && c != '\t' { '�'.len_utf8() } else { c.len_utf8() })
                    .sum::<usize>()
        };
        let span = cells(from)..cells(to.min(right));
        Excerpt { line, span, is_cut: left > 0, text: format!("{head}{shown}{tail}") }
    }

    fn snippet<'a>(self) -> Snippet<'a, Annotation<'a>> {
        let annotation = AnnotationKind::Primary.span(self.span);
        Snippet::source(self.text).line_start(self.line).annotation(annotation)
    }
}

/// The place and the one that belongs to it, in one picture; `None` when there is no second one or it gets too large.
fn both<'a>(source: &'a str, finding: &'a Finding) -> Option<Snippet<'a, Annotation<'a>>> {
    let related = finding.related.as_ref()?;
    let first = related.span.start.min(finding.span.start);
    let last = related.span.end.max(finding.span.end);
    let start = source.get(..first)?.rfind('\n').map_or(0, |newline| newline + 1);
    let end = source.get(last..)?.find('\n').map_or(source.len(), |newline| last + newline);
    let text = source.get(start..end)?;
    if text.len() > 64 << 10 || text.lines().any(|line| line.len() > LINE_CHARS) || text.starts_with('\u{feff}') {
        return None;
    }
    let within = |span: &Range<usize>| span.start - start..span.end - start;
    let primary = AnnotationKind::Primary.span(within(&finding.span));
    let context = AnnotationKind::Context.span(within(&related.span)).label(related.label);
    Some(Snippet::source(text).line_start(super::position(source, start).0).annotations([primary, context]))
}

fn char_back(text: &str, from: usize, chars: usize) -> usize {
    text[..from].char_indices().rev().take(chars).last().map_or(from, |(at, _)| at)
}

fn char_forward(text: &str, from: usize, chars: usize) -> usize {
    text[from..].char_indices().nth(chars).map_or(text.len(), |(at, _)| from + at)
}

/// A refused fleet file for machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorReport {
    /// `homeostat.error/v1`.
    pub schema: &'static str,
    /// The first finding.
    #[serde(flatten)]
    pub first: ErrorReportEntry,
    /// The other findings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<ErrorReportEntry>,
}

/// One finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ErrorReportEntry {
    /// What is wrong.
    pub error: String,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The path of the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The value as the file has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The error as machines read it.
pub fn report(error: &FleetError) -> ErrorReport {
    let entry = |path: &std::path::Path| ErrorReportEntry {
        error: cut(&error.to_string(), 400),
        file: Some(path.display().to_string()),
        ..ErrorReportEntry::default()
    };
    let mut entries = match error {
        FleetError::Content(content) => content.findings.iter().map(|finding| entry_of(content, finding)).collect(),
        FleetError::NotUtf8 { path, line, column, .. } => {
            vec![ErrorReportEntry { line: Some(*line), column: Some(*column), ..entry(path) }]
        }
        FleetError::Unreadable { path, .. } | FleetError::NotAFile { path, .. } | FleetError::TooLarge { path, .. } => {
            vec![entry(path)]
        }
    };
    let first = if entries.is_empty() {
        ErrorReportEntry { error: error.to_string(), ..ErrorReportEntry::default() }
    } else {
        entries.remove(0)
    };
    ErrorReport { schema: "homeostat.error/v1", first, more: entries }
}

fn entry_of(content: &ContentError, finding: &Finding) -> ErrorReportEntry {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let hint = match &finding.problem {
        Problem::UnknownField { nearest: Some(nearest), .. } => Some(format!("did you mean `{nearest}`?")),
        _ => finding.hint.clone(),
    };
    ErrorReportEntry {
        error: finding.message(),
        file: Some(content.path.display().to_string()),
        line: Some(finding.line),
        column: Some(finding.column),
        field: some(&finding.field),
        value: some(&finding.value),
        hint,
    }
}
