//! A small fuzzer: cases are bytes; those that show something new are kept and changed further; one that fails is written down.
//! It runs on the toolchain that builds the rest, and replays its corpus with the tests.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::processor;
use crate::snapshots::Random;

pub mod plans;
mod snapshot;

pub use snapshot::snapshot;

/// Runs a case; what it says is what the case has shown. It panics when something is wrong.
pub type Run<'a> = Box<dyn Fn(&[u8]) -> String + 'a>;

/// What is fuzzed.
pub struct Target<'a> {
    /// The name of its folder in `corpus`.
    pub name: &'static str,
    /// Cases to start from, besides the corpus.
    pub seeds: Vec<Vec<u8>>,
    /// Changes a case; another one is given to take from.
    pub change: fn(&mut Random, &mut Vec<u8>, &[u8]),
    /// Runs a case.
    pub run: Run<'a>,
    /// How much processor time one case may take.
    pub patience: Duration,
    /// The longest case.
    pub most_bytes: usize,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cases of the corpus.
    pub replayed: usize,
    /// Cases that were made.
    pub made: u64,
    /// Different things that were shown.
    pub shown: usize,
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus")).join(name)
}

/// The cases of a corpus, by the names of their files.
pub fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder(name)).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "hex"));
    files.sort();
    let read = |path: PathBuf| {
        let bytes = from_hex(&std::fs::read_to_string(&path).unwrap_or_default());
        (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), bytes)
    };
    files.into_iter().map(read).collect()
}

impl Target<'_> {
    /// Replays the corpus, then makes cases: so many, or for as long as `HOMEOSTAT_FUZZ_SECONDS` says.
    ///
    /// # Errors
    ///
    /// The case that failed, and where it was written.
    pub fn fuzz(&self, cases: u64) -> Result<Tally, String> {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let seconds = number("HOMEOSTAT_FUZZ_SECONDS");
        let seed = number("HOMEOSTAT_FUZZ_SEED").unwrap_or(1);
        let keeps = std::env::var_os("HOMEOSTAT_FUZZ_KEEP").is_some();
        let mut tally = Tally::default();
        let mut shown = BTreeSet::new();
        let mut pool = Vec::new();
        for (name, case) in corpus(self.name) {
            shown.insert(self.one(&case).map_err(|why| format!("{}/{name}: {why}", self.name))?);
            tally.replayed += 1;
            pool.push(case);
        }
        for case in &self.seeds {
            shown.insert(self.one(case).map_err(|why| self.failed(case, &why))?);
            pool.push(case.clone());
        }
        let mut random = Random::new(seed);
        let began = Instant::now();
        let mut said = began;
        while seconds.map_or(tally.made < cases, |seconds| began.elapsed() < Duration::from_secs(seconds)) {
            let mut case = pool[random.below(pool.len() as u64) as usize].clone();
            for _ in 0..=random.below(4) {
                let other = random.below(pool.len() as u64) as usize;
                (self.change)(&mut random, &mut case, &pool[other]);
            }
            case.truncate(self.most_bytes);
            tally.made += 1;
            let sign = self.one(&case).map_err(|why| self.failed(&case, &why))?;
            if shown.insert(sign) {
                if keeps {
                    self.write("kept", &case);
                }
                pool.push(case);
            }
            if seconds.is_some() && said.elapsed() > Duration::from_secs(30) {
                said = Instant::now();
                println!("{}: {} cases, {} different", self.name, tally.made, shown.len());
            }
        }
        tally.shown = shown.len();
        Ok(tally)
    }

    fn one(&self, case: &[u8]) -> Result<String, String> {
        let began = processor::time();
        let sign = catch_unwind(AssertUnwindSafe(|| (self.run)(case))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
        })?;
        match processor::time().saturating_sub(began) {
            took if took > self.patience => Err(format!("it took {took:?} of processor time")),
            _ => Ok(sign),
        }
    }

    fn failed(&self, case: &[u8], why: &str) -> String {
        let file = self.write("failed", case);
        format!("{why}; the case is {}", file.display())
    }

    fn write(&self, kind: &str, case: &[u8]) -> PathBuf {
        let sum = case
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        let file = folder(self.name).join(format!("{kind}-{sum:016x}.hex"));
        // Where it cannot be written, the message still has its name, and the seed makes it again.
        let _ = std::fs::create_dir_all(folder(self.name));
        let _ = std::fs::write(&file, to_hex(case));
        file
    }
}

fn to_hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    bytes.chunks(50).map(line).collect()
}

/// The bytes of a corpus file.
pub fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Changes bytes without knowing what they mean.
pub fn change_bytes(random: &mut Random, case: &mut Vec<u8>, other: &[u8]) {
    let place = |random: &mut Random, length: usize| random.below(length as u64 + 1) as usize;
    let at = place(random, case.len().saturating_sub(1));
    match random.below(7) {
        0 | 1 if !case.is_empty() => case[at] ^= 1 << random.below(8),
        2 if !case.is_empty() => case[at] = random.one_of(&[0, 1, 2, 0x7e, 0x7f, 0x80, 0xfe, 0xff]),
        3 => {
            let fresh: Vec<u8> = (0..=random.below(8)).map(|_| random.number() as u8).collect();
            let at = place(random, case.len());
            case.splice(at..at, fresh);
        }
        4 => {
            let end = case.len().min(at + 1 + random.below(16) as usize);
            case.drain(at.min(end)..end);
        }
        5 => {
            let from = place(random, other.len());
            let to = other.len().min(from + random.below(64) as usize);
            let at = place(random, case.len());
            case.splice(at..at, other[from..to].iter().copied());
        }
        _ => {
            let number = random.one_of(&[0_u64, 1, 127, 128, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX]);
            let bytes = crate::wasm::leb(number);
            let end = case.len().min(at + 1);
            case.splice(at.min(end)..end, bytes);
        }
    }
}

/// Changes a component by its sections, and what is in them, with sizes that fit; now and then only bytes.
pub fn change_component(random: &mut Random, case: &mut Vec<u8>, other: &[u8]) {
    let (Some(mut mine), Some(theirs)) = (sections(case), sections(other)) else {
        return change_bytes(random, case, other);
    };
    if mine.is_empty() || random.once_in(6) {
        return change_bytes(random, case, other);
    }
    let at = random.below(mine.len() as u64) as usize;
    match random.below(8) {
        0 => drop(mine.remove(at)),
        1 => mine.insert(at, mine[random.below(mine.len() as u64) as usize].clone()),
        2 => {
            let to = random.below(mine.len() as u64) as usize;
            mine.swap(at, to);
        }
        3 if !theirs.is_empty() => mine.insert(at, theirs[random.below(theirs.len() as u64) as usize].clone()),
        _ => {
            let (id, content) = &mut mine[at];
            // A module or a component within it.
            if content.starts_with(b"\0asm") && !random.once_in(8) {
                let inner = theirs.iter().find(|(theirs, _)| theirs == id).map_or(&[][..], |(_, inner)| inner);
                change_component(random, content, inner);
            } else {
                change_bytes(random, content, other);
            }
        }
    }
    let mut whole = case[..8].to_vec();
    for (id, content) in mine {
        whole.extend(crate::wasm::section(id, &content));
    }
    *case = whole;
}

/// The sections of a module or component: id and content.
fn sections(bytes: &[u8]) -> Option<Vec<(u8, Vec<u8>)>> {
    let mut rest = bytes.strip_prefix(b"\0asm")?.get(4..)?;
    let mut found = Vec::new();
    while let Some((id, after)) = rest.split_first() {
        let (mut size, mut used) = (0_u64, 0);
        loop {
            let byte = *after.get(used)?;
            size |= u64::from(byte & 0x7f) << (7 * used).min(57);
            used += 1;
            if byte & 0x80 == 0 || used == 5 {
                break;
            }
        }
        let content = after.get(used..used.checked_add(usize::try_from(size).ok()?)?)?;
        found.push((*id, content.to_vec()));
        rest = &after[used + content.len()..];
    }
    Some(found)
}

/// Choices drawn from a case; when it is used up, all of them are 0.
#[derive(Clone, Debug)]
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    /// From the start of a case.
    pub fn new(case: &'a [u8]) -> Self {
        Choices(case)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((byte, rest)) => {
                self.0 = rest;
                *byte
            }
            None => 0,
        }
    }

    /// A number below a bound, which is not 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        let byte = u32::from(self.byte());
        if bound > 256 { (byte << 8 | u32::from(self.byte())) % bound } else { byte % bound }
    }

    /// A number from anywhere: small ones, those at the ends, and those around another one.
    pub fn number(&mut self, around: u64) -> u64 {
        match self.byte() {
            0..=63 => 0,
            64..=95 => u64::from(self.byte()),
            96..=111 => around,
            112..=127 => around.saturating_add(1),
            128..=143 => around.saturating_sub(1),
            144..=159 => u64::MAX - u64::from(self.byte() & 3),
            160..=191 => u64::from(u32::MAX) + u64::from(self.byte() & 3) - 1,
            _ => (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte())),
        }
    }

    /// A text of a few characters, not all of them letters.
    pub fn text(&mut self) -> String {
        (0..self.below(6)).map(|_| char::from_u32(self.below(0x2fff)).unwrap_or('?')).collect()
    }
}
