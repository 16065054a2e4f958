//! Plays a case: commands become inputs of the driver, decisions become lines, expectations are held against both.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use decider::{Plan, Snapshot};
use engine::driver::{Driver, DriverConfig};
use engine::id::AttemptId;
use engine::invariants::Violation;
use engine::io::{DeciderFailure, Input, Operation, Promise};
use engine::policy::Policy;

use crate::build;
use crate::case::{Case, Item, Malformed, Script};
use crate::command::{Command, Jump};
use crate::cover::Counts;
use crate::diff::{DiffLine, diff};
use crate::log::Log;
use crate::render;
use crate::session::{Budget, Came, Decide, Session, Subject, TOO_LATE, natural};
use crate::snapshot::Picture;

mod expectations;
mod host;
mod whole;

pub use whole::{Run, run};

/// How long a case may go on.
#[derive(Clone)]
pub struct Bounds {
    /// Steps of the driver; in a large fleet one counts as several.
    pub steps: u64,
    /// Asked before each step whether there is still time.
    pub in_time: Option<Rc<dyn Fn() -> bool>>,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { steps: 1_000_000, in_time: None }
    }
}

/// Something that is not as the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The line of the command, from 1.
    pub line: usize,
    /// The command.
    pub command: String,
    /// The scenario's clock, in milliseconds.
    pub at_ms: u64,
    /// The node, where it is about one.
    pub node: Option<String>,
    /// What is wrong, in words.
    pub what: String,
    /// What was expected and what came.
    pub diff: Vec<DiffLine>,
}

/// What came of a case.
pub struct Played {
    /// The case, rendered anew.
    pub text: String,
    /// Everything that is not as the file says; none when it passes.
    pub misses: Vec<Miss>,
    /// Why it was cut before its end; none when it was not.
    pub cut: Option<String>,
    /// Violations of S1-S15, with the line after which they were found. None are expected, whatever the file says.
    pub violations: Vec<(usize, Violation)>,
    pub(crate) counts: Counts,
}

/// More than these are no help.
const MAX_MISSES: usize = 50;

/// Why a command cannot be followed.
enum Stop {
    /// The file is wrong.
    Malformed(String),
    /// It came otherwise.
    Missed(String),
}

/// Plays a case against a decider.
///
/// # Errors
///
/// A setting that the engine refuses.
pub fn play(script: &Script, case: &Case, subject: &Subject, bounds: &Bounds) -> Result<Played, Malformed> {
    Player::new(subject, bounds, &|_| ()).play(script, case)
}

struct Player<'a> {
    subject: Subject,
    with: &'a dyn Fn(&mut Session),
    session: Option<Session>,
    picture: Option<Picture>,
    policy: Policy,
    providers: BTreeMap<String, Promise>,
    /// How often the host was started again.
    epoch: u64,
    budget: Budget,
    log: Rc<RefCell<Log>>,
    /// What the driver refused of the last input.
    refused: Option<String>,
    misses: Vec<Miss>,
    violations: Vec<(usize, Violation)>,
    /// What the present command brought.
    lines: Vec<String>,
    line: usize,
    command: String,
}

impl<'a> Player<'a> {
    fn new(subject: &Subject, bounds: &Bounds, with: &'a dyn Fn(&mut Session)) -> Self {
        let subject = &in_time(subject, bounds);
        Player {
            subject: subject.clone(),
            with,
            session: None,
            picture: None,
            policy: Policy::default(),
            providers: build::providers(),
            epoch: 0,
            budget: Budget { left: bounds.steps, in_time: bounds.in_time.clone(), cut: None },
            log: Rc::new(RefCell::new(Log::new(subject.clone()))),
            refused: None,
            misses: Vec::new(),
            violations: Vec::new(),
            lines: Vec::new(),
            line: 0,
            command: String::new(),
        }
    }

    fn play(mut self, script: &Script, case: &Case) -> Result<Played, Malformed> {
        for item in &script.preamble {
            if let Item::Command { line, command, .. } = item {
                (self.line, self.command) = (*line, String::new());
                _ = self.follow(command)?;
            }
        }
        let (mut text, mut cut) = (String::new(), None);
        let mut items = case.items.iter().peekable();
        while let Some(item) = items.next() {
            let (line, source, command) = match item {
                Item::Verbatim(line) => {
                    text.push_str(line);
                    text.push('\n');
                    continue;
                }
                // What a command brought is taken with it; comments may stand between.
                Item::Output(_) => continue,
                Item::Command { line, text, command } => (*line, text, command),
            };
            text.push_str(source);
            text.push('\n');
            if cut.is_some() {
                continue;
            }
            (self.line, self.command) = (line, source.clone());
            let followed = self.follow(command)?;
            self.take_findings();
            for brought in &self.lines {
                text.push_str("    ");
                text.push_str(brought);
                text.push('\n');
            }
            if case.is_transcript() {
                let rest = items.clone().take_while(|item| !matches!(item, Item::Command { .. }));
                let expected: Vec<&str> = rest
                    .filter_map(|item| match item {
                        Item::Output(line) => Some(line.as_str()),
                        _ => None,
                    })
                    .collect();
                self.compare(&expected);
            }
            if let Err(why) = followed {
                self.miss(None, &why, Vec::new());
                cut = Some(why);
            }
        }
        let counts = self.log.borrow().counts.clone();
        Ok(Played { text, misses: self.misses, cut, violations: self.violations, counts })
    }

    /// Follows one command; the inner error is why the rest cannot be.
    fn follow(&mut self, command: &Command) -> Result<Result<(), String>, Malformed> {
        self.lines.clear();
        if !matches!(command, Command::Expect(_) | Command::Never(_)) {
            self.log.borrow_mut().event();
        }
        let followed = match self.command(command) {
            Err(Stop::Malformed(why)) => return Err(Malformed::new(self.line, why)),
            Err(Stop::Missed(why)) => Err(why),
            Ok(()) => Ok(()),
        };
        let late = self.budget.in_time.as_ref().is_some_and(|in_time| !in_time());
        match self.session.as_ref().and_then(|session| session.budget.cut).or(late.then_some(TOO_LATE)) {
            Some(cut) => Ok(Err(cut.into())),
            None => Ok(followed),
        }
    }

    /// Violations and what was never to be, since the last command.
    fn take_findings(&mut self) {
        let mut found = std::mem::take(&mut self.log.borrow_mut().violations);
        if let Some(session) = &mut self.session {
            found.append(&mut session.violations);
        }
        for violation in found {
            if self.violations.len() < MAX_MISSES && !self.violations.iter().any(|(_, known)| known.id == violation.id)
            {
                let what = format!("{} is broken: {}", violation.id, violation.what);
                self.miss(None, &what, Vec::new());
                self.violations.push((self.line, violation));
            }
        }
        let tripped = std::mem::take(&mut self.log.borrow_mut().tripped);
        for trip in tripped {
            let lines = vec![DiffLine::new('-', trip.expected), DiffLine::new('+', trip.got)];
            let what = format!("it happened, with line {}", self.line);
            let miss = Miss {
                line: trip.line,
                command: trip.text,
                at_ms: trip.at_ms,
                node: Some(trip.node),
                what,
                diff: lines,
            };
            self.keep(miss);
        }
    }

    fn compare(&mut self, expected: &[&str]) {
        let got: Vec<&str> = self.lines.iter().map(|line| line.trim()).collect();
        if got != expected {
            let lines = diff(expected, &got);
            self.miss(None, "it brings something else than what is written below it", lines);
        }
    }

    fn miss(&mut self, node: Option<&str>, what: &str, diff: Vec<DiffLine>) {
        let miss = Miss {
            line: self.line,
            command: self.command.clone(),
            at_ms: self.now_ms(),
            node: node.map(str::to_owned),
            what: what.into(),
            diff,
        };
        self.keep(miss);
    }

    fn keep(&mut self, miss: Miss) {
        if self.misses.len() < MAX_MISSES {
            self.misses.push(miss);
        }
    }

    fn now_ms(&self) -> u64 {
        let session = self.session.as_ref().map(|session| session.now_ms);
        session.or(self.picture.as_ref().map(|picture| picture.now_ms)).unwrap_or(0)
    }

    fn command(&mut self, command: &Command) -> Result<(), Stop> {
        match command {
            Command::Policy(settings) => {
                settings.iter().for_each(|setting| setting.apply(&mut self.policy));
                match self.session {
                    Some(_) => self.feed(Input::PolicyChanged(self.policy)),
                    None => Ok(()),
                }
            }
            Command::Provider { name, promise } => {
                if self.session.is_some() {
                    return Err(Stop::Malformed("providers are said before anything happens".into()));
                }
                self.providers.insert(name.clone(), *promise);
                Ok(())
            }
            Command::Shape(shape) => self.feed(Input::Desired(shape.clone())),
            Command::Order(order) => self.feed(Input::Command(order.clone())),
            Command::Done { who } => {
                let operation = self.pending(who)?;
                self.feed(Input::Completed { id: operation.id, result: Ok(natural(&operation)) })
            }
            Command::Fail { who, fault } => {
                let id = self.pending(who)?.id;
                self.feed(Input::Completed { id, result: Err(fault.clone()) })
            }
            Command::Result { id, result } => self.feed(Input::Completed { id: *id, result: result.clone() }),
            Command::Answer { who, status } => {
                let id = self.pending(who)?.id;
                self.feed(Input::Answered { id, status: *status })
            }
            Command::Answered { id, status } => self.feed(Input::Answered { id: *id, status: *status }),
            Command::Observe { who, observation } => {
                let attempt = self.attempt(who)?;
                self.feed(Input::Observed { attempt, observation: observation.clone() })
            }
            Command::Wait(span) => self.with_session(|session| session.wait(*span)),
            Command::Wake => self.wake(),
            Command::Restart { fence } => self.restart(*fence),
            Command::Restarted => {
                // A start like any other: should the state be lost later, operations are numbered above it.
                self.epoch += 1;
                self.feed(Input::Restarted)
            }
            Command::Clock { jump } => {
                let session = self.session()?;
                session.now_ms = match jump {
                    Jump::Ahead(span) => session.now_ms.saturating_add(*span),
                    Jump::Back(span) => session.now_ms.saturating_sub(*span),
                };
                self.feed(Input::Tick)
            }
            Command::ClockAt(at) => {
                self.session()?.now_ms = *at;
                Ok(())
            }
            Command::Storm { who, times } => self.storm(who, *times),
            Command::Resync => self.feed(Input::Resync),
            Command::Slow => {
                self.session()?.slow = true;
                Ok(())
            }
            Command::AnswerAll => self.with_session(|session| {
                session.slow = false;
                session.answer()
            }),
            Command::AnswerOne => self.with_session(Session::answer_one),
            Command::List { provider, listing } => {
                self.feed(Input::Listed { provider: provider.clone(), listing: listing.clone() })
            }
            Command::Adopt { provider, listing } => {
                self.feed(Input::Adopt { provider: provider.clone(), listing: listing.clone() })
            }
            Command::Survey { provider, listing } => {
                self.feed(Input::Surveyed { provider: provider.clone(), listing: listing.clone() })
            }
            Command::Decider(how) => self.set_decider(how),
            Command::BringUp => {
                self.session()?.bring_up();
                Ok(())
            }
            Command::Rest => {
                self.session()?.check_rest();
                Ok(())
            }
            Command::Show => {
                self.lines = render::show(self.session()?);
                Ok(())
            }
            Command::Settles { within_ms } => self.settles(*within_ms),
            Command::Expect(expectation) => self.hold_to(expectation),
            Command::Never(never) => {
                self.session()?;
                self.log.borrow_mut().watch(self.line, &self.command, never.clone());
                Ok(())
            }
            Command::Snapshot { now_ms, generation, counts } => {
                self.log.borrow_mut().forget();
                self.picture = Some(Picture {
                    now_ms: now_ms.unwrap_or(crate::snapshot::NOW_MS),
                    generation: generation.unwrap_or(1),
                    nodes: Vec::new(),
                    counts: counts.clone(),
                    answer: None,
                });
                Ok(())
            }
            Command::Node(facts) => {
                let Some(picture) = &mut self.picture else { return Err(Stop::Malformed("no snapshot".into())) };
                picture.push(facts.clone()).map_err(Stop::Malformed)
            }
        }
    }

    fn session(&mut self) -> Result<&mut Session, Stop> {
        if self.session.is_none() {
            let session = self.start(1)?;
            self.session = Some(session);
        }
        self.session.as_mut().ok_or_else(|| Stop::Missed("no session".into()))
    }

    /// A host that starts.
    fn start(&self, next_attempt: u64) -> Result<Session, Stop> {
        let config = DriverConfig {
            providers: self.providers.clone(),
            decider: self.subject.identity.clone(),
            next_attempt,
            epoch: self.epoch,
            ..build::config(self.policy)
        };
        let driver =
            Driver::new(config).map_err(|error| Stop::Malformed(format!("the engine refuses to start: {error}")))?;
        let mut session = Session::new(driver);
        session.budget = self.budget.clone();
        session.log = Some(self.log.clone());
        session.decide = asking(&self.subject);
        (self.with)(&mut session);
        Ok(session)
    }

    fn attempt(&mut self, who: &str) -> Result<AttemptId, Stop> {
        if let Some(number) = who.strip_prefix('a').and_then(|number| number.parse().ok()) {
            return Ok(AttemptId(number));
        }
        self.session()?.attempt(who).ok_or_else(|| Stop::Missed(format!("there is no node {who}")))
    }

    fn pending(&mut self, who: &str) -> Result<Operation, Stop> {
        let attempt = self.attempt(who)?;
        let pending = self.session()?.pending(attempt);
        pending.ok_or_else(|| Stop::Missed(format!("{who} has no operation in flight")))
    }

    fn feed(&mut self, input: Input) -> Result<(), Stop> {
        self.with_session(|session| session.feed(input))
    }

    fn with_session(&mut self, step: impl FnOnce(&mut Session) -> Came) -> Result<(), Stop> {
        let came = step(self.session()?);
        self.print(&came);
        Ok(())
    }

    fn print(&mut self, came: &Came) {
        self.refused = came.errors.first().map(ToString::to_string);
        if let Some(session) = &self.session {
            self.lines.extend(render::came(came, &session.driver, &self.subject));
        }
    }

    /// The answer to the stated snapshot, asked for once.
    fn answer(&mut self) -> Result<Result<Plan, DeciderFailure>, Stop> {
        let Some(picture) = &mut self.picture else { return Err(Stop::Malformed("no snapshot".into())) };
        if let Some(answer) = &picture.answer {
            return Ok(answer.clone());
        }
        let snapshot = picture.snapshot(&self.policy);
        let answer = (self.subject.ask)(&snapshot);
        picture.answer = Some(answer.clone());
        if let Ok(plan) = &answer {
            let ask = self.subject.ask.clone();
            let mut ask = |part: &Snapshot| ask(part);
            let mut log = self.log.borrow_mut();
            log.forget();
            let name = |node: u32| picture.nodes.get(node as usize).map(|node| node.name.clone());
            log.decided(&snapshot, plan, &mut ask, &name);
            if let Some(violation) = crate::snapshot::alone(&snapshot, plan, &mut ask) {
                log.violated(violation);
            }
        }
        Ok(answer)
    }
}

/// One step can ask many times; when the time is over, nobody is asked any more.
fn in_time(subject: &Subject, bounds: &Bounds) -> Subject {
    let Some(in_time) = bounds.in_time.clone() else { return subject.clone() };
    let (ask, decider) = (subject.ask.clone(), subject.identity.digest.clone());
    let timed = move |snapshot: &Snapshot| match in_time() {
        true => ask(snapshot),
        false => Err(DeciderFailure { decider: decider.clone(), class: "time".into(), detail: TOO_LATE.into() }),
    };
    Subject { identity: subject.identity.clone(), ask: Rc::new(timed) }
}

fn asking(subject: &Subject) -> Decide {
    let ask = subject.ask.clone();
    Box::new(move |snapshot| ask(snapshot))
}
