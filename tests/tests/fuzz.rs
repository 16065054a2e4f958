//! SPEC 9: no component, no snapshot and no plan brings the host down. The corpus is replayed and a few hundred cases are made;
//! `make fuzz` makes cases for as long as it is told to (see `corpus/README.md`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::time::Duration;

use homeostat::sandbox::BUILT_IN;
use hostile_guests_artifact as guests;
use tests::fuzz::components::{self, Components};
use tests::fuzz::snapshots::{self, Snapshots};
use tests::fuzz::{Target, change_bytes, change_component, plans};

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn components() {
    let components = Components::new([guests::TO_FUZZ, &[BUILT_IN]].concat()).unwrap();
    let target = Target {
        name: "components",
        seeds: components.seeds(),
        change: change_component,
        run: Box::new(|case| components.run(case)),
        patience: Duration::from_secs(20),
        most_bytes: components::MOST_BYTES,
    };
    // The first cases fill what is kept for ever: pools, thread stacks, the allocator's own.
    target.fuzz(100).unwrap();
    let before = resident_kb();
    println!("{:?}", target.fuzz(400).unwrap());
    let after = resident_kb();
    assert!(after < before + (64 << 10), "resident memory went from {before} to {after} kB");
}

#[test]
fn snapshots() {
    let snapshots = Snapshots::new().unwrap();
    let target = Target {
        name: "snapshots",
        seeds: snapshots::seeds(),
        change: change_bytes,
        run: Box::new(|case| snapshots.run(case)),
        patience: Duration::from_secs(10),
        most_bytes: snapshots::MOST_BYTES,
    };
    println!("{:?}", target.fuzz(3_000).unwrap());
}

#[test]
fn plans() {
    let target = Target {
        name: "plans",
        seeds: plans::seeds(),
        change: change_bytes,
        run: Box::new(plans::run),
        patience: Duration::from_secs(10),
        most_bytes: plans::MOST_BYTES,
    };
    println!("{:?}", target.fuzz(3_000).unwrap());
}
