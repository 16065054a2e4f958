//! What can happen next: each move, and the state that it leads to.

use std::sync::Arc;

use engine::id::AttemptId;
use engine::invariants::Violation;

use crate::configuration::Configuration;
use crate::machine::{Failing, Form, In, Machine, Sent, Step, Word};
use crate::scope::{Kind, UNIT_MS, WINDOW_MS, Weaken};
use crate::world::{Ask, Call, Reply, Waits, World};

/// Not a property: what happens does not fit into a state.
pub const NO_ROOM: &str = "no room";

/// One thing that can happen. Calls and resources by their place in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// A call takes effect.
    Effect(u8),
    /// Its result arrives.
    Arrives(u8),
    /// A session reports that it joined.
    Joins(u8),
    /// Time passes.
    Time,
    /// The provider is listed.
    Listing,
    /// A call never gets there, and the driver is told that nobody knows.
    RequestLost(u8),
    /// The driver is told that nobody knows; the call takes effect later.
    LandsLater(u8),
    /// The call took effect, and the driver is told that nobody knows.
    ReplyLost(u8),
    /// A call, or its reply, is lost, and nobody says so.
    Silence(u8),
    /// The provider answers with an error that may go away.
    Error(u8),
    /// The provider refuses for good.
    Refused(u8),
    /// There is no address yet.
    NotReady(u8),
    /// What was just made is not shown yet.
    Hidden(u8),
    /// Time passes, and what is due is late: so many faults.
    TooSlow(u8),
    /// The bootstrap fails.
    BootFails(u8),
    /// The bootstrap says nothing any more.
    Stalls(u8),
    /// What runs ends, with an exit status.
    Ends(u8),
    /// The connection to what runs ends, with it the session; nobody knows why.
    Unheard(u8),
    /// A listing that claims to be complete is empty.
    EmptyListing,
    /// People change the template.
    NewTemplate,
    /// People scale down by one.
    ScaleDown,
    /// People scale up by one.
    ScaleUp,
    /// The host is killed and starts again. Of the calls that had not taken effect these still will, a bit each.
    Crash(u16),
}

impl Move {
    /// Neither a fault nor an edit: what fairness promises to happen at last.
    pub fn is_fair(self) -> bool {
        matches!(self, Move::Effect(_) | Move::Arrives(_) | Move::Joins(_) | Move::Time | Move::Listing)
    }

    fn costs(self) -> u8 {
        match self {
            Move::TooSlow(faults) => faults,
            Move::NewTemplate | Move::ScaleDown | Move::ScaleUp | Move::Crash(_) => 0,
            fair if fair.is_fair() => 0,
            _ => 1,
        }
    }
}

/// Where a move leads.
#[derive(Clone, Debug)]
pub struct After {
    pub state: Configuration,
    /// Calls left.
    pub sends: bool,
    /// Which, where the driver goes on under its own names.
    pub sent: Vec<(AttemptId, Sent)>,
    pub violation: Option<Violation>,
}

impl Machine<'_> {
    /// Everything that can happen next, in an order that depends on nothing but the state.
    pub fn moves(&self, state: &Configuration, moves: &mut Vec<Move>) {
        let world = &state.world;
        let faults = world.faults_left;
        moves.clear();
        for (at, call) in (0_u8..).zip(world.calls.as_slice()) {
            match call.reply {
                Reply::None if call.ask != Ask::Lookup => moves.push(Move::Effect(at)),
                _ => moves.push(Move::Arrives(at)),
            }
        }
        for (at, held) in (0_u8..).zip(world.resources.as_slice()) {
            if held.session > 0 && held.heard && !held.told {
                moves.push(Move::Joins(at));
            }
        }
        if let Some(ms) = state.step_ms() {
            match state.late(ms) {
                0 => moves.push(Move::Time),
                late if late <= faults => moves.push(Move::TooSlow(late)),
                _ => {}
            }
        }
        if self.scope.weaken != Some(Weaken::Sweep) {
            moves.push(Move::Listing);
        }
        let edits = world.edits;
        if self.scope.replacement && !edits.template {
            moves.push(Move::NewTemplate);
        }
        if self.scope.scaling && !edits.down {
            moves.push(Move::ScaleDown);
        } else if edits.down && !edits.up {
            moves.push(Move::ScaleUp);
        }
        if world.crashes_left > 0 {
            let reads = |ask: Ask| matches!(ask, Ask::Lookup | Ask::Settle);
            let open = |call: &Call| call.reply == Reply::None && call.waits == Waits::Driver && !reads(call.ask);
            let open = world.calls.as_slice().iter().enumerate().filter(|(_, call)| open(call));
            let open = open.fold(0_u16, |mask, (at, _)| mask | 1 << at);
            // Every subset of them.
            let mut subset = open;
            loop {
                moves.push(Move::Crash(subset));
                if subset == 0 {
                    break;
                }
                subset = (subset - 1) & open;
            }
        }
        if faults > 0 {
            self.faults(state, moves);
        }
    }

    fn faults(&self, state: &Configuration, moves: &mut Vec<Move>) {
        let world = &state.world;
        for (at, call) in (0_u8..).zip(world.calls.as_slice()).filter(|(_, call)| call.waits == Waits::Driver) {
            moves.push(Move::Silence(at));
            if call.reply != Reply::None {
                moves.push(Move::ReplyLost(at));
                continue;
            }
            moves.extend([Move::RequestLost(at), Move::Error(at)]);
            if !matches!(call.ask, Ask::Lookup | Ask::Settle) {
                moves.push(Move::LandsLater(at));
            }
            // What is there already is adopted before anything can be refused.
            let held = world.find(call.attempt).and_then(|at| world.resources.as_slice().get(at));
            let taken = match call.ask {
                Ask::Create => held.is_some(),
                Ask::Start => held.is_some_and(|held| held.session > 0),
                _ => false,
            };
            if !taken {
                moves.push(Move::Refused(at));
            }
            match call.ask {
                Ask::Lookup => moves.push(Move::NotReady(at)),
                Ask::Settle if held.is_some_and(|held| held.young_ms > 0) => moves.push(Move::Hidden(at)),
                _ => {}
            }
        }
        for (at, held) in (0_u8..).zip(world.resources.as_slice()).filter(|(_, held)| held.session > 0 && held.heard) {
            if !held.told {
                moves.extend([Move::BootFails(at), Move::Stalls(at)]);
            }
            moves.extend([Move::Ends(at), Move::Unheard(at)]);
        }
        if !world.resources.as_slice().is_empty() && self.scope.weaken != Some(Weaken::Sweep) {
            moves.push(Move::EmptyListing);
        }
    }

    /// Does one of them. With `alone`, this very driver goes on under its own names.
    pub fn go(&self, state: &Configuration, to: Move, alone: bool) -> After {
        let mut world = state.world;
        world.faults_left -= to.costs();
        let call = |at: u8| world.calls.as_slice().get(usize::from(at)).copied().unwrap_or_default();
        let held = |at: u8| world.resources.as_slice().get(usize::from(at)).copied().unwrap_or_default();
        let (input, mut violation) = match to {
            Move::Effect(at) => {
                let violation = self.effect(&state.form, &mut world, usize::from(at), false);
                return self.rest(state, world, violation, alone);
            }
            Move::Hidden(at) => {
                let violation = self.effect(&state.form, &mut world, usize::from(at), true);
                return self.rest(state, world, violation, alone);
            }
            Move::Stalls(at) => {
                if let Some(held) = world.resources.as_mut().get_mut(usize::from(at)) {
                    held.heard = false;
                }
                return self.rest(state, world, None, alone);
            }
            Move::Silence(at) => {
                world.calls.remove(usize::from(at));
                return self.rest(state, world, None, alone);
            }
            Move::Arrives(at) => {
                if call(at).ask == Ask::Lookup {
                    self.effect(&state.form, &mut world, usize::from(at), false);
                }
                let call = |at: u8| world.calls.as_slice().get(usize::from(at)).copied().unwrap_or_default();
                let Call { attempt, number, session, reply, waits, doubted, .. } = call(at);
                world.calls.remove(usize::from(at));
                if waits == Waits::Driver {
                    if matches!(reply, Reply::Leased | Reply::LeasedAgain)
                        && let Some(at) = world.leased(attempt, number)
                    {
                        world.resources.as_mut()[at].late = false;
                    }
                    (In::Answer { attempt, reply, number, session }, None)
                } else {
                    (In::Late { attempt, doubted, reply, number, session }, None)
                }
            }
            Move::RequestLost(at) | Move::ReplyLost(at) => {
                let attempt = call(at).attempt;
                world.calls.remove(usize::from(at));
                (In::Fails { attempt, fault: Failing::Unknown }, None)
            }
            Move::LandsLater(at) => {
                let attempt = call(at).attempt;
                if let Some(call) = world.calls.as_mut().get_mut(usize::from(at)) {
                    call.waits = Waits::Nobody;
                }
                (In::Fails { attempt, fault: Failing::Unknown }, None)
            }
            Move::Error(at) | Move::Refused(at) | Move::NotReady(at) => {
                let attempt = call(at).attempt;
                world.calls.remove(usize::from(at));
                let fault = match to {
                    Move::Error(_) => Failing::Retryable,
                    Move::Refused(_) => Failing::Permanent,
                    _ => Failing::NotReady,
                };
                (In::Fails { attempt, fault }, None)
            }
            Move::Joins(at) | Move::BootFails(at) | Move::Ends(at) | Move::Unheard(at) => {
                let attempt = held(at).attempt;
                let word = match to {
                    Move::Joins(_) => Word::Joined,
                    Move::BootFails(_) => Word::Failed,
                    Move::Ends(_) => Word::Ended,
                    _ => Word::Silent,
                };
                if let Some(held) = world.resources.as_mut().get_mut(usize::from(at)) {
                    held.told = word == Word::Joined;
                    if matches!(word, Word::Ended | Word::Silent) {
                        (held.session, held.heard) = (0, false);
                    }
                }
                (In::Hears { attempt, word }, None)
            }
            Move::Listing => {
                let listed = world.resources.as_slice().iter().fold(0_u128, |packed, held| {
                    packed << 10 | u128::from(held.attempt) << 5 | u128::from(held.number) << 1 | 1
                });
                (In::Listed { resources: listed }, None)
            }
            Move::EmptyListing => (In::Listed { resources: 0 }, None),
            Move::Time | Move::TooSlow(_) => {
                let ms = state.step_ms().unwrap_or(UNIT_MS);
                self.pass_time(state, &mut world, ms);
                (In::Tick { ms }, None)
            }
            Move::NewTemplate | Move::ScaleDown | Move::ScaleUp => {
                match to {
                    Move::NewTemplate => world.edits.template = true,
                    Move::ScaleDown => world.edits.down = true,
                    _ => world.edits.up = true,
                }
                (In::Shape(world.edits), None)
            }
            Move::Crash(lands) => {
                world.crashes_left -= 1;
                (In::Restarted { running: self.crash(state, &mut world, lands), edits: world.edits }, None)
            }
        };
        let step = match alone {
            true => self.step_alone(&state.form, input),
            false => self.step(&state.form, input),
        };
        if let Some(broken) = &step.violation {
            violation.get_or_insert_with(|| broken.clone());
        }
        self.take_over(state, &step, &mut world, &mut violation);
        let next = Configuration { form: Arc::clone(&step.next), world };
        let mut after = self.rest(&next, world, violation, alone);
        after.sends = !step.sent.is_empty();
        if alone {
            let name = |sent: &Sent| step.next.attempts.get(usize::from(sent.attempt)).copied().unwrap_or(AttemptId(0));
            after.sent = step.sent.iter().map(|sent| (name(sent), *sent)).collect();
        }
        after
    }

    /// The world follows the driver: attempts are renumbered, calls leave, doubts end.
    pub(crate) fn take_over(
        &self,
        state: &Configuration,
        step: &Step,
        world: &mut World,
        violation: &mut Option<Violation>,
    ) {
        for call in world.calls.as_mut() {
            if call.waits == Waits::Driver {
                continue;
            }
            let bit = |mask: u32| mask >> (call.attempt & 31) & 1 == 1;
            let was_awaited = state.world.calls.as_slice().iter().any(|old| {
                old.waits == Waits::Driver && old.attempt == call.attempt && old.ask == call.ask && !call.doubted
            });
            call.doubted = match was_awaited && bit(step.doubt_new) {
                true => true,
                false => call.doubted && bit(step.doubt_kept),
            };
        }
        world.renumber(&step.renumbered);
        for sent in &step.sent {
            if let Some(at) = world.awaited(sent.attempt) {
                let other = world.calls.as_slice()[at].ask.label();
                let what = format!("a {} is submitted while a {other} of the same attempt runs", sent.ask.label());
                violation.get_or_insert(Violation { id: "S2", what });
            }
            let known = step.next.known.get(usize::from(sent.attempt)).copied().unwrap_or_default();
            if sent.ask == Ask::Create {
                let predecessor = world.resources.as_slice().iter().any(|held| {
                    let other = step.next.known.get(usize::from(held.attempt)).copied().unwrap_or_default();
                    held.attempt != sent.attempt && other.slot == known.slot && !held.late && !other.reaped
                });
                if predecessor {
                    let what = "a create is submitted while a resource of its predecessor lives".to_string();
                    violation.get_or_insert(Violation { id: "S8", what });
                }
            }
            let windowed = self.scope.kind == Kind::Windowed && sent.ask == Ask::Create;
            world.calls.push(Call {
                attempt: sent.attempt,
                ask: sent.ask,
                number: sent.number,
                session: sent.session,
                left_ms: if windowed { WINDOW_MS as u16 } else { 0 },
                ..Call::default()
            });
        }
    }

    /// The rest of a move: what nobody refers to is forgotten, and everything is put in order.
    pub(crate) fn rest(
        &self,
        state: &Configuration,
        mut world: World,
        mut violation: Option<Violation>,
        alone: bool,
    ) -> After {
        let mut form = Arc::clone(&state.form);
        self.drop_idle_words(&form, &mut world, alone);
        let starting = form.known.iter().enumerate().filter(|(_, known)| known.starts);
        world.forget(starting.fold(0, |mask, (at, _)| mask | 1 << (at & 31)));
        let referenced = world.attempts();
        let needed = (0..form.known.len()).fold(0_u32, |mask, at| {
            let needed = form.known[at].kept || referenced >> (at & 31) & 1 == 1;
            mask | u32::from(needed) << (at & 31)
        });
        if (needed.count_ones() as usize) < form.known.len() {
            let step = match alone {
                true => self.step_alone(&form, In::Keep(needed)),
                false => self.step(&form, In::Keep(needed)),
            };
            world.renumber(&step.renumbered);
            form = Arc::clone(&step.next);
        }
        world.resources.sort();
        world.calls.sort();
        if world.resources.overflow || world.calls.overflow {
            violation.get_or_insert(Violation { id: NO_ROOM, what: "more resources or calls at once than fit".into() });
        }
        After { state: Configuration { form, world }, sends: false, sent: Vec::new(), violation }
    }

    /// What comes too late for an attempt that is over: it is given to the driver at once, and if that changes nothing, as it
    /// should be, it changes nothing later either.
    fn drop_idle_words(&self, form: &Arc<Form>, world: &mut World, alone: bool) {
        for at in (0..world.calls.as_slice().len()).rev() {
            let call = world.calls.as_slice()[at];
            let over = form.known.get(usize::from(call.attempt)).is_some_and(|known| !known.kept);
            if call.waits != Waits::Late || !over || (call.reply == Reply::None && call.ask != Ask::Lookup) {
                continue;
            }
            let Call { attempt, number, session, reply, doubted, .. } = call;
            let input = In::Late { attempt, doubted, reply, number, session };
            let step = if alone { self.step_alone(form, input) } else { self.step(form, input) };
            if step.next.hash == form.hash && step.sent.is_empty() && step.violation.is_none() {
                world.calls.remove(at);
            }
        }
    }

    fn pass_time(&self, state: &Configuration, world: &mut World, ms: u64) {
        let past = ms as u16;
        for call in world.calls.as_mut() {
            let known = state.form.known.get(usize::from(call.attempt));
            let due = known.and_then(|known| known.deadline_ms).is_some_and(|at| at <= ms);
            if call.waits == Waits::Driver && due {
                call.waits = Waits::Late;
            }
        }
        if self.scope.kind == Kind::Windowed {
            let lapsed = |call: &Call| {
                call.ask == Ask::Create
                    && call.reply == Reply::None
                    && call.waits != Waits::Driver
                    && call.left_ms <= past
            };
            world.calls.retain(|call| !lapsed(call));
            for call in world.calls.as_mut() {
                call.left_ms = call.left_ms.saturating_sub(past);
            }
            for held in world.resources.as_mut() {
                held.young_ms = held.young_ms.saturating_sub(past);
            }
        }
    }

    /// The host is killed: replies are lost, and so is each call that is not in `lands`. Which sessions it can listen to again.
    fn crash(&self, state: &Configuration, world: &mut World, lands: u16) -> u32 {
        let mut calls = crate::world::Few::default();
        for (at, call) in world.calls.as_slice().iter().enumerate() {
            let goes_on = match call.waits {
                Waits::Driver => lands >> at & 1 == 1,
                Waits::Late | Waits::Nobody => true,
            };
            if call.reply == Reply::None && goes_on {
                calls.push(Call { waits: Waits::Nobody, doubted: false, ..*call });
            }
        }
        world.calls = calls;
        let mut running = 0;
        for held in world.resources.as_mut() {
            let known = state.form.known.get(usize::from(held.attempt)).copied().unwrap_or_default();
            held.heard = held.session > 0 && known.session == held.session && known.lease == held.number + 1;
            running |= u32::from(held.heard) << (held.attempt & 31);
        }
        running
    }
}
