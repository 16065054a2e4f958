//! SPEC 9: components that are small and become large. Each is refused, or loaded within bounds of time and memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::time::Instant;

use homeostat::sandbox::{Limits, Sandbox};
use hostile_guests_artifact as guests;
use tests::snapshots::{Random, plausible};
use tests::wasm::{around, component, functions, jumps, leb, list, loops, repeated, section};

fn memory_kb(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn types(count: usize) -> Vec<u8> {
    component(&[section(7, &repeated(count, &[0x7f]))])
}

#[test]
fn measure() {
    let nested = |depth: usize| (0..depth).fold(component(&[]), |inner, _| component(&[section(4, &inner)]));
    let chain = |count: usize, item: &dyn Fn(u64) -> Vec<u8>| {
        let types = (0..count).map(|at| if at == 0 { vec![0x7f] } else { item(at as u64 - 1) });
        component(&[section(7, &list(types))])
    };
    let index = |at: u64| leb(at << 1).into_iter().collect::<Vec<u8>>();
    let _ = index;
    // Signed: one more bit is needed.
    let signed = |at: u64| {
        let mut bytes = leb(at);
        if bytes.last().unwrap() & 0x40 != 0 {
            *bytes.last_mut().unwrap() |= 0x80;
            bytes.push(0);
        }
        bytes
    };
    let module = tests::wasm::module(&[]);
    let instances = |count: usize| component(&[section(1, &module), section(2, &repeated(count, &[0, 0, 0]))]);
    let bombs: Vec<(&str, Vec<u8>)> = vec![
        ("100k functions", around(&functions(100_000, &[0, 0x0b]))),
        ("1M functions", around(&functions(1_000_000, &[0, 0x0b]))),
        ("100k types", types(100_000)),
        ("1M types", types(1_000_000)),
        ("nested lists 90", chain(90, &|at| [vec![0x70], signed(at)].concat())),
        ("nested lists 100k", chain(100_000, &|at| [vec![0x70], signed(at)].concat())),
        ("nested tuples", chain(60, &|at| [vec![0x6f, 2], signed(at), signed(at)].concat())),
        ("nested components 50", nested(50)),
        ("nested components 5000", nested(2_000)),
        ("instances 5", instances(5)),
        ("instances 1000", instances(1_000)),
        ("instances 1M", instances(1_000_000)),
        ("custom", component(&[section(0, &vec![0; 7 << 20])])),
        ("jumps 100k", around(&functions(1, &jumps(100_000)))),
        ("jumps 60x100k", around(&functions(60, &jumps(100_000)))),
        ("loops 100x1000", around(&functions(1, &loops(100, 1_000)))),
        ("loops 1000x1000", around(&functions(1, &loops(1_000, 1_000)))),
        ("loops 1000x10000", around(&functions(1, &loops(1_000, 10_000)))),
    ];
    let sandbox = Sandbox::new(Limits::default()).unwrap();
    let only = std::env::var("ONLY").ok();
    for (name, bytes) in bombs {
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = memory_kb("VmRSS");
        let started = Instant::now();
        let outcome = sandbox.load(&bytes).map(|_| ());
        let error = outcome.map_or_else(|error| format!("{}: {error}", error.class()), |()| "loaded".into());
        println!(
            "{name}: {} bytes, {:?}, +{} kB at most, +{} kB after: {}",
            bytes.len(),
            started.elapsed(),
            memory_kb("VmHWM") - before,
            memory_kb("VmRSS").saturating_sub(before),
            &error[..error.len().min(150)]
        );
    }
}

#[test]
fn loading_and_asking_hostile_guests_again_and_again_does_not_grow_the_host() {
    // Little fuel, so that a loop without an end is soon over.
    let sandbox = Sandbox::new(Limits { fuel_base: 5_000_000, ..Limits::default() }).unwrap();
    let snapshot = plausible(&mut Random::new(1), 8);
    let round = || {
        for (_, component) in guests::ALL {
            if let Ok(decider) = sandbox.load(component) {
                // Whatever it says: it is over afterwards.
                let _ = decider.reconcile(&snapshot);
            }
        }
    };
    // What is kept for ever is there after a few: pools, stacks, the allocator's own.
    for _ in 0..3 {
        round();
    }
    let before = memory_kb("VmRSS");
    for _ in 0..6 {
        round();
    }
    let after = memory_kb("VmRSS");
    println!("{} guests, {before} kB, {after} kB after six rounds", guests::ALL.len());
    assert!(guests::ALL.len() >= 40);
    assert!(after < before + (48 << 10), "resident memory went from {before} to {after} kB");
}
