//! A scenario file: settings, then cases; a case is commands, what they brought indented below, comments.

use decider::Rule;

use crate::command::Command;
use crate::words::split;

/// Why a file is no scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Malformed {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

impl Malformed {
    pub(crate) fn new(line: usize, why: impl Into<String>) -> Self {
        Malformed { line, why: why.into() }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// A comment, an empty line, the title.
    Verbatim(String),
    Command {
        line: usize,
        text: String,
        command: Box<Command>,
    },
    /// What the command above it brought.
    Output(String),
}

/// One test of a file.
#[derive(Clone, Debug)]
pub struct Case {
    /// What `test` calls it; none in a file without.
    pub name: Option<String>,
    /// Its first line, from 1.
    pub line: usize,
    pub(crate) items: Vec<Item>,
}

/// A scenario file.
#[derive(Clone, Debug)]
pub struct Script {
    pub(crate) preamble: Vec<Item>,
    /// Its tests, in order; at least one.
    pub cases: Vec<Case>,
}

/// No file has more lines.
const MAX_LINES: usize = 200_000;

impl Script {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The first line that is not of the language.
    pub fn parse(text: &str) -> Result<Script, Malformed> {
        let mut preamble: Option<Vec<Item>> = None;
        let mut cases: Vec<Case> = Vec::new();
        let mut current = Case { name: None, line: 1, items: Vec::new() };
        // Some editors put a byte order mark first.
        for (at, raw) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
            let (number, line) = (at + 1, raw.trim_end());
            if number > MAX_LINES {
                return Err(Malformed::new(number, format!("a file of more than {MAX_LINES} lines")));
            }
            // A line of nothing but spaces is empty, wherever it stands.
            if line.is_empty() || line.starts_with('#') {
                current.items.push(Item::Verbatim(line.into()));
                continue;
            }
            if line.starts_with(char::is_whitespace) {
                if !current.items.iter().any(|item| matches!(item, Item::Command { .. })) {
                    return Err(Malformed::new(
                        number,
                        "an indented line is what a command brought, and there is none above",
                    ));
                }
                current.items.push(Item::Output(line.trim_start().into()));
                continue;
            }
            let words = split(line).map_err(|why| Malformed::new(number, why))?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if let ["test", name @ ..] = words.as_slice() {
                let name = name.join(" ");
                let done = std::mem::replace(&mut current, Case { name: None, line: number, items: Vec::new() });
                match preamble {
                    None => preamble = Some(settings(done)?),
                    Some(_) => cases.push(done),
                }
                if name.trim().is_empty() {
                    return Err(Malformed::new(number, "a test has a name"));
                }
                if cases.iter().any(|case| case.name.as_ref() == Some(&name)) {
                    return Err(Malformed::new(number, format!("there is a test {name:?} already")));
                }
                current.name = Some(name);
                current.items.push(Item::Verbatim(line.into()));
                continue;
            }
            let command = Command::parse(&words).map_err(|why| Malformed::new(number, why))?;
            current.items.push(Item::Command { line: number, text: line.into(), command: Box::new(command) });
        }
        cases.push(current);
        let script = Script { preamble: preamble.unwrap_or_default(), cases };
        script.cases.iter().try_for_each(Case::in_order)?;
        Ok(script)
    }

    /// Whether every case can say something about a decider with these rules. A case that expects nothing is refused unless what it
    /// brings is going to be written.
    ///
    /// # Errors
    ///
    /// The first line that cannot.
    pub fn check(&self, rules: &[Rule], writes: bool) -> Result<(), Malformed> {
        for case in &self.cases {
            for (line, _, command) in case.commands() {
                let unknown = command.rule().filter(|id| !rules.iter().any(|rule| rule.id == *id));
                if let Some(id) = unknown {
                    let known: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
                    let why =
                        format!("{id:?} is neither a verb nor a rule of this decider, which has {}", known.join(", "));
                    return Err(Malformed::new(line, why));
                }
            }
            if case.commands().next().is_none() {
                return Err(Malformed::new(case.line, "there is no command in it: it tests nothing"));
            }
            if !writes && !case.is_transcript() && !case.states() {
                let why = "it expects nothing: add an expectation, such as 'settles within 2m' or 'expect no violation', or let --bless \
                           write what it brings";
                return Err(Malformed::new(case.line, why));
            }
        }
        Ok(())
    }

    /// The whole file with its cases rendered anew.
    pub fn rendered<'a>(&self, cases: impl IntoIterator<Item = &'a str>) -> String {
        let mut text = String::new();
        for item in &self.preamble {
            let (Item::Verbatim(line) | Item::Output(line) | Item::Command { text: line, .. }) = item;
            text.push_str(line);
            text.push('\n');
        }
        text.extend(cases);
        text
    }
}

/// What stands before the first test.
fn settings(before: Case) -> Result<Vec<Item>, Malformed> {
    for (line, text, command) in before.commands() {
        if !command.is_setting() {
            let why = format!("only policy and provider stand before the first test: {text:?} does not");
            return Err(Malformed::new(line, why));
        }
    }
    if before.is_transcript() {
        return Err(Malformed::new(
            before.line,
            "settings bring nothing: there is an indented line before the first test",
        ));
    }
    Ok(before.items)
}

impl Case {
    pub(crate) fn commands(&self) -> impl Iterator<Item = (usize, &str, &Command)> {
        self.items.iter().filter_map(|item| match item {
            Item::Command { line, text, command } => Some((*line, text.as_str(), command.as_ref())),
            _ => None,
        })
    }

    /// Whether what its commands bring is written below them.
    pub fn is_transcript(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Output(_)))
    }

    /// Whether a command of it states something that can fail.
    pub fn states(&self) -> bool {
        self.commands().any(|(_, _, command)| command.checks())
    }

    /// The case as the file has it.
    pub fn source(&self) -> String {
        let mut text = String::new();
        for item in &self.items {
            match item {
                Item::Verbatim(line) | Item::Command { text: line, .. } => text.push_str(line),
                Item::Output(line) => {
                    text.push_str("    ");
                    text.push_str(line);
                }
            }
            text.push('\n');
        }
        text
    }

    /// The case after it was played, as it is to be written: what its commands bring is written below them unless it has expectations
    /// in place of that.
    pub fn written(&self, played: &crate::Played) -> String {
        match self.is_transcript() || !self.states() {
            true => played.text.clone(),
            false => self.source(),
        }
    }

    /// Snapshots and histories do not mix; a node belongs to a snapshot.
    fn in_order(&self) -> Result<(), Malformed> {
        let (mut snapshot, mut history) = (None, None);
        for (line, text, command) in self.commands() {
            let first = |what: &mut Option<usize>| *what.get_or_insert(line);
            match command {
                Command::Snapshot { .. } => _ = first(&mut snapshot),
                Command::Node(_) if snapshot.is_none() => {
                    return Err(Malformed::new(line, "a node belongs to a snapshot: write 'snapshot' before it"));
                }
                Command::Node(_) | Command::Expect(_) => {}
                command if command.is_setting() => {}
                _ => _ = first(&mut history),
            }
            if let (Some(snapshot), Some(history)) = (snapshot, history) {
                let why = format!(
                    "{text:?}: a snapshot (line {snapshot}) has no history (line {history}); begin another test for it"
                );
                return Err(Malformed::new(line, why));
            }
        }
        Ok(())
    }
}
