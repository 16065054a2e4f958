//! The search: breadth first, block by block. Threads compute what follows from the states of a block; what is new is then
//! numbered in one order. So the result does not depend on how many threads there are.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use engine::driver::DriverError;
use engine::invariants::Violation;

use crate::configuration::Configuration;
use crate::hash::PlainBuild;
use crate::machine::{In, Machine, lock};
use crate::moves::{Move, NO_ROOM};
use crate::scope::Edits;
use crate::world::World;

/// States in a block; nobody waits for more than the slowest part of one.
const BLOCK: usize = 1 << 14;
/// States that a thread takes at once.
const PART: usize = 128;

/// Why a search did not see everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// There are more states than were allowed.
    States,
    /// More resources, calls or attempts at one time than a state has room for.
    Room,
}

/// Nothing was found out about the state.
pub const NO_STATE: u32 = u32::MAX;

/// What is kept of a state.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub hash: u64,
    /// From which state it was first reached, and by which of its moves.
    pub parent: u32,
    pub by: u16,
    pub settled: bool,
    /// Converged, and no call is on its way.
    pub idle: bool,
}

/// How far a search is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Distinct states.
    pub states: u64,
    /// Moves.
    pub transitions: u64,
    /// Moves on the longest of the shortest paths.
    pub depth: u32,
    /// States that are not looked at yet.
    pub waiting: u64,
}

/// All that was seen.
pub struct Seens {
    pub all: Vec<Seen>,
    /// For each state that was looked at, where its fair successors end in `fair`.
    pub ends: Vec<u64>,
    /// The fair successors, other than the state itself.
    pub fair: Vec<u32>,
    pub progress: Progress,
    /// The first violation: in which state, and by which move.
    pub broken: Option<(u32, u16, Violation)>,
    /// Why not everything was seen.
    pub limit: Option<Limit>,
}

/// What follows from a part of a block.
#[derive(Default)]
struct Follows {
    moves: u64,
    /// How many of the entries below belong to each state.
    counts: Vec<u16>,
    next: Vec<Edge>,
    /// Those that were not known when the block began, in order.
    new: Vec<Configuration>,
    /// The first violation, by which move; it belongs to the last state counted.
    broken: Option<(u16, Violation)>,
}

/// A move to another state.
struct Edge {
    hash: u64,
    /// [`NO_STATE`] when it is the next of the new ones.
    known: u32,
    by: u16,
    fair: bool,
}

/// The state in which everything begins: the first shape has just arrived.
pub fn first(machine: &Machine<'_>, alone: bool) -> Result<(Configuration, Option<Violation>), DriverError> {
    let form = machine.begin()?;
    let edits = Edits::default();
    let step = match alone {
        true => machine.step_alone(&form, In::Shape(edits)),
        false => machine.step(&form, In::Shape(edits)),
    };
    let (crashes_left, faults_left) = (machine.scope.crashes, machine.scope.faults);
    let world = World { edits, crashes_left, faults_left, ..World::default() };
    let state = Configuration { form: Arc::clone(&step.next), world };
    // The decider inserts both at once; nothing has left yet but what the first passes dispatched.
    let mut violation = step.violation.clone();
    let mut world = state.world;
    machine.take_over(&state, &step, &mut world, &mut violation);
    let after = machine.rest(&state, world, violation, alone);
    Ok((after.state, after.violation))
}

/// Searches everything, or as many states as the limit allows.
pub fn search(
    machine: &Machine<'_>,
    jobs: usize,
    most: u64,
    watch: &mut dyn FnMut(Progress),
) -> Result<Seens, DriverError> {
    let (state, violation) = first(machine, false)?;
    let mut seens = Seens {
        all: Vec::new(),
        ends: Vec::new(),
        fair: Vec::new(),
        progress: Progress::default(),
        broken: violation.map(|violation| (NO_STATE, 0, violation)),
        limit: None,
    };
    let mut known: HashMap<u64, u32, PlainBuild> = HashMap::default();
    known.insert(state.hash(), 0);
    seens.see(&state, state.hash(), NO_STATE, 0);
    let mut level = vec![state];
    let mut at = 0_u32;
    while !level.is_empty() && seens.broken.is_none() {
        let mut deeper = Vec::new();
        let states = std::mem::take(&mut level);
        let mut rest = states.into_iter();
        loop {
            let block: Vec<Configuration> = rest.by_ref().take(BLOCK).collect();
            if block.is_empty() {
                break;
            }
            for follows in expand(machine, &block, at, &known, &seens, jobs) {
                seens.progress.transitions += follows.moves;
                let (mut edges, mut new) = (follows.next.into_iter(), follows.new.into_iter());
                let last = follows.counts.len();
                for (nth, count) in (1..).zip(follows.counts) {
                    for edge in edges.by_ref().take(usize::from(count)) {
                        let number = match edge.known {
                            NO_STATE => match (known.entry(edge.hash), new.next()) {
                                (Entry::Vacant(place), Some(state)) => {
                                    let number = seens.all.len() as u32;
                                    place.insert(number);
                                    seens.see(&state, edge.hash, at, edge.by);
                                    deeper.push(state);
                                    number
                                }
                                (Entry::Occupied(known), _) => *known.get(),
                                (Entry::Vacant(_), None) => continue,
                            },
                            number => number,
                        };
                        if edge.fair {
                            seens.fair.push(number);
                        }
                    }
                    seens.ends.push(seens.fair.len() as u64);
                    if nth == last
                        && let Some((by, violation)) = &follows.broken
                    {
                        match violation.id {
                            NO_ROOM => seens.limit = Some(Limit::Room),
                            _ => seens.broken = Some((at, *by, violation.clone())),
                        }
                        seens.progress.states = seens.all.len() as u64;
                        seens.progress.waiting = seens.progress.states - u64::from(at);
                        return Ok(seens);
                    }
                    at += 1;
                }
            }
            seens.progress.states = seens.all.len() as u64;
            seens.progress.waiting = seens.progress.states - u64::from(at);
            watch(seens.progress);
            if seens.progress.states >= most.min(u64::from(u32::MAX - 1)) && seens.progress.waiting > 0 {
                seens.limit = Some(Limit::States);
                return Ok(seens);
            }
        }
        level = deeper;
        seens.progress.depth += u32::from(!level.is_empty());
    }
    seens.progress.states = seens.all.len() as u64;
    Ok(seens)
}

impl Seens {
    fn see(&mut self, state: &Configuration, hash: u64, parent: u32, by: u16) {
        let idle = state.form.converged && state.world.calls.as_slice().is_empty();
        self.all.push(Seen { hash, parent, by, settled: state.is_settled(), idle });
    }

    /// The fair successors of a state that was looked at.
    pub fn fair_of(&self, at: u32) -> &[u32] {
        let at = at as usize;
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.fair[begin as usize..self.ends[at] as usize]
    }
}

fn expand(
    machine: &Machine<'_>,
    block: &[Configuration],
    first: u32,
    known: &HashMap<u64, u32, PlainBuild>,
    seens: &Seens,
    jobs: usize,
) -> Vec<Follows> {
    let parts = block.len().div_ceil(PART);
    let turn = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Follows)>> = Mutex::new(Vec::with_capacity(parts));
    let work = || {
        let mut moves = Vec::new();
        loop {
            let part = turn.fetch_add(1, Ordering::Relaxed);
            let begin = part * PART;
            if begin >= block.len() {
                return;
            }
            let mut follows = Follows::default();
            for (state, at) in block[begin..].iter().zip(begin..).take(PART) {
                follow(machine, state, first + at as u32, known, seens, &mut moves, &mut follows);
                if follows.broken.is_some() {
                    break;
                }
            }
            lock(&done).push((part, follows));
        }
    };
    if jobs < 2 || parts < 2 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..jobs.min(parts) {
                scope.spawn(work);
            }
        });
    }
    let mut done = std::mem::take(&mut *lock(&done));
    done.sort_unstable_by_key(|(part, _)| *part);
    done.into_iter().map(|(_, follows)| follows).collect()
}

fn follow(
    machine: &Machine<'_>,
    state: &Configuration,
    at: u32,
    known: &HashMap<u64, u32, PlainBuild>,
    seens: &Seens,
    moves: &mut Vec<Move>,
    follows: &mut Follows,
) {
    machine.moves(state, moves);
    follows.moves += moves.len() as u64;
    let before = follows.next.len();
    let settled = seens.all[at as usize].settled;
    for (by, to) in (0_u16..).zip(moves.iter()) {
        let after = machine.go(state, *to, false);
        let broken = after.violation.or_else(|| disturbed(settled, *to, &after.state, after.sends));
        if let Some(violation) = broken {
            follows.broken = Some((by, violation));
            break;
        }
        if Arc::ptr_eq(&after.state.form, &state.form) && after.state.world == state.world {
            continue;
        }
        let hash = after.state.hash();
        let known = known.get(&hash).copied();
        follows.next.push(Edge { hash, known: known.unwrap_or(NO_STATE), by, fair: to.is_fair() });
        if known.is_none() {
            follows.new.push(after.state);
        }
    }
    follows.counts.push((follows.next.len() - before) as u16);
}

/// L2: what has settled stays so, and quiet, unless a fault or a person disturbs it.
pub fn disturbed(settled: bool, to: Move, after: &Configuration, sends: bool) -> Option<Violation> {
    if !settled || !to.is_fair() || (after.is_settled() && !sends) {
        return None;
    }
    let what = match sends {
        true => "a call left a settled fleet",
        false => "a settled fleet is not settled any more",
    };
    Some(Violation { id: "L2", what: what.into() })
}
