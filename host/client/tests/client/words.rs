//! What is said, word for word.

use api::wire::{Explanation, Fact, GroupStatus, Node, Pause, RuleRow, Status};
use client::words::{Pen, explanation, status_lines, why};

fn node(index: u32) -> Node {
    Node { node: format!("web-{index}"), group: "web".into(), index, desired: true, ..Node::default() }
}

fn fleet() -> Status {
    let ready = Node {
        attempt: Some(1),
        stage: "dormant".into(),
        ready: true,
        endpoint: Some("10.0.0.1:80".into()),
        ..node(0)
    };
    let waiting = Node {
        attempt: Some(12),
        stage: "bootstrap-running".into(),
        waits_for: "the join probe".into(),
        until_ms: Some(1_041_000),
        ..node(1)
    };
    let failing = Node {
        attempt: Some(7),
        stage: "destroyed".into(),
        failures: 3,
        waits_for: "backoff before the next attempt".into(),
        until_ms: Some(1_004_000),
        error: Some("exit status 1\n\x1b[2J".into()),
        ..node(2)
    };
    let held = Node { stage: "vacant".into(), held: Some("paused: create, by an operator".into()), ..node(3) };
    Status {
        run: "demo".into(),
        generation: 4,
        now_ms: 1_000_000,
        reason: "web-1 waits for the join probe, and 2 more are not ready".into(),
        groups: vec![GroupStatus { group: "web".into(), desired: 4, ready: 1, failing: 1, deleting: 0 }],
        nodes: vec![ready, waiting, failing, held],
        pauses: vec![Pause {
            group: None,
            only: "create".into(),
            by: "creates-per-hour".into(),
            since_ms: 400_000,
            reason: "create, by the guard creates-per-hour (31 of 30)".into(),
            resume: "homeostat resume --only create".into(),
        }],
        ..Status::default()
    }
}

#[test]
fn a_status_in_full() {
    assert_eq!(status_lines(&fleet(), &[], 40, &Pen::plain(1_000_000)), "\
demo  generation 4  1/4 ready  not converged
  why           web-1 waits for the join probe, and 2 more are not ready
  paused        create, by the guard creates-per-hour (31 of 30), for 10m; `homeostat resume --only create` ends it

NODE   ATTEMPT  STAGE              READY  NEXT    WHY
web-0  a1       dormant            yes            10.0.0.1:80
web-1  a12      bootstrap-running  no     in 41s  waits for the join probe
web-2  a7       destroyed          no     in 4s   waits for backoff before the next attempt; failed 3 times in a row, last: exit status 1\\n\\u{1b}[2J
web-3  -        vacant             no             paused: create, by an operator
");
}

#[test]
fn a_status_of_more_than_fits() {
    assert_eq!(status_lines(&fleet(), &[], 2, &Pen::plain(1_000_000)).split_once("\n\n").unwrap().1, "\
GROUP  READY  FAILING  DELETING
web    1/4    1        -

NODE   ATTEMPT  STAGE      READY  NEXT   WHY
web-2  a7       destroyed  no     in 4s  waits for backoff before the next attempt; failed 3 times in a row, last: exit status 1\\n\\u{1b}[2J
web-3  -        vacant     no            paused: create, by an operator
2 nodes not shown; --all shows every one
");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [40, 60, 80, 120] {
        let pen = Pen { width: Some(width), ..Pen::plain(1_000_000) };
        for line in status_lines(&fleet(), &[], 40, &pen).lines() {
            assert!(console::measure_text_width(line) <= width, "{width}: {line}");
        }
    }
}

#[test]
fn a_ready_node_that_was_not_shown_stands_out() {
    let mut status = fleet();
    status.converged = true;
    let error = "process did not show it at the start; `homeostat kill web-0` replaces it";
    status.nodes[0].error = Some(error.into());
    let text = status_lines(&status, &[], 40, &Pen::plain(1_000_000));
    assert!(
        text.contains(&format!("  in doubt      1 node counts as ready and has an error: web-0: {error}\n")),
        "{text}"
    );
    assert!(text.contains(&format!("web-0  a1       dormant            yes            {error}\n")), "{text}");
    // Also where there are too many to list.
    let text = status_lines(&status, &[], 3, &Pen::plain(1_000_000));
    assert!(text.contains("\nweb-0  a1 "), "{text}");
    status.nodes[0].error = Some("lookup: gone".into());
    assert_eq!(why(&status.nodes[0]), "lookup: gone; `homeostat kill web-0` replaces it");
    // An endpoint that was known is no answer to what went wrong, and one that works is all there is to say.
    status.nodes[0].error = None;
    assert_eq!(why(&status.nodes[0]), "10.0.0.1:80");
}

#[test]
fn why_is_one_line() {
    let mut node = Node { ready: true, desired: true, ..Node::default() };
    assert_eq!(why(&node), "");
    node.ready = false;
    assert_eq!(why(&node), "a decision is outstanding");
    node.waits_for = "create-lease".into();
    assert_eq!(why(&node), "waits for the answer to create-lease");
    node.desired = false;
    assert_eq!(why(&node), "waits for the answer to create-lease; not wanted any more");
}

#[test]
fn an_explanation_in_full() {
    let of = Explanation {
        node: "web-1".into(),
        attempt: Some(12),
        now_ms: 1_000_000,
        summary: "web-1 is at bootstrap-running (attempt 12); waits for the join probe, 41s at most".into(),
        rule: Some(RuleRow {
            id: "R15".into(),
            reason: "bootstrap running: awaiting observations".into(),
            when: vec!["intent = active".into(), "stage = bootstrap-running".into()],
        }),
        decided_ms: Some(990_000),
        verb: Some("hold".into()),
        facts: vec![
            Fact { name: "stage".into(), value: "bootstrap-running".into(), matters: true },
            Fact { name: "failures".into(), value: "0".into(), matters: false },
        ],
        ends: "the join probe passes".into(),
        until_ms: Some(1_041_000),
        next_step: "homeostat logs web-1".into(),
        ..Explanation::default()
    };
    assert_eq!(
        explanation(&of, &Pen::plain(1_000_000)),
        "\
web-1 is at bootstrap-running (attempt 12); waits for the join probe, 41s at most

  rule          R15 → hold (10s ago)
                bootstrap running: awaiting observations
  when          intent = active
  when          stage = bootstrap-running
  ends with     the join probe passes
  at latest     in 41s (1970-01-01T00:17:21.000Z)
  you can       homeostat logs web-1

     FACT      VALUE
  *  stage     bootstrap-running
     failures  0
  * what the rule asks for
"
    );
}
