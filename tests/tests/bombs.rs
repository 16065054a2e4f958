//! SPEC 9: components that are small and become large. Each is refused, or loaded within bounds of time and memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::Mutex;

use homeostat::sandbox::{Limits, Sandbox};
use hostile_guests_artifact as guests;
use tests::fuzz::from_hex;
use tests::processor;
use tests::snapshots::{Random, plausible};
use tests::wasm::{
    again, around, component, functions, globals, jumps, leb, list, loops, module, passing, repeated, section,
};

/// Both tests measure the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn memory_kb(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A number in the signed form, in which types refer to types.
fn signed(number: u64) -> Vec<u8> {
    let mut bytes = leb(number);
    if let Some(last) = bytes.last_mut().filter(|last| **last & 0x40 != 0) {
        *last |= 0x80;
        bytes.push(0);
    }
    bytes
}

/// Types, each made of the one before.
fn chain(count: usize, item: &dyn Fn(u64) -> Vec<u8>) -> Vec<u8> {
    let types = (0..count).map(|at| if at == 0 { vec![0x7f] } else { item(at as u64 - 1) });
    component(&[section(7, &list(types))])
}

/// Components within components.
fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(component(&[]), |inner, _| component(&[section(4, &inner)]))
}

fn beside(count: usize) -> Vec<u8> {
    component(&[section(4, &component(&[])).repeat(count)])
}

fn instances(count: usize) -> Vec<u8> {
    component(&[section(1, &module(&[])), section(2, &repeated(count, &[0, 0, 0]))])
}

/// A component of functions, each with this body, in which a tenth of what is allowed is loops.
fn expensive(count: usize) -> Vec<u8> {
    around(&functions(count, &loops(500, 3_000)))
}

#[test]
fn what_is_small_and_becomes_large_is_refused_or_bounded() {
    let _alone = ONE_AT_A_TIME.lock();
    let nothing = [0, 0x0b];
    let block = [0x41, 0, 0x04, 0x40, 0x0b];
    let bombs: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a hundred thousand functions", around(&functions(100_000, &nothing)), "too-complex"),
        ("a million functions", around(&functions(1_000_000, &nothing)), "too-complex"),
        ("as many functions as are allowed", around(&functions(20_000, &nothing)), "other-world"),
        ("loops in loops", around(&functions(1, &loops(1_000, 1_000))), "too-complex"),
        ("variables across loops", around(&functions(1, &loops(1_000, 10_000))), "too-complex"),
        ("as many loops as are allowed in one", expensive(1), "other-world"),
        ("as many loops as are allowed in all", expensive(9), "other-world"),
        ("more than that", expensive(14), "too-complex"),
        // Time grows with the square: a million of them took hours.
        ("forty thousand blocks in one", around(&functions(1, &again(40_000, &block))), "too-complex"),
        ("as many blocks as are allowed in one", around(&functions(1, &again(11_000, &block))), "other-world"),
        ("as many blocks as are allowed in all", around(&functions(9, &again(11_000, &block))), "other-world"),
        ("more blocks than that", around(&functions(16, &again(11_000, &block))), "too-complex"),
        ("a million calls", around(&functions(1, &again(1_000_000, &[0x10, 0]))), "too-complex"),
        ("as many calls as are allowed in one", around(&functions(1, &again(68_000, &[0x10, 0]))), "other-world"),
        ("a thousand results, passed along", around(&passing(1_000, 1_500)), "too-complex"),
        ("as many results as are allowed in one", around(&passing(1_000, 95)), "other-world"),
        ("five megabytes of sums", around(&functions(1, &again(1 << 20, &[0x42, 0, 0x50, 0x1a]))), "too-complex"),
        (
            "as much code as is allowed in one",
            around(&functions(1, &again(300_000, &[0x42, 0, 0x50, 0x1a]))),
            "other-world",
        ),
        ("a hundred thousand variables", around(&globals(100_000)), "invalid"),
        ("a table of jumps", around(&functions(1, &jumps(60_000))), "other-world"),
        ("jumps to everywhere", around(&functions(1, &jumps(100_000))), "invalid"),
        ("a hundred thousand types", component(&[section(7, &repeated(100_000, &[0x7f]))]), "other-world"),
        ("lists of lists", chain(90, &|at| [vec![0x70], signed(at)].concat()), "other-world"),
        ("lists of lists without an end", chain(100_000, &|at| [vec![0x70], signed(at)].concat()), "invalid"),
        ("pairs of pairs", chain(60, &|at| [vec![0x6f, 2], signed(at), signed(at)].concat()), "invalid"),
        ("ten components in each other", nested(10), "other-world"),
        // Its compilation took eight gigabytes.
        ("twenty thousand components in each other", nested(20_000), "too-complex"),
        ("nine hundred components side by side", beside(900), "other-world"),
        ("a million components side by side", beside(1_000_000), "too-complex"),
        ("five instances", instances(5), "resources"),
        ("a million instances", instances(1_000_000), "invalid"),
        ("seven megabytes of nothing", component(&[section(0, &vec![0; 7 << 20])]), "other-world"),
        ("one name twice", component(&[section(11, &[2, 0, 1, b'a', 1, 0, 0, 0, 1, b'a', 1, 0, 0])]), "invalid"),
    ];
    let sandbox = Sandbox::new(Limits::default()).unwrap();
    for (name, bytes, expected) in bombs {
        // From now on, the most that was resident.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let (before_kb, began) = (memory_kb("VmRSS"), processor::time());
        let error = sandbox.load(&bytes).map(|decider| panic!("{decider:?} was loaded")).unwrap_err();
        let (took_ms, grown_kb) =
            ((processor::time() - began).as_millis(), memory_kb("VmHWM").saturating_sub(before_kb));
        println!("{name}: {} bytes, {took_ms} ms, {grown_kb} kB: {}", bytes.len(), error.class());
        assert_eq!(error.class(), expected, "{name}: {error}");
        assert!(took_ms < 30_000, "{name} took {took_ms} ms of processor time");
        assert!(grown_kb < 512 << 10, "{name} took {grown_kb} kB");
    }
}

/// wasmtime writes code for each type of such a call: twenty kilobytes of them took twenty seconds and more, and with a memory on
/// either side it panicked.
#[test]
fn components_that_call_each_other_are_refused() {
    let sandbox = Sandbox::new(Limits::default()).unwrap();
    for (name, text) in [
        ("from one inner component to another", include_str!("../corpus/components/calls-between-components.hex")),
        ("from the outer one to an inner", include_str!("../corpus/components/calls-into-a-component.hex")),
        ("to itself", include_str!("../corpus/components/calls-itself.hex")),
        ("beside an import", include_str!("../corpus/components/calls-through-an-import.hex")),
    ] {
        let error = sandbox.load(&from_hex(text)).map(|decider| panic!("{name}: {decider:?}")).unwrap_err();
        assert_eq!(error.class(), "too-complex", "{name}: {error}");
        assert!(error.to_string().contains("number of calls between its components"), "{name}: {error}");
    }
}

#[test]
fn loading_and_asking_hostile_guests_again_and_again_does_not_grow_the_host() {
    let _alone = ONE_AT_A_TIME.lock();
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
