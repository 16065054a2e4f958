//! Checks a scope with the built-in decider and says how fast: `check NODES FAULTS keyed|windowed [JOBS] [-] [MOST]`.
#![allow(clippy::print_stdout, missing_docs)]

use std::error::Error;
use std::time::Instant;

use engine::io::DeciderIdentity;
use model::{Check, Kind, Scope, report};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: u32| args.get(at).map_or(Ok(otherwise), |text| text.parse());
    let kind = if args.get(2).is_some_and(|kind| kind == "windowed") { Kind::Windowed } else { Kind::Keyed };
    let scope = Scope { nodes: number(0, 2)?, faults: u8::try_from(number(1, 0)?)?, kind, ..Scope::default() };
    let check = Check {
        scope,
        identity: DeciderIdentity::native(),
        decide: &|snapshot| Ok(decider::reconcile(snapshot)),
        exact: false,
        jobs: number(3, 2)? as usize,
        most: args.get(5).map_or(Ok(u64::MAX), |text| text.parse())?,
        mutation: None,
    };
    let began = Instant::now();
    let outcome = check.run(&mut |_| {})?;
    println!("{}\n{}", report::title(&scope), report::numbers(&outcome, began.elapsed().as_secs_f64()));
    println!("{}", report::verdict(&scope, &outcome));
    Ok(())
}
