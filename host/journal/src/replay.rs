//! Replays a journal: the driver follows it, and every question to the decider is asked again.

use std::io::BufRead;

use decider::{Plan, Snapshot};
use engine::io::{DeciderFailure, DeciderIdentity};

use crate::compare::{Compared, Contrast};
use crate::entry::SIMULATED;
use crate::error::ReplayError;
use crate::reader::Reader;
use crate::walk::{Step, Walk};

/// Who is asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Against {
    /// Those that were recorded: their plans have to come out bit for bit.
    Recorded,
    /// This decider. Where it is another one than the recorded, its plans are compared with the recorded ones; these are
    /// what is folded.
    Other(DeciderIdentity),
}

/// What a replay found.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The whole records of the journal.
    pub records: u64,
    /// The drivers that began in it.
    pub starts: u64,
    /// Inputs folded or refused.
    pub inputs: u64,
    /// Dispatches, each of which the driver made again.
    pub dispatches: u64,
    /// Answers to no call in flight; nobody is asked about them.
    pub stale_answers: u64,
    /// Answers that a simulated fault gave in the decider's place; it is not asked about them.
    pub simulated_answers: u64,
    /// Dispatches and reservations that the driver made and the journal does not have, because it ends in the middle of a
    /// batch.
    pub unrecorded: u64,
    /// The bytes of a torn record at the end.
    pub torn_bytes: u64,
    /// The plans.
    pub contrast: Contrast,
}

/// Replays all of a journal. `ask` is given the digest of the recorded decider and the snapshot: another decider is shown each
/// pass in its own contract.
///
/// # Errors
///
/// The journal is damaged, or the engine of this program does something else than the recorded one.
pub fn replay<R: BufRead>(
    reader: &mut Reader<R>,
    against: &Against,
    mut ask: impl FnMut(&str, &Snapshot) -> Result<Plan, DeciderFailure>,
) -> Result<Replay, ReplayError> {
    use crate::entry::Entry;
    let mut walk = Walk::new();
    if let Against::Other(other) = against {
        walk.also_show(vec![DeciderIdentity { rules: Vec::new(), ..other.clone() }]);
    }
    let mut replay = Replay {
        records: 0,
        starts: 0,
        inputs: 0,
        dispatches: 0,
        stale_answers: 0,
        simulated_answers: 0,
        unrecorded: 0,
        torn_bytes: 0,
        contrast: Contrast::default(),
    };
    while let Some(line) = reader.next_line()? {
        replay.records += 1;
        let left = walk.unrecorded() as u64;
        let seq = line.seq;
        let step = walk.follow(&line).map_err(|mismatch| ReplayError::Engine { seq, mismatch })?;
        match (&line.entry, &step) {
            (Entry::Start(_), _) => {
                replay.starts += 1;
                replay.unrecorded += left;
            }
            (Entry::Input { .. }, _) => replay.inputs += 1,
            (Entry::Dispatch { .. }, _) => replay.dispatches += 1,
            _ => {}
        }
        let Step::Answered { asked, answer } = step else { continue };
        let Some(asked) = asked else {
            replay.stale_answers += 1;
            continue;
        };
        if matches!(&line.entry, Entry::Pass { decider, .. } if decider == SIMULATED) {
            replay.simulated_answers += 1;
            continue;
        }
        let shown = match against {
            Against::Recorded => &asked.snapshot,
            Against::Other(other) => asked.shown_to(other).unwrap_or(&asked.snapshot),
        };
        let other = ask(&asked.decider, shown);
        let (recorded, other) = (answer.as_ref(), other.as_ref());
        let slots = walk.driver().map_or(&[][..], |driver| &driver.state().slots);
        let pass = Compared { seq, at_ms: line.at_ms, asked: &asked, shown, recorded, other, against };
        replay.contrast.add(&pass, |node| slots.get(node as usize).map(|slot| slot.name.clone()));
    }
    replay.unrecorded += walk.unrecorded() as u64;
    replay.torn_bytes = reader.torn_bytes();
    Ok(replay)
}
