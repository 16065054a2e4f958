//! `homeostat test`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Folder, homeostat, refused, text};

fn root(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path).to_str().unwrap().to_owned()
}

/// Its exit code, and what it wrote to standard output.
fn played(args: &[&str]) -> (i32, String) {
    let output = homeostat(args);
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
    (output.status.code().unwrap(), text(&output.stdout))
}

const GOOD: &str = "shape 1 web=1\nexpect web-0 R12 create-lease\nsettles within 1m\n";
const BAD: &str = "test a <b> & \"c\"\nsnapshot at 10s\nnode web-0 new failures=1 next-effect-at=12s\nexpect web-0 R12 create-lease\n\
                   test d\nsnapshot\nnode web-0 vacant\nexpect web-0 R0\n";

#[test]
fn what_ships_passes_and_covers_every_rule() {
    let (code, said) = played(&["test", &root("tests/scenarios"), "--cover"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("22 of 23 rules exercised") && said.contains("not exercised: R17"), "{said}");
    let (code, said) = played(&["test", &root("examples/policy-tests"), "--cover-min", "100"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("23 of 23 rules exercised") && !said.contains("not exercised"), "{said}");
}

#[test]
fn a_component_from_a_file_is_tested_in_the_sandbox() {
    let folder = Folder::new("policy-decider");
    let component = folder.file("decider.wasm", homeostat::sandbox::BUILT_IN);
    let tests = root("examples/policy-tests");
    assert_eq!(played(&["test", &tests, "--decider", &component]).0, 0);
    assert_eq!(played(&["test", &tests, "--decider", "built-in"]).0, 0);
    let none = folder.file("none.wasm", b"no");
    assert!(refused(&["test", &tests, "--decider", &none]).contains("none.wasm"));
}

#[test]
fn a_failure_shows_what_was_decided_and_the_others_are_played() {
    let folder = Folder::new("policy-failure");
    folder.file("a-bad.txt", BAD);
    folder.file("b-good.txt", GOOD);
    let dir = folder.0.to_str().unwrap();
    let (code, said) = played(&["test", dir]);
    assert_eq!(code, 1, "{said}");
    for part in [
        "FAIL",
        "a-bad.txt:4: expect web-0 R12 create-lease",
        "at 10s: web-0",
        "- R12 create-lease",
        "+ R10 hold for instant until 12s",
        "ok  ",
        "2 passed, 1 failed",
    ] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    assert_eq!(played(&["test", dir, "--only", "b-good"]).0, 0);
    assert_eq!(played(&["test", dir, "--only", "d"]).0, 1, "the path of a-bad has a d in it");
    assert_eq!(played(&["test", dir, "--only", "*good*"]).0, 0);
    assert!(refused(&["test", dir, "--only", "nothing like it"]).contains("nothing like it"));
}

#[test]
fn machines_read_it_as_json_and_as_junit() {
    let folder = Folder::new("policy-report");
    let file = folder.file("bad.txt", BAD);
    let (code, said) = played(&["test", &file, "--format", "json", "--cover"]);
    assert_eq!((code, &said), (1, &played(&["test", &file, "-o", "json", "--cover"]).1));
    let json: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&json["schema"], &json["passed"], &json["failed"]),
        (&"homeostat.test/v1".into(), &1.into(), &1.into())
    );
    let failure = &json["cases"][0]["failures"][0];
    assert_eq!((&failure["node"], &failure["at_ms"], &failure["line"]), (&"web-0".into(), &10_000.into(), &4.into()));
    assert_eq!(failure["expected"][0], "R12 create-lease");
    assert_eq!(failure["got"][0], "R10 hold for instant until 12s");
    assert_eq!(json["coverage"]["rules"].as_array().unwrap().len(), 23);
    let report = folder.0.join("report.xml");
    let (code, said) = played(&["test", &file, "--format", "junit", "--out", report.to_str().unwrap()]);
    assert!(code == 1 && said.contains("1 passed, 1 failed"), "{said}");
    let xml = fs::read_to_string(report).unwrap();
    assert!(xml.contains("tests=\"2\" failures=\"1\" errors=\"0\""), "{xml}");
    assert!(xml.contains("name=\"a &lt;b&gt; &amp; c\""), "{xml}");
    assert_eq!(xml, played(&["test", &file, "--format", "junit"]).1);
}

#[test]
fn what_is_no_test_is_refused() {
    let folder = Folder::new("policy-wrong");
    let dir = folder.0.to_str().unwrap().to_owned();
    assert!(refused(&["test", &dir]).contains("there is no scenario in it"));
    assert!(refused(&["test", "/nowhere/at/all"]).contains("/nowhere/at/all"));
    refused(&["test"]);
    folder.file("good.txt", GOOD);
    let first = folder.file("first.txt", "shape 1 web=1\nexpect web-0 R77\n");
    let second = folder.file("second.txt", "\n\nnonsense\n");
    folder.file("third.txt", b"shape 1 web=1\n\xff\xfe\n");
    let said = refused(&["test", &dir]);
    for part in ["second.txt:3: \"nonsense\" is no command", "third.txt:2: not UTF-8"] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    fs::remove_file(second).unwrap();
    fs::remove_file(folder.0.join("third.txt")).unwrap();
    assert!(refused(&["test", &dir]).contains("first.txt:2: \"R77\" is neither a verb nor a rule of this decider"));
    let json: Value = serde_json::from_slice(&homeostat(&["test", &first, "-o", "json"]).stderr).unwrap();
    assert_eq!((&json["file"], &json["line"]), (&first.clone().into(), &2.into()));
    refused(&["test", &first, "--cover-min", "101"]);
    refused(&["test", "/dev/zero"]);
}

#[test]
fn too_little_coverage_fails_only_where_it_is_asked_for() {
    let folder = Folder::new("policy-cover");
    let file = folder.file("one.txt", "snapshot\nnode web-0 new\nexpect web-0 R12\n");
    assert_eq!(played(&["test", &file, "--cover"]).0, 0);
    assert_eq!(played(&["test", &file, "--cover-min", "4"]).0, 0);
    let (code, said) = played(&["test", &file, "--cover-min", "50"]);
    assert!(code == 1 && said.contains("only 4 % of the rules"), "{said}");
}

#[test]
fn what_goes_on_for_ever_is_cut() {
    let folder = Folder::new("policy-endless");
    let file = folder.file("endless.txt", "shape 1 web=1\nstorm web-0 4000000000\nrest\n");
    let (code, said) = played(&["test", &file, "--time-limit", "500ms"]);
    assert!(code == 1 && said.contains("1 cut before the end"), "{said}");
    assert!(played(&["test", &file, "--time-limit", "500ms", "--format", "junit"]).1.contains("<error message="));
}

#[test]
fn a_transcript_is_written_and_then_compared() {
    let folder = Folder::new("policy-bless");
    let file = folder.file("story.txt", "# a story\nshape 1 web=1\n\ndone web-0\n");
    assert!(refused(&["test", &file]).contains("story.txt:1: it expects nothing"));
    let (code, said) = played(&["test", &file, "--bless"]);
    assert!(code == 0 && said.contains("wrote "), "{said}");
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("# a story\nshape 1 web=1\n    R0 web-0 insert\n"), "{written}");
    assert_eq!(played(&["test", &file]).0, 0);
    assert!(!played(&["test", &file, "--bless"]).1.contains("wrote"));
    fs::write(&file, written.replace("R13 web-0 lookup-endpoint", "R16 web-0 start-bootstrap")).unwrap();
    let (code, said) = played(&["test", &file]);
    assert!(code == 1 && said.contains("- R16 web-0 start-bootstrap") && said.contains("+ R13 web-0"), "{said}");
    // An expectation is no transcript.
    let stated = folder.file("stated.txt", "shape 1 web=1\nexpect web-0 R1\n");
    assert_eq!(played(&["test", &stated, "--bless"]).0, 1);
    assert_eq!(fs::read_to_string(&stated).unwrap(), "shape 1 web=1\nexpect web-0 R1\n");
}

/// A test that is not played must not look as if it had passed.
#[test]
fn what_cannot_be_looked_into_is_refused_and_a_byte_order_mark_is_not() {
    let folder = Folder::new("policy-deep");
    let dir = folder.0.to_str().unwrap().to_owned();
    folder.file("mark.txt", format!("\u{feff}{}", GOOD.replace('\n', "\r\n")));
    assert_eq!(played(&["test", &dir]).0, 0);
    let deep = folder.0.join("d/".repeat(80));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("unseen.txt"), GOOD).unwrap();
    assert!(refused(&["test", &dir]).contains("nested deeper than 64"));
    fs::remove_dir_all(folder.0.join("d")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.0.join("link.txt")).unwrap();
    assert!(refused(&["test", &dir]).contains("link.txt"));
}
