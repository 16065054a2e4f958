//! What a template must be for this provider, checked before anything starts.

use std::path::{Component, Path};
use std::time::Duration;

use engine::shape::{Probe, Setting, Template};

use super::placeholders::Values;
use super::probe::Http;
use crate::backends::TemplateError;

/// The longest grace a template may ask for.
const GRACE_MAX: Duration = Duration::from_secs(600);
/// The prefix of the variables that the backend sets itself.
pub const RESERVED_ENV: &str = "HOMEOSTAT_";

/// The provider's own settings of a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Time between TERM and KILL.
    pub grace: Option<Duration>,
}

fn error(field: impl Into<String>, value: impl Into<String>, reason: impl Into<String>) -> TemplateError {
    TemplateError { field: field.into(), value: value.into(), reason: reason.into() }
}

/// Reads the provider's settings: `grace`, a length of time such as `"5s"`.
pub fn settings(template: &Template) -> Result<Settings, TemplateError> {
    let mut settings = Settings::default();
    for (name, value) in &template.settings {
        let field = format!("settings.{name}");
        let shown = match value {
            Setting::Text(text) => format!("{text:?}"),
            other => format!("{other:?}"),
        };
        if name != "grace" {
            return Err(error(field, shown, "the process provider has no such setting; known: grace"));
        }
        let Setting::Text(text) = value else {
            return Err(error(field, shown, "expected a length of time in quotes, such as \"5s\""));
        };
        let grace = humantime::parse_duration(text).map_err(|why| error(&field, &shown, why.to_string()))?;
        if grace > GRACE_MAX {
            return Err(error(field, shown, "longer than 10 minutes"));
        }
        settings.grace = Some(grace);
    }
    Ok(settings)
}

/// Refuses what can never run.
pub fn check(template: &Template) -> Result<(), TemplateError> {
    settings(template)?;
    if let Some(image) = &template.image {
        return Err(error("image", format!("{image:?}"), "the process provider boots no images"));
    }
    let boot = &template.boot;
    check_command("boot.command", &boot.command)?;
    for (name, value) in &boot.env {
        let field = format!("boot.env.{name}");
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(error("boot.env", format!("{name:?}"), "not the name of a variable"));
        }
        if name.starts_with(RESERVED_ENV) {
            return Err(error(field, format!("{name:?}"), "names that start with HOMEOSTAT_ are set by the host"));
        }
        check_text(&field, value)?;
    }
    for (path, content) in &boot.files {
        let field = format!("boot.files.{path}");
        let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || path.ends_with('/') || path.contains('\0') || !plain {
            return Err(error(field, format!("{path:?}"), "expected a relative path without `.` and `..`"));
        }
        let expanded = Values::default().expand(content);
        expanded.map_err(|why| error(&field, format!("{{{}}}", why.word), why.to_string()))?;
    }
    check_probe(&template.join.probe)
}

fn check_probe(probe: &Probe) -> Result<(), TemplateError> {
    let sample = Values {
        endpoint: "127.0.0.1:10000".into(),
        host: "127.0.0.1".into(),
        port: "10000".into(),
        run: "run".into(),
        node: "node-0".into(),
        attempt: "1".into(),
        dir: "/dir".into(),
        state: "/state".into(),
        own: "/self".into(),
    };
    let expand = |field: &str, text: &str| {
        check_text(field, text)?;
        sample.expand(text).map_err(|why| error(field, format!("{text:?}"), why.to_string()))
    };
    match probe {
        Probe::Http(url) => {
            let expanded = expand("join.probe.http", url)?;
            Http::parse(&expanded).map_err(|why| error("join.probe.http", format!("{url:?}"), why))?;
        }
        Probe::Tcp(address) => {
            let expanded = expand("join.probe.tcp", address)?;
            let port =
                expanded.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
            if !matches!(port, Some(Ok(1..))) {
                return Err(error("join.probe.tcp", format!("{address:?}"), "expected host:port"));
            }
        }
        Probe::Exec(command) => check_command("join.probe.exec", command)?,
        Probe::Stdout(pattern) => {
            regex::Regex::new(&sample.expand_regex(pattern))
                .map_err(|why| error("join.probe.stdout", format!("{pattern:?}"), why.to_string()))?;
        }
    }
    Ok(())
}

fn check_command(field: &str, command: &[String]) -> Result<(), TemplateError> {
    if command.first().is_none_or(|program| program.is_empty()) {
        return Err(error(field, format!("{command:?}"), "a command needs at least a program"));
    }
    command.iter().enumerate().try_for_each(|(at, word)| check_text(&format!("{field}[{at}]"), word))
}

fn check_text(field: &str, text: &str) -> Result<(), TemplateError> {
    if text.contains('\0') {
        return Err(error(field, format!("{text:?}"), "a NUL byte cannot be passed to a program"));
    }
    match Values::default().expand(text) {
        Ok(_) => Ok(()),
        Err(why) => Err(error(field, format!("{text:?}"), why.to_string())),
    }
}
