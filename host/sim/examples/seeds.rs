//! Runs seeds against the built-in ladder, natively, and shows speed and the table: `seeds [COUNT [FIRST [JOBS [HOURS]]]]`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use sim::{Campaign, shrink, table};

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut next = |default| numbers.next().unwrap_or(Ok(default));
    let (seeds, first, jobs, hours) = (next(1_000)?, next(0)?, next(2)?, next(2)?);
    let mut setup = common::setup();
    setup.shape.groups[0].count = 6;
    setup.shape.groups[1].count = 4;
    setup.until_ms = hours * 3_600_000;
    let rules: Vec<String> = setup.identity.rules.iter().map(|rule| rule.id.clone()).collect();
    let began = Instant::now();
    let campaign = Campaign { setup, first, seeds, jobs: usize::try_from(jobs)? };
    let (tally, failing) = campaign.run(&common::native, &|_| ())?;
    let seconds = began.elapsed().as_secs_f64();
    let mut out = std::io::stdout();
    write!(out, "{}", table(&tally, &rules))?;
    let per = |count: u64| count as f64 / seconds;
    writeln!(
        out,
        "{} seeds in {seconds:.1} s: {:.0} seeds/s, {:.0} passes/s, {:.0} inputs/s, {:.0} simulated node-hours/s",
        tally.seeds,
        per(tally.seeds),
        per(tally.passes),
        per(tally.steps),
        per(tally.node_ms) / 3_600_000.0
    )?;
    if let Some(failing) = failing {
        let violation = failing.outcome.violation.as_ref();
        writeln!(out, "seed {}: {violation:?}", failing.seed)?;
        let id = violation.map_or("", |violation| violation.id);
        let began = Instant::now();
        let mut more = || began.elapsed().as_secs_f64() < 10.0;
        let shrunk = shrink(&campaign.setup, &failing.outcome.choices, id, &mut *common::native(), &mut more)?;
        for line in &shrunk.outcome.trace {
            writeln!(out, "{line}")?;
        }
        writeln!(
            out,
            "{:?}\n{} events, {} choices from {}, {} runs, {:.1} s",
            shrunk.outcome.violation,
            shrunk.outcome.events,
            shrunk.choices.len(),
            failing.outcome.choices.len(),
            shrunk.runs,
            began.elapsed().as_secs_f64()
        )?;
        std::process::exit(1);
    }
    Ok(())
}
