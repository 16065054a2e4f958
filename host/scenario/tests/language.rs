//! The language: what is refused and where, what an expectation notices, and that nothing a file says is too much.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;
use std::rc::Rc;

use decider::{Plan, Snapshot, Verb};
use engine::io::DeciderFailure;
use scenario::{Bounds, Played, Report, Script, Status, Subject, play};

fn played_with(text: &str, subject: &Subject, bounds: &Bounds) -> Vec<Played> {
    let script = Script::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    script.check(&subject.identity.rules, false).unwrap();
    script.cases.iter().map(|case| play(&script, case, subject, bounds).unwrap()).collect()
}

/// What is not as the file says: lines, signs and texts.
fn misses(text: &str) -> Vec<(usize, String)> {
    let mut played = played_with(text, &Subject::native(), &Bounds::default());
    assert_eq!(played.len(), 1);
    let played = played.remove(0);
    let diff = |miss: &scenario::Miss| {
        miss.diff.iter().map(|line| format!("{}{}", line.sign, line.text)).collect::<Vec<_>>().join("|")
    };
    played.misses.iter().map(|miss| (miss.line, diff(miss))).collect()
}

fn refused(text: &str) -> (usize, String) {
    let subject = Subject::native();
    let error = match Script::parse(text) {
        Err(error) => error,
        Ok(script) => match script.check(&subject.identity.rules, false) {
            Err(error) => error,
            Ok(()) => {
                let played = script.cases.iter().map(|case| play(&script, case, &subject, &Bounds::default()));
                played.filter_map(Result::err).next().unwrap_or_else(|| panic!("not refused:\n{text}"))
            }
        },
    };
    (error.line, error.why)
}

#[test]
fn a_wrong_file_is_refused_with_its_line() {
    for (text, line, words) in [
        ("", 1, "no command"),
        ("# only words\n", 1, "no command"),
        ("shape 1 web=1\n", 1, "expects nothing"),
        ("\nshap 1 web=1\n", 2, "\"shap\" is no command"),
        ("shape 1 web\n", 1, "is no group"),
        ("shape 1 web=-1\n", 1, "is no count"),
        ("shape x web=1\n", 1, "is no generation"),
        ("shape 1 web=1\nwait 5\n", 2, "is no time"),
        ("shape 1 web=1\nwait 99999999999999999999h\n", 2, "is no time"),
        ("shape 1 web=1\nexpect web-0 R99\n", 2, "neither a verb nor a rule"),
        ("shape 1 web=1\nexpect web-0 creat-lease\n", 2, "neither a verb nor a rule"),
        ("shape 1 web=1\nnever web-0 R1 R2\n", 2, "one too many"),
        ("shape 1 web=1\nexpect web-0 is awake\n", 2, "is no stage"),
        ("shape 1 web=1\nexpect\n", 2, "expect NODE"),
        ("shape 1 web=1\nfail web-0 badly\n", 2, "retryable"),
        ("shape 1 web=1\nfail web-0 retryable \"x\n", 2, "not closed"),
        ("shape 1 web=1\nsettles 5s\n", 2, "settles within TIME"),
        ("    R0 web-0 insert\nshape 1 web=1\n", 1, "none above"),
        ("policy patience=5s\n", 1, "no setting"),
        ("policy cap=1\n", 1, "is no time"),
        ("policy jitter-percent=101\n", 1, "more than all"),
        ("node web-0 new\n", 1, "belongs to a snapshot"),
        ("snapshot\nnode web new\n", 2, "is no node"),
        ("snapshot\nnode web-0 newish\n", 2, "is no stage"),
        ("snapshot\nnode web-0 new leases\n", 2, "is no fact"),
        ("snapshot\nnode web-0 new\nnode web-0 new\nexpect web-0 R12\n", 3, "is there already"),
        ("snapshot\nnode web-0 new\nexpect web-1 R12\n", 3, "has no node web-1"),
        ("snapshot\nnode web-0 new\nexpect web-0 is new\n", 3, "says itself"),
        ("snapshot\nnode web-0 new\nshape 1 web=1\nexpect web-0 R12\n", 3, "no history"),
        ("shape 1 web=1\nprovider x keyed\nexpect converged\n", 2, "before anything happens"),
        ("test\nshape 1 web=1\n", 1, "has a name"),
        ("test a\nshape 1 web=1\nrest\ntest a\n", 4, "already"),
        ("shape 1 web=1\ntest a\nshape 1 web=1\nrest\n", 1, "only policy and provider"),
        ("test a\nshape 1 web=1\nrest\ntest b\n", 4, "no command"),
    ] {
        let (at, why) = refused(text);
        assert!(at == line && why.contains(words), "{text:?}: line {at}: {why}");
    }
}

#[test]
fn expectations_notice_what_comes_otherwise() {
    assert_eq!(
        misses("shape 1 web=1\nexpect web-0 R0\nexpect web-0 R12 create-lease\nexpect web-0 hold until 1m\n"),
        []
    );
    // In that order.
    let found = misses("shape 1 web=1\nexpect web-0 R12\nexpect web-0 R0\n");
    assert_eq!(found, [(3, "-R0|+R12 create-lease|+R5 hold for result until 60s".into())]);
    let found =
        misses("shape 1 web=1\nexpect web-0 nothing\nexpect web-9 R0\nexpect web-0 is ready\nexpect converged\n");
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 3, 4, 5], "{found:?}");
    assert_eq!(found[1].1, "-R0|+nothing is decided");
    assert_eq!(found[2].1, "-is ready|+is lease-requested");
    // A hold goes on standing while nothing is decided.
    assert_eq!(misses("shape 1 web=1\nwait 5s\nexpect web-0 R5 hold until 60s\nexpect web-0 nothing\n"), []);
    assert_eq!(misses("shape 1 web=1\nnever web-* create-lease\n").len(), 0, "what was before the line does not count");
    assert_eq!(
        misses("never web-* create-lease\nshape 1 web=1\n"),
        [(1, "-never create-lease|+R12 create-lease".into())]
    );
    assert_eq!(misses("never * deleting\nshape 1 web=1\nshape 2\n").len(), 1);
    assert_eq!(misses("shape 1 web=1\nshape 0 web=1\nexpect refused \"generation\"\n"), []);
    assert_eq!(misses("shape 1 web=1\nexpect refused\n"), [(2, "-refused|+not refused".into())]);
    assert_eq!(misses("policy probe=1s\nshape 1 web=1\nfail web-0 retryable \"x\" 1h\nsettles within 59m\n").len(), 1);
    assert_eq!(misses("policy probe=1s\nshape 1 web=1\nfail web-0 retryable \"x\" 1h\nsettles within 60m\n"), []);
}

#[test]
fn a_transcript_is_compared_command_by_command() {
    let text = "shape 1 web=1\n    R0 web-0 insert\n    -> a1.1 create-lease web-0 by 60s\nexpect no violation\n";
    assert_eq!(
        misses(text),
        [(1, " R0 web-0 insert|+R12 web-0 create-lease| -> a1.1 create-lease web-0 by 60s".into())]
    );
}

fn native_but(change: impl Fn(&Snapshot, &mut Plan) + 'static) -> Subject {
    let ask = move |snapshot: &Snapshot| {
        let mut plan = decider::reconcile(snapshot);
        change(snapshot, &mut plan);
        Ok(plan)
    };
    Subject { ask: Rc::new(ask), ..Subject::native() }
}

#[test]
fn a_plan_is_judged_whatever_is_expected() {
    let snapshot = "snapshot at 10s\nnode web-0 new\nnode web-1 vacant\nexpect no violation\n";
    let illegal = native_but(|_, plan| plan.decisions.verb[0] = Verb::DestroyLease.code());
    let short = native_but(|_, plan| _ = plan.decisions.node.pop());
    let moody = native_but(|snapshot, plan| {
        if snapshot.now_ms % 2 == 1 {
            plan.decisions.rule[0] = 3;
        }
    });
    let social = native_but(|snapshot, plan| {
        if snapshot.nodes.len() == 1 {
            plan.decisions.rule[0] = 3;
        }
    });
    for (subject, id) in [(illegal, ""), (short, ""), (moody, "S11"), (social, "S12")] {
        let played = played_with(snapshot, &subject, &Bounds::default()).remove(0);
        let found = played.violations.first().unwrap_or_else(|| panic!("{id} is not found"));
        assert!(id.is_empty() || found.1.id == id, "{found:?}");
        assert!(!played.misses.is_empty());
    }
    let history = "shape 1 web=2\nsettles within 1m\n";
    let stuck = native_but(|_, plan| {
        for at in 0..plan.decisions.len() {
            (plan.decisions.verb[at], plan.decisions.hold[at]) = (Verb::Hold.code(), 4);
        }
    });
    assert_eq!(played_with(history, &stuck, &Bounds::default())[0].misses.len(), 1);
}

#[test]
fn a_decider_that_fails_is_a_failure_of_the_test() {
    let failure =
        DeciderFailure { decider: "x".into(), class: "trap".into(), detail: "it <trapped> & \"died\"".into() };
    let subject = Subject { ask: Rc::new(move |_| Err(failure.clone())), ..Subject::native() };
    let text = "snapshot\nnode web-0 new\nexpect web-0 R12\n";
    let script = Script::parse(text).unwrap();
    let played = play(&script, &script.cases[0], &subject, &Bounds::default()).unwrap();
    assert!(played.misses[0].what.contains("it <trapped>"), "{}", played.misses[0].what);
    let mut report = Report::new("x".into(), &subject);
    report.push("a&b.txt", &script.cases[0], &subject, &played);
    assert_eq!(report.tested[0].status, Status::Failed);
    let xml = report.junit();
    assert!(
        xml.contains("it &lt;trapped&gt; &amp;") && xml.contains("a&amp;b.txt") && !xml.contains("<trapped>"),
        "{xml}"
    );
    assert!(!played_with("shape 1 web=1\nsettles within 1m\n", &subject, &Bounds::default())[0].misses.is_empty());
}

#[test]
fn what_never_ends_is_cut() {
    let bounds = Bounds { steps: 20_000, in_time: None };
    for text in [
        "shape 1 web=1\nstorm web-0 4000000000\nrest\n",
        "shape 1 web=900\nwait 900000h\nbring-up\nwait 900000h\nstorm web-0 100\nbring-up\nshape 2 web=900@v2\nsettles within 5h\n",
        "policy initial-ms=1 cap-ms=1\nshape 1 web=1\nstorm web-0 1000000\nrest\n",
    ] {
        let played = played_with(text, &Subject::native(), &bounds).remove(0);
        assert!(played.cut.is_some() && !played.misses.is_empty(), "{text}");
    }
    let late = Bounds { in_time: Some(Rc::new(|| false)), ..Bounds::default() };
    let played = played_with("shape 1 web=1\nrest\n", &Subject::native(), &late).remove(0);
    assert!(played.cut.unwrap().contains("time"));
}

#[test]
fn what_cannot_be_followed_cuts_the_test_and_no_other() {
    let text = "test a\nshape 1 web=1\ndone web-0\nobserve web-7 joined\nexpect converged\ntest b\nshape 1 web=1\nsettles within 1m\n";
    let played = played_with(text, &Subject::native(), &Bounds::default());
    assert_eq!(played[0].cut.as_deref(), Some("there is no node web-7"));
    assert_eq!(played[0].misses[0].line, 4);
    assert!(played[1].cut.is_none() && played[1].misses.is_empty());
}

/// splitmix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}

fn damage(dice: &mut Dice, lines: &[String]) -> String {
    const WORDS: [&str; 16] = [
        "18446744073709551615",
        "0",
        "-1",
        "web-0",
        "a18446744073709551615",
        "\"",
        "*",
        "\u{0}",
        "ü",
        "5000000h",
        "until",
        "a0.0",
        "web-4294967295",
        "gpu=4294967295",
        "4294967295",
        "snapshot",
    ];
    let mut text = lines.to_vec();
    for _ in 0..1 + dice.roll(6) {
        let at = dice.roll(text.len());
        match dice.roll(5) {
            0 => _ = text.remove(at),
            1 => text.insert(at, lines[dice.roll(lines.len())].clone()),
            2 => text[at] = lines[dice.roll(lines.len())].clone(),
            _ => {
                let mut words: Vec<String> = text[at].split(' ').map(str::to_owned).collect();
                let word = dice.roll(words.len());
                words[word] = WORDS[dice.roll(WORDS.len())].into();
                text[at] = words.join(" ");
            }
        }
        if text.is_empty() {
            break;
        }
    }
    text.join("\n")
}

#[test]
fn no_text_makes_it_panic_or_run_for_ever() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut lines = Vec::new();
    let mut files = Vec::new();
    for folder in ["tests/scenarios", "examples/policy-tests"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "txt") {
                let text: Vec<String> = std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
                lines.extend(text.iter().filter(|line| !line.starts_with(' ')).cloned());
                files.push(text);
            }
        }
    }
    files.sort();
    let bounds = Bounds { steps: 2_000, in_time: None };
    let (mut dice, subject) = (Dice(7), Subject::native());
    let (mut wrong, mut played) = (0, 0);
    for round in 0..3_000 {
        let text = match round % 2 {
            0 => damage(&mut dice, &files[dice_of(round, files.len())]),
            _ => {
                let some: Vec<String> = (0..20).map(|_| lines[dice.roll(lines.len())].clone()).collect();
                damage(&mut dice, &some)
            }
        };
        match Script::parse(&text) {
            Err(_) => wrong += 1,
            Ok(script) => {
                for case in &script.cases {
                    played += usize::from(play(&script, case, &subject, &bounds).is_ok());
                }
            }
        }
    }
    assert!(wrong > 100 && played > 500, "{wrong} wrong, {played} played");
}

fn dice_of(round: usize, sides: usize) -> usize {
    Dice(round as u64).roll(sides)
}
