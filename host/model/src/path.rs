//! A path as people read it. It is walked again by one driver from the start, under its own names and without the table:
//! that also shows that the table did not lie.

use engine::id::AttemptId;
use engine::invariants::Violation;

use crate::configuration::Configuration;
use crate::machine::Machine;
use crate::moves::Move;
use crate::search::{NO_STATE, Seens, disturbed, first};
use crate::world::{Ask, Call, Reply, Resource, Waits};

/// A path, walked.
pub struct Walked {
    /// A line for each step.
    pub lines: Vec<String>,
    /// What was broken in the last step.
    pub violation: Option<Violation>,
    /// The state that it ends in.
    pub state: Configuration,
}

/// Why a path cannot be walked: the normal form is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalkError {
    /// The engine refuses to start.
    #[error(transparent)]
    Driver(#[from] engine::driver::DriverError),
    /// Walking leads elsewhere.
    #[error("step {step} of the path leads to another state than the search found: two states were taken for one")]
    Elsewhere {
        /// Which step, from 1.
        step: usize,
    },
}

/// Walks to a state, then over fair moves through further ones, then makes one last move.
pub fn walk(machine: &Machine<'_>, seens: &Seens, to: u32, on: &[u32], last: Option<u16>) -> Result<Walked, WalkError> {
    let mut states = Vec::new();
    let mut at = to;
    while at != NO_STATE {
        states.push(at);
        at = seens.all[at as usize].parent;
    }
    states.reverse();
    let (state, violation) = first(machine, true)?;
    let mut walk = Walk { machine, state, lines: Vec::new(), violation, now_ms: 0 };
    walk.begin();
    let mut moves = Vec::new();
    for at in states.into_iter().skip(1) {
        let seen = seens.all[at as usize];
        machine.moves(&walk.state, &mut moves);
        let next = moves.get(usize::from(seen.by)).copied();
        walk.go(next.ok_or_else(|| walk.elsewhere())?);
        if walk.state.hash() != seen.hash {
            return Err(walk.elsewhere());
        }
    }
    for at in on {
        let hash = seens.all[*at as usize].hash;
        machine.moves(&walk.state, &mut moves);
        let fair = moves.iter().filter(|to| to.is_fair());
        let next = fair.copied().find(|to| machine.go(&walk.state, *to, true).state.hash() == hash);
        walk.go(next.ok_or_else(|| walk.elsewhere())?);
    }
    if let Some(by) = last {
        machine.moves(&walk.state, &mut moves);
        let next = moves.get(usize::from(by)).copied();
        walk.go(next.ok_or_else(|| walk.elsewhere())?);
    }
    Ok(Walked { lines: walk.lines, violation: walk.violation, state: walk.state })
}

struct Walk<'a> {
    machine: &'a Machine<'a>,
    state: Configuration,
    lines: Vec<String>,
    violation: Option<Violation>,
    now_ms: u64,
}

impl Walk<'_> {
    fn elsewhere(&self) -> WalkError {
        WalkError::Elsewhere { step: self.lines.len() + 1 }
    }

    fn begin(&mut self) {
        let scope = &self.machine.scope;
        let calls: Vec<String> = self.state.world.calls.as_slice().iter().map(|call| self.call(call)).collect();
        self.line(&format!("the first shape: {} x {}", scope.nodes, crate::scope::GROUP), &calls);
    }

    fn line(&mut self, what: &str, calls: &[String]) {
        let sends = if calls.is_empty() { String::new() } else { format!("; sends {}", calls.join(", ")) };
        let (number, seconds) = (self.lines.len() + 1, self.now_ms as f64 / 1_000.0);
        self.lines.push(format!("{number:>3}  {seconds:>4} s  {what}{sends}"));
    }

    fn go(&mut self, to: Move) {
        let what = self.what(to);
        let settled = self.state.is_settled();
        let ms = match to {
            Move::Time | Move::TooSlow(_) => self.state.step_ms().unwrap_or(0),
            _ => 0,
        };
        let after = self.machine.go(&self.state, to, true);
        self.now_ms += ms;
        self.violation = after.violation.clone().or_else(|| disturbed(settled, to, &after.state, after.sends));
        self.state = after.state;
        let driver = &self.state.form.driver;
        let sent: Vec<String> = after
            .sent
            .iter()
            .map(|(attempt, sent)| format!("{} for {}", sent.ask.label(), named(driver, *attempt)))
            .collect();
        self.line(&what, &sent);
    }

    fn attempt(&self, attempt: u8) -> String {
        let form = &self.state.form;
        form.attempts.get(usize::from(attempt)).map_or_else(|| "?".into(), |attempt| named(&form.driver, *attempt))
    }

    fn call(&self, call: &Call) -> String {
        format!("{} for {}", call.ask.label(), self.attempt(call.attempt))
    }

    fn held(&self, at: u8) -> (String, Resource) {
        let held = self.state.world.resources.as_slice().get(usize::from(at)).copied().unwrap_or_default();
        (self.attempt(held.attempt), held)
    }

    fn about(&self, at: u8) -> (String, Call) {
        let call = self.state.world.calls.as_slice().get(usize::from(at)).copied().unwrap_or_default();
        (self.call(&call), call)
    }

    fn what(&self, to: Move) -> String {
        let fault = |what: String| format!("fault: {what}");
        match to {
            Move::Effect(at) => {
                let (call, how) = self.about(at);
                match how.waits {
                    Waits::Driver => format!("{call} reaches the provider"),
                    Waits::Late | Waits::Nobody => format!("{call}, which nobody waits for any more, takes effect"),
                }
            }
            Move::Arrives(at) => {
                let (call, mut how) = self.about(at);
                if how.ask == Ask::Lookup {
                    let held = self.state.world.leased(how.attempt, how.number);
                    how.reply = if held.is_some() { Reply::Found } else { Reply::Gone };
                }
                let result = answer(how.reply);
                match how.waits {
                    Waits::Driver => format!("{call}: {result}"),
                    Waits::Late | Waits::Nobody => format!("{call}, too late: {result}"),
                }
            }
            Move::Joins(at) => format!("{} joins", self.held(at).0),
            Move::Time => "time passes".into(),
            Move::Listing => {
                let held = self.state.world.resources.as_slice();
                let held: Vec<String> = held.iter().map(|held| self.attempt(held.attempt)).collect();
                format!("the provider is listed: {}", if held.is_empty() { "nothing".into() } else { held.join(", ") })
            }
            Move::RequestLost(at) => fault(format!("{} is lost on its way; nobody knows", self.about(at).0)),
            Move::LandsLater(at) => fault(format!("{}: nobody knows, and it takes effect later", self.about(at).0)),
            Move::ReplyLost(at) => fault(format!("the reply to {} is lost; nobody knows", self.about(at).0)),
            Move::Silence(at) => {
                let (call, how) = self.about(at);
                let lost = if how.reply == Reply::None { "" } else { "the reply to " };
                fault(format!("{lost}{call} is lost without a word"))
            }
            Move::Error(at) => fault(format!("{}: the provider answers 503", self.about(at).0)),
            Move::Refused(at) => fault(format!("{}: the provider refuses", self.about(at).0)),
            Move::NotReady(at) => fault(format!("{}: there is no address yet", self.about(at).0)),
            Move::Hidden(at) => fault(format!("{} is shown nothing yet of what was just made", self.about(at).0)),
            Move::TooSlow(count) => fault(format!("time passes, and {count} of what is due is late")),
            Move::BootFails(at) => fault(format!("the bootstrap of {} fails", self.held(at).0)),
            Move::Stalls(at) => fault(format!("{} says nothing any more", self.held(at).0)),
            Move::Ends(at) => fault(format!("{} dies, with an exit status", self.held(at).0)),
            Move::Unheard(at) => fault(format!("the session of {} is closed without a status", self.held(at).0)),
            Move::EmptyListing => fault("the provider is listed, and the listing is empty".into()),
            Move::NewTemplate => "people change the template".into(),
            Move::ScaleDown => "people scale down by one".into(),
            Move::ScaleUp => "people scale up by one".into(),
            Move::Crash(lands) => {
                let mut what = "the host is killed and starts again".to_string();
                let open = |call: &&Call| call.reply == Reply::None && call.waits == Waits::Driver;
                for (at, call) in self.state.world.calls.as_slice().iter().enumerate().filter(|(_, call)| open(call)) {
                    let how = if lands >> at & 1 == 1 { "will take effect" } else { "was never sent" };
                    what.push_str(&format!("; {} {how}", self.call(call)));
                }
                what
            }
        }
    }
}

/// A slot and the attempt, as `node-0 a1`.
fn named(driver: &engine::driver::Driver, attempt: AttemptId) -> String {
    let state = driver.state();
    let slot = state.attempts.get(&attempt).and_then(|known| state.slot(known.node));
    slot.map_or_else(|| attempt.to_string(), |slot| format!("{} {attempt}", slot.name))
}

fn answer(reply: Reply) -> &'static str {
    match reply {
        Reply::None => "no answer",
        Reply::Leased => "made",
        Reply::LeasedAgain => "there already, adopted",
        Reply::Absent => "absent from a complete listing",
        Reply::Found => "found",
        Reply::Started => "started",
        Reply::StartedAgain => "running already, adopted",
        Reply::Cancelled => "cancelled",
        Reply::Destroyed => "destroyed",
        Reply::Gone => "404, no such resource",
    }
}

/// What each node waits for, and what exists that nobody holds: why a state is not settled.
pub fn unsettled(state: &Configuration) -> String {
    let view = state.form.driver.view();
    let mut words: Vec<String> = view
        .nodes
        .iter()
        .filter(|node| !(node.ready && node.desired))
        .map(|node| format!("{} is {} and waits for {}", node.node, node.stage, node.waits_for))
        .collect();
    words.extend(view.reaping.iter().map(|reap| format!("{reap} is being reaped")));
    for held in state.world.resources.as_slice() {
        let known = state.form.known.get(usize::from(held.attempt)).copied().unwrap_or_default();
        if known.lease != held.number + 1 && known.orphans >> (held.number & 15) & 1 == 0 {
            let attempt = state.form.attempts.get(usize::from(held.attempt)).copied().unwrap_or(AttemptId(0));
            words.push(format!("a resource of {} lives and nobody holds it", named(&state.form.driver, attempt)));
        }
    }
    words.join("; ")
}
