//! History as a judge (SPEC 11): the driver follows what was recorded, and both deciders are asked again. First the one in force
//! has to reproduce its own plans; else history cannot judge anybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use decider::{Plan, Snapshot};
use engine::driver::Driver;
use engine::id::Millis;
use engine::io::{DeciderFailure, DeciderIdentity};
use journal::{SIMULATED, Step, Walk};
use store::records;
use tokio::runtime::Handle;

use super::divergence::{Pass, Side, Tally};
use super::past::Past;
use super::report::Compared;
use crate::decide::Decider;

/// The most records that are read for one judgement.
const MOST_RECORDS: u64 = 1_000_000;
/// The longest that one judgement may take.
const MOST_TIME: Duration = Duration::from_secs(60);
/// Failures that another moment may not have.
const UNREPEATABLE: &[&str] = &["wall-clock", "pool-exhausted", "host"];

/// What history says.
#[derive(Debug)]
pub(super) struct Judged {
    pub compared: Compared,
    /// Passes of its own that the decider in force reproduced.
    pub reproduced: u64,
    /// What has to be known of it, in words; may be empty.
    pub note: String,
}

/// History cannot judge: in words why.
#[derive(Debug)]
pub(super) struct NoJudge(pub String);

/// Who is judged, and by what.
pub(super) struct Case {
    pub past: Past,
    pub active: Arc<dyn Decider>,
    pub candidate: Arc<dyn Decider>,
    /// Passes from here on are compared.
    pub since_ms: Millis,
    /// Somebody called it off.
    pub stop: Arc<AtomicBool>,
    /// To ask the deciders from a thread that may block.
    pub runtime: Handle,
}

/// Judges. Blocks: not on an async worker.
pub(super) fn judge(case: &Case) -> Result<Judged, NoJudge> {
    let began = Instant::now();
    let mut opened = case.past.open().map_err(NoJudge)?;
    let mut notes = Vec::new();
    let (mut walk, from) = begin(&opened.checkpoint, opened.first.next_seq, case.since_ms, &mut notes)?;
    let (own, other) = (case.active.identity(), case.candidate.identity());
    walk.also_show(vec![own.clone(), other.clone()]);
    let ask = |decider: &Arc<dyn Decider>, snapshot: &Arc<Snapshot>| -> Result<Plan, DeciderFailure> {
        case.runtime.block_on(decider.decide(snapshot.clone()))
    };
    let (mut tally, mut reproduced, mut read) = (Tally::default(), 0, 0);
    let lines = records(&mut *opened.records, from).map_err(|error| NoJudge(error.to_string()))?;
    for line in lines {
        if case.stop.load(Ordering::Relaxed) {
            return Err(NoJudge("it was called off".into()));
        }
        if read >= MOST_RECORDS || began.elapsed() >= MOST_TIME {
            notes.push(format!("stopped after {read} records and {} s", began.elapsed().as_secs()));
            break;
        }
        read += 1;
        let line = line.map_err(|error| NoJudge(error.to_string()))?;
        let (seq, at_ms) = (line.seq, line.at_ms);
        let step = walk.follow(&line).map_err(|mismatch| {
            NoJudge(format!("the engine of this program does not follow record {seq}: {mismatch}"))
        })?;
        let Step::Answered { asked: Some(asked), answer } = step else { continue };
        let unrepeatable = answer.as_ref().is_err_and(|failure| UNREPEATABLE.contains(&failure.class.as_str()));
        if at_ms < case.since_ms || unrepeatable || asked.decider == SIMULATED {
            continue;
        }
        // Each in its own contract, whichever decided then.
        let shown = |who: &DeciderIdentity| asked.shown_to(who).cloned().unwrap_or_else(|| asked.snapshot.clone());
        let (shown, other_shown) = (shown(&own), shown(&other));
        let active = ask(&case.active, &shown);
        if asked.decider == own.digest {
            if !same(&answer, &active) {
                return Err(NoJudge(format!("the decider in force answers otherwise than it did in record {seq}")));
            }
            reproduced += 1;
        }
        let candidate = ask(&case.candidate, &other_shown);
        let slots = walk.driver().map_or(&[][..], |driver| &driver.state().slots);
        let pass = Pass {
            seq: Some(seq),
            active: Side { shown: &shown, answer: active.as_ref(), rules: &own.rules },
            candidate: Side { shown: &other_shown, answer: candidate.as_ref(), rules: &other.rules },
        };
        tally.add(&pass, |node| slots.get(node as usize).map(|slot| slot.name.clone()));
    }
    Ok(Judged { compared: tally.compared(0), reproduced, note: notes.join("; ") })
}

/// A driver from which the walk can begin, and the first record that it does not know.
fn begin(
    checkpoint: &Option<store::Saved>,
    first: u64,
    since_ms: Millis,
    notes: &mut Vec<String>,
) -> Result<(Walk, u64), NoJudge> {
    let restored = match checkpoint {
        Some(saved) => Some((Driver::restore(&saved.bytes).map_err(|error| NoJudge(error.to_string()))?, saved.at_seq)),
        None => None,
    };
    match restored {
        // The checkpoint is old enough, or nothing older is whole.
        Some((driver, at_seq)) if driver.now_ms() <= since_ms || first > 0 => {
            if driver.now_ms() > since_ms {
                notes.push(format!(
                    "nothing older than {} can be decided again",
                    step::text::time_of_day(driver.now_ms())
                ));
            }
            Ok((Walk::after(driver), at_seq))
        }
        None if first > 0 => Err(NoJudge("the history that is kept has no beginning".into())),
        _ => Ok((Walk::new(), 0)),
    }
}

/// Bit for bit; of failures their class.
fn same(recorded: &Result<Plan, DeciderFailure>, again: &Result<Plan, DeciderFailure>) -> bool {
    match (recorded, again) {
        (Ok(recorded), Ok(again)) => recorded == again,
        (Err(recorded), Err(again)) => recorded.class == again.class,
        _ => false,
    }
}
