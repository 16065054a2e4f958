//! The text format 0.0.4, read by a parser that forgives nothing, and by `promtool` where there is one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

/// One line with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

/// All of a text. Panics where the format is broken.
#[derive(Debug, Default)]
pub struct Text {
    pub types: BTreeMap<String, String>,
    pub samples: Vec<Sample>,
}

impl Text {
    pub fn parse(text: &str) -> Text {
        assert!(text.ends_with('\n'), "the last line ends");
        let mut all = Text::default();
        let mut helped = BTreeSet::new();
        let mut current = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, words) = rest.split_once(' ').expect("a HELP has words");
                assert!(!words.is_empty() && helped.insert(name.to_owned()), "one HELP: {line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert!(all.types.insert(name.into(), kind.into()).is_none(), "one TYPE: {line}");
                assert!(helped.contains(name), "HELP first: {line}");
                current = name.into();
            } else {
                let sample = sample(line);
                let suffixes: &[&str] =
                    if all.types[&current] == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
                let family = suffixes.iter().any(|suffix| sample.name == format!("{current}{suffix}"));
                assert!(family, "a sample of another family: {line}");
                let again = all.samples.iter().any(|known| known.name == sample.name && known.labels == sample.labels);
                assert!(!again, "the same series twice: {line}");
                all.samples.push(sample);
            }
        }
        all
    }

    /// The value of a series, by name and all of its labels.
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels: BTreeMap<String, String> = labels.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        self.samples.iter().find(|sample| sample.name == name && sample.labels == labels).map(|sample| sample.value)
    }

    pub fn of(&self, name: &str) -> Vec<&Sample> {
        self.samples.iter().filter(|sample| sample.name == name).collect()
    }
}

fn is_name(name: &str) -> bool {
    name.chars().enumerate().all(|(at, c)| c == '_' || c.is_ascii_lowercase() || (at > 0 && c.is_ascii_digit()))
        && !name.is_empty()
}

fn sample(line: &str) -> Sample {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no value: {line}"));
    let name = line[..end].to_owned();
    assert!(is_name(&name), "{line}");
    let mut labels = BTreeMap::new();
    let mut rest = line[end..].chars().peekable();
    if rest.next_if_eq(&'{').is_some() {
        loop {
            let key: String = std::iter::from_fn(|| rest.next_if(|c| *c != '=')).collect();
            assert!(is_name(&key), "{line}");
            assert_eq!((rest.next(), rest.next()), (Some('='), Some('"')), "{line}");
            let mut value = String::new();
            loop {
                match rest.next().unwrap_or_else(|| panic!("no end: {line}")) {
                    '"' => break,
                    '\\' => value.push(match rest.next() {
                        Some('n') => '\n',
                        Some(c @ ('"' | '\\')) => c,
                        other => panic!("an escape that does not exist, {other:?}: {line}"),
                    }),
                    c => value.push(c),
                }
            }
            assert!(labels.insert(key, value).is_none(), "a label twice: {line}");
            match rest.next() {
                Some(',') => {}
                Some('}') => break,
                other => panic!("{other:?} after a label: {line}"),
            }
        }
    }
    assert_eq!(rest.next(), Some(' '), "{line}");
    let value: String = rest.collect();
    let value = match value.as_str() {
        "+Inf" => f64::INFINITY,
        text => text.parse().unwrap_or_else(|_| panic!("{line}")),
    };
    Sample { name, labels, value }
}

#[test]
fn the_text_is_the_format_of_prometheus() {
    let metrics = crate::metrics();
    crate::counting::some_of_everything(&metrics);
    let text = metrics.render(&crate::status()).unwrap();
    let parsed = Text::parse(&text);
    for described in metrics.described() {
        let kind = parsed.types.get(described.name).unwrap_or_else(|| panic!("{} has no value", described.name));
        assert_eq!(*kind, format!("{:?}", described.kind).to_lowercase(), "{}", described.name);
        for sample in &parsed.samples {
            let base = sample.name.strip_suffix("_bucket").unwrap_or(&sample.name);
            if base == described.name {
                let labels: BTreeSet<&str> =
                    sample.labels.keys().map(String::as_str).filter(|key| *key != "le").collect();
                assert_eq!(labels, described.labels.iter().copied().collect(), "{}", sample.name);
            }
        }
    }
    assert_eq!(parsed.types.len(), metrics.described().len());
    promtool(&text);
}

#[test]
fn histograms_add_up() {
    let metrics = crate::metrics();
    crate::counting::some_of_everything(&metrics);
    let text = Text::parse(&metrics.render(&crate::status()).unwrap());
    let mut seen = 0;
    for count in text.samples.iter().filter(|sample| sample.name.ends_with("_count")) {
        let base = count.name.strip_suffix("_count").unwrap();
        let buckets: Vec<(f64, f64)> = text
            .of(&format!("{base}_bucket"))
            .into_iter()
            .filter(|bucket| {
                let mut labels = bucket.labels.clone();
                labels.remove("le");
                labels == count.labels
            })
            .map(|bucket| (bucket.labels["le"].parse().unwrap_or(f64::INFINITY), bucket.value))
            .collect();
        assert!(buckets.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1), "{base}: {buckets:?}");
        assert_eq!(*buckets.last().unwrap(), (f64::INFINITY, count.value), "{base}");
        let sum = text.samples.iter().find(|s| s.name == format!("{base}_sum") && s.labels == count.labels).unwrap();
        assert!(sum.value >= 0.0 && count.value >= 1.0, "{base}");
        seen += 1;
    }
    assert!(seen >= 5, "{seen} histograms");
}

/// Where Prometheus is installed, its own parser and its rules for names have the last word.
fn promtool(text: &str) {
    let Ok(mut tool) = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    else {
        eprintln!("promtool is not installed; only the parser of this test has read the text");
        return;
    };
    tool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = tool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}
