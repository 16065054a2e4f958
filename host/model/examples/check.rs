//! Checks a scope with the built-in decider and says how fast: `check NODES FAULTS keyed|windowed [JOBS]`.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::time::Instant;

use engine::io::DeciderIdentity;
use model::{Check, Kind, Scope, Verdict, Weaken};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: u64| args.get(at).map_or(otherwise, |text| text.parse().unwrap());
    let kind = if args.get(2).is_some_and(|kind| kind == "windowed") { Kind::Windowed } else { Kind::Keyed };
    let weaken = match args.get(4).map(String::as_str) {
        Some("settle") => Some(Weaken::WindowedSettle),
        Some("sweep") => Some(Weaken::Sweep),
        _ => None,
    };
    let scope = Scope { nodes: number(0, 2) as u32, faults: number(1, 1) as u8, kind, weaken, ..Scope::default() };
    let identity = DeciderIdentity { digest: "native".into(), rules: decider::describe().rules };
    let decide = |snapshot: &decider::Snapshot| Ok(decider::reconcile(snapshot));
    let check = Check {
        scope,
        identity,
        decide: &decide,
        exact: false,
        jobs: number(3, 2) as usize,
        most: number(5, 30_000_000),
        #[cfg(feature = "mutations")]
        mutation: None,
    };
    let began = Instant::now();
    let outcome = check.run(&mut |_| {}).unwrap();
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{:?} forms {} computed {} settled {}",
        outcome.progress, outcome.forms, outcome.computed, outcome.settled
    );
    println!("{seconds:.2} s, {:.0} states/s", outcome.progress.states as f64 / seconds);
    println!("{:?}", outcome.rules);
    match outcome.verdict {
        Verdict::Broken(broken) => {
            println!("{}: {} ({} never settle)", broken.violation.id, broken.violation.what, broken.never_settle);
            broken.path.iter().for_each(|line| println!("{line}"));
        }
        verdict => println!("{verdict:?}"),
    }
}
