//! Where a verb writes and whom it asks: results to one side, progress and questions to the other.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use console::Style;
use serde::Serialize;
use step::text::escape;

use crate::error::ClientError;

/// Two outputs and an input.
pub struct Screen {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    input: Box<dyn BufRead>,
    /// Whether machines read the output.
    pub is_json: bool,
    /// Whether the output takes colours.
    pub out_color: bool,
    /// Whether the other side takes colours.
    pub err_color: bool,
    /// Whether a person can be asked.
    pub can_ask: bool,
    /// Width and height of the terminal that the output goes to; none when it is something else.
    pub size: Option<(usize, usize)>,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").field("is_json", &self.is_json).field("size", &self.size).finish_non_exhaustive()
    }
}

impl Screen {
    /// The program's own.
    pub fn system(is_json: bool, out_color: bool, err_color: bool) -> Self {
        let (height, width) = console::Term::stdout().size();
        Screen {
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            input: Box::new(io::BufReader::new(io::stdin())),
            is_json,
            out_color,
            err_color,
            can_ask: io::stdin().is_terminal() && io::stderr().is_terminal(),
            size: io::stdout().is_terminal().then_some((usize::from(width), usize::from(height))),
        }
    }

    /// Others, for trials: no colours, and a person who types what `input` has, if it has anything.
    pub fn of(out: impl Write + 'static, err: impl Write + 'static, input: &str) -> Self {
        Screen {
            out: Box::new(out),
            err: Box::new(err),
            input: Box::new(io::Cursor::new(input.to_owned())),
            is_json: false,
            out_color: false,
            err_color: false,
            can_ask: !input.is_empty(),
            size: None,
        }
    }

    /// A style for the output.
    pub fn style(&self) -> Style {
        Style::new().force_styling(self.out_color)
    }

    /// How wide lines may be; none when they may be as long as they are.
    pub fn width(&self) -> Option<usize> {
        self.size.map(|(width, _)| width)
    }

    /// Asks the terminal again how large it is.
    pub fn measure(&mut self) {
        if self.size.is_some() {
            let (height, width) = console::Term::stdout().size();
            self.size = Some((usize::from(width), usize::from(height)));
        }
    }

    /// Writes a text and a line break to the output.
    ///
    /// # Errors
    ///
    /// Nobody reads any more, or the system refuses.
    pub fn print(&mut self, text: &str) -> Result<(), ClientError> {
        self.out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            self.out.write_all(b"\n")?;
        }
        Ok(self.out.flush()?)
    }

    /// Writes to the output as it is: for frames that are drawn in place.
    ///
    /// # Errors
    ///
    /// As [`Screen::print`].
    pub fn draw(&mut self, frame: &str) -> Result<(), ClientError> {
        self.out.write_all(frame.as_bytes())?;
        Ok(self.out.flush()?)
    }

    /// Writes a value to the output, as a document.
    ///
    /// # Errors
    ///
    /// As [`Screen::print`].
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), ClientError> {
        let text = serde_json::to_string_pretty(value).map_err(|error| ClientError::Failed(error.to_string()))?;
        self.print(&text)
    }

    /// Writes a value to the output, in a line.
    ///
    /// # Errors
    ///
    /// As [`Screen::print`].
    pub fn json_line(&mut self, value: &impl Serialize) -> Result<(), ClientError> {
        let text = serde_json::to_string(value).map_err(|error| ClientError::Failed(error.to_string()))?;
        self.print(&text)
    }

    /// Says something that is no result. Nobody may be left to hear it.
    pub fn note(&mut self, text: &str) {
        for line in text.lines() {
            let _ = writeln!(self.err, "{}", escape(line));
        }
        let _ = self.err.flush();
    }

    /// Reads the input to its end; at most so many bytes and one more, which says that there were more.
    pub(crate) fn read_input(&mut self, most: u64) -> Result<Vec<u8>, ClientError> {
        let mut bytes = Vec::new();
        Read::take(&mut self.input, most.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Asks, and reads a line.
    pub(crate) fn ask(&mut self, question: &str) -> Result<String, ClientError> {
        write!(self.err, "{} ", escape(question))?;
        self.err.flush()?;
        let mut answer = String::new();
        // What is longer is no answer to anything that is asked.
        Read::take(&mut self.input, 4096).read_line(&mut answer)?;
        if !answer.ends_with('\n') {
            let _ = writeln!(self.err);
        }
        Ok(answer.trim().to_owned())
    }
}
