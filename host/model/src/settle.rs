//! Liveness on the graph of fair moves: from every state, once faults and edits stop, the fleet can settle. The graph is
//! finite, so this says the same as: no terminal strongly connected component is without a settled state; and under strong
//! fairness every execution then settles.

use std::collections::VecDeque;

use crate::search::Seens;

/// What can never settle.
pub struct Stuck {
    /// How many states.
    pub states: u64,
    /// The first of them, in the order of the search.
    pub first: u32,
    /// From there, over fair moves, to where nothing better comes: each state on the way.
    pub way: Vec<u32>,
    /// What is wrong there.
    pub end: End,
}

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All is converged and quiet, and something exists that nobody holds (L3).
    Leaks,
    /// Nothing will ever happen again (L4).
    Stands,
    /// It goes on for ever and never converges (L1).
    Churns,
}

/// The states from which no fair move ever leads to a settled one.
pub fn stuck(seens: &Seens) -> Option<Stuck> {
    let count = seens.all.len();
    // The same edges the other way round.
    let mut begins = vec![0_u64; count + 1];
    for to in &seens.fair {
        begins[*to as usize + 1] += 1;
    }
    for at in 0..count {
        begins[at + 1] += begins[at];
    }
    let mut from = vec![0_u32; seens.fair.len()];
    let mut place = begins.clone();
    for at in 0..seens.ends.len() as u32 {
        for to in seens.fair_of(at) {
            let place = &mut place[*to as usize];
            from[*place as usize] = at;
            *place += 1;
        }
    }
    let mut can = vec![false; count];
    let mut next: Vec<u32> = Vec::new();
    for (at, seen) in (0_u32..).zip(&seens.all) {
        if seen.settled {
            can[at as usize] = true;
            next.push(at);
        }
    }
    while let Some(at) = next.pop() {
        let at = at as usize;
        for before in &from[begins[at] as usize..begins[at + 1] as usize] {
            if !std::mem::replace(&mut can[*before as usize], true) {
                next.push(*before);
            }
        }
    }
    let first = can.iter().position(|can| !can)? as u32;
    let states = can.iter().filter(|can| !**can).count() as u64;
    let (way, end) = way(seens, first);
    Some(Stuck { states, first, way, end })
}

/// From a state that cannot settle, the shortest way to what shows it best.
fn way(seens: &Seens, first: u32) -> (Vec<u32>, End) {
    let mut came = std::collections::HashMap::from([(first, first)]);
    let mut queue = VecDeque::from([first]);
    let back = |came: &std::collections::HashMap<u32, u32>, mut at: u32| {
        let mut way = Vec::new();
        while at != first {
            way.push(at);
            at = came[&at];
        }
        way.reverse();
        way
    };
    let mut stands = None;
    while let Some(at) = queue.pop_front() {
        if seens.all[at as usize].idle {
            return (back(&came, at), End::Leaks);
        }
        if seens.fair_of(at).is_empty() && stands.is_none() {
            stands = Some(at);
        }
        for to in seens.fair_of(at) {
            if let std::collections::hash_map::Entry::Vacant(place) = came.entry(*to) {
                place.insert(at);
                queue.push_back(*to);
            }
        }
    }
    match stands {
        Some(at) => (back(&came, at), End::Stands),
        None => (Vec::new(), End::Churns),
    }
}
