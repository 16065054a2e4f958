//! Scripts and what comes of them. `BLESS=1` writes the outputs anew; a reader of the change judges them.

use std::path::Path;

use console::measure_text_width;
use step::{ScriptError, WIDTH, run};

use super::{golden, open};

/// A script, the journal that it walks.
const SCRIPTS: [(&str, &str); 5] = [
    ("climb", "01-climb"),
    ("drift", "03-template-drift"),
    ("doubt", "16-create-in-doubt-while-deleting"),
    ("bootstrap-fails", "08-bootstrap-fails-at-run-time"),
    ("decider-fails", "decider-fails"),
];

#[test]
fn scripts_say_what_they_said() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    for (name, journal) in SCRIPTS {
        let script = std::fs::read(folder.join(format!("{name}.txt"))).unwrap();
        let mut out = Vec::new();
        run(&mut open(journal), script.as_slice(), &mut out).unwrap_or_else(|error| panic!("{name}: {error}"));
        let said = String::from_utf8(out).unwrap();
        for line in said.lines() {
            assert!(measure_text_width(line) <= WIDTH, "{name}: {line}");
            assert!(!line.contains('\u{1b}') && line == line.trim_end(), "{name}: {line:?}");
        }
        let expected = folder.join(format!("{name}.out"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&expected, &said).unwrap();
        }
        assert_eq!(said, std::fs::read_to_string(&expected).unwrap(), "{name}");
    }
}

#[test]
fn a_wrong_line_is_named_by_its_number() {
    for (script, line, why) in [
        ("n\n\n# a remark\nfly\nn\n", 4, "unknown command \"fly\""),
        ("node web-77\n", 1, "no node \"web-77\""),
        ("go 100000\n", 1, "no record 100000"),
        ("n R99\n", 1, "no rule \"R99\""),
        ("n\nn node\n", 2, "which node?"),
        ("rule Z\n", 1, "no rule \"Z\""),
        (&format!("n\n/{}\n", "x".repeat(5_000)), 2, "longer than"),
    ] {
        let mut out = Vec::new();
        let error = run(&mut open("01-climb"), script.as_bytes(), &mut out).unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with(&format!("line {line}: ")) && said.contains(why), "{script}: {said}");
    }
    let error = run(&mut open("01-climb"), &b"n\n\xff\n"[..], std::io::sink()).unwrap_err();
    assert!(matches!(error, ScriptError::NotText { line: 2 }), "{error}");
}

#[test]
fn a_script_ends_where_it_quits() {
    let mut out = Vec::new();
    run(&mut open("01-climb"), &b"n\nquit\nfly\n"[..], &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("record 1/"));
}

#[test]
fn a_damaged_journal_is_refused_as_by_the_reader() {
    let text = std::fs::read_to_string(golden("01-climb")).unwrap();
    let edited = text.replacen("\"generation\":1", "\"generation\":2", 1);
    let error = step::Session::open(std::io::Cursor::new(edited), false).unwrap_err();
    assert_eq!(error.to_string(), "line 2: record 1 was changed after it was written: its hash does not fit");
    let session = super::in_memory(text[..text.len() - 30].into());
    assert!(session.torn_bytes() > 30, "{}", session.torn_bytes());
}
