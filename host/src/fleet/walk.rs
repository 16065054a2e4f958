//! Walking the TOML tree: every value with its path and its place, every problem noted, nothing thrown away at the
//! first one.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_spanned::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Finding, MAX_FINDINGS, Problem, Related, cut};
use super::source::position;

/// How much of a value is repeated in a message, in characters.
const VALUE_CHARS: usize = 60;

/// A file being read: what was found wrong, and where each field is.
pub(super) struct Walk<'s> {
    source: &'s str,
    findings: Vec<Finding>,
    places: BTreeMap<String, Range<usize>>,
}

/// A value with its path.
#[derive(Clone)]
pub(super) struct Field<'a, 's> {
    pub path: String,
    pub value: &'a DeValue<'s>,
    pub span: Range<usize>,
}

/// A table, of which fields are asked one by one; those nobody asked for are unknown.
pub(super) struct Section<'a, 's> {
    pub path: String,
    pub span: Range<usize>,
    table: &'a DeTable<'s>,
    asked: Vec<&'static str>,
}

impl<'s> Walk<'s> {
    pub fn new(source: &'s str) -> Self {
        Walk { source, findings: Vec::new(), places: BTreeMap::new() }
    }

    /// What was found, in the order of the file, and the places of all fields.
    pub fn finish(mut self) -> (Vec<Finding>, BTreeMap<String, Range<usize>>) {
        self.findings.sort_by_key(|finding| finding.span.start);
        self.findings.truncate(MAX_FINDINGS);
        (self.findings, self.places)
    }

    /// Whether nothing was wrong so far.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// The place of a field, or of the nearest table around it.
    pub fn place(&self, path: &str) -> Range<usize> {
        place(&self.places, path)
    }

    /// The value at a place as the file has it, cut when long.
    pub fn text(&self, span: &Range<usize>) -> String {
        let text = self.source.get(span.clone()).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        if line.len() < text.trim_end().len() && line.chars().count() <= VALUE_CHARS {
            return format!("{line}…");
        }
        cut(line, VALUE_CHARS)
    }

    /// Notes a problem.
    pub fn note(&mut self, field: &str, span: Range<usize>, problem: Problem) -> Option<&mut Finding> {
        // A file full of errors is not worth more than the first few; they come roughly in the order of the file.
        if self.findings.len() >= 4 * MAX_FINDINGS {
            return None;
        }
        let (line, column) = position(self.source, span.start);
        let value = match problem {
            Problem::Missing { .. } => String::new(),
            _ => self.text(&span),
        };
        let field = field.to_owned();
        self.findings.push(Finding { problem, field, value, span, line, column, related: None, hint: None });
        self.findings.last_mut()
    }

    /// Notes that a value cannot work.
    pub fn refuse(&mut self, field: &Field<'_, '_>, reason: impl Into<String>) {
        let problem =
            Problem::Value { field: field.path.clone(), value: self.text(&field.span), reason: reason.into() };
        self.note(&field.path, field.span.clone(), problem);
    }

    /// Notes that a value is of another type.
    pub fn wrong_type(&mut self, field: &Field<'_, '_>, expected: &'static str, hint: Option<String>) {
        let problem = Problem::WrongType {
            field: field.path.clone(),
            value: self.text(&field.span),
            found: kind(field.value),
            expected,
        };
        if let Some(finding) = self.note(&field.path, field.span.clone(), problem) {
            finding.hint = hint;
        }
    }

    /// Notes a problem with a second place that belongs to it.
    pub fn note_with(
        &mut self,
        field: &str,
        span: Range<usize>,
        problem: Problem,
        related: Range<usize>,
        label: &'static str,
    ) {
        if let Some(finding) = self.note(field, span, problem) {
            finding.related = Some(Related { span: related, label });
        }
    }

    fn missing(&mut self, section: &Section<'_, '_>, name: &str, expected: &'static str) {
        let field = section.below(name);
        self.note(&field, section.span.clone(), Problem::Missing { field: field.clone(), expected });
    }

    /// A field's text.
    pub fn text_of<'a>(&mut self, field: &Field<'a, 's>, expected: &'static str) -> Option<&'a str> {
        match field.value {
            DeValue::String(text) => Some(text),
            _ => {
                self.wrong_type(field, expected, None);
                None
            }
        }
    }

    /// A whole number from `least` to `most`.
    pub fn whole(&mut self, field: &Field<'_, '_>, least: u64, most: u64, expected: &'static str) -> Option<u64> {
        let DeValue::Integer(number) = field.value else {
            self.wrong_type(field, expected, None);
            return None;
        };
        let value = i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(i128::MAX);
        if value < i128::from(least) {
            self.refuse(field, if value < 0 { "it is negative".to_owned() } else { format!("the least is {least}") });
            return None;
        }
        if value > i128::from(most) {
            self.refuse(field, format!("the most is {most}"));
            return None;
        }
        u64::try_from(value).ok()
    }

    /// A length of time in milliseconds.
    pub fn duration(&mut self, field: &Field<'_, '_>) -> Option<u64> {
        const EXPECTED: &str = "a length of time in quotes, such as \"500ms\"";
        let DeValue::String(text) = field.value else {
            let hint = match field.value {
                DeValue::Integer(number) if number.radix() == 10 => {
                    Some(format!("add a unit: \"{0}s\" or \"{0}ms\"", cut(number.as_str(), 12)))
                }
                _ => None,
            };
            self.wrong_type(field, EXPECTED, hint);
            return None;
        };
        match super::checks::duration_ms(text) {
            Ok(ms) => Some(ms),
            Err(reason) => {
                self.refuse(field, reason);
                None
            }
        }
    }

    /// A list of texts.
    pub fn texts(&mut self, field: &Field<'_, 's>, expected: &'static str) -> Option<Vec<String>> {
        let DeValue::Array(items) = field.value else {
            let hint = match field.value {
                DeValue::String(_) => {
                    Some("put it in brackets, one text for the program and one for each argument".into())
                }
                _ => None,
            };
            self.wrong_type(field, expected, hint);
            return None;
        };
        let mut texts = Some(Vec::with_capacity(items.len()));
        for (at, item) in items.iter().enumerate() {
            let item = Field { path: format!("{}[{at}]", field.path), value: item.get_ref(), span: item.span() };
            self.set_place(&item.path, item.span.clone());
            let text = self.text_of(&item, "a text").map(str::to_owned);
            if let Some(Err(reason)) = text.as_deref().map(super::checks::no_nul) {
                self.refuse(&item, reason);
            }
            texts = texts.zip(text).map(|(mut texts, text)| {
                texts.push(text);
                texts
            });
        }
        texts
    }

    /// A table of texts.
    pub fn text_table(&mut self, field: &Field<'_, 's>) -> Option<BTreeMap<String, String>> {
        let table = self.table(field, "a table of texts")?;
        let mut texts = BTreeMap::new();
        for entry in table.entries() {
            self.set_place(&entry.field.path, entry.field.span.clone());
            let text = self.text_of(&entry.field, "a text")?;
            texts.insert(entry.name.to_owned(), text.to_owned());
        }
        Some(texts)
    }

    /// A table.
    pub fn table<'a>(&mut self, field: &Field<'a, 's>, expected: &'static str) -> Option<Section<'a, 's>> {
        match field.value {
            DeValue::Table(table) => Some(Section::new(field.path.clone(), field.span.clone(), table)),
            _ => {
                self.wrong_type(field, expected, None);
                None
            }
        }
    }

    /// A field of a table, its place noted.
    pub fn get<'a>(&mut self, section: &mut Section<'a, 's>, name: &'static str) -> Option<Field<'a, 's>> {
        section.asked.push(name);
        let value = section.table.get(name)?;
        let field = Field { path: section.below(name), value: value.get_ref(), span: value.span() };
        self.places.insert(field.path.clone(), field.span.clone());
        Some(field)
    }

    /// A field that must be there.
    pub fn need<'a>(
        &mut self,
        section: &mut Section<'a, 's>,
        name: &'static str,
        expected: &'static str,
    ) -> Option<Field<'a, 's>> {
        let field = self.get(section, name);
        if field.is_none() {
            self.missing(section, name, expected);
        }
        field
    }

    /// Refuses what nobody asked for.
    pub fn close(&mut self, section: Section<'_, 's>) {
        for (key, _) in section.table.iter() {
            let name: &str = key.get_ref();
            if section.asked.contains(&name) {
                continue;
            }
            let field = section.below(&cut(name, VALUE_CHARS));
            let mut expected = section.asked.clone();
            expected.sort_unstable();
            let nearest = nearest(name, &expected);
            let problem = Problem::UnknownField { field: field.clone(), expected, nearest };
            self.note(&field, key.span(), problem);
        }
    }

    /// Notes where a table of an array is.
    pub fn set_place(&mut self, path: &str, span: Range<usize>) {
        self.places.insert(path.to_owned(), span);
    }
}

/// An entry of a table whose keys are free.
pub(super) struct Entry<'a, 's> {
    pub name: &'a str,
    pub field: Field<'a, 's>,
}

impl<'a, 's> Section<'a, 's> {
    pub fn new(path: String, span: Range<usize>, table: &'a DeTable<'s>) -> Self {
        Section { path, span, table, asked: Vec::new() }
    }

    /// Whether it has a field that nobody asked for yet.
    pub fn has_unknown(&self) -> bool {
        self.table.keys().any(|key| !self.asked.contains(&key.get_ref().as_ref()))
    }

    /// The path of a field of it.
    pub fn below(&self, name: &str) -> String {
        let bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        let name = if bare { name.to_owned() } else { format!("{name:?}") };
        if self.path.is_empty() { name } else { format!("{}.{name}", self.path) }
    }

    /// All entries, whatever they are called.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a, 's>> + use<'a, 's> {
        let at = Section { path: self.path.clone(), span: self.span.clone(), table: self.table, asked: Vec::new() };
        self.table.iter().map(move |(key, value): (&'a Spanned<_>, &'a Spanned<DeValue<'s>>)| {
            let name: &'a str = key.get_ref();
            Entry { name, field: Field { path: at.below(name), value: value.get_ref(), span: value.span() } }
        })
    }
}

/// The place of a field, or of the nearest table around it.
pub(super) fn place(places: &BTreeMap<String, Range<usize>>, path: &str) -> Range<usize> {
    let mut path = path;
    loop {
        if let Some(span) = places.get(path) {
            return span.clone();
        }
        match path.rfind(['.', '[']) {
            Some(end) => path = &path[..end],
            None => return 0..0,
        }
    }
}

/// What a value is, for people.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(number) if number.as_str().contains("nan") => "not a number",
        DeValue::Float(number) if number.as_str().contains("inf") => "infinite",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The name that was probably meant.
fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    if name.len() > 64 {
        return None;
    }
    let name = name.to_lowercase().replace('_', "-");
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&name, known), *known))
        .filter(|(distance, known)| *distance <= 1 + known.len() / 4)
        .min()
        .map(|(_, known)| known)
}
