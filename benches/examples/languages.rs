//! What deciders in other languages cost: `cargo run --release -p benches --example languages -- FILE.wasm...`. All of one run, with
//! the built-in decider first; a fresh instance for each call, as always.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::time::Instant;

use benches::{Cost, measure};
use homeostat::sandbox::{BUILT_IN, Limits, Sandbox};
use tests::snapshots::{Random, plausible};

fn main() {
    let limits =
        Limits { fuel_base: 1_000_000_000, fuel_per_node: 1_000_000, component_bytes: 64 << 20, ..Limits::default() };
    let sandbox = Sandbox::new(limits).unwrap();
    let mut components = vec![("built-in".to_owned(), BUILT_IN.to_vec())];
    components.extend(std::env::args().skip(1).map(|path| (path.clone(), std::fs::read(path).unwrap())));
    println!(
        "| decider | size | load | 1 node | 1,000 | 10,000 | a node of 10,000 | fuel of it | times the built-in |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut first = None;
    for (name, bytes) in components {
        let began = Instant::now();
        let decider = sandbox.load(&bytes).unwrap();
        let loaded = began.elapsed();
        let mut times = Vec::new();
        for nodes in [1, 1_000, 10_000] {
            let snapshot = plausible(&mut Random::new(1), nodes);
            let Cost { wall, .. } =
                measure(if nodes == 1 { 300 } else { 20 }, || decider.reconcile(&snapshot).unwrap());
            times.push(wall);
        }
        let node = times[2].as_nanos() as f64 / 10_000.0;
        let base = *first.get_or_insert(node);
        let fuel = decider.fuel_used() / 10_000;
        println!(
            "| {name} | {} kB | {loaded:.0?} | {:.1?} | {:.1?} | {:.1?} | {node:.0} ns | {fuel} | {:.0} |",
            bytes.len() / 1_000,
            times[0],
            times[1],
            times[2],
            node / base
        );
    }
}
