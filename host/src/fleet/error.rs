//! Why a fleet file is refused. Nothing of a refused file is taken over (SPEC 2).

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use engine::shape::ShapeError;

use crate::backends::TemplateError;

/// Why a fleet file is refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FleetError {
    /// It cannot be opened or read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: Arc<std::io::Error>,
    },
    /// It is not a regular file.
    #[error("{}: {what}, not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// It is too large. It was not read.
    #[error("{}: {size_bytes} bytes, over the limit of {limit_bytes} for a fleet file", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How large it is, in bytes (at least).
        size_bytes: u64,
        /// How large it may be, in bytes.
        limit_bytes: u64,
    },
    /// It is not text.
    #[error("{}:{line}:{column}: the byte 0x{byte:02x} is not UTF-8", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The first byte that is not UTF-8.
        byte: u8,
        /// Its line, from 1.
        line: usize,
        /// Its column in characters, from 1.
        column: usize,
    },
    /// Its content is wrong.
    #[error(transparent)]
    Content(#[from] ContentError),
}

/// What is wrong with a file's content: at least one finding, in the order of the file.
#[derive(Clone, Debug)]
pub struct ContentError {
    /// The file.
    pub path: PathBuf,
    /// Its text; spans point into it.
    pub source: Arc<str>,
    /// What was found, at most [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
}

/// How many findings are kept of one file.
pub const MAX_FINDINGS: usize = 10;

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.findings.first() else {
            return write!(f, "{}: not a fleet file", self.path.display());
        };
        write!(f, "{}:{}:{}: {}", self.path.display(), first.line, first.column, first.problem)?;
        match self.findings.len() {
            1 => Ok(()),
            many => write!(f, " (and {} more)", many - 1),
        }
    }
}

impl std::error::Error for ContentError {}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub problem: Problem,
    /// The path of the field, such as `group[1].count`; empty when the text is not TOML.
    pub field: String,
    /// The value as the file has it, cut when long; empty when there is none.
    pub value: String,
    /// Where in the source, in bytes.
    pub span: Range<usize>,
    /// The line of its start, from 1.
    pub line: usize,
    /// The column of its start in characters, from 1.
    pub column: usize,
    /// Another place that belongs to it.
    pub related: Option<Related>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Another place that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// Where in the source, in bytes.
    pub span: Range<usize>,
    /// What is there.
    pub label: &'static str,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is not TOML.
    #[error("not TOML: {message}")]
    Syntax {
        /// The parser's words.
        message: String,
    },
    /// A field that no fleet file has.
    #[error("{field}: unknown field")]
    UnknownField {
        /// Its path.
        field: String,
        /// The fields that can be there.
        expected: Vec<&'static str>,
        /// The one that was probably meant.
        nearest: Option<&'static str>,
    },
    /// A field that every fleet file has.
    #[error("{field}: missing; it must be {expected}")]
    Missing {
        /// Its path.
        field: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// A value of another type.
    #[error("{field}: {value} is {found}; it must be {expected}")]
    WrongType {
        /// Its path.
        field: String,
        /// The value as the file has it.
        value: String,
        /// What it is.
        found: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
    /// A value that cannot work.
    #[error("{field}: {value}: {reason}")]
    Value {
        /// Its path.
        field: String,
        /// The value as the file has it.
        value: String,
        /// Why not.
        reason: String,
    },
    /// The shape is refused (SPEC 2).
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The provider can never make the template.
    #[error("{group}.{source}")]
    Template {
        /// The path of the group.
        group: String,
        /// The provider's words.
        source: TemplateError,
    },
}

impl Finding {
    /// The message without the position, for people. One line, and never long.
    pub fn message(&self) -> String {
        cut(&escape(&self.problem.to_string()), 400)
    }
}

/// Control characters, made visible.
pub(crate) fn escape(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len() + 8), |mut line, c| {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
        line
    })
}

/// The first `most` characters, with a mark when there were more.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
