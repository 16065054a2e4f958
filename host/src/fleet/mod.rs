//! The fleet file: TOML in, a shape and a policy out, or an error that points into the file (SPEC 2).
//!
//! The tree is walked by `walk` rather than deserialised, so that one reading finds everything that is wrong and each
//! finding has its path, its value and its place.

mod checks;
mod error;
mod group;
mod policy;
mod render;
mod rollout;
pub mod schema;
mod source;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use engine::policy::Policy;
use engine::rollout::Rollout;
use engine::shape::{ClusterShape, GroupShape, ShapeError, Template};
use toml::de::{DeTable, DeValue};
use toml_parser::lexer::TokenKind;

pub use checks::{MAX_DURATION_MS, duration_ms};
pub use error::{ContentError, Finding, FleetError, MAX_FINDINGS, Problem, Related};
pub(crate) use error::{cut, escape};
pub use group::{DEFAULT_JOIN_INTERVAL_MS, DEFAULT_JOIN_TIMEOUT_MS, DEFAULT_PROVIDER};
pub use policy::MAX_NODES;
pub use render::{ErrorReport, ErrorReportEntry, render, report};
pub use source::MAX_FILE_BYTES;
pub(crate) use source::{open_regular, position, read_bytes};

use crate::backends::{Backend, TemplateError};
use walk::{Field, Section, Walk};

/// The most parts that one dotted key may have. Without a bound a small file makes a tree so deep that dropping it
/// overflows the stack.
const MAX_KEY_PARTS: usize = 32;

/// What a provider says about a template before anything is made.
pub type Check = Arc<dyn Fn(&Template) -> Result<(), TemplateError> + Send + Sync>;

/// The providers that a fleet file can name, each with its own check of a template.
#[derive(Clone, Default)]
pub struct Providers(BTreeMap<String, Check>);

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Providers {
    /// None yet.
    pub fn new() -> Self {
        Providers::default()
    }

    /// With one more.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<String>,
        check: impl Fn(&Template) -> Result<(), TemplateError> + Send + Sync + 'static,
    ) -> Self {
        self.0.insert(name.into(), Arc::new(check));
        self
    }

    /// Those of a set of backends.
    pub fn of(backends: &BTreeMap<String, Arc<dyn Backend>>) -> Self {
        backends.iter().fold(Providers::new(), |providers, (name, backend)| {
            let backend = Arc::clone(backend);
            providers.with(name.clone(), move |template: &Template| backend.check(template))
        })
    }

    /// Their names.
    pub fn names(&self) -> BTreeSet<String> {
        self.0.keys().cloned().collect()
    }
}

/// A fleet file, read and checked.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The declared shape. Its generation is [`Fleet::generation`], or 1 for the host to replace.
    pub shape: ClusterShape,
    /// The generation that the file states; `None` leaves it to the host.
    pub generation: Option<u64>,
    /// The settings.
    pub policy: Policy,
    /// Where each group is in the text, in bytes, in the order of the shape.
    pub spans: Vec<Range<usize>>,
    /// The text.
    pub source: Arc<str>,
    /// Where each field is in the text, in bytes.
    places: BTreeMap<String, Range<usize>>,
}

impl Fleet {
    /// Reads and checks a file. What is wrong is reported whole, with its place.
    pub fn load(path: &Path, providers: &Providers) -> Result<Fleet, FleetError> {
        let text = source::read(path)?;
        Ok(Fleet::parse(path, &text, providers)?)
    }

    /// Checks a text. `path` is for messages only.
    pub fn parse(path: &Path, text: &str, providers: &Providers) -> Result<Fleet, ContentError> {
        let refuse = |findings| ContentError { path: path.into(), source: text.into(), findings };
        if let Some(finding) = too_deep(text) {
            return Err(refuse(vec![finding]));
        }
        let (document, errors) = DeTable::parse_recoverable(text);
        if let Some(error) = errors.first() {
            return Err(refuse(vec![syntax(text, error.span().unwrap_or(0..0), error.message())]));
        }
        let mut walk = Walk::new(text);
        let fleet = fleet(&mut walk, &document, text, providers);
        let (findings, places) = walk.finish();
        match fleet {
            Some(fleet) if findings.is_empty() => Ok(Fleet { places, ..fleet }),
            _ => Err(refuse(findings)),
        }
    }
}

impl Fleet {
    /// What a running host refuses of a file that is right by itself, with its place: another run, a generation that does
    /// not rise.
    pub fn refuse(&self, path: &Path, error: &ShapeError) -> FleetError {
        let field = error.field().to_owned();
        let text = self.source.as_ref();
        let span = walk::place(&self.places, &field);
        let (line, column) = position(text, span.start);
        let value = Walk::new(text).text(&span);
        let problem = Problem::Shape(error.clone());
        let finding = Finding { problem, field, value, span, line, column, related: None, hint: None };
        ContentError { path: path.into(), source: self.source.clone(), findings: vec![finding] }.into()
    }
}

fn syntax(text: &str, span: Range<usize>, message: impl Into<String>) -> Finding {
    let (line, column) = position(text, span.start);
    let problem = Problem::Syntax { message: message.into() };
    let value = Walk::new(text).text(&span);
    Finding { problem, field: String::new(), value, span, line, column, related: None, hint: None }
}

/// A key of too many parts, found before the tree is built. (Brackets and braces are bounded by the parser.)
fn too_deep(text: &str) -> Option<Finding> {
    let mut dots = 0;
    for token in toml_parser::Source::new(text).lex() {
        match token.kind() {
            TokenKind::Dot => {
                dots += 1;
                if dots >= MAX_KEY_PARTS {
                    let span = token.span().start()..token.span().end();
                    return Some(syntax(text, span, format!("a key of more than {MAX_KEY_PARTS} parts")));
                }
            }
            TokenKind::Newline
            | TokenKind::Equals
            | TokenKind::Comma
            | TokenKind::LeftSquareBracket
            | TokenKind::RightSquareBracket
            | TokenKind::LeftCurlyBracket
            | TokenKind::RightCurlyBracket => dots = 0,
            _ => {}
        }
    }
    None
}

fn fleet<'s>(
    walk: &mut Walk<'s>,
    document: &serde_spanned::Spanned<DeTable<'s>>,
    text: &str,
    providers: &Providers,
) -> Option<Fleet> {
    // A missing field of the whole file points at its first line.
    let mut root = Section::new(String::new(), 0..text.find('\n').unwrap_or(text.len()), document.get_ref());
    let run = walk.need(&mut root, "run", "a text that names the run").and_then(|field| group::id(walk, &field));
    let generation = match walk.get(&mut root, "generation") {
        Some(field) => walk.whole(&field, 1, u64::MAX, "a whole number from 1").map(Some),
        None => Some(None),
    };
    let mut policy = match walk.get(&mut root, "policy") {
        Some(field) => policy::policy(walk, &field),
        None => Policy::default(),
    };
    if let Some(field) = walk.get(&mut root, "guards") {
        policy.guards = policy::guards(walk, &field);
    }
    let rollout = match walk.get(&mut root, "rollout") {
        Some(field) => rollout::rollout(walk, &field, Rollout::default()),
        None => Rollout::default(),
    };
    let parameters = match walk.get(&mut root, "parameters") {
        Some(field) => rollout::parameters(walk, &field, &BTreeMap::new()),
        None => Some(BTreeMap::new()),
    };
    let common = Common { rollout, parameters: parameters.unwrap_or_default() };
    let groups = match walk.get(&mut root, "group") {
        Some(field) => groups(walk, &field, &policy, &common, providers),
        None => Some((Vec::new(), Vec::new())),
    };
    walk.close(root);
    let (groups, spans) = groups?;
    let generation = generation?;
    let shape = ClusterShape { run: run?, generation: generation.unwrap_or(1), groups };
    // The engine has the last word: what it refuses is refused here, with its place.
    if walk.is_clean()
        && let Err(error) = shape.check(&policy.limits, &providers.names())
    {
        shape_error(walk, error);
    }
    Some(Fleet { shape, generation, policy, spans, source: text.into(), places: BTreeMap::new() })
}

type Groups = (Vec<GroupShape>, Vec<Range<usize>>);

/// What the file says for all groups that do not say it themselves.
struct Common {
    rollout: Rollout,
    parameters: BTreeMap<String, String>,
}

fn groups<'s>(
    walk: &mut Walk<'s>,
    field: &Field<'_, 's>,
    policy: &Policy,
    common: &Common,
    providers: &Providers,
) -> Option<Groups> {
    const EXPECTED: &str = "a list of tables, each written as [[group]]";
    let DeValue::Array(items) = field.value else {
        let hint = matches!(field.value, DeValue::Table(_)).then(|| "write [[group]] with double brackets".to_owned());
        walk.wrong_type(field, EXPECTED, hint);
        return None;
    };
    let mut seen: BTreeMap<String, Range<usize>> = BTreeMap::new();
    let mut total: u64 = 0;
    let mut groups = Some((Vec::with_capacity(items.len()), Vec::with_capacity(items.len())));
    for (at, item) in items.iter().enumerate() {
        let path = format!("group[{at}]");
        let field = Field { path: path.clone(), value: item.get_ref(), span: item.span() };
        walk.set_place(&path, item.span());
        let Some(mut section) = walk.table(&field, "a table, written as [[group]]") else {
            groups = None;
            continue;
        };
        let group = group::group(walk, &mut section, common);
        walk.close(section);
        let Some(group) = group else {
            groups = None;
            continue;
        };
        among_others(walk, &path, &group, &mut seen, &mut total, policy);
        made_by(walk, &path, &group.template, providers);
        groups = groups.map(|(mut shapes, mut spans)| {
            shapes.push(group);
            spans.push(item.span());
            (shapes, spans)
        });
    }
    groups
}

/// What can be wrong with a group because of the others.
fn among_others(
    walk: &mut Walk<'_>,
    path: &str,
    group: &GroupShape,
    seen: &mut BTreeMap<String, Range<usize>>,
    total: &mut u64,
    policy: &Policy,
) {
    let field = format!("{path}.id");
    let span = walk.place(&field);
    match seen.get(&group.id) {
        Some(first) => {
            let first = first.clone();
            let problem = Problem::Shape(ShapeError::DuplicateGroup { field: field.clone(), value: group.id.clone() });
            walk.note_with(&field, span, problem, first, "the first one");
        }
        None => {
            seen.insert(group.id.clone(), span);
        }
    }
    let field = format!("{path}.count");
    let before = *total;
    *total = total.saturating_add(u64::from(group.count));
    let limits = [
        (u64::from(group.count), u64::from(policy.limits.max_group_count), "policy.limits.max-group-count"),
        (*total, u64::from(policy.limits.max_nodes), "policy.limits.max-nodes"),
    ];
    for (value, limit, setting) in limits {
        // Once the whole is over its limit, the groups after that are not to blame.
        if value > limit && !(setting.ends_with("max-nodes") && before > limit) {
            let span = walk.place(&field);
            let problem = Problem::Shape(ShapeError::OverLimit { field: field.clone(), value, limit });
            if let Some(finding) = walk.note(&field, span, problem) {
                finding.hint = Some(match setting {
                    "policy.limits.max-nodes" => format!("{value} is the sum up to here; the limit is `{setting}`"),
                    _ => format!("the limit is `{setting}`, at most {MAX_NODES}"),
                });
            }
            return;
        }
    }
}

/// What the provider says.
fn made_by(walk: &mut Walk<'_>, path: &str, template: &Template, providers: &Providers) {
    match providers.0.get(&template.provider) {
        None => {
            let field = format!("{path}.provider");
            let span = walk.place(&field);
            let known = providers.names().into_iter().collect::<Vec<_>>().join(", ");
            let value = cut(&template.provider, 60);
            let problem = Problem::Shape(ShapeError::UnknownProvider { field: field.clone(), value, known });
            walk.note(&field, span, problem);
        }
        Some(check) => {
            if let Err(source) = check(template) {
                let field = format!("{path}.{}", source.field);
                let span = walk.place(&field);
                let source = TemplateError { value: cut(&source.value, 60), ..source };
                walk.note(&field, span, Problem::Template { group: path.to_owned(), source });
            }
        }
    }
}

fn shape_error(walk: &mut Walk<'_>, error: ShapeError) {
    let field = error.field().to_owned();
    let span = walk.place(&field);
    walk.note(&field, span, Problem::Shape(error));
}

#[cfg(test)]
mod tests;
