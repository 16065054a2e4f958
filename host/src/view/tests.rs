#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use console::measure_text_width;
use engine::view::{NodeView, View};

use super::*;

fn row(group: &str, index: usize, ready: bool) -> Row {
    Row {
        group: group.into(),
        node: format!("{group}-{index}"),
        attempt: Some(index as u64 + 1),
        stage: if ready { "dormant" } else { "bootstrap-running" }.into(),
        ready,
        failed: false,
        deleting: false,
        waits_for: if ready { "" } else { "the join probe" }.into(),
        left_ms: (!ready).then_some(58_000),
        note: Some(format!("127.0.0.1:2000{index}")),
    }
}

fn of(rows: &[Row]) -> Summary {
    let ready = rows.iter().filter(|row| row.ready).count();
    Summary {
        run: "web".into(),
        generation: 3,
        ready,
        desired: rows.len(),
        converged: ready == rows.len(),
        ending: false,
    }
}

#[test]
fn a_table_that_fits() {
    let mut rows = vec![row("front", 0, true), row("front", 1, false), row("api", 0, false)];
    rows[2].attempt = None;
    rows[2].stage = "failed".into();
    rows[2].failed = true;
    rows[2].note = Some("exit status 1:\n\u{1b}[31mno such file".into());
    let text = table(&of(&rows), &rows, 100, 20, false).join("\n");
    let expected = "\
web  generation 3  1/3 ready  converging
group  node     attempt  stage              ready  waits for       left  note
front  front-0  a1       dormant            yes                          127.0.0.1:20000
front  front-1  a2       bootstrap-running  no     the join probe  58s   127.0.0.1:20001
api    api-0    -        failed             no     the join probe  58s   exit status 1:\\n\\u{1b}[31m…";
    assert_eq!(text, expected);
}

#[test]
fn what_gives_way_in_a_small_window() {
    let mut rows = vec![row("front", 0, true), row("front", 1, false)];
    rows[1].waits_for = "backoff before the next attempt".into();
    let at = |width: usize| table(&of(&rows), &rows, width, 20, false)[1..].join("\n");
    assert_eq!(
        at(79),
        "\
group  node     attempt  stage              ready  waits for       left  note
front  front-0  a1       dormant            yes                          127.0…
front  front-1  a2       bootstrap-running  no     backoff befor…  58s   127.0…"
    );
    assert_eq!(
        at(50),
        "\
node     stage              waits f…  left  note
front-0  dormant                            127.0…
front-1  bootstrap-running  backoff…  58s   127.0…"
    );
    assert_eq!(
        at(39),
        "\
node     stage              wai…  left…
front-0  dormant                      …
front-1  bootstrap-running  bac…  58s …"
    );
}

#[test]
fn a_crowd_is_summed_up_and_the_troubled_come_first() {
    let mut rows: Vec<Row> = (0..100).map(|at| row("front", at, at >= 20)).collect();
    rows.extend((0..10).map(|at| row("api", at, true)));
    rows[15].failed = true;
    rows[15].stage = "failed".into();
    let text = table(&of(&rows), &rows, 80, 10, false).join("\n");
    let expected = "\
web  generation 3  90/110 ready  converging
front  80/100 ready  1 failed
api    10/10 ready
group  node      attempt  stage              ready  waits for       left  note
front  front-15  a16      failed             no     the join probe  58s   127.0…
front  front-0   a1       bootstrap-running  no     the join probe  58s   127.0…
front  front-1   a2       bootstrap-running  no     the join probe  58s   127.0…
front  front-2   a3       bootstrap-running  no     the join probe  58s   127.0…
front  front-3   a4       bootstrap-running  no     the join probe  58s   127.0…
… and 15 more not ready";
    assert_eq!(text, expected);
}

#[test]
fn never_larger_than_the_terminal() {
    for count in [0, 1, 5, 40] {
        for groups in [1, 3, 40] {
            for width in [1, 10, 40, 200] {
                for height in [1, 2, 3, 5, 24] {
                    for color in [false, true] {
                        let rows: Vec<Row> =
                            (0..count).map(|at| row(&format!("g{}ü", at % groups), at, at % 3 == 0)).collect();
                        let lines = table(&of(&rows), &rows, width, height, color);
                        assert!(lines.len() <= height, "{count} {groups} {width} {height}: {lines:?}");
                        assert!(lines.iter().all(|line| measure_text_width(line) <= width), "{lines:?}");
                        assert!(lines.iter().all(|line| !line.contains('\n')));
                    }
                }
            }
        }
    }
}

#[test]
fn colours_only_when_asked() {
    let rows = [row("front", 0, true)];
    assert!(table(&of(&rows), &rows, 80, 24, true).concat().contains("\u{1b}[32m"));
    assert!(!table(&of(&rows), &rows, 80, 24, false).concat().contains('\u{1b}'));
}

#[test]
fn who_is_not_ready_says_why() {
    let mut rows = vec![row("front", 0, true), row("front", 1, false)];
    rows[1].note = Some("connection refused".into());
    let lines = not_ready(&rows);
    assert_eq!(lines, ["front-1: bootstrap-running, waits for the join probe (58s at most): connection refused"]);
}

fn node(name: &str) -> NodeView {
    NodeView {
        node: name.into(),
        group: "front".into(),
        index: 0,
        desired: true,
        surge: false,
        attempt: Some(1),
        stage: "new",
        deleting: false,
        ready: false,
        endpoint: None,
        progress: "none",
        failures: 0,
        rule: Some("R12".into()),
        decider_fails: false,
        waits_for: String::new(),
        until_ms: Some(5_000),
        error: None,
        held: None,
        held_since_ms: None,
        pending: None,
        next_at_ms: None,
    }
}

fn view(nodes: Vec<NodeView>) -> View {
    View {
        run: "web".into(),
        generation: 1,
        observed_generation: 1,
        converged: false,
        now_ms: 1_000,
        nodes,
        reaping: Vec::new(),
        orphans: Vec::new(),
        pauses: Vec::new(),
    }
}

#[test]
fn a_line_for_each_change() {
    let first = view(vec![node("front-0"), node("front-1")]);
    assert_eq!(changes(None, &first).len(), 2);
    assert!(changes(Some(&first), &first).is_empty());
    let mut failed = node("front-0");
    failed.stage = "failed";
    failed.failures = 2;
    failed.error = Some("exit \"1\"\nx=y".into());
    let lines: Vec<String> =
        changes(Some(&first), &view(vec![failed.clone()])).iter().map(NodeChange::to_string).collect();
    assert_eq!(
        lines,
        [
            r#"node=front-0 attempt=1 stage=failed ready=false rule=R12 failures=2 error="exit \"1\"\nx=y" wait=4s"#,
            "node=front-1 stage=gone ready=false",
        ]
    );
    let json = serde_json::to_value(&changes(Some(&first), &view(vec![failed, node("front-1")]))[0]).unwrap();
    assert_eq!(json["schema"], "homeostat.change/v1");
    assert_eq!(json["until_ms"], 5_000);
}
