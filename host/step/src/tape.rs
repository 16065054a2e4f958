//! A journal that can be wound forwards and back. Going back begins at the nearest copy of the driver that was kept.

use std::collections::BTreeMap;
use std::io::{BufRead, Seek, SeekFrom};

use journal::{Chain, Line, ReadError, Reader, Step};

use crate::survey::{Mark, Survey};
use crate::trail::Trail;

/// Copies are kept this many records apart at first; twice as many each time there are too many.
const APART: u64 = 32;
/// All copies together have no more slots than this, and there are no more of them.
const MOST_SLOTS: usize = 100_000;
const MOST_COPIES: usize = 256;
/// Copies that are kept because they are near to where one looks.
const NEAR: usize = 24;

/// A journal, opened.
#[derive(Debug)]
pub struct Tape<R> {
    input: R,
    survey: Survey,
    torn_bytes: u64,
    /// What is known after some records, spread evenly.
    far: BTreeMap<u64, Trail>,
    /// The same, close to the last place.
    near: BTreeMap<u64, Trail>,
}

/// One record, and what is known before and after it.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The record.
    pub line: Line,
    /// What was known before it.
    pub before: Trail,
    /// What is known after it.
    pub after: Trail,
    /// What it was; `None` where the engine could not follow.
    pub step: Option<Step>,
}

impl<R: BufRead + Seek> Tape<R> {
    /// Reads all of a journal, checks it, and follows it.
    ///
    /// # Errors
    ///
    /// It is damaged, or no journal.
    pub fn open(mut input: R) -> Result<Self, ReadError> {
        input.seek(SeekFrom::Start(0))?;
        let mut reader = Reader::new(&mut input);
        let (mut survey, mut trail) = (Survey::default(), Trail::default());
        let (mut far, mut apart) = (BTreeMap::new(), APART);
        let mut slots = 0;
        loop {
            let place = (reader.whole_bytes(), reader.chain().last);
            let Some(line) = reader.next_line()? else { break };
            let followed = trail.follow(&line);
            survey.add(place, &line, followed.as_ref().map(Option::as_ref), &trail);
            if line.seq % apart == 0 {
                slots += size(&trail);
                far.insert(line.seq, trail.clone());
                while far.len() > 1 && (far.len() > MOST_COPIES || slots > MOST_SLOTS) {
                    apart *= 2;
                    far.retain(|seq, _| seq % apart == 0);
                    slots = far.values().map(size).sum();
                }
            }
        }
        let torn_bytes = reader.torn_bytes();
        Ok(Tape { input, survey, torn_bytes, far, near: BTreeMap::new() })
    }

    /// The number of the last record.
    pub fn last(&self) -> u64 {
        (self.survey.marks.len() as u64).saturating_sub(1)
    }

    /// The bytes of a torn record at the end.
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    pub(crate) fn survey(&self) -> &Survey {
        &self.survey
    }

    pub(crate) fn mark(&self, seq: u64) -> Option<&Mark> {
        self.survey.marks.get(usize::try_from(seq).ok()?)
    }

    /// The start that a record follows.
    pub(crate) fn start_of(&self, seq: u64) -> u64 {
        let starts = &self.survey.starts;
        starts.partition_point(|start| *start <= seq).checked_sub(1).map_or(0, |at| starts[at])
    }

    /// A record and what is known around it; `from` is another one, which may be near.
    ///
    /// # Errors
    ///
    /// The journal cannot be read any more, or it is not the one that was opened.
    pub fn scene(&mut self, seq: u64, from: Option<&Scene>) -> Result<Scene, ReadError> {
        let seq = seq.min(self.last());
        let before = match seq.checked_sub(1) {
            None => Trail::default(),
            Some(earlier) => match from.filter(|from| from.line.seq == earlier) {
                Some(from) => from.after.clone(),
                None => self.trail(earlier)?,
            },
        };
        let mut reader = self.reader(seq)?;
        let line = reader.next_line()?.ok_or_else(gone)?;
        let mut after = before.clone();
        let step = after.follow(&line).ok().flatten();
        Ok(Scene { line, before, after, step })
    }

    /// What is known after a record.
    fn trail(&mut self, seq: u64) -> Result<Trail, ReadError> {
        let start = self.start_of(seq);
        let kept = |copies: &BTreeMap<u64, Trail>| {
            copies.range(start..=seq).next_back().map(|(at, trail)| (*at, trail.clone()))
        };
        let found = [kept(&self.far), kept(&self.near)].into_iter().flatten().max_by_key(|(at, _)| *at);
        let (next, mut trail) = found.map_or((start, Trail::default()), |(at, trail)| (at + 1, trail));
        let mut near = Vec::new();
        if next <= seq {
            let mut reader = self.reader(next)?;
            for at in next..=seq {
                let line = reader.next_line()?.ok_or_else(gone)?;
                // That it gets lost there is known from the survey.
                let _ = trail.follow(&line);
                // Who goes back once goes back again: copies, the closer the denser.
                if at < seq && (seq - at).is_power_of_two() {
                    near.push((at, trail.clone()));
                }
            }
        }
        self.near.extend(near);
        let most = (MOST_SLOTS / size(&trail)).clamp(4, NEAR);
        while self.near.len() > most {
            let first = self.near.first_key_value().map_or(0, |(at, _)| *at);
            let last = self.near.last_key_value().map_or(0, |(at, _)| *at);
            // The farthest one is given up.
            self.near.remove(if first.abs_diff(seq) > last.abs_diff(seq) { &first } else { &last });
        }
        Ok(trail)
    }

    /// A reader that begins with this record.
    pub(crate) fn reader(&mut self, seq: u64) -> Result<Reader<&mut R>, ReadError> {
        let mark = usize::try_from(seq).ok().and_then(|at| self.survey.marks.get(at)).ok_or_else(gone)?;
        let (offset, chain) = (mark.offset, Chain { next_seq: seq, last: mark.prev });
        self.input.seek(SeekFrom::Start(offset))?;
        Ok(Reader::resume(&mut self.input, chain, offset))
    }
}

fn size(trail: &Trail) -> usize {
    trail.state().map_or(1, |state| state.slots.len() + 1)
}

fn gone() -> ReadError {
    ReadError::Io(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the journal is shorter than it was"))
}
