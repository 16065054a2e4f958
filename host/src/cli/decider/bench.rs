//! `homeostat decider bench`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use decider::Snapshot;
use engine::validate::check_plan;
use serde::Serialize;

use super::super::table::Table;
use super::super::{Failure, Terminal};
use super::fleet::typical;
use crate::sandbox::{Limits, LoadedDecider};

/// As long as a cell is measured, at least with three calls and at most with so many.
const SPAN: Duration = Duration::from_millis(400);
const MOST_CALLS: usize = 300;

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    deciders: Vec<Measured>,
}

#[derive(Serialize)]
struct Measured {
    file: Option<String>,
    name: String,
    version: String,
    digest: String,
    size_bytes: u64,
    load_us: u64,
    calls: Vec<Cell>,
}

#[derive(Serialize)]
struct Cell {
    nodes: usize,
    /// How many calls were measured.
    calls: usize,
    /// The median of them.
    call_ns: u64,
    fuel: u64,
    times_built_in: f64,
    failure: Option<String>,
    /// What is wrong with it, in words; empty where nothing is.
    #[serde(skip)]
    detail: String,
}

pub(super) fn run(files: &[PathBuf], nodes: &[u32], limits: &Limits, terminal: &Terminal) -> Result<(), Failure> {
    let mut deciders: Vec<Measured> = Vec::new();
    let snapshots: Vec<Snapshot> = nodes.iter().map(|nodes| typical(*nodes)).collect();
    for file in std::iter::once(None).chain(files.iter().map(Some)) {
        let began = Instant::now();
        let decider = super::load(file.map(PathBuf::as_path), limits)?;
        let load_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let base: Vec<u64> =
            deciders.first().map_or(Vec::new(), |first| first.calls.iter().map(|of| of.call_ns).collect());
        let calls =
            snapshots.iter().enumerate().map(|(at, snapshot)| measure(&decider, snapshot, base.get(at).copied()));
        let calls = calls.collect();
        let about = decider.inspect();
        deciders.push(Measured {
            file: file.map(|file| file.display().to_string()),
            name: about.name,
            version: about.version,
            digest: decider.digest().to_owned(),
            size_bytes: about.size_bytes,
            load_us,
            calls,
        });
    }
    let failed = failures(&deciders);
    if terminal.is_json() {
        terminal.print_json(&Report { schema: "homeostat.decider-bench/v1", deciders })?;
    } else {
        terminal.print(&text(&deciders, terminal))?;
    }
    // The others are measured all the same.
    if failed.is_empty() { Ok(()) } else { Err(Failure::Failed(anyhow::anyhow!("{}", failed.join("; ")))) }
}

/// Each decider that failed, once, for the first of the fleets that it failed for.
fn failures(deciders: &[Measured]) -> Vec<String> {
    let of = |decider: &Measured| {
        let cell = decider.calls.iter().find(|cell| cell.failure.is_some())?;
        let (file, failure) = (decider.file.as_deref().unwrap_or("built-in"), cell.failure.as_deref()?);
        let nodes = if cell.nodes == 1 { "node" } else { "nodes" };
        let detail = &cell.detail;
        Some(format!("{file} ({failure}, for {} {nodes}): {detail}", cell.nodes))
    };
    deciders.iter().filter_map(of).collect()
}

fn measure(decider: &LoadedDecider, snapshot: &Snapshot, base_ns: Option<u64>) -> Cell {
    let (nodes, rules) = (snapshot.nodes.len(), decider.description().rules.len());
    let (mut times, mut failure) = (Vec::new(), None);
    let began = Instant::now();
    // The first call warms up, and is not counted.
    while failure.is_none() && times.len() <= MOST_CALLS && (times.len() < 4 || began.elapsed() < SPAN) {
        let asked = Instant::now();
        let answer = decider.reconcile(snapshot);
        times.push(u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX));
        failure = match answer {
            Err(failure) => Some((failure.class().to_owned(), failure.to_string())),
            // What the engine would refuse is no decision, however fast.
            Ok(plan) => {
                check_plan(&plan, snapshot, rules).err().map(|error| ("invalid-plan".to_owned(), error.to_string()))
            }
        };
    }
    let (failure, detail) = failure.map_or((None, String::new()), |(class, detail)| (Some(class), detail));
    let mut counted = times.split_off(1.min(times.len()));
    counted.sort_unstable();
    let call_ns = counted.get(counted.len() / 2).copied().unwrap_or_default();
    let times_built_in = call_ns as f64 / base_ns.unwrap_or(call_ns).max(1) as f64;
    Cell { nodes, calls: counted.len(), call_ns, fuel: decider.fuel_used(), times_built_in, failure, detail }
}

fn text(deciders: &[Measured], terminal: &Terminal) -> String {
    let mut table =
        Table::new(&["decider", "size", "load", "nodes", "a call", "a node", "fuel of it", "against the built-in"]);
    for decider in deciders {
        for (at, cell) in decider.calls.iter().enumerate() {
            let is_first = at == 0;
            let of_first = |text: String| if is_first { text } else { String::new() };
            let each = |total: u64| total / (cell.nodes.max(1) as u64);
            let (call, node, times) = match &cell.failure {
                Some(class) => (class.clone(), "-".into(), "-".into()),
                None => (span(cell.call_ns), span(each(cell.call_ns)), format!("{:.1}", cell.times_built_in)),
            };
            table.push([
                of_first(format!("{} {}", decider.name, decider.version)),
                of_first(format!("{} kB", decider.size_bytes.div_ceil(1_000))),
                of_first(span(decider.load_us.saturating_mul(1_000))),
                cell.nodes.to_string(),
                call,
                node,
                each(cell.fuel).to_string(),
                times,
            ]);
        }
    }
    table.render(&terminal.style())
}

/// Nanoseconds as a person reads them.
fn span(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_the_unit_that_fits() {
        let all = [999, 1_000, 999_949, 2_500_000, 1_500_000_000].map(span);
        assert_eq!(all, ["999 ns", "1.0 µs", "999.9 µs", "2.5 ms", "1.5 s"]);
    }
}
