//! The scenario language. A scenario is one text: commands at the start of a line, what they brought indented below. It is
//! input and expected output in one; a run renders it anew and the two are compared.
//!
//! ```text
//! policy probe-ms=1000                  settings; see `policy`
//! shape 1 web=2 db=1@v2:market          generation, then group=count[@template[:provider]]
//! done web-0                            its operation succeeds
//! fail web-0 retryable "quota" 5s       its operation fails: retryable, permanent, not-ready, ambiguous; a wait to ask for
//! result a1.1 leased L9                 any result for any operation id
//! give-up web-0 | promised web-0        the executor's answers
//! observe web-0 joined                  joined | progress N | output | failed "why" [permanent] | closed ["exit"]
//! wait 5s | wake                        the clock moves: by a time, or to the next wake-up
//! list fake complete web-0/a1=L1        a listing: complete or partial; `other:` before a label is another run's
//! adopt fake complete web-0/a1=L1@v1    what a restart finds
//! answered a1.1 ambiguous               the executor's answer for any operation id: ambiguous | completed
//! restart 33                            the host is killed and starts again: all that is left is the fence of attempt ids
//! clock +1day                           the clock jumps: a time, or -1hour; what is due fires once
//! storm web-0 100                       its operation fails and its retry comes, that often, quietly
//! resync                                the periodic pass
//! decider broken | broken-for web-1 | ok | changed
//! clock-at 5s                           the next input comes at this instant, before anything that is due then
//! slow | answer | answer-one            decisions wait, and come: all, or the next
//! bring-up                              everything succeeds, quietly
//! show | rest                           where each node is; a pass over a settled cluster changes nothing
//! ```

use std::collections::BTreeSet;
use std::fmt::Write as _;

use decider::{HoldKind, Snapshot, Verb};
use engine::driver::{Driver, DriverConfig};
use engine::id::AttemptId;
use engine::io::{DeciderFailure, Fault, Input, Notice, OperationStatus, Output, Request};
use engine::policy::Policy;

use crate::build;
use crate::session::{Came, Session, natural, operation_id};
pub use crate::words::ms;
use crate::words::{parse_fault, parse_listing, parse_ms, parse_observation, parse_result, parse_shape, split};

/// Why a scenario cannot be run.
#[derive(Debug)]
pub struct Malformed {
    /// Its line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

/// What a run of a scenario gave.
pub struct Run {
    /// The scenario, rendered anew.
    pub text: String,
    /// Violations of S1–S15, none expected.
    pub violations: Vec<String>,
    /// The rules that acted or held.
    pub rules: BTreeSet<u8>,
}

/// Runs a scenario. `with` may replace the session's decider before the first command.
pub fn run(text: &str, with: impl Fn(&mut Session)) -> Result<Run, Malformed> {
    let mut runner = Runner {
        session: None,
        policy: Policy::default(),
        epoch: 0,
        text: String::new(),
        rules: BTreeSet::new(),
        with: &with,
    };
    for (at, line) in text.lines().enumerate() {
        if line.starts_with(char::is_whitespace) || line.trim().is_empty() || line.starts_with('#') {
            if !line.starts_with(char::is_whitespace) || line.trim().is_empty() {
                runner.text.push_str(line.trim_end());
                runner.text.push('\n');
            }
            continue;
        }
        runner.text.push_str(line.trim_end());
        runner.text.push('\n');
        runner.command(line).map_err(|why| Malformed { line: at + 1, why })?;
    }
    let session = runner.session.as_ref();
    let violations =
        session.map(|session| session.violations.iter().map(|v| format!("{}: {}", v.id, v.what)).collect());
    Ok(Run { text: runner.text, violations: violations.unwrap_or_default(), rules: runner.rules })
}

struct Runner<'a> {
    session: Option<Session>,
    policy: Policy,
    /// How often the host was started again.
    epoch: u64,
    text: String,
    rules: BTreeSet<u8>,
    with: &'a dyn Fn(&mut Session),
}

impl Runner<'_> {
    fn session(&mut self) -> Result<&mut Session, String> {
        if self.session.is_none() {
            let driver = build::driver(self.policy).map_err(|error| error.to_string())?;
            let mut session = Session::new(driver);
            (self.with)(&mut session);
            self.session = Some(session);
        }
        self.session.as_mut().ok_or_else(|| "no session".into())
    }

    fn command(&mut self, line: &str) -> Result<(), String> {
        let words = split(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (verb, rest) = words.split_first().ok_or("an empty command")?;
        match (*verb, rest) {
            ("policy", settings) => self.set_policy(settings),
            ("shape", [generation, groups @ ..]) => {
                let shape = parse_shape(generation, groups)?;
                self.feed(Input::Desired(shape))
            }
            ("done", [who]) => {
                let operation = self.pending(who)?;
                self.feed(Input::Completed { id: operation.id, result: Ok(natural(&operation)) })
            }
            ("fail", [who, how @ ..]) => {
                let id = self.pending(who)?.id;
                let result = Err(parse_fault(how)?);
                self.feed(Input::Completed { id, result })
            }
            ("result", [id, how @ ..]) => {
                let id = operation_id(id).ok_or("no operation id")?;
                let result = parse_result(how)?;
                self.feed(Input::Completed { id, result })
            }
            ("give-up", [who]) => self.answer(who, OperationStatus::Ambiguous),
            ("promised", [who]) => self.answer(who, OperationStatus::Completed),
            ("observe", [who, what @ ..]) => {
                let attempt = self.attempt(who)?;
                let observation = parse_observation(what)?;
                self.feed(Input::Observed { attempt, observation })
            }
            ("wait", [span]) => {
                let span = parse_ms(span)?;
                let came = self.session()?.wait(span);
                self.print(&came)
            }
            ("wake", []) => match self.session()?.wake() {
                Some(came) => {
                    let at = ms(self.session()?.now_ms);
                    self.line(&format!("at {at}"));
                    self.print(&came)
                }
                None => {
                    self.line("nothing to wake up for");
                    Ok(())
                }
            },
            ("answered", [id, status]) => {
                let id = operation_id(id).ok_or("no operation id")?;
                let status = match *status {
                    "ambiguous" => OperationStatus::Ambiguous,
                    "completed" => OperationStatus::Completed,
                    _ => return Err("answered ID ambiguous | completed".into()),
                };
                self.feed(Input::Answered { id, status })
            }
            ("restart", [fence]) => self.restart(fence),
            ("restarted", []) => self.feed(Input::Restarted),
            ("clock", [jump]) => self.jump(jump),
            ("storm", [who, times]) => self.storm(who, times),
            ("resync", []) => self.feed(Input::Resync),
            ("answer-one", []) => {
                let came = self.session()?.answer_one();
                self.print(&came)
            }
            ("clock-at", [at]) => {
                self.session()?.now_ms = parse_ms(at)?;
                Ok(())
            }
            ("list", [provider, complete, entries @ ..]) => {
                let listing = parse_listing(complete, entries)?;
                self.feed(Input::Listed { provider: (*provider).into(), listing })
            }
            ("adopt", [provider, complete, entries @ ..]) => {
                let listing = parse_listing(complete, entries)?;
                self.feed(Input::Adopt { provider: (*provider).into(), listing })
            }
            ("decider", how) => self.set_decider(how),
            ("slow", []) => {
                self.session()?.slow = true;
                Ok(())
            }
            ("answer", []) => {
                let session = self.session()?;
                session.slow = false;
                let came = session.answer();
                self.print(&came)
            }
            ("bring-up", []) => {
                self.session()?.bring_up();
                Ok(())
            }
            ("rest", []) => {
                self.session()?.check_rest();
                Ok(())
            }
            ("show", []) => self.show(),
            _ => Err(format!("no such command: {line}")),
        }
    }

    /// The host is killed and starts again.
    fn restart(&mut self, fence: &str) -> Result<(), String> {
        let next_attempt = fence.parse().map_err(|_| format!("{fence} is no attempt number"))?;
        self.epoch += 1;
        let config = DriverConfig { next_attempt, epoch: self.epoch, ..build::config(self.policy) };
        let driver = Driver::new(config).map_err(|error| error.to_string())?;
        let with = self.with;
        let before = self.session()?;
        let now_ms = before.now_ms;
        let mut session = Session::new(driver);
        session.now_ms = now_ms;
        session.violations = std::mem::take(&mut before.violations);
        with(&mut session);
        self.session = Some(session);
        Ok(())
    }

    /// The clock jumps; nothing fires on the way.
    fn jump(&mut self, jump: &str) -> Result<(), String> {
        let session = self.session()?;
        session.now_ms = match jump {
            "+1day" => session.now_ms + 86_400_000,
            "-1hour" => session.now_ms.saturating_sub(3_600_000),
            _ => return Err("clock +1day | -1hour".into()),
        };
        self.feed(Input::Tick)
    }

    /// Failure after failure, each at the instant of its retry. What is longer than a few lines is no help.
    fn storm(&mut self, who: &str, times: &str) -> Result<(), String> {
        let times: u32 = times.parse().map_err(|_| format!("{times} is no number"))?;
        let (mut shortest, mut longest) = (u64::MAX, 0);
        for _ in 0..times {
            let id = self.pending(who)?.id;
            let session = self.session()?;
            let failed_ms = session.now_ms;
            session.feed(Input::Completed { id, result: Err(Fault::retryable("503")) });
            // Other things that happen meanwhile do not shorten the wait.
            session.feed(Input::Resync);
            let mut woken = 0;
            while session.pending(id.attempt).is_none() {
                session.wake().ok_or("nothing to wake up for")?;
                woken += 1;
                if woken > 10 {
                    return Err("its retry does not come".into());
                }
            }
            let waited = session.now_ms - failed_ms;
            (shortest, longest) = (shortest.min(waited), longest.max(waited));
        }
        self.line(&format!("waits from {} to {}", ms(shortest), ms(longest)));
        Ok(())
    }

    fn set_policy(&mut self, settings: &[&str]) -> Result<(), String> {
        for setting in settings {
            let (name, value) = setting.split_once('=').ok_or("a setting is name=value")?;
            let value: u64 = value.parse().map_err(|_| format!("{value} is no number"))?;
            let policy = &mut self.policy;
            match name {
                "initial-ms" => policy.backoff_initial_ms = value,
                "cap-ms" => policy.backoff_cap_ms = value,
                "probe-ms" => policy.probe_interval_ms = value,
                "endpoint-ms" => policy.stages.endpoint_ms = value,
                "bootstrap-ms" => policy.stages.bootstrap_ms = value,
                "join-ms" => policy.stages.join_ms = value,
                "create-ms" => policy.deadlines.create_lease_ms = value,
                _ => return Err(format!("no setting {name}")),
            }
        }
        Ok(())
    }

    fn set_decider(&mut self, how: &[&str]) -> Result<(), String> {
        if how == ["changed"] {
            return self.feed(Input::DeciderChanged(build::native()));
        }
        let failure = DeciderFailure { decider: "native".into(), class: "trap".into(), detail: "it trapped".into() };
        let with = self.with;
        let session = self.session()?;
        match how {
            ["ok"] => with(reset(session)),
            ["broken"] => session.decide = Box::new(move |_| Err(failure.clone())),
            ["broken-for", slots @ ..] => {
                let state = session.driver.state();
                let poison: Vec<u32> = slots.iter().filter_map(|slot| Some(state.names.get(*slot)?.0)).collect();
                session.decide = Box::new(move |snapshot: &Snapshot| {
                    match snapshot.nodes.node.iter().any(|node| poison.contains(node)) {
                        true => Err(failure.clone()),
                        false => Ok(decider::reconcile(snapshot)),
                    }
                });
            }
            _ => return Err("decider ok, broken, broken-for SLOT…, changed".into()),
        }
        Ok(())
    }

    fn attempt(&mut self, who: &str) -> Result<AttemptId, String> {
        if let Some(number) = who.strip_prefix('a').and_then(|number| number.parse().ok()) {
            return Ok(AttemptId(number));
        }
        self.session()?.attempt(who).ok_or_else(|| format!("no node holds {who}"))
    }

    fn pending(&mut self, who: &str) -> Result<engine::io::Operation, String> {
        let attempt = self.attempt(who)?;
        self.session()?.pending(attempt).ok_or_else(|| format!("{who} has no operation in flight"))
    }

    fn answer(&mut self, who: &str, status: OperationStatus) -> Result<(), String> {
        let id = self.pending(who)?.id;
        self.feed(Input::Answered { id, status })
    }

    fn feed(&mut self, input: Input) -> Result<(), String> {
        let came = self.session()?.feed(input);
        self.print(&came)
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "    {text}");
    }

    fn print(&mut self, came: &Came) -> Result<(), String> {
        for (snapshot, plan) in &came.plans {
            self.rules.extend(plan.decisions.rule.iter());
            let _ = snapshot;
            for row in plan.decisions.rows() {
                if row.verb != Verb::Hold.code() {
                    let verb = Verb::from_code(row.verb).map_or("?", Verb::label);
                    let name = self.name(row.node)?;
                    self.line(&format!("R{} {name} {verb}", row.rule));
                }
            }
        }
        for output in &came.outputs {
            match output {
                Output::Record(_) | Output::Decide { .. } => {}
                Output::Submit(operation) => {
                    let kind = match &operation.request {
                        Request::SettleCreate(_) => "settle-create",
                        request => request.kind().label(),
                    };
                    self.line(&format!(
                        "-> {} {kind} {} by {}",
                        operation.id,
                        operation.key.slot,
                        ms(operation.deadline_ms)
                    ));
                }
                Output::Ask(id) => self.line(&format!("ask {id}")),
                Output::Notice(notice) => self.line(&format!("notice: {}", notice_text(notice))),
            }
        }
        for error in &came.errors {
            self.line(&format!("refused: {error}"));
        }
        Ok(())
    }

    fn name(&mut self, node: u32) -> Result<String, String> {
        let state = self.session()?.driver.state();
        Ok(state.slots.get(node as usize).map_or_else(|| node.to_string(), |slot| slot.name.clone()))
    }

    fn show(&mut self) -> Result<(), String> {
        let session = self.session()?;
        let view = session.driver.view();
        let (now, stats) = (session.now_ms, session.driver.stats());
        let converged = if view.converged { ", converged" } else { "" };
        self.line(&format!(
            "at {} generation {} evaluated {}{converged}",
            ms(now),
            view.generation,
            view.observed_generation
        ));
        for node in &view.nodes {
            let mut text = format!("{} ", node.node);
            match node.attempt {
                Some(attempt) => {
                    let _ = write!(text, "a{attempt} {}", node.stage);
                }
                None => text.push_str(node.stage),
            }
            for (set, word) in [(node.deleting, " deleting"), (node.ready, " ready"), (!node.desired, " undesired")] {
                text.push_str(if set { word } else { "" });
            }
            if let Some(rule) = &node.rule {
                let _ = write!(text, " {rule}");
            }
            if !node.waits_for.is_empty() {
                let _ = write!(text, ", waits for {}", node.waits_for);
            }
            if let Some(until) = node.until_ms {
                let _ = write!(text, " until {}", ms(until));
            }
            if node.failures > 0 {
                let _ = write!(text, ", {} failures", node.failures);
            }
            if let Some(error) = &node.error {
                let _ = write!(text, ", {error}");
            }
            self.line(&text);
        }
        for (title, entries) in [("reaping", &view.reaping), ("orphan", &view.orphans)] {
            for entry in entries {
                self.line(&format!("{title} {entry}"));
            }
        }
        if stats.superseded + stats.late + stats.stale_decisions > 0 {
            let (superseded, late, stale) = (stats.superseded, stats.late, stats.stale_decisions);
            self.line(&format!("discarded: {superseded} superseded, {late} late, {stale} stale decisions"));
        }
        let inconsistent = view.nodes.iter().any(|node| node.rule.as_deref() == Some("R17"));
        if inconsistent {
            self.line(&format!("held for {}", HoldKind::Person.label()));
        }
        Ok(())
    }
}

fn reset(session: &mut Session) -> &mut Session {
    session.decide = Box::new(|snapshot| Ok(decider::reconcile(snapshot)));
    session
}

fn notice_text(notice: &Notice) -> String {
    match notice {
        Notice::DeciderFailed { nodes, failure } if nodes.is_empty() => {
            format!("the decider fails for every snapshot: {}: {}", failure.class, failure.detail)
        }
        Notice::DeciderFailed { nodes, failure } => {
            format!("the decider fails for {}: {}: {}", nodes.join(", "), failure.class, failure.detail)
        }
        Notice::DeciderRecovered => "the decider decides again".into(),
        Notice::Inconsistent { node, facts } => format!("{node} is inconsistent: {facts}"),
        Notice::Orphan { provider, lease, key } => format!("orphan {lease} at {provider} ({key})"),
        Notice::OrphanGone { provider, lease } => format!("orphan {lease} at {provider} is gone"),
        Notice::Reaping { provider, lease, key } => format!("reaping {lease} at {provider} ({key})"),
    }
}
