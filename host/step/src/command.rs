//! The commands: one a line, words separated by spaces.

use crate::text::instant;

/// What `help` says.
pub const HELP: &str = "\x20 n, next [WHAT]    forward to the next record, or to the next WHAT
  p, prev [WHAT]    back, the same way
     WHAT is  5               so many records
              pass            an answer of the decider
              node [NODE]     a record that changes the node, or is about it
              R5 [NODE]       a new decision by that rule (rule ID for others)
              failure         something failed, or was refused
              violation       an invariant is broken
              start, input, dispatch, reserved, end       a record of that kind
              desired, completed, answered, observed, listed, adopt, restarted,
              tick, resync, policy-changed, decider-changed
                              an input of that kind
              /TEXT           a record in which TEXT occurs
  /TEXT, ?TEXT      the same as n /TEXT and p /TEXT
  g, go PLACE       7, first, last, +12.5s (after the start),
                    2026-01-01T00:00:00Z (the first record that is not earlier)
  node NODE         look at this node; node - looks at whatever changes
  nodes [TEXT]      the nodes after this record; those with TEXT in the name
  row               the row of the table that decided the node, fact by fact
  rules, rule ID    all rules; one rule and its rows
  record [all]      the record itself
  s, show           this place again
  h, help           this
  q, quit           leave; so do ^D and ^C
An empty line does the last command again.";

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To later records.
    Forward,
    /// To earlier ones.
    Back,
}

/// What to stop at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// So many records away.
    Records(u64),
    /// An answer of the decider.
    Pass,
    /// A record about this node; `None`: the one that is looked at.
    Node(Option<String>),
    /// A new decision by this rule, of this node or any.
    Rule(String, Option<String>),
    /// Something failed.
    Failure,
    /// An invariant is broken.
    Violation,
    /// A record, or an input, of this kind.
    Kind(&'static str),
    /// A record in which this occurs, in lower case.
    Text(String),
}

/// Where to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A record.
    Record(u64),
    /// The last one.
    Last,
    /// So many milliseconds after the start that is followed.
    After(u64),
    /// The first record at or after this instant.
    Instant(u64),
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Nothing: an empty line or a comment.
    Nothing,
    /// Go to a record of some kind.
    Find(Way, Target),
    /// Go to a place.
    Go(Place),
    /// Look at a node, or at whatever changes.
    Focus(Option<String>),
    /// List the nodes.
    Nodes(Option<String>),
    /// The row that decided.
    Row,
    /// All rules.
    Rules,
    /// One rule.
    Rule(String),
    /// The record, all of it or the beginning.
    Record {
        /// All of it.
        all: bool,
    },
    /// Show this place again.
    Show,
    /// List the commands.
    Help,
    /// Leave.
    Quit,
}

/// What is wrong with a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// No such command.
    #[error("unknown command {word:?}; `help` lists them")]
    Unknown {
        /// Its first word.
        word: String,
    },
    /// It does not know what to stop at.
    #[error("{command} {word}: not something to stop at; `help` lists what is")]
    Target {
        /// The command.
        command: String,
        /// What it was given.
        word: String,
    },
    /// It needs one more word.
    #[error("{command} needs {what}")]
    Needs {
        /// The command.
        command: String,
        /// What is missing.
        what: &'static str,
    },
    /// More words than it takes.
    #[error("{command}: {word:?} is one word too many")]
    TooMany {
        /// The command.
        command: String,
        /// The first one it does not take.
        word: String,
    },
    /// Not a place.
    #[error("go {word}: not a place; it takes a record's number, first, last, +12.5s, or 2026-01-01T00:00:00Z")]
    Place {
        /// What it was given.
        word: String,
    },
    /// No such record.
    #[error("there is no record {seq}; the last one is {last}")]
    NoRecord {
        /// What was asked for.
        seq: u64,
        /// The last one.
        last: u64,
    },
    /// Nothing in the journal has that name.
    #[error("there is no node {name:?} in this journal")]
    NoNode {
        /// The name.
        name: String,
    },
    /// No node is looked at.
    #[error("which node? `node NAME` says")]
    NoFocus,
    /// No decider in the journal has that rule.
    #[error("there is no rule {id:?} in this journal; `rules` lists them")]
    NoRule {
        /// The id.
        id: String,
    },
}

const KINDS: [&str; 16] = [
    "start",
    "input",
    "dispatch",
    "reserved",
    "end",
    "desired",
    "completed",
    "answered",
    "observed",
    "listed",
    "adopt",
    "restarted",
    "policy-changed",
    "decider-changed",
    "tick",
    "resync",
];

impl Command {
    /// Reads one line.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(line: &str) -> Result<Self, CommandError> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(Command::Nothing);
        }
        for (mark, way) in [('/', Way::Forward), ('?', Way::Back)] {
            if let Some(text) = line.strip_prefix(mark) {
                return Ok(Command::Find(way, wanted_text(line, text)?));
            }
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let command = word.to_owned();
        let mut words = rest.split_whitespace().map(str::to_owned);
        let parsed = match word {
            "n" | "next" | "p" | "prev" => {
                let way = if word.starts_with('n') { Way::Forward } else { Way::Back };
                if let Some(text) = rest.strip_prefix('/') {
                    return Ok(Command::Find(way, wanted_text(word, text)?));
                }
                Command::Find(way, target(word, &mut words)?)
            }
            "g" | "go" => Command::Go(place(&words.next().ok_or(CommandError::Needs {
                command: command.clone(),
                what: "a place: a record's number, first, last, +12.5s",
            })?)?),
            "node" => match words.next().ok_or(CommandError::NoFocus)? {
                none if none == "-" => Command::Focus(None),
                name => Command::Focus(Some(name)),
            },
            "nodes" => Command::Nodes(words.next()),
            "row" => Command::Row,
            "rules" => Command::Rules,
            "rule" => Command::Rule(
                words.next().ok_or(CommandError::Needs { command: command.clone(), what: "the id of a rule" })?,
            ),
            "record" => match words.next() {
                None => Command::Record { all: false },
                Some(all) if all == "all" => Command::Record { all: true },
                Some(word) => return Err(CommandError::TooMany { command, word }),
            },
            "s" | "show" => Command::Show,
            "h" | "help" => Command::Help,
            "q" | "quit" => Command::Quit,
            _ => return Err(CommandError::Unknown { word: command }),
        };
        match words.next() {
            None => Ok(parsed),
            Some(word) => Err(CommandError::TooMany { command, word }),
        }
    }
}

fn wanted_text(command: &str, text: &str) -> Result<Target, CommandError> {
    match text.trim() {
        "" => Err(CommandError::Needs { command: command.to_owned(), what: "a text to look for" }),
        text => Ok(Target::Text(text.to_lowercase())),
    }
}

fn target(command: &str, words: &mut impl Iterator<Item = String>) -> Result<Target, CommandError> {
    let Some(word) = words.next() else { return Ok(Target::Records(1)) };
    if let Ok(count) = word.parse::<u64>() {
        return Ok(Target::Records(count));
    }
    let kind = KINDS.iter().find(|kind| **kind == word);
    Ok(match (word.as_str(), kind) {
        (_, Some(kind)) => Target::Kind(kind),
        ("pass", _) => Target::Pass,
        ("node", _) => Target::Node(words.next()),
        ("failure", _) => Target::Failure,
        ("violation", _) => Target::Violation,
        ("rule", _) => {
            let needs = CommandError::Needs { command: format!("{command} rule"), what: "the id of a rule" };
            Target::Rule(words.next().ok_or(needs)?, words.next())
        }
        (id, _) if id.strip_prefix('R').is_some_and(|number| number.parse::<u8>().is_ok()) => {
            Target::Rule(word, words.next())
        }
        _ => return Err(CommandError::Target { command: command.to_owned(), word }),
    })
}

fn place(word: &str) -> Result<Place, CommandError> {
    let wrong = || CommandError::Place { word: word.to_owned() };
    match word {
        "first" => Ok(Place::Record(0)),
        "last" => Ok(Place::Last),
        _ if word.starts_with('+') => span_ms(&word[1..]).map(Place::After).ok_or_else(wrong),
        _ => match word.parse() {
            Ok(seq) => Ok(Place::Record(seq)),
            Err(_) => instant(word).map(Place::Instant).ok_or_else(wrong),
        },
    }
}

/// `12.345s`, as records are shown, or a length such as `5m` or `1h30m`.
fn span_ms(text: &str) -> Option<u64> {
    if let Some(seconds) = text.strip_suffix('s')
        && let Some((whole, part)) = seconds.split_once('.')
        && (1..=3).contains(&part.len())
        && part.bytes().all(|digit| digit.is_ascii_digit())
    {
        let whole: u64 = whole.parse().ok()?;
        let part: u64 = format!("{part:0<3}").parse().ok()?;
        return whole.checked_mul(1_000)?.checked_add(part);
    }
    u64::try_from(humantime::parse_duration(text).ok()?.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn commands_are_read() {
        let forward = |target| Command::Find(Way::Forward, target);
        for (line, command) in [
            ("  ", Command::Nothing),
            ("# n", Command::Nothing),
            ("n", forward(Target::Records(1))),
            ("next 12", forward(Target::Records(12))),
            ("n R5", forward(Target::Rule("R5".into(), None))),
            ("n rule drain web-0", forward(Target::Rule("drain".into(), Some("web-0".into())))),
            ("p node", Command::Find(Way::Back, Target::Node(None))),
            ("n observed", forward(Target::Kind("observed"))),
            ("/Exit Status 1", forward(Target::Text("exit status 1".into()))),
            ("p /x", Command::Find(Way::Back, Target::Text("x".into()))),
            ("?x", Command::Find(Way::Back, Target::Text("x".into()))),
            ("g +1.5s", Command::Go(Place::After(1_500))),
            ("go 1970-01-01T00:00:01Z", Command::Go(Place::Instant(1_000))),
            ("node -", Command::Focus(None)),
            ("record all", Command::Record { all: true }),
            ("q", Command::Quit),
        ] {
            assert_eq!(Command::parse(line).unwrap(), command, "{line}");
        }
    }

    #[test]
    fn what_is_no_command_is_named() {
        for (line, why) in [
            ("fly", "unknown command \"fly\""),
            ("n fly", "n fly: not something to stop at"),
            ("n -1", "not something to stop at"),
            ("n R999", "not something to stop at"),
            ("go", "go needs a place"),
            ("go +x", "not a place"),
            ("go +99999999999999999999s", "not a place"),
            ("go 99999999999999999999", "not a place"),
            ("go 1 2", "one word too many"),
            ("node", "which node?"),
            ("rule", "needs the id"),
            ("/", "needs a text"),
            ("n /", "needs a text"),
            ("record half", "one word too many"),
            ("show me", "one word too many"),
        ] {
            let error = Command::parse(line).unwrap_err().to_string();
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
