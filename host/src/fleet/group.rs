//! `[[group]]`: from the file to a shape and its template.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::shape::{Boot, GroupShape, Join, Probe, Setting, Template, check_id};
use toml::de::DeValue;

use super::error::Problem;
use super::walk::{Field, Section, Walk};
use super::{Common, checks, rollout};

/// The provider of a group that names none.
pub const DEFAULT_PROVIDER: &str = "process";
/// Time between two tries of a join probe, in milliseconds.
pub const DEFAULT_JOIN_INTERVAL_MS: u64 = 250;
/// Longest time one try of a join probe may take, in milliseconds.
pub const DEFAULT_JOIN_TIMEOUT_MS: u64 = 2_000;

const COMMAND: &str = "a list of texts: the program and its arguments";
const PROBE: &str = "a table with one of `http`, `tcp`, `exec` or `stdout`";

/// One group; `None` when something about it was noted as wrong.
pub(super) fn group<'s>(walk: &mut Walk<'s>, section: &mut Section<'_, 's>, common: &Common) -> Option<GroupShape> {
    let id = walk.need(section, "id", "a text, unique among the groups").and_then(|field| id(walk, &field));
    let count = walk
        .need(section, "count", "a whole number of nodes")
        .and_then(|field| walk.whole(&field, 0, u64::from(u32::MAX), "a whole number of nodes"));
    let provider = match walk.get(section, "provider") {
        Some(field) => walk.text_of(&field, "a text").map(str::to_owned),
        None => Some(DEFAULT_PROVIDER.to_owned()),
    };
    let boot = match walk.need(section, "boot", "a table with the `command` to run") {
        Some(field) => boot(walk, &field),
        None => None,
    };
    let join = match walk.get(section, "join") {
        Some(field) => join(walk, &field),
        None => Some(default_join()),
    };
    let image = match walk.get(section, "image") {
        Some(field) => match walk.text_of(&field, "a text") {
            Some("") => {
                walk.refuse(&field, "it is empty; leave it out instead");
                None
            }
            Some(text) => Some(Some(text.to_owned())),
            None => None,
        },
        None => Some(None),
    };
    let role = match walk.get(section, "role") {
        Some(field) => walk.text_of(&field, "a text").map(str::to_owned),
        None => Some(String::new()),
    };
    let labels = match walk.get(section, "labels") {
        Some(field) => walk.text_table(&field),
        None => Some(BTreeMap::new()),
    };
    let settings = match walk.get(section, "settings") {
        Some(field) => settings(walk, &field),
        None => Some(BTreeMap::new()),
    };
    let rollout = match walk.get(section, "rollout") {
        Some(field) => rollout::rollout(walk, &field, common.rollout),
        None => common.rollout,
    };
    let parameters = match walk.get(section, "parameters") {
        Some(field) => rollout::parameters(walk, &field, &common.parameters),
        None => Some(common.parameters.clone()),
    };
    let template = Template {
        provider: provider?,
        settings: settings?,
        image: image?,
        role: role?,
        boot: boot?,
        join: join?,
        labels: labels?,
    };
    let count = u32::try_from(count?).ok()?;
    Some(GroupShape { id: id?, count, template: Arc::new(template), rollout, parameters: parameters? })
}

/// An id of a run or a group.
pub(super) fn id(walk: &mut Walk<'_>, field: &Field<'_, '_>) -> Option<String> {
    let DeValue::String(text) = field.value else {
        walk.wrong_type(field, "a text", None);
        return None;
    };
    match check_id(&field.path, text) {
        Ok(()) => Some(text.to_string()),
        Err(error) => {
            walk.note(&field.path, field.span.clone(), Problem::Shape(error));
            None
        }
    }
}

fn boot<'s>(walk: &mut Walk<'s>, field: &Field<'_, 's>) -> Option<Boot> {
    let mut section = walk.table(field, "a table with the `command` to run")?;
    let command = match walk.need(&mut section, "command", COMMAND) {
        Some(field) => command(walk, &field),
        None => None,
    };
    let env = match walk.get(&mut section, "env") {
        Some(field) => texts_checked(walk, &field, checks::env_name, checks::no_nul),
        None => Some(BTreeMap::new()),
    };
    let files = match walk.get(&mut section, "files") {
        Some(field) => texts_checked(walk, &field, checks::relative_path, |_| Ok(())),
        None => Some(BTreeMap::new()),
    };
    walk.close(section);
    Some(Boot { command: command?, env: env?, files: files? })
}

fn command<'s>(walk: &mut Walk<'s>, field: &Field<'_, 's>) -> Option<Vec<String>> {
    let command = walk.texts(field, COMMAND)?;
    match command.first() {
        Some(program) if !program.trim().is_empty() => Some(command),
        Some(_) => {
            walk.refuse(field, "the program is empty");
            None
        }
        None => {
            walk.refuse(field, "it needs at least a program");
            None
        }
    }
}

fn texts_checked<'s>(
    walk: &mut Walk<'s>,
    field: &Field<'_, 's>,
    key: fn(&str) -> Result<(), String>,
    value: fn(&str) -> Result<(), String>,
) -> Option<BTreeMap<String, String>> {
    let texts = walk.text_table(field)?;
    let section = walk.table(field, "a table of texts")?;
    let mut good = true;
    for entry in section.entries() {
        let text = texts.get(entry.name).map(String::as_str).unwrap_or_default();
        if let Err(reason) = key(entry.name).and_then(|()| value(text)) {
            walk.refuse(&entry.field, reason);
            good = false;
        }
    }
    good.then_some(texts)
}

fn default_join() -> Join {
    Join {
        probe: Probe::Tcp("{endpoint}".into()),
        interval_ms: DEFAULT_JOIN_INTERVAL_MS,
        timeout_ms: DEFAULT_JOIN_TIMEOUT_MS,
    }
}

fn join<'s>(walk: &mut Walk<'s>, field: &Field<'_, 's>) -> Option<Join> {
    let mut section = walk.table(field, "a table with a `probe`")?;
    let default = default_join();
    let probe = match walk.get(&mut section, "probe") {
        Some(field) => probe(walk, &field),
        None => Some(default.probe),
    };
    let interval_ms = match walk.get(&mut section, "interval") {
        Some(field) => walk.duration(&field),
        None => Some(default.interval_ms),
    };
    let timeout_ms = match walk.get(&mut section, "timeout") {
        Some(field) => walk.duration(&field),
        None => Some(default.timeout_ms),
    };
    walk.close(section);
    Some(Join { probe: probe?, interval_ms: interval_ms?, timeout_ms: timeout_ms? })
}

fn probe<'s>(walk: &mut Walk<'s>, field: &Field<'_, 's>) -> Option<Probe> {
    let mut section = walk.table(field, PROBE)?;
    let http = walk.get(&mut section, "http");
    let tcp = walk.get(&mut section, "tcp");
    let exec = walk.get(&mut section, "exec");
    let stdout = walk.get(&mut section, "stdout");
    let has_others = section.has_unknown();
    walk.close(section);
    match [&http, &tcp, &exec, &stdout].iter().filter(|probe| probe.is_some()).count() {
        1 => {}
        // The name of another probe has been noted already.
        0 if has_others => return None,
        0 => {
            walk.refuse(field, format!("it must be {PROBE}"));
            return None;
        }
        _ => {
            walk.refuse(field, "it has more than one of `http`, `tcp`, `exec` and `stdout`");
            return None;
        }
    }
    if let Some(field) = http {
        return checked(walk, &field, checks::http_url).map(Probe::Http);
    }
    if let Some(field) = tcp {
        return checked(walk, &field, checks::address).map(Probe::Tcp);
    }
    if let Some(field) = stdout {
        return checked(walk, &field, checks::regular_expression).map(Probe::Stdout);
    }
    command(walk, &exec?).map(Probe::Exec)
}

fn checked(walk: &mut Walk<'_>, field: &Field<'_, '_>, check: fn(&str) -> Result<(), String>) -> Option<String> {
    let DeValue::String(text) = field.value else {
        walk.wrong_type(field, "a text", None);
        return None;
    };
    match check(text) {
        Ok(()) => Some(text.to_string()),
        Err(reason) => {
            walk.refuse(field, reason);
            None
        }
    }
}

fn settings<'s>(walk: &mut Walk<'s>, field: &Field<'_, 's>) -> Option<BTreeMap<String, Setting>> {
    let section = walk.table(field, "a table of the provider's settings")?;
    let mut settings = Some(BTreeMap::new());
    for entry in section.entries() {
        let setting = setting(walk, &entry.field);
        settings = settings.zip(setting).map(|(mut settings, setting)| {
            settings.insert(entry.name.to_owned(), setting);
            settings
        });
    }
    settings
}

/// Depth is bounded by the parser.
fn setting<'s>(walk: &mut Walk<'s>, field: &Field<'_, 's>) -> Option<Setting> {
    walk.set_place(&field.path, field.span.clone());
    match field.value {
        DeValue::Boolean(value) => Some(Setting::Bool(*value)),
        DeValue::String(text) => Some(Setting::Text(text.to_string())),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Some(Setting::Integer(number)),
            Err(_) => {
                walk.refuse(field, "the number is larger than 64 bits");
                None
            }
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Some(Setting::Float(number)),
            _ => {
                walk.refuse(field, "it is not a finite number");
                None
            }
        },
        DeValue::Array(items) => {
            let mut list = Some(Vec::with_capacity(items.len()));
            for (at, item) in items.iter().enumerate() {
                let item = Field { path: format!("{}[{at}]", field.path), value: item.get_ref(), span: item.span() };
                let setting = setting(walk, &item);
                list = list.zip(setting).map(|(mut list, setting)| {
                    list.push(setting);
                    list
                });
            }
            list.map(Setting::List)
        }
        DeValue::Table(_) => settings(walk, field).map(Setting::Table),
        DeValue::Datetime(_) => {
            walk.wrong_type(field, "a text, a number, a truth value, a list or a table", None);
            None
        }
    }
}
