//! Where a verb writes: text or JSON, with or without colour, and errors at the end.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use serde::Serialize;

use super::exit::Failure;
use super::priority::{self, Priority};
use crate::fleet::{self, ErrorReport, ErrorReportEntry, cut, escape};

/// What the daemon says may name many nodes.
const CLIENT_CHARS: usize = 4_000;

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For machines.
    Json,
}

/// When colours are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set or TERM is `dumb`.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    fn wanted(self, terminal: bool) -> bool {
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
                terminal && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
            }
        }
    }
}

/// Where a verb writes.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// What is written.
    pub format: Format,
    /// Whether standard output takes colours.
    pub out_color: bool,
    /// Whether standard error takes colours.
    pub err_color: bool,
    /// Whether systemd's journal reads standard error, and each line says how bad it is.
    pub to_journal: bool,
}

impl Terminal {
    /// As the command line asks.
    pub fn new(format: Format, color: Color) -> Self {
        Terminal {
            format,
            out_color: color.wanted(std::io::stdout().is_terminal()),
            err_color: color.wanted(std::io::stderr().is_terminal()),
            to_journal: priority::is_read_by_journal(),
        }
    }

    /// Whether machines read it.
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Writes a text and a line break to standard output. A reader that has gone is [`Failure::Closed`].
    pub fn print(&self, text: &str) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        Ok(out.flush()?)
    }

    /// Writes a value as indented JSON to standard output.
    pub fn print_json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(anyhow::Error::from)?;
        self.print(&text)
    }

    /// A style for standard output.
    pub fn style(&self) -> console::Style {
        console::Style::new().force_styling(self.out_color)
    }

    /// Says something to standard error that is no failure: for people only.
    pub fn warn(&self, text: &str) {
        if !self.is_json() {
            let style = console::Style::new().force_styling(self.err_color);
            let line = format!("{}: {}", style.yellow().bold().apply_to("note"), escape(text));
            priority::write(&line, Priority::Warning, self.to_journal);
        }
    }

    /// Writes a failure to standard error: for people, or as one line of JSON. Nobody may be left to read it.
    pub fn print_failure(&self, failure: &Failure) {
        if let Some(text) = self.failure_text(failure) {
            priority::write(&text, Priority::Error, self.to_journal);
        }
    }

    /// A failure in words, or as one line of JSON; `None` when there is nothing to say.
    pub fn failure_text(&self, failure: &Failure) -> Option<String> {
        Some(match failure {
            Failure::Closed => return None,
            Failure::Fleet(error) if self.is_json() => json_line(&fleet::report(error)),
            Failure::Fleet(error) => fleet::render(error, self.err_color),
            Failure::Input(error) if self.is_json() => json_line(&one(ErrorReportEntry {
                error: cut(&error.message, 400),
                file: error.file.clone(),
                line: error.line,
                column: error.column,
                field: error.field.clone(),
                value: error.value.clone(),
                hint: None,
            })),
            Failure::Input(error) => self.error_line(&error.to_string()),
            Failure::Client(error) if self.is_json() => json_line(&one(ErrorReportEntry {
                error: cut(&error.to_string(), CLIENT_CHARS),
                hint: error.remedy(),
                ..ErrorReportEntry::default()
            })),
            // Its lines are whole lines: each node that holds something up has one.
            Failure::Client(error) => {
                let text = cut(&error.to_string(), CLIENT_CHARS);
                let (first, more) = text.split_once('\n').map_or((text.as_str(), ""), |(first, more)| (first, more));
                let mut text = self.error_line(first);
                more.lines().for_each(|line| text.push_str(&format!("\n{}", escape(line))));
                match error.remedy() {
                    Some(remedy) => format!("{text}\n  {}", escape(&remedy)),
                    None => text,
                }
            }
            Failure::Failed(error) if self.is_json() => json_line(&one(ErrorReportEntry {
                error: cut(&format!("{error:#}"), 400),
                ..ErrorReportEntry::default()
            })),
            Failure::Failed(error) => self.error_line(&format!("{error:#}")),
        })
    }

    fn error_line(&self, text: &str) -> String {
        let style = console::Style::new().force_styling(self.err_color);
        format!("{}: {}", style.red().bold().apply_to("error"), escape(&cut(text, 400)))
    }
}

fn one(first: ErrorReportEntry) -> ErrorReport {
    ErrorReport { schema: "homeostat.error/v1", first, more: Vec::new() }
}

fn json_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":{:?}}}", error.to_string()))
}

/// A word of a shell command.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
