//! A table that is drawn again in place.

use std::io::{self, Write};

use console::{Term, measure_text_width};

/// Draws frames over each other: one write for each, so that nothing flickers; the cursor comes back at the end.
#[derive(Debug)]
pub struct LiveTable {
    term: Term,
    /// Widths of the lines on the screen: after a resize they may have been wrapped.
    drawn: Vec<usize>,
    hidden: bool,
}

impl LiveTable {
    /// On a terminal, such as [`Term::stdout`]. Nothing is written yet.
    pub fn new(term: Term) -> Self {
        LiveTable { term, drawn: Vec::new(), hidden: false }
    }

    /// Width and height that a frame may have.
    pub fn size(&self) -> (usize, usize) {
        let (height, width) = self.term.size();
        // The last column and the last line are left free: filling them makes terminals wrap and scroll.
        (usize::from(width).saturating_sub(1).max(10), usize::from(height).saturating_sub(1).max(3))
    }

    /// Replaces the frame.
    pub fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let mut frame = self.erase();
        if !self.hidden {
            frame.push_str("\x1b[?25l");
            self.hidden = true;
        }
        for line in lines {
            frame.push_str(line);
            frame.push_str("\x1b[K\n");
        }
        frame.push_str("\x1b[J");
        self.drawn = lines.iter().map(|line| measure_text_width(line)).collect();
        self.write(&frame)
    }

    /// Writes lines that stay, above the frame; it is drawn again with the next [`LiveTable::draw`].
    pub fn print_above(&mut self, text: &str) -> io::Result<()> {
        let mut frame = self.erase();
        for line in text.lines() {
            frame.push_str(line);
            frame.push_str("\x1b[K\n");
        }
        frame.push_str("\x1b[J");
        self.drawn.clear();
        self.write(&frame)
    }

    /// Leaves the last frame where it is and brings the cursor back.
    pub fn finish(&mut self) -> io::Result<()> {
        self.drawn.clear();
        if std::mem::take(&mut self.hidden) {
            return self.write("\x1b[?25h");
        }
        Ok(())
    }

    /// Moves to the first line of the frame.
    fn erase(&self) -> String {
        let (width, up) = (usize::from(self.term.size().1).max(1), &self.drawn);
        match up.iter().map(|line| line.div_ceil(width).max(1)).sum::<usize>() {
            0 => String::new(),
            up => format!("\r\x1b[{up}A"),
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.term.write_all(text.as_bytes())?;
        self.term.flush()
    }
}

impl Drop for LiveTable {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
