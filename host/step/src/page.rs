//! What is shown: lines of at most 80 columns.

use console::Style;

use crate::text::{fit, pad, wrap};

/// No line is longer, in columns.
pub const WIDTH: usize = 80;

/// A page in the making.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    colour: bool,
}

impl Page {
    pub fn new(colour: bool) -> Self {
        Page { text: String::new(), colour }
    }

    fn style(&self) -> Style {
        Style::new().force_styling(self.colour)
    }

    /// A heading.
    pub fn title(&mut self, text: &str) {
        let line = self.style().bold().apply_to(fit(text, WIDTH)).to_string();
        self.push(&line);
    }

    /// Text, broken into lines; those after the first are indented.
    pub fn say(&mut self, text: &str) {
        self.indented("", text);
    }

    /// Text behind a beginning that stands once.
    pub fn indented(&mut self, first: &str, text: &str) {
        let indent = console::measure_text_width(first).clamp(2, 20);
        for (at, line) in wrap(text, WIDTH - indent).iter().enumerate() {
            let start = if at == 0 { first.to_owned() } else { " ".repeat(indent) };
            self.push(&format!("{start}{line}"));
        }
    }

    /// Something went wrong.
    pub fn alarm(&mut self, text: &str) {
        for line in wrap(text, WIDTH) {
            let line = self.style().red().apply_to(line).to_string();
            self.push(&line);
        }
    }

    /// Something that only explains.
    pub fn aside(&mut self, text: &str) {
        for line in wrap(text, WIDTH) {
            let line = self.style().dim().apply_to(line).to_string();
            self.push(&line);
        }
    }

    /// A row of cells, each wrapped in its column; the last one has what is left of the line. `strong` makes it stand out.
    pub fn row(&mut self, cells: &[(&str, usize)], strong: bool) {
        let mut columns = Vec::new();
        let mut left = WIDTH;
        for (at, (text, width)) in cells.iter().enumerate() {
            let width = if at + 1 == cells.len() { left } else { (*width).min(left) };
            left = left.saturating_sub(width + 1);
            columns.push((wrap(text, width), width));
        }
        let height = columns.iter().map(|(lines, _)| lines.len()).max().unwrap_or_default();
        for at in 0..height {
            let cell = |(lines, width): &(Vec<String>, usize)| pad(lines.get(at).map_or("", String::as_str), *width);
            let line = columns.iter().map(cell).collect::<Vec<_>>().join(" ");
            let line = line.trim_end();
            match strong {
                true => {
                    let line = self.style().bold().apply_to(line).to_string();
                    self.push(&line);
                }
                false => self.push(line),
            }
        }
    }

    /// A line that is known to fit.
    pub fn line(&mut self, text: &str) {
        self.push(text);
    }

    /// An empty line.
    pub fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    pub fn finish(self) -> String {
        let text = self.text.trim_end_matches('\n');
        if text.is_empty() { String::new() } else { format!("{text}\n") }
    }
}
