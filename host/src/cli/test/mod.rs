//! `homeostat test`.

mod files;
mod progress;
mod text;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum, ValueHint};
use scenario::{Bounds, Case, Malformed, Report, Script, Status, Subject, like, play};

use self::progress::Progress;
use super::{ExitCode, Failure, InputError, LimitArgs, Terminal, decider, interrupt};

/// Arguments of `test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Scenario files, or folders of them: every .txt file below, hidden ones apart.
    #[arg(value_name = "DIR", value_hint = ValueHint::AnyPath, required = true)]
    pub paths: Vec<PathBuf>,
    /// The decider to test: a component, in the sandbox [default: the built-in decider].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub decider: Option<PathBuf>,
    /// What the decider may use.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Only tests whose file or name is like this: a part of it, or a pattern in which * stands for anything.
    #[arg(long, value_name = "PATTERN")]
    pub only: Option<String>,
    /// Also say which rules of the decider no scenario exercised, and how often each decided.
    #[arg(long)]
    pub cover: bool,
    /// Fail when less than this share of the rules is exercised, in per cent; implies --cover.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub cover_min: Option<u8>,
    /// The form of the report.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<ReportFormat>,
    /// Write the report to this file; what people read still goes to standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Write what the commands bring into the files, below the commands, instead of comparing it.
    #[arg(long)]
    pub bless: bool,
    /// A test that takes longer is cut, and fails.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = super::duration)]
    pub time_limit: Duration,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For people.
    Text,
    /// One JSON document.
    Json,
    /// JUnit XML, for continuous integration.
    Junit,
}

/// A scenario file.
struct File {
    path: PathBuf,
    shown: String,
    text: String,
    script: Script,
}

impl File {
    fn wrong(shown: &str, error: Malformed) -> Failure {
        let file = Some(shown.to_owned());
        InputError { message: error.why, file, line: Some(error.line), ..InputError::default() }.into()
    }
}

pub(super) fn run(args: &TestArgs, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let found = files::find(&args.paths)?;
    // The files first: they are cheap to refuse, before a component is compiled.
    let mut files = parsed(found, terminal)?;
    let built_in = args.decider.as_deref().is_none_or(|file| file.as_os_str() == "built-in");
    let loaded = Rc::new(decider::load(args.decider.as_deref().filter(|_| !built_in), &args.limits.limits()?)?);
    let description = loaded.description().clone();
    let asked = Rc::clone(&loaded);
    let subject = Subject { identity: loaded.identity(), ask: Rc::new(move |snapshot| asked.decide(snapshot)) };
    checked(&files, &subject, args.bless, terminal)?;
    let mut report = Report::new(format!("{} {}", description.name, description.version), &subject);
    let mut written = Vec::new();
    let chosen = |file: &File| file.script.cases.iter().filter(|case| selected(args, &file.shown, case)).count();
    let progress = Arc::new(Progress::new(files.iter().map(chosen).sum(), terminal));
    let known = Arc::clone(&progress);
    interrupt::leave(ExitCode::Interrupted, move || known.interrupted())?;
    for file in &mut files {
        if args.bless && bless(file, args, &subject)? {
            written.push(file.shown.clone());
        }
        for case in file.script.cases.iter().filter(|case| selected(args, &file.shown, case)) {
            let played =
                play(&file.script, case, &subject, &bounds(args)).map_err(|error| File::wrong(&file.shown, error))?;
            report.push(&file.shown, case, &subject, &played);
            progress.played(report.tested.last().is_some_and(|tested| tested.status != Status::Passed));
        }
    }
    progress.clear();
    if report.tested.is_empty() {
        let only = args.only.clone().unwrap_or_default();
        let message = format!("no test is like --only {only:?}: none was played");
        return Err(InputError { message, ..InputError::default() }.into());
    }
    deliver(args, &report, &written, terminal)
}

/// Every file that is no scenario is named; the last one is the failure.
fn refuse(mut wrong: Vec<Failure>, terminal: &Terminal) -> Result<(), Failure> {
    let Some(last) = wrong.pop() else { return Ok(()) };
    for error in wrong {
        terminal.print_failure(&error);
    }
    Err(last)
}

fn parsed(found: Vec<PathBuf>, terminal: &Terminal) -> Result<Vec<File>, Failure> {
    let (mut files, mut wrong) = (Vec::new(), Vec::new());
    for path in found {
        let shown = path.display().to_string();
        match files::read(&path).and_then(|text| {
            let script = Script::parse(&text).map_err(|error| File::wrong(&shown, error))?;
            Ok((text, script))
        }) {
            Ok((text, script)) => files.push(File { path, shown, text, script }),
            Err(error) => wrong.push(error),
        }
    }
    refuse(wrong, terminal)?;
    Ok(files)
}

fn checked(files: &[File], subject: &Subject, writes: bool, terminal: &Terminal) -> Result<(), Failure> {
    let check = |file: &File| {
        let checked = file.script.check(&subject.identity.rules, writes);
        checked.err().map(|error| File::wrong(&file.shown, error))
    };
    refuse(files.iter().filter_map(check).collect(), terminal)
}

fn selected(args: &TestArgs, file: &str, case: &Case) -> bool {
    let Some(pattern) = &args.only else { return true };
    let name = case.name.as_deref().unwrap_or_default();
    match pattern.contains('*') {
        true => like(pattern, file) || like(pattern, name),
        false => file.contains(pattern.as_str()) || name.contains(pattern.as_str()),
    }
}

/// The steps are bounded by the scenarios themselves, the time here.
fn bounds(args: &TestArgs) -> Bounds {
    let (began, limit) = (Instant::now(), args.time_limit);
    Bounds { in_time: Some(Rc::new(move || began.elapsed() < limit)), ..Bounds::default() }
}

/// Writes what the commands bring; whether anything was written. A test that was cut stays as it is.
fn bless(file: &mut File, args: &TestArgs, subject: &Subject) -> Result<bool, Failure> {
    let wrong = |error| File::wrong(&file.shown, error);
    let mut texts = Vec::new();
    for case in &file.script.cases {
        let written = match selected(args, &file.shown, case) {
            true => {
                let played = play(&file.script, case, subject, &bounds(args)).map_err(wrong)?;
                if played.cut.is_some() { case.source() } else { case.written(&played) }
            }
            false => case.source(),
        };
        texts.push(written);
    }
    let text = file.script.rendered(texts.iter().map(String::as_str));
    if text == file.text {
        return Ok(false);
    }
    let script = Script::parse(&text).map_err(wrong)?;
    std::fs::write(&file.path, &text).map_err(|error| files::unreadable(&file.path, &error))?;
    (file.text, file.script) = (text, script);
    Ok(true)
}

fn deliver(args: &TestArgs, report: &Report, written: &[String], terminal: &Terminal) -> Result<ExitCode, Failure> {
    let covers = args.cover || args.cover_min.is_some();
    let short = args.cover_min.filter(|min| report.coverage.percent() < u64::from(*min));
    let text = |terminal: &Terminal| text::render(report, covers, short, written, terminal);
    let usual = if terminal.is_json() { ReportFormat::Json } else { ReportFormat::Text };
    let format = args.format.unwrap_or(usual);
    let document = match format {
        ReportFormat::Text => text(&Terminal { out_color: terminal.out_color && args.out.is_none(), ..*terminal }),
        ReportFormat::Json => report.json(covers).map_err(anyhow::Error::from)?,
        ReportFormat::Junit => report.junit(),
    };
    match &args.out {
        None => terminal.print(&document)?,
        Some(path) => {
            std::fs::write(path, document).map_err(|error| files::unreadable(path, &error))?;
            terminal.print(&text(terminal))?;
        }
    }
    let passed = report.count(Status::Passed) == report.tested.len() && short.is_none();
    Ok(if passed { ExitCode::Ok } else { ExitCode::Failed })
}
