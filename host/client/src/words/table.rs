//! Columns that fit a width.

use console::{measure_text_width, truncate_str};
use step::text::escape;

use super::text::Pen;

/// A column is not made narrower than this, the last one apart.
const LEAST: usize = 8;
/// What the last column keeps, if other columns can give way.
const LAST_LEAST: usize = 24;

/// Rows under a heading. The last column takes what is left of a line; others may give way to it.
#[derive(Clone, Debug)]
pub struct Table {
    heading: Vec<&'static str>,
    /// Columns that may go, the first to go first.
    spare: Vec<usize>,
    rows: Vec<Vec<(String, Option<Tint>)>>,
}

/// How a cell looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tint {
    /// As it should be.
    Good,
    /// On its way.
    Busy,
    /// Failed.
    Bad,
    /// Not worth a look.
    Dim,
}

impl Table {
    /// With no rows yet.
    pub fn new(heading: &[&'static str]) -> Self {
        Table { heading: heading.to_vec(), spare: Vec::new(), rows: Vec::new() }
    }

    /// These columns go when there is no room, in this order.
    pub fn spare(mut self, columns: &[usize]) -> Self {
        self.spare = columns.to_vec();
        self
    }

    /// Adds a row. Control characters are made visible.
    pub fn push<'c>(&mut self, cells: impl IntoIterator<Item = &'c str>) {
        self.rows.push(cells.into_iter().map(|cell| (escape(cell), None)).collect());
    }

    pub(crate) fn push_tinted(&mut self, cells: impl IntoIterator<Item = (String, Option<Tint>)>) {
        self.rows.push(cells.into_iter().map(|(cell, tint)| (escape(&cell), tint)).collect());
    }

    /// Its lines, each with a line break.
    pub fn render(&self, pen: &Pen) -> String {
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|(cell, _)| measure_text_width(cell));
            cells.chain([measure_text_width(self.heading[column])]).max().unwrap_or_default()
        };
        let mut columns: Vec<(usize, usize)> = (0..self.heading.len()).map(|column| (column, widest(column))).collect();
        let last = self.heading.len().saturating_sub(1);
        if let Some(width) = pen.width {
            self.fit(&mut columns, last, width);
        }
        let line = |cell: &dyn Fn(usize) -> (String, Option<Tint>)| {
            let mut line = String::new();
            for &(column, wide) in &columns {
                let (text, tint) = cell(column);
                let text = truncate_str(&text, wide, "…");
                let fill = if column == last { 0 } else { wide.saturating_sub(measure_text_width(&text)) + 2 };
                line.push_str(&match tint {
                    None => text.to_string(),
                    Some(Tint::Good) => pen.green(&text),
                    Some(Tint::Busy) => pen.yellow(&text),
                    Some(Tint::Bad) => pen.red(&text),
                    Some(Tint::Dim) => pen.dim(&text),
                });
                line.push_str(&" ".repeat(fill));
            }
            format!("{}\n", line.trim_end())
        };
        let mut text = line(&|column| (self.heading[column].to_owned(), Some(Tint::Dim)));
        for row in &self.rows {
            text.push_str(&line(&|column| row.get(column).cloned().unwrap_or_default()));
        }
        text
    }

    /// Columns go, then get narrower, until the last one has room.
    fn fit(&self, columns: &mut Vec<(usize, usize)>, last: usize, width: usize) {
        let taken = |columns: &[(usize, usize)]| -> usize {
            columns.iter().filter(|(column, _)| *column != last).map(|(_, wide)| wide + 2).sum()
        };
        let wanted = columns.last().map_or(0, |(_, wide)| *wide).min(LAST_LEAST);
        for spare in &self.spare {
            if taken(columns) + wanted > width {
                columns.retain(|(column, _)| column != spare);
            }
        }
        let over = (taken(columns) + wanted).saturating_sub(width);
        if let Some(widest) = columns.iter_mut().filter(|(column, _)| *column != last).max_by_key(|(_, wide)| *wide) {
            widest.1 = widest.1.saturating_sub(over).max(LEAST.min(widest.1));
        }
        let left = width.saturating_sub(taken(columns));
        if let Some((_, wide)) = columns.last_mut() {
            *wide = (*wide).min(left.max(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_it_may_be() {
        let mut table = Table::new(&["NODE", "ATTEMPT", "STAGE", "WHY"]).spare(&[1]);
        table.push([
            "web-0",
            "a12",
            "bootstrap-running",
            "waits for 狐狐狐狐狐狐狐狐狐狐狐狐狐狐狐狐狐狐狐狐狐狐 to come",
        ]);
        table.push(["a-group-with-a-long-name-12345", "a1", "dormant", "\u{1b}[31mred\n\u{202e}"]);
        let whole = table.render(&Pen::plain(0));
        assert!(whole.contains("\\u{1b}[31mred\\n\\u{202e}"), "{whole}");
        for width in [30, 40, 60, 80, 100, 200] {
            let text = table.render(&Pen { width: Some(width), ..Pen::plain(0) });
            for line in text.lines() {
                assert!(measure_text_width(line) <= width, "{width}: {line}");
            }
            assert_eq!(text.contains("ATTEMPT"), width >= 100, "{text}");
        }
    }
}
