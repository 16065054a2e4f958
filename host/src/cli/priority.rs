//! Priorities for the journal of systemd: where it reads standard error line by line, each line says how bad it is (sd-daemon(3)).

use std::ffi::OsString;
use std::io::{self, Write};

use rustix::fs::fstat;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// How bad a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// It does not work.
    Error = 3,
    /// It works, and somebody should look.
    Warning = 4,
    /// Good to know.
    Info = 6,
}

impl Priority {
    /// By the words that notices use.
    pub fn of(level: &str) -> Self {
        match level {
            "error" => Priority::Error,
            "warning" => Priority::Warning,
            _ => Priority::Info,
        }
    }
}

/// Whether standard error is a stream to the journal: the variable names its device and inode, so that a child whose standard
/// error goes elsewhere is not misled.
pub fn is_read_by_journal() -> bool {
    let is_it = |named: OsString| {
        let found = fstat(std::io::stderr()).ok()?;
        let (device, inode) = named.to_str()?.split_once(':')?;
        Some(device.parse::<u64>().ok()? == found.st_dev && inode.parse::<u64>().ok()? == found.st_ino)
    };
    std::env::var_os("JOURNAL_STREAM").and_then(is_it).unwrap_or(false)
}

/// Writes lines to standard error, each with its priority where the journal reads them. Nobody may be left to read them.
pub fn write(text: &str, priority: Priority, to_journal: bool) {
    let mut out = marked(text, priority, to_journal);
    out.push('\n');
    // In one piece: lines of others do not come in between.
    let _ = std::io::stderr().lock().write_all(out.as_bytes());
}

/// Standard error for traces: what is written at once is a line.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    pub to_journal: bool,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { mark: self.to_journal.then_some(Priority::Info) }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Line {
        let priority = match *meta.level() {
            Level::ERROR => Priority::Error,
            Level::WARN => Priority::Warning,
            _ => Priority::Info,
        };
        Line { mark: self.to_journal.then_some(priority) }
    }
}

/// A line of a trace.
#[derive(Debug)]
pub struct Line {
    /// What it begins with, until it has begun.
    mark: Option<Priority>,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(priority) = self.mark.take() {
            let mut line = format!("<{}>", priority as u8).into_bytes();
            line.extend_from_slice(bytes);
            std::io::stderr().lock().write_all(&line)?;
            return Ok(bytes.len());
        }
        std::io::stderr().lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn marked(text: &str, priority: Priority, to_journal: bool) -> String {
    if !to_journal {
        return text.to_owned();
    }
    let lines: Vec<String> = text.lines().map(|line| format!("<{}>{line}", priority as u8)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_priority() {
        assert_eq!(marked("a\nb", Priority::Error, true), "<3>a\n<3>b");
        assert_eq!(marked("a\nb", Priority::Error, false), "a\nb");
        let all = ["error", "warning", "info", "?"].map(|level| Priority::of(level) as u8);
        assert_eq!(all, [3, 4, 6, 6]);
    }
}
