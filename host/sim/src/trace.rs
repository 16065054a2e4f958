//! What happened, for people: a trace of a run, and the same as a scenario of the scenario language, which the tests can keep.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use engine::command::Command;
use engine::id::Millis;
use engine::io::{Done, Fault, Input, Listing, Observation, OperationStatus, Promise};
use engine::policy::{Guards, Policy};
use engine::shape::{ClusterShape, Template};

use crate::world::World;

pub(crate) struct Trace {
    lines: Vec<String>,
    scenario: String,
    /// Inputs other than time and plans.
    pub events: usize,
    templates: Vec<Template>,
    last_ms: Option<Millis>,
    /// The instant of the last input, wake-ups included.
    end_ms: Millis,
    /// What each backend was last listed as.
    listed: BTreeMap<String, String>,
    /// The attempts and the outcomes of the last results, and how often any of them came again.
    gists: Vec<(String, String)>,
    repeats: u32,
    /// The last input, not written yet: one that brought nothing and says nothing new is left out.
    held: Option<Held>,
    /// Guards were on.
    guarded: bool,
    /// Somebody paused.
    paused: bool,
}

/// An input that is not written yet.
struct Held {
    at_ms: Millis,
    /// What the host's clock showed.
    shown: Millis,
    command: String,
    /// A listing like the one before.
    again: bool,
}

/// A place in a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    bytes: usize,
    last_ms: Option<Millis>,
}

impl Trace {
    pub fn new(world: &World, policy: &Policy) -> Self {
        let guarded = !policy.guards.is_off();
        let mut scenario = settings(policy);
        if guarded {
            scenario.push_str(&guards(&policy.guards));
        }
        scenario.push('\n');
        for (name, promise) in &world.providers {
            let _ = match promise {
                Promise::Keyed => writeln!(scenario, "provider {name} keyed"),
                Promise::Windowed { window_ms, listings } => {
                    writeln!(scenario, "provider {name} windowed {window_ms}ms {listings}")
                }
            };
        }
        Trace {
            lines: Vec::new(),
            scenario,
            events: 0,
            templates: Vec::new(),
            last_ms: None,
            end_ms: 0,
            listed: BTreeMap::new(),
            gists: Vec::new(),
            repeats: 0,
            held: None,
            guarded,
            paused: false,
        }
    }

    pub fn say(&mut self, at_ms: Millis, line: &str) {
        self.gists.clear();
        self.repeats = 0;
        self.lines.push(format!("{:>12}  {line}", seconds(at_ms)));
    }

    /// Where the trace is, before an input.
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.scenario.len(), last_ms: self.last_ms }
    }

    /// The host is killed, and what came after the mark was not synced: a scenario without it begins anew there.
    pub fn lost(&mut self, mark: Mark) {
        self.scenario.truncate(mark.bytes);
        self.last_ms = mark.last_ms;
        self.held = None;
    }

    /// The host is killed and its state is lost: what is durable is the fence.
    pub fn state_lost(&mut self, fence: u64) {
        let _ = writeln!(self.scenario, "restart {fence}");
    }

    /// An input at an instant, and what the host's clock shows then.
    pub fn input(&mut self, input: &Input, at_ms: Millis, shown: Millis) {
        self.last_ms.get_or_insert(shown);
        self.end_ms = shown;
        let Some(command) = self.command(input) else { return };
        let again = match input {
            Input::Listed { provider, .. } => {
                self.listed.insert(provider.clone(), command.clone()).as_ref() == Some(&command)
            }
            _ => false,
        };
        self.held = Some(Held { at_ms, shown, command, again });
    }

    /// The last input was folded; whether anything came of it.
    pub fn folded(&mut self, came: bool) {
        let Some(Held { at_ms, shown, command, again }) = self.held.take() else { return };
        if again && !came {
            return;
        }
        self.wait_until(shown);
        let _ = writeln!(self.scenario, "{command}");
        // A listing that shows what the one before showed is no news to a reader, nor is looking again and again.
        if again {
            return;
        }
        let gist = gist(&command);
        if gist.as_ref().is_some_and(|gist| self.gists.contains(gist)) {
            self.repeats += 1;
            let times = format!("{:>12}    ... and {} times more", "", self.repeats);
            match self.repeats {
                1 => self.lines.push(times),
                _ => {
                    if let Some(last) = self.lines.last_mut() {
                        *last = times;
                    }
                }
            }
            return;
        }
        self.repeats = 0;
        match gist {
            Some(gist) => self.gists.push(gist),
            None => self.gists.clear(),
        }
        self.events += 1;
        self.lines.push(format!("{:>12}  > {command}", seconds(at_ms)));
    }

    /// A scenario begins at 0; its clock fires every wake-up on the way.
    fn wait_until(&mut self, shown: Millis) {
        let last = self.last_ms.unwrap_or(shown);
        if shown > last {
            let span = shown - last;
            let _ = match span % 1_000 {
                0 => writeln!(self.scenario, "wait {}s", span / 1_000),
                _ => writeln!(self.scenario, "wait {span}ms"),
            };
            self.last_ms = Some(shown);
        }
    }

    fn command(&mut self, input: &Input) -> Option<String> {
        Some(match input {
            Input::Desired(shape) => self.shape(shape),
            Input::Completed { id, result } => format!("result {id} {}", outcome(result)),
            Input::Answered { id, status: OperationStatus::Ambiguous } => format!("answered {id} ambiguous"),
            Input::Answered { id, status: OperationStatus::Completed } => format!("answered {id} completed"),
            Input::Observed { attempt, observation } => format!("observe {attempt} {}", observed(observation)),
            Input::Listed { provider, listing } => format!("list {provider} {}", self.listing(listing)),
            Input::Adopt { provider, listing } => format!("adopt {provider} {}", self.listing(listing)),
            Input::Surveyed { provider, listing } => format!("survey {provider} {}", self.listing(listing)),
            Input::PolicyChanged(policy) => {
                self.guarded |= !policy.guards.is_off();
                let guards = if self.guarded { guards(&policy.guards) } else { String::new() };
                format!("{}{guards}", settings(policy))
            }
            Input::Command(command) => self.order(command),
            Input::DeciderChanged(_) => "decider changed".into(),
            Input::Restarted => "restarted".into(),
            Input::Resync => "resync".into(),
            Input::Tick | Input::Decided { .. } => return None,
        })
    }

    /// As the scenario language has it. (Nobody here applies settings together with a shape.)
    fn order(&mut self, command: &Command) -> String {
        self.paused |= matches!(command, Command::Pause { .. });
        let text = match command {
            Command::Apply { shape, base_generation, .. } => {
                let shape = self.shape(shape);
                format!("apply {base_generation}{}", shape.strip_prefix("shape").unwrap_or(&shape))
            }
            command => command.to_string(),
        };
        format!("command {text}")
    }

    /// Templates are told apart by a tag, in the order in which they appear.
    fn tag(&mut self, template: &Template) -> String {
        let known = self.templates.iter().position(|known| known == template);
        let at = known.unwrap_or_else(|| {
            self.templates.push(template.clone());
            self.templates.len() - 1
        });
        format!("v{}", at + 1)
    }

    fn shape(&mut self, shape: &ClusterShape) -> String {
        let mut text = format!("shape {}", shape.generation);
        for group in &shape.groups {
            let tag = self.tag(&group.template);
            let (provider, settings) = (&group.template.provider, group.rollout.words());
            let _ = write!(text, " {}", word(format!("{}={}@{tag}:{provider}{settings}", group.id, group.count)));
        }
        text
    }

    fn listing(&mut self, listing: &Listing) -> String {
        let mut text = String::from(if listing.complete { "complete" } else { "partial" });
        for resource in &listing.resources {
            let tag = resource.template.as_ref().map(|template| format!("@{}", self.tag(template))).unwrap_or_default();
            let _ = match &resource.key {
                Some(key) if key.run == "another-run" => {
                    write!(text, " other:{}/{}={}{tag}", key.slot, key.attempt, resource.lease)
                }
                Some(key) => write!(text, " {}/{}={}{tag}", key.slot, key.attempt, resource.lease),
                None => write!(text, " -={}", resource.lease),
            };
        }
        text
    }

    /// The trace and the scenario; at the end of that the fleet must settle `within` so long, if that is stated.
    pub fn finish(mut self, within: Option<Millis>) -> (Vec<String>, String) {
        // What came last may have come by time alone.
        self.wait_until(self.end_ms);
        if let Some(within) = within {
            // Nobody comes to resume when the scenario waits.
            if self.guarded {
                let _ = writeln!(self.scenario, "policy{}", guards(&Guards::default()));
            }
            if self.guarded || self.paused {
                let _ = writeln!(self.scenario, "command resume all");
            }
            let _ = writeln!(self.scenario, "settles within {within}ms");
        }
        self.scenario.push_str("expect no violation\n");
        (self.lines, self.scenario)
    }
}

/// A word of the scenario language: in quotes where people wrote something that is no id.
fn word(text: String) -> String {
    if text.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\\')) { format!("{text:?}") } else { text }
}

/// The settings as a command of the scenario language.
fn settings(policy: &Policy) -> String {
    let (deadlines, stages) = (&policy.deadlines, &policy.stages);
    let all = [
        ("initial-ms", policy.backoff_initial_ms),
        ("cap-ms", policy.backoff_cap_ms),
        ("jitter-percent", u64::from(policy.backoff_jitter_percent)),
        ("probe-ms", policy.probe_interval_ms),
        ("endpoint-ms", stages.endpoint_ms),
        ("bootstrap-ms", stages.bootstrap_ms),
        ("join-ms", stages.join_ms),
        ("growth-cap", u64::from(stages.growth_cap)),
        ("create-ms", deadlines.create_lease_ms),
        ("lookup-ms", deadlines.lookup_endpoint_ms),
        ("start-ms", deadlines.start_bootstrap_ms),
        ("cancel-ms", deadlines.cancel_bootstrap_ms),
        ("destroy-ms", deadlines.destroy_lease_ms),
    ];
    let all: Vec<String> = all.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("policy {}", all.join(" "))
}

/// The guards as settings; 0 for none.
fn guards(guards: &Guards) -> String {
    let all = [
        ("destroys-per-minute", guards.destroys_per_minute),
        ("creates-per-hour", guards.creates_per_hour),
        ("live-resources", guards.live_resources),
        ("destroyed-share-percent", guards.destroyed_share_percent.map(u32::from)),
    ];
    all.iter().map(|(name, limit)| format!(" {name}={}", limit.unwrap_or(0))).collect()
}

/// What of a result, an answer or a sign of progress is the same when the same thing happens again: the attempt and the outcome.
fn gist(command: &str) -> Option<(String, String)> {
    if let Some(said) = command.strip_prefix("observe ") {
        let (attempt, progress) = said.split_once(' ')?;
        return progress.starts_with("progress ").then(|| (attempt.into(), progress.into()));
    }
    let said = command.strip_prefix("result ").or_else(|| command.strip_prefix("answered "))?;
    let (id, outcome) = said.split_once(' ')?;
    let (attempt, _) = id.split_once('.')?;
    Some((attempt.into(), outcome.into()))
}

fn outcome(result: &Result<Done, Fault>) -> String {
    let adopted = |yes: bool| if yes { " adopted" } else { "" };
    match result {
        Ok(Done::Leased { lease, adopted: yes }) => format!("leased {lease}{}", adopted(*yes)),
        Ok(Done::Absent) => "absent".into(),
        Ok(Done::Found { endpoint }) => format!("found {endpoint}"),
        Ok(Done::Started { session, adopted: yes }) => format!("started {session}{}", adopted(*yes)),
        Ok(Done::Cancelled) => "cancelled".into(),
        Ok(Done::Destroyed) => "destroyed".into(),
        Err(Fault::NotReady { reason }) => format!("not-ready {reason:?}"),
        Err(Fault::Retryable { reason, retry_after_ms: None }) => format!("retryable {reason:?}"),
        Err(Fault::Retryable { reason, retry_after_ms: Some(ms) }) => format!("retryable {reason:?} {ms}ms"),
        Err(Fault::Permanent { reason }) => format!("permanent {reason:?}"),
        Err(Fault::Ambiguous { reason }) => format!("ambiguous {reason:?}"),
    }
}

fn observed(observation: &Observation) -> String {
    match observation {
        Observation::Progress(progress) => format!("progress {}", progress.code()),
        Observation::Output(_) => "output".into(),
        Observation::Joined => "joined".into(),
        Observation::Failed { reason, permanent: false, .. } => format!("failed {reason:?}"),
        Observation::Failed { reason, permanent: true, .. } => format!("failed {reason:?} permanent"),
        Observation::Closed { exit: None } => "closed".into(),
        Observation::Closed { exit: Some(exit) } => format!("closed {exit:?}"),
    }
}

/// Milliseconds as `1.500 s`.
fn seconds(ms: Millis) -> String {
    format!("{}.{:03} s", ms / 1_000, ms % 1_000)
}
