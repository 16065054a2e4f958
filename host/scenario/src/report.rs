//! What came of many cases, for programs: JSON and JUnit XML. The same run gives the same bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::case::Case;
use crate::cover::Coverage;
use crate::player::{Miss, Played};
use crate::session::Subject;
use crate::words::ms;

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As the file says.
    Passed,
    /// Something is not as the file says.
    Failed,
    /// It could not be played to its end.
    Cut,
}

/// A case that was played.
pub struct Tested {
    /// The file, as it was named.
    pub file: String,
    /// The case's name; the file's when it has none.
    pub name: String,
    /// Its first line, from 1.
    pub line: usize,
    /// How it ended.
    pub status: Status,
    /// Everything that is not as the file says.
    pub misses: Vec<Miss>,
    /// Decisions, holds included.
    pub decisions: u64,
    /// Decisions by rule, of those that decided.
    pub rules: BTreeMap<String, u64>,
}

/// What came of all cases.
pub struct Report {
    /// The decider's name and version.
    pub decider: String,
    /// Its digest.
    pub digest: String,
    /// Every case, in order.
    pub tested: Vec<Tested>,
    /// What they exercised.
    pub coverage: Coverage,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    decider: &'a str,
    digest: &'a str,
    passed: usize,
    failed: usize,
    cut: usize,
    cases: Vec<CaseJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<CoverageJson<'a>>,
}

#[derive(Serialize)]
struct CaseJson<'a> {
    file: &'a str,
    name: &'a str,
    line: usize,
    status: Status,
    decisions: u64,
    rules: &'a BTreeMap<String, u64>,
    failures: Vec<MissJson<'a>>,
}

#[derive(Serialize)]
struct MissJson<'a> {
    line: usize,
    command: &'a str,
    at_ms: u64,
    node: Option<&'a str>,
    what: &'a str,
    expected: Vec<&'a str>,
    got: Vec<&'a str>,
}

#[derive(Serialize)]
struct CoverageJson<'a> {
    percent: u64,
    uncovered: Vec<&'a str>,
    #[serde(flatten)]
    counts: &'a Coverage,
}

impl Report {
    /// Nothing yet.
    pub fn new(decider: String, subject: &Subject) -> Self {
        let coverage = Coverage::new(&subject.identity.rules);
        Report { decider, digest: subject.identity.digest.clone(), tested: Vec::new(), coverage }
    }

    /// A case was played.
    pub fn push(&mut self, file: &str, case: &Case, subject: &Subject, played: &Played) {
        self.coverage.add(&played.counts);
        let counted = played.counts.rules.iter().enumerate().filter(|(_, count)| **count > 0);
        let rules = counted.map(|(rule, count)| (subject.rule(rule as u8).to_owned(), *count)).collect();
        let status = match (&played.cut, played.misses.is_empty()) {
            (Some(_), _) => Status::Cut,
            (None, true) => Status::Passed,
            (None, false) => Status::Failed,
        };
        self.tested.push(Tested {
            file: file.into(),
            name: case.name.clone().unwrap_or_else(|| file.into()),
            line: case.line,
            status,
            misses: played.misses.clone(),
            decisions: played.counts.total(),
            rules,
        });
    }

    /// How many cases ended so.
    pub fn count(&self, status: Status) -> usize {
        self.tested.iter().filter(|tested| tested.status == status).count()
    }

    /// The report as JSON, with the coverage where it is asked for.
    ///
    /// # Errors
    ///
    /// None that can be met: texts and numbers always make JSON.
    pub fn json(&self, covers: bool) -> Result<String, serde_json::Error> {
        let cases = self.tested.iter().map(|tested| CaseJson {
            file: &tested.file,
            name: &tested.name,
            line: tested.line,
            status: tested.status,
            decisions: tested.decisions,
            rules: &tested.rules,
            failures: tested.misses.iter().map(miss_json).collect(),
        });
        let coverage = CoverageJson {
            percent: self.coverage.percent(),
            uncovered: self.coverage.uncovered(),
            counts: &self.coverage,
        };
        let mut text = serde_json::to_string_pretty(&Document {
            schema: "homeostat.test/v1",
            decider: &self.decider,
            digest: &self.digest,
            passed: self.count(Status::Passed),
            failed: self.count(Status::Failed),
            cut: self.count(Status::Cut),
            cases: cases.collect(),
            coverage: covers.then_some(coverage),
        })?;
        text.push('\n');
        Ok(text)
    }

    /// The report as JUnit XML: a suite a file, a test case a case. Without times, so that the same run is the same text.
    pub fn junit(&self) -> String {
        let (failed, cut) = (self.count(Status::Failed), self.count(Status::Cut));
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let all = self.tested.len();
        let _ = writeln!(
            xml,
            "<testsuites name=\"homeostat test\" tests=\"{all}\" failures=\"{failed}\" errors=\"{cut}\">"
        );
        let mut rest = self.tested.as_slice();
        while let Some(first) = rest.first() {
            let length = rest.iter().take_while(|tested| tested.file == first.file).count();
            let (suite, later) = rest.split_at(length);
            suite_xml(&mut xml, suite);
            rest = later;
        }
        xml.push_str("</testsuites>\n");
        xml
    }
}

fn miss_json(miss: &Miss) -> MissJson<'_> {
    let side = |sign| miss.diff.iter().filter(move |line| line.sign != sign).map(|line| line.text.as_str()).collect();
    MissJson {
        line: miss.line,
        command: &miss.command,
        at_ms: miss.at_ms,
        node: miss.node.as_deref(),
        what: &miss.what,
        expected: side('+'),
        got: side('-'),
    }
}

fn suite_xml(xml: &mut String, suite: &[Tested]) {
    let Some(first) = suite.first() else { return };
    let count = |status| suite.iter().filter(|tested| tested.status == status).count();
    let (file, tests, failed, cut) = (escaped(&first.file), suite.len(), count(Status::Failed), count(Status::Cut));
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{file}\" tests=\"{tests}\" failures=\"{failed}\" errors=\"{cut}\" skipped=\"0\">"
    );
    for tested in suite {
        let (name, line) = (escaped(&tested.name), tested.line);
        let head = format!("    <testcase classname=\"{file}\" name=\"{name}\" file=\"{file}\" line=\"{line}\"");
        let element = match tested.status {
            Status::Passed => {
                let _ = writeln!(xml, "{head}/>");
                continue;
            }
            Status::Failed => "failure",
            Status::Cut => "error",
        };
        let summary = tested.misses.first().map(summary).unwrap_or_default();
        let words: String = tested.misses.iter().map(miss_text).collect();
        let _ = writeln!(xml, "{head}>");
        let _ =
            writeln!(xml, "      <{element} message=\"{}\">{}</{element}>", escaped(&summary), escaped_text(&words));
        xml.push_str("    </testcase>\n");
    }
    xml.push_str("  </testsuite>\n");
}

fn summary(miss: &Miss) -> String {
    let node = miss.node.as_ref().map(|node| format!("{node}: ")).unwrap_or_default();
    format!("line {} at {}: {node}{}", miss.line, ms(miss.at_ms), miss.what)
}

/// A miss in words, its difference below it.
fn miss_text(miss: &Miss) -> String {
    let mut text = format!("{}\n  {}\n", summary(miss), miss.command);
    for line in &miss.diff {
        let _ = writeln!(text, "    {} {}", line.sign, line.text);
    }
    text
}

/// A text as the value of an attribute.
fn escaped(text: &str) -> String {
    escaped_text(text).replace('"', "&quot;").replace('\n', "&#10;").replace('\t', "&#9;")
}

/// A text between tags. Characters that XML does not have become the one that stands for such.
fn escaped_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_xml() {
        assert_eq!(escaped("a<b>&\"c\"\u{1}\n"), "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}&#10;");
    }
}
