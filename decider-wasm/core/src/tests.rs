//! The ladder over the whole product of facts, and its committed rendering.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write as _;

use crate::facts::{Column, Doubt, Effect, Facts, Lease, Standing};
use crate::ladder::{LADDER, RULES, Row, Verdict, first_match};
use crate::*;

/// Every combination of one value per fact.
fn product() -> Vec<Facts> {
    Column::ALL.iter().fold(vec![Facts(0)], |all, column| {
        all.iter().flat_map(|facts| column.values().into_iter().map(move |(_, bit)| Facts(facts.0 | bit))).collect()
    })
}

fn has(facts: Facts, bits: u64) -> bool {
    facts.0 & bits != 0
}

#[test]
fn the_last_row_is_total_and_every_row_is_reached() {
    let all = product();
    assert_eq!(all.len(), 4 * 10 * 3 * 2 * 5 * 3 * 2 * 2 * 2 * 2 * 2 * 3 * 2 * 2);
    let mut reached = vec![0usize; LADDER.len()];
    for facts in &all {
        let row = first_match(*facts);
        reached[LADDER.iter().position(|other| std::ptr::eq(other, row)).unwrap()] += 1;
    }
    for (row, hits) in LADDER.iter().zip(&reached) {
        assert!(*hits > 0, "R{} ({}) is never reached", row.rule, row.reason);
    }
    assert_eq!(LADDER.last().unwrap().when, u64::MAX);
    for (number, (id, _)) in RULES.iter().enumerate() {
        assert_eq!(*id, format!("R{number}"));
        assert!(LADDER.iter().any(|row| usize::from(row.rule) == number), "{id} has no row");
    }
    // Those of SPEC 4; the later ones stand where they have to be asked.
    let first: Vec<u8> = LADDER.iter().map(|row| row.rule).filter(|rule| *rule < 18).collect();
    assert!(first.is_sorted(), "rows are not in the order of the rules: {first:?}");
}

#[test]
fn nothing_but_a_hold_follows_from_unknown_facts() {
    for facts in product() {
        if facts.words().any(|(_, word)| word == "?") {
            let row = first_match(facts);
            assert_eq!(row.rule, 17, "{:?}", facts.words().collect::<Vec<_>>());
            assert!(matches!(row.then, Verdict::Hold(HoldKind::Person, _)));
        }
    }
}

#[test]
fn what_is_destructive_needs_the_facts_that_make_it_safe() {
    let doubt = Doubt::Create.bit() | Doubt::Bootstrap.bit();
    for facts in product() {
        let Verdict::Act(verb) = first_match(facts).then else { continue };
        let live = has(facts, Lease::Live.bit()) || has(facts, crate::facts::Session::Live.bit());
        match verb {
            Verb::CancelBootstrap | Verb::DestroyLease => {
                assert!(!has(facts, doubt), "S7: destroys with an ambiguous create");
                assert!(has(facts, crate::facts::Aim::Deleting.bit()));
            }
            Verb::MarkDestroyed => assert!(!live && !has(facts, doubt), "S5, S6"),
            Verb::Reap | Verb::Restart | Verb::Insert => assert!(!live && !has(facts, doubt), "S6"),
            Verb::BeginDelete => {
                let wanted = crate::facts::Wanted::Same.bit() | crate::facts::Wanted::Kept.bit();
                let healthy = has(facts, wanted) && !has(facts, Standing::Failed.bit());
                assert!(!healthy, "S9");
            }
            _ => {}
        }
        if verb.operation().is_some() {
            assert!(has(facts, crate::facts::Flight::Idle.bit()), "S2");
            assert!(has(facts, Effect::Due.bit()), "a dispatch before next-effect-at");
        }
    }
}

#[test]
fn every_single_fact_is_computed_from_a_row() {
    // Facts::of sets exactly one bit a column, whatever the bytes.
    let mut row = NodeRow::vacant(0, 0, 0, 0);
    for stage in [0, 1, 5, 10, 11, 255] {
        for live in [0, 1, 2, 4, 7, 8, 255] {
            for code in [0, 1, 2, 5, 6, 255] {
                for at in [0, 99, 100, 101, u64::MAX] {
                    row.stage = stage;
                    row.live = live;
                    (row.intent, row.pending, row.ambiguous) = (code, code, code);
                    (row.restart_at, row.next_effect_at, row.probe_at) = (at, at, at);
                    for attempt in [0, 7] {
                        row.attempt = attempt;
                        let facts = Facts::of(&row, None, 100);
                        for column in Column::ALL {
                            assert_eq!((facts.0 & column.mask()).count_ones(), 1, "{column:?} of {row:?}");
                        }
                    }
                }
            }
        }
    }
}

fn words(column: Column, row: &Row) -> String {
    let values = column.values();
    let known: Vec<_> = values.iter().filter(|(word, _)| *word != "?").collect();
    let hit: Vec<_> = values.iter().filter(|(_, bit)| row.when & bit != 0).map(|(word, _)| *word).collect();
    if hit.len() == values.len() {
        "*".into()
    } else if known.iter().all(|(_, bit)| row.when & bit != 0) {
        "-".into()
    } else {
        hit.join("|")
    }
}

fn render() -> String {
    let mut lines = vec![Vec::new()];
    lines[0].push("rule".to_string());
    lines[0].extend(Column::ALL.iter().map(|column| column.label().to_lowercase()));
    lines[0].extend(["then".to_string(), "why".to_string()]);
    for row in LADDER {
        let mut line = vec![format!("R{}", row.rule)];
        line.extend(Column::ALL.iter().map(|column| words(*column, row)));
        line.push(match row.then {
            Verdict::Act(verb) => verb.label().to_string(),
            Verdict::Hold(kind, _) => format!("hold until {}", kind.label()),
        });
        line.push(row.reason.to_string());
        lines.push(line);
    }
    // The widest column (the live stages) is spelled once, not in every row.
    let node = "new|leased|addressed|booting|joined|ready|failed";
    let lines: Vec<Vec<String>> = lines
        .into_iter()
        .map(|line| line.into_iter().map(|word| if word == node { "(node)".to_string() } else { word }).collect())
        .collect();
    let widths: Vec<usize> =
        (0..lines[0].len()).map(|at| lines.iter().map(|line| line[at].len()).max().unwrap()).collect();
    let mut text =
        format!("The ladder. The first row that matches wins. -: any known value; *: anything; (node): {node}.\n\n");
    for line in &lines {
        let mut out = String::new();
        for (word, width) in line.iter().zip(&widths) {
            write!(out, "{word:width$}  ").unwrap();
        }
        text.push_str(out.trim_end());
        text.push('\n');
    }
    text
}

/// Changing a rule is a one-line diff of `ladder.txt`. `BLESS=1 cargo test -p decider` writes it.
#[test]
fn the_table_is_rendered_as_committed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/ladder.txt");
    let rendered = render();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &rendered).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), rendered, "ladder.txt differs; BLESS=1 writes it");
}

#[test]
fn a_subset_is_decided_like_the_whole() {
    let mut whole = Snapshot { now_ms: 50, ..Snapshot::default() };
    for node in 0..40u32 {
        let mut row = NodeRow::vacant(node, 0, node, 0);
        (row.attempt, row.stage) = (u64::from(node) + 1, (node % 12) as u8);
        row.next_effect_at = u64::from(node) * 3;
        row.pending = (node % 3 / 2) as u8;
        whole.nodes.push(row);
    }
    let plan = reconcile(&whole);
    for (at, row) in whole.nodes.rows().enumerate() {
        let mut part = Snapshot { nodes: Nodes::default(), ..whole.clone() };
        part.nodes.push(row);
        assert_eq!(reconcile(&part).decisions.row(0), plan.decisions.row(at));
    }
}
