//! The table of what was exercised.

use std::fmt::Write as _;

use crate::faults::{FAULTS, FaultKind};
use crate::tally::Tally;

/// Faults of the full menu that the engine alone cannot show; said in every report, so that nobody takes them for tested.
pub const NOT_COVERED: &[(&str, &str)] = &[
    (
        "shadow-and-fallback",
        "a candidate in shadow, and falling back from one: a swap here is between two deciders that decide the same",
    ),
    (
        "lie-after-lost-state",
        "a listing that claims to be complete and is not, for a host that has lost its state: nothing contradicts it then",
    ),
    (
        "clock-ahead-again-and-again",
        "a clock that is set ahead more than once a minute while a windowed create may still land",
    ),
    ("provider-seen-through-http", "real status codes and bodies: calls are classified before they reach the engine"),
];

/// Rule by fault: how many decisions each rule made for a node, by the fault that had hit it last.
pub fn table(tally: &Tally, rules: &[String]) -> String {
    let mut text = String::new();
    let width = FaultKind::ALL.iter().map(|fault| fault.label().len()).max().unwrap_or(0);
    let _ = write!(text, "{:width$} {:>8}", "fault", "injected");
    for rule in rules {
        let _ = write!(text, " {rule:>6}");
    }
    text.push('\n');
    for column in 0..=FAULTS {
        let fault = column.checked_sub(1).and_then(|at| FaultKind::ALL.get(at));
        let injected =
            fault.map_or_else(|| "-".into(), |fault| short(tally.faults.get(*fault as usize).copied().unwrap_or(0)));
        let _ = write!(text, "{:width$} {injected:>8}", fault.map_or("none", |fault| fault.label()));
        for at in 0..rules.len() {
            let count = tally.rules.get(at).and_then(|row| row.get(column)).copied().unwrap_or(0);
            let _ = write!(text, " {:>6}", if count == 0 { "·".into() } else { short(count) });
        }
        text.push('\n');
    }
    let never: Vec<&str> = tally.faults_not_exercised().iter().map(|fault| fault.label()).collect();
    let silent: Vec<&str> =
        tally.rules_not_exercised().into_iter().filter_map(|at| rules.get(at)).map(String::as_str).collect();
    let list = |names: Vec<&str>| if names.is_empty() { "none".to_string() } else { names.join(", ") };
    let _ = writeln!(text, "faults never injected: {}", list(never));
    let _ = writeln!(text, "rules never exercised: {}", list(silent));
    for (name, why) in NOT_COVERED {
        let _ = writeln!(text, "not covered: {name}: {why}");
    }
    text
}

/// At most five characters: 1234567 as 1.2M.
fn short(count: u64) -> String {
    match count {
        0..100_000 => count.to_string(),
        100_000..1_000_000 => format!("{}k", count / 1_000),
        1_000_000..1_000_000_000 => format!("{}.{}M", count / 1_000_000, count / 100_000 % 10),
        _ => format!("{}G", count / 1_000_000_000),
    }
}
