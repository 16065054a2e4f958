//! What a check says: what it saw, what it covered and what not, and what is broken.

use std::fmt::Write as _;

use crate::check::{Broken, Outcome, Verdict};
use crate::scope::{Kind, Scope, UNIT_MS, WINDOW_MS, Weaken};
use crate::search::Limit;

/// What no search of this kind covers.
pub const NOT_COVERED: &[&str] = &[
    "lengths of time other than those of the scope: time goes from one deadline of the driver to the next",
    "several groups, several providers in one fleet, changes of policy, a second template change",
    "a decider that is slow, traps or runs out of fuel; a swap of deciders",
    "listings that are stale or partial; progress and output of a bootstrap; answers that ask to wait",
    "resources that vanish by themselves, strangers' resources, a host whose state is lost",
    "inputs at the very instant at which a deadline passes, before the driver is woken",
    "an executor that promises a result after its deadline; the same result twice",
];

/// The scope in a few words.
pub fn title(scope: &Scope) -> String {
    let (slots, faults) = (plural(scope.nodes.into(), "slot"), plural(scope.faults.into(), "fault"));
    format!("{slots}, {faults}, {} provider", scope.kind)
}

/// What a search of this scope covers, in sentences.
pub fn covered(scope: &Scope) -> Vec<String> {
    let mut covered = Vec::new();
    let window = match scope.kind {
        Kind::Keyed => String::new(),
        Kind::Windowed => format!("; a lost create takes effect within {WINDOW_MS} ms of being sent, or never"),
    };
    covered.push(format!("{} of one group, one {} provider{window}", plural(scope.nodes.into(), "slot"), scope.kind));
    let mut edits = Vec::new();
    if scope.replacement {
        edits.push("one change of the template");
    }
    if scope.scaling {
        edits.push("one scale-down by one, one scale-up by one after it");
    }
    if !edits.is_empty() {
        covered.push(format!("{}, each at any time or never", edits.join(", ")));
    }
    if scope.crashes > 0 {
        let crashes = plural(scope.crashes.into(), "crash").replace("crashs", "crashes");
        let lands = "each call on its way then takes effect at any later time, or never left";
        covered.push(format!("{crashes} of the host at any time; {lands}; replies are lost"));
    }
    if scope.faults > 0 {
        covered.push(format!(
            "at most {} of: a request or a reply lost, with or without a word; a call that takes effect later; a reply \
             after its deadline; an error; a refusal; no address yet; a bootstrap that fails, ends, is silent or late; a ready node \
             that dies; a session that closes without a status; an empty listing{}",
            plural(scope.faults.into(), "fault"),
            if scope.kind == Kind::Windowed { "; a new resource that is not shown yet" } else { "" }
        ));
    }
    covered.push(format!(
        "every order of these with effects, replies, joins, listings and deadlines; backoff and probes {UNIT_MS} ms, \
         operations {} ms",
        2 * UNIT_MS
    ));
    match scope.weaken {
        Some(Weaken::WindowedSettle) if scope.kind == Kind::Windowed => {
            covered.push("weakened: a create in doubt is looked for once and made anew when it is absent".into());
        }
        Some(Weaken::Sweep) => covered.push("weakened: the provider is never listed".into()),
        _ => {}
    }
    covered
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A number with its thousands apart.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rules that no decision cited.
pub fn never_reached(outcome: &Outcome) -> Vec<&str> {
    outcome.rules.iter().filter(|(_, count)| *count == 0).map(|(id, _)| id.as_str()).collect()
}

/// What was seen, as numbers.
pub fn numbers(outcome: &Outcome, seconds: f64) -> String {
    let progress = &outcome.progress;
    let rate = progress.states as f64 / seconds.max(0.001);
    format!(
        "{} distinct states, {} transitions, depth {}; {} forms of the driver, {} steps of it computed; {seconds:.1} s, {} states/s",
        grouped(progress.states),
        grouped(progress.transitions),
        progress.depth,
        grouped(outcome.forms),
        grouped(outcome.computed),
        grouped(rate as u64),
    )
}

/// What came of it, for people.
pub fn verdict(scope: &Scope, outcome: &Outcome) -> String {
    match &outcome.verdict {
        Verdict::Holds => holds(outcome),
        Verdict::Unfinished(limit) => format!(
            "NOT FINISHED: {} with {} states waiting. S1-S10, S14, S15 held in every step so far; whether everything can \
             settle (L1-L4) is not known.\n",
            match limit {
                Limit::States => "the limit of states was reached",
                Limit::Room => "more calls or resources at one time than a state has room for",
            },
            grouped(outcome.progress.waiting)
        ),
        Verdict::Broken(broken) => broken_text(scope, broken, outcome),
    }
}

fn holds(outcome: &Outcome) -> String {
    let mut text = String::from("S1-S10, S14, S15 hold in every step. ");
    let _ = writeln!(
        text,
        "From every state the fleet can settle without a fault or an edit (L1, L3, L4), and then it stays so and quiet (L2): \
         {} settled states.",
        grouped(outcome.settled)
    );
    let silent = never_reached(outcome);
    let never = if silent.is_empty() { "none".to_string() } else { silent.join(", ") };
    let _ = writeln!(text, "rules never reached: {never}");
    text
}

fn broken_text(scope: &Scope, broken: &Broken, outcome: &Outcome) -> String {
    let id = broken.violation.id;
    let mut text = format!("{id} is broken: {}\n", broken.violation.what);
    if let Some(sentence) = engine::property::sentence(id) {
        let _ = writeln!(text, "{id} says: {sentence}");
    }
    if broken.never_settle > 0 {
        let (states, all) = (grouped(broken.never_settle), grouped(outcome.progress.states));
        let _ = writeln!(text, "{states} of {all} states can never settle; the shortest path to one of them:");
    } else {
        let _ = writeln!(text, "the shortest path, with a {} provider:", scope.kind);
    }
    text.push('\n');
    let lost = broken.path.len() - broken.tail.min(broken.path.len());
    for (at, line) in broken.path.iter().enumerate() {
        if at == lost {
            text.push_str("     from here on it cannot settle any more; what follows at best:\n");
        }
        let _ = writeln!(text, "{line}");
    }
    text
}
