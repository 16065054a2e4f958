//! Columns of text, each as wide as its widest cell.

use console::{Style, measure_text_width};

/// Rows of cells under a heading.
#[derive(Clone, Debug)]
pub struct Table {
    heading: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with no rows yet.
    pub fn new(heading: &[&'static str]) -> Self {
        Table { heading: heading.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub fn push(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    /// The table as text, each line indented by two, with a line break at the end of each.
    pub fn render(&self, style: &Style) -> String {
        let columns = self.heading.len();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| measure_text_width(cell));
            cells.chain([measure_text_width(self.heading[column])]).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |cells: Vec<&str>| {
            let mut line = String::from("  ");
            for (column, cell) in cells.iter().enumerate() {
                line.push_str(cell);
                if column + 1 < columns {
                    line.push_str(&" ".repeat(widths[column].saturating_sub(measure_text_width(cell)) + 2));
                }
            }
            line.trim_end().to_owned()
        };
        let mut text = format!("{}\n", style.clone().dim().apply_to(line(self.heading.clone())));
        for row in &self.rows {
            text.push_str(&line(row.iter().map(String::as_str).collect()));
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["node", "rule"]);
        table.push(["web-10".into(), "R0".into()]);
        table.push(["ü".into(), "R17".into()]);
        assert_eq!(table.render(&Style::new()), "  node    rule\n  web-10  R0\n  ü       R17\n");
    }
}
