//! The commands of the scenario language; `docs/policy-tests.md` has the grammar.

use engine::id::OperationId;
use engine::io::{Done, Fault, Listing, Observation, OperationStatus, Promise};
use engine::policy::Policy;
use engine::shape::ClusterShape;

use crate::expect::{Expectation, Never};
use crate::node::NodeFacts;
use crate::order::{USAGE, parse_order};
use crate::snapshot::Stated;
use crate::words::{
    number, parse_fault, parse_listing, parse_ms, parse_observation, parse_operation, parse_result, parse_shape,
};

#[derive(Clone, Debug)]
pub(crate) enum Command {
    Policy(Vec<Setting>),
    Provider { name: String, promise: Promise },
    Shape(ClusterShape),
    Order(engine::command::Command),
    Done { who: String },
    Fail { who: String, fault: Fault },
    Result { id: OperationId, result: Result<Done, Fault> },
    Answer { who: String, status: OperationStatus },
    Answered { id: OperationId, status: OperationStatus },
    Observe { who: String, observation: Observation },
    Wait(u64),
    Wake,
    Restart { fence: Option<u64> },
    Restarted,
    Clock { jump: Jump },
    ClockAt(u64),
    Storm { who: String, times: u32 },
    Resync,
    Slow,
    AnswerAll,
    AnswerOne,
    List { provider: String, listing: Listing },
    Adopt { provider: String, listing: Listing },
    Survey { provider: String, listing: Listing },
    Decider(Decider),
    BringUp,
    Rest,
    Show,
    Settles { within_ms: u64 },
    Expect(Expectation),
    Never(Never),
    Snapshot { now_ms: Option<u64>, generation: Option<u64>, counts: Vec<(String, Stated)> },
    Node(NodeFacts),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Jump {
    Ahead(u64),
    Back(u64),
}

#[derive(Clone, Debug)]
pub(crate) enum Decider {
    Ok,
    Changed,
    Broken,
    BrokenFor(Vec<String>),
}

/// A setting of the operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    set: fn(&mut Policy, u64),
    value: u64,
}

impl Setting {
    pub fn apply(&self, policy: &mut Policy) {
        (self.set)(policy, self.value);
    }

    fn parse(text: &str) -> Result<Setting, String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("{text:?} is no setting; a setting is name=value"))?;
        // `probe-ms=1000` and `probe=1s` are the same.
        let plain: Option<fn(&mut Policy, u64)> = match name {
            "jitter-percent" => Some(|policy, value| policy.backoff_jitter_percent = value.min(255) as u8),
            "growth-cap" => Some(|policy, value| policy.stages.growth_cap = value.min(u64::from(u32::MAX)) as u32),
            "destroys-per-minute" => Some(|policy, value| policy.guards.destroys_per_minute = limit(value)),
            "creates-per-hour" => Some(|policy, value| policy.guards.creates_per_hour = limit(value)),
            "live-resources" => Some(|policy, value| policy.guards.live_resources = limit(value)),
            "destroyed-share-percent" => {
                Some(|policy, value| policy.guards.destroyed_share_percent = limit(value).map(|share| share as u8))
            }
            _ => None,
        };
        if let Some(set) = plain {
            let value = number(value, "number")?;
            return match name.ends_with("-percent") && value > 100 {
                true => Err(format!("{value} per cent are more than all of it")),
                false => Ok(Setting { set, value }),
            };
        }
        let (name, value) = match name.strip_suffix("-ms") {
            Some(name) => (name, number(value, "number of milliseconds")?),
            None => (name, parse_ms(value)?),
        };
        let set: fn(&mut Policy, u64) = match name {
            "initial" => |policy, value| policy.backoff_initial_ms = value,
            "cap" => |policy, value| policy.backoff_cap_ms = value,
            "probe" => |policy, value| policy.probe_interval_ms = value,
            "endpoint" => |policy, value| policy.stages.endpoint_ms = value,
            "bootstrap" => |policy, value| policy.stages.bootstrap_ms = value,
            "join" => |policy, value| policy.stages.join_ms = value,
            "create" => |policy, value| policy.deadlines.create_lease_ms = value,
            "lookup" => |policy, value| policy.deadlines.lookup_endpoint_ms = value,
            "start" => |policy, value| policy.deadlines.start_bootstrap_ms = value,
            "cancel" => |policy, value| policy.deadlines.cancel_bootstrap_ms = value,
            "destroy" => |policy, value| policy.deadlines.destroy_lease_ms = value,
            _ => {
                return Err(format!(
                    "there is no setting {name:?}; there are initial, cap, jitter-percent, probe, endpoint, bootstrap, join, \
                     growth-cap, create, lookup, start, cancel, destroy, destroys-per-minute, creates-per-hour, live-resources, \
                     destroyed-share-percent"
                ));
            }
        };
        Ok(Setting { set, value })
    }
}

/// A guard's limit; 0 for no guard.
fn limit(value: u64) -> Option<u32> {
    u32::try_from(value).ok().filter(|limit| *limit > 0)
}

/// Every command, and how it is written.
const COMMANDS: &[(&str, &str)] = &[
    ("policy", "policy NAME=VALUE..."),
    ("provider", "provider NAME keyed, or provider NAME windowed WINDOW LISTINGS"),
    ("shape", "shape GENERATION GROUP=COUNT[@TEMPLATE[:PROVIDER]]..."),
    ("command", USAGE),
    ("done", "done NODE"),
    ("fail", "fail NODE retryable|permanent|not-ready|ambiguous [\"WORDS\"] [WAIT]"),
    ("result", "result OPERATION OUTCOME"),
    ("give-up", "give-up NODE"),
    ("promised", "promised NODE"),
    ("answered", "answered OPERATION ambiguous|completed"),
    ("observe", "observe NODE WHAT"),
    ("wait", "wait TIME"),
    ("wake", "wake"),
    ("restart", "restart [FENCE]"),
    ("restarted", "restarted"),
    ("clock", "clock +TIME or clock -TIME"),
    ("clock-at", "clock-at TIME"),
    ("storm", "storm NODE TIMES"),
    ("resync", "resync"),
    ("slow", "slow"),
    ("answer", "answer"),
    ("answer-one", "answer-one"),
    ("list", "list PROVIDER complete|partial [RESOURCE...]"),
    ("adopt", "adopt PROVIDER complete|partial [RESOURCE...]"),
    ("survey", "survey PROVIDER complete|partial [RESOURCE...]"),
    ("decider", "decider ok|changed|broken, or decider broken-for NODE..."),
    ("bring-up", "bring-up"),
    ("rest", "rest"),
    ("show", "show"),
    ("settles", "settles within TIME"),
    ("expect", "expect NODE WHAT, expect [not] converged, expect refused [\"WORDS\"], expect no violation"),
    ("never", "never NODE WHAT"),
    ("snapshot", "snapshot [at TIME] [generation NUMBER] [GROUP=COUNT...]"),
    ("node", "node NAME STAGE [FACT...]"),
    ("test", "test NAME"),
];

impl Command {
    pub fn parse(words: &[&str]) -> Result<Command, String> {
        let Some((verb, rest)) = words.split_first() else { return Err("an empty command".into()) };
        let owned = |word: &str| word.to_string();
        Ok(match (*verb, rest) {
            ("policy", [_, ..]) => {
                Command::Policy(rest.iter().map(|text| Setting::parse(text)).collect::<Result<_, _>>()?)
            }
            ("provider", [name, "keyed"]) => Command::Provider { name: owned(name), promise: Promise::Keyed },
            ("provider", [name, "windowed", window, listings]) => {
                let promise = Promise::Windowed {
                    window_ms: parse_ms(window)?,
                    listings: number(listings, "number of listings")?,
                };
                Command::Provider { name: owned(name), promise }
            }
            ("shape", [generation, groups @ ..]) => Command::Shape(parse_shape(generation, groups)?),
            ("command", order) => Command::Order(parse_order(order)?),
            ("done", [who]) => Command::Done { who: owned(who) },
            ("fail", [who, how @ ..]) => Command::Fail { who: owned(who), fault: parse_fault(how)? },
            ("result", [id, how @ ..]) => Command::Result { id: parse_operation(id)?, result: parse_result(how)? },
            ("give-up", [who]) => Command::Answer { who: owned(who), status: OperationStatus::Ambiguous },
            ("promised", [who]) => Command::Answer { who: owned(who), status: OperationStatus::Completed },
            ("answered", [id, "ambiguous"]) => {
                Command::Answered { id: parse_operation(id)?, status: OperationStatus::Ambiguous }
            }
            ("answered", [id, "completed"]) => {
                Command::Answered { id: parse_operation(id)?, status: OperationStatus::Completed }
            }
            ("observe", [who, what @ ..]) => {
                Command::Observe { who: owned(who), observation: parse_observation(what)? }
            }
            ("wait", [span]) => Command::Wait(parse_ms(span)?),
            ("wake", []) => Command::Wake,
            ("restart", []) => Command::Restart { fence: None },
            ("restart", [fence]) => Command::Restart { fence: Some(number(fence, "attempt number")?) },
            ("restarted", []) => Command::Restarted,
            ("clock", [jump]) => Command::Clock { jump: parse_jump(jump)? },
            ("clock-at", [at]) => Command::ClockAt(parse_ms(at)?),
            ("storm", [who, times]) => Command::Storm { who: owned(who), times: number(times, "number")? },
            ("resync", []) => Command::Resync,
            ("slow", []) => Command::Slow,
            ("answer", []) => Command::AnswerAll,
            ("answer-one", []) => Command::AnswerOne,
            ("list", [provider, complete, entries @ ..]) => {
                Command::List { provider: owned(provider), listing: parse_listing(provider, complete, entries)? }
            }
            ("adopt", [provider, complete, entries @ ..]) => {
                Command::Adopt { provider: owned(provider), listing: parse_listing(provider, complete, entries)? }
            }
            ("survey", [provider, complete, entries @ ..]) => {
                Command::Survey { provider: owned(provider), listing: parse_listing(provider, complete, entries)? }
            }
            ("decider", ["ok"]) => Command::Decider(Decider::Ok),
            ("decider", ["changed"]) => Command::Decider(Decider::Changed),
            ("decider", ["broken"]) => Command::Decider(Decider::Broken),
            ("decider", ["broken-for", slots @ ..]) if !slots.is_empty() => {
                Command::Decider(Decider::BrokenFor(slots.iter().map(|slot| owned(slot)).collect()))
            }
            ("bring-up", []) => Command::BringUp,
            ("rest", []) => Command::Rest,
            ("show", []) => Command::Show,
            ("settles", ["within", span]) => Command::Settles { within_ms: parse_ms(span)? },
            ("expect", rest) => Command::Expect(Expectation::parse(rest)?),
            ("never", rest) => Command::Never(Never::parse(rest)?),
            ("snapshot", rest) => parse_snapshot(rest)?,
            ("node", rest) => Command::Node(NodeFacts::parse(rest)?),
            (verb, _) => return Err(usage(verb)),
        })
    }

    /// Whether it states something that can fail.
    pub fn checks(&self) -> bool {
        matches!(self, Command::Expect(_) | Command::Never(_) | Command::Settles { .. } | Command::Rest)
    }

    /// Whether it only says under which settings the rest is played.
    pub fn is_setting(&self) -> bool {
        matches!(self, Command::Policy(_) | Command::Provider { .. })
    }

    /// The rule that it names.
    pub fn rule(&self) -> Option<&str> {
        match self {
            Command::Expect(Expectation::Node { what, .. }) | Command::Never(Never { what, .. }) => what.rule(),
            _ => None,
        }
    }
}

fn usage(verb: &str) -> String {
    match COMMANDS.iter().find(|(name, _)| *name == verb) {
        Some((_, usage)) => format!("{verb} is written: {usage}"),
        None => {
            let names: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
            format!("{verb:?} is no command; the commands are {}", names.join(", "))
        }
    }
}

/// `+1day` and `-1hour` are older spellings.
fn parse_jump(text: &str) -> Result<Jump, String> {
    match text {
        "+1day" => Ok(Jump::Ahead(86_400_000)),
        "-1hour" => Ok(Jump::Back(3_600_000)),
        text => match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(span), _) => parse_ms(span).map(Jump::Ahead),
            (_, Some(span)) => parse_ms(span).map(Jump::Back),
            _ => Err(usage("clock")),
        },
    }
}

fn parse_snapshot(words: &[&str]) -> Result<Command, String> {
    let (mut now_ms, mut generation, mut counts) = (None, None, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match (*word, word.split_once('=')) {
            ("at", _) => now_ms = Some(parse_ms(words.next().ok_or("at when?")?)?),
            ("generation", _) => generation = Some(number(words.next().ok_or("which generation?")?, "generation")?),
            (_, Some((group, stated))) => counts.push((group.into(), Stated::parse(stated)?)),
            _ => return Err(usage("snapshot")),
        }
    }
    Ok(Command::Snapshot { now_ms, generation, counts })
}
