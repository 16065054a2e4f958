//! `homeostat journal` and `homeostat replay`, on the golden journals and on what is none.

use std::path::PathBuf;

use serde_json::Value;

use super::{Folder, homeostat, refused, text};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(format!("{name}.jsonl"))
}

pub fn path(name: &str) -> String {
    golden(name).display().to_string()
}

/// Exit code, standard output, standard error.
fn run(args: &[&str]) -> (i32, String, String) {
    let output = homeostat(args);
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn json(args: &[&str]) -> (i32, Value) {
    let (code, out, err) = run(&[args, &["-o", "json"]].concat());
    (code, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {err}")))
}

#[test]
fn a_sound_journal_is_verified_and_replayed() {
    let file = path("01-climb");
    let (code, out, _) = run(&["journal", "verify", &file]);
    assert!(code == 0 && out.contains("ok: ") && out.contains("ends with an end mark"), "{out}");
    let (code, verified) = json(&["journal", "verify", &file]);
    assert_eq!((code, &verified["sound"], &verified["ends_with_mark"]), (0, &true.into(), &true.into()));
    assert_eq!(verified["runs"][0]["decider_name"], "ladder");
    for other in [&[][..], &["--decider", "built-in"]] {
        let (code, out, err) = run(&[&["replay", file.as_str()], other].concat());
        assert!(code == 0 && out.contains("the same: "), "{out}{err}");
    }
    let (code, replayed) = json(&["replay", &file]);
    assert_eq!((code, &replayed["same"]), (0, &true.into()));
    assert!(replayed["passes"].as_u64().unwrap() > 3);
}

#[test]
fn what_is_decided_otherwise_is_shown_and_ends_with_6() {
    let file = path("decider-fails");
    let (code, out, _) = run(&["replay", &file]);
    assert_eq!(code, 6, "{out}");
    for part in
        ["differ", "first: record", "the pass as a whole", "failure trap", "a plan", "fails less", "failed passes"]
    {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
    let (code, replayed) = json(&["replay", &file, "--decider", "built-in"]);
    assert_eq!((code, &replayed["same"]), (6, &false.into()));
    assert_eq!(replayed["groups"][0]["recorded"], "failure trap");
    assert_eq!(replayed["differing_passes"], replayed["recorded"]["failures"]);
}

#[test]
fn what_happened_is_shown() {
    let (code, out, err) = run(&["journal", "show", &path("01-climb")]);
    assert!(code == 0 && err.is_empty(), "{err}");
    for part in
        ["start of run demo", "desired, generation 1: ", "R0 insert ", "-> a1.1 create-lease for ", "joined", "end"]
    {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
    let last: u64 = out.lines().last().unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let (_, later, _) = run(&["journal", "show", &path("01-climb"), "--from", &last.to_string()]);
    assert_eq!(later.lines().count(), 1, "{later}");

    let (code, out, _) = run(&["journal", "show", &path("23-sweep"), "--node", "web-0"]);
    assert!(code == 0 && out.contains("R11 a1 holds: ") && out.contains("web-0 a1 closed: exit status 1"), "{out}");
    let (_, one, _) = run(&["journal", "show", &path("02-scale-down-takes-the-highest"), "--node", "web-1"]);
    assert!(!one.contains("web-0"), "{one}");
    for journal in ["01-climb", "23-sweep", "24-adopt", "decider-fails"] {
        let (code, _, err) = run(&["journal", "show", &path(journal), "--node", "db-9"]);
        assert!(code == 1 && err.contains("nothing about a node \"db-9\""), "{err}");
    }

    let (_, out, _) = run(&["journal", "show", &path("01-climb"), "-o", "json"]);
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["schema"] == "homeostat.journal-record/v1"));
    assert!(lines.iter().any(|line| line["decisions"][0]["rule"] == "R12" && line["decisions"][0]["node"] == "web-0"));
}

#[test]
fn damage_is_named_and_a_torn_tail_is_cut() {
    let folder = Folder::new("journals");
    let bytes = std::fs::read(golden("01-climb")).unwrap();
    let whole = String::from_utf8(bytes.clone()).unwrap();
    let torn = folder.file("torn.jsonl", &bytes[..bytes.len() - 30]);
    let (code, out, _) = run(&["journal", "verify", &torn]);
    let records = whole.lines().count() as u64 - 1;
    assert!(code == 1 && out.contains("torn") && out.contains(&format!("`cut` keeps {records} records")), "{out}");
    let (code, verified) = json(&["journal", "verify", &torn]);
    assert_eq!((code, &verified["sound"], &verified["records"]), (1, &false.into(), &records.into()));
    // What is whole can be read meanwhile.
    let (code, out, err) = run(&["replay", &torn]);
    assert!(code == 0 && out.contains("the same") && err.contains("not finished"), "{out}{err}");

    let copy = format!("{torn}.copy");
    let (code, out, err) = run(&["journal", "cut", &torn, "--to", &copy]);
    assert!(code == 0 && out.contains("bytes cut off"), "{out}{err}");
    assert_eq!(std::fs::read(&torn).unwrap().len(), bytes.len() - 30, "the journal itself is as it was");
    let kept = std::fs::read_to_string(&copy).unwrap();
    assert!(whole.starts_with(&kept) && kept.ends_with('\n') && kept.lines().count() as u64 == records);
    assert!(refused(&["journal", "cut", &torn, "--to", &copy]).contains("it exists"));
    assert_eq!(run(&["journal", "cut", &torn, "--in-place"]).0, 0);
    assert_eq!(std::fs::read_to_string(&torn).unwrap(), kept);
    let (code, out, _) = run(&["journal", "verify", &torn]);
    assert!(code == 0 && out.contains("without an end mark"), "{out}");
    let (code, out, _) = run(&["journal", "cut", &torn, "--in-place"]);
    assert!(code == 0 && out.contains("nothing is torn"), "{out}");
    refused(&["journal", "cut", &torn]);

    let edited = folder.file("edited.jsonl", whole.replacen("\"generation\":1", "\"generation\":2", 1));
    let (code, out, _) = run(&["journal", "verify", &edited]);
    assert!(code == 1 && out.contains(":2: damaged: record 1 was changed"), "{out}");
    for args in [&["replay"][..], &["journal", "show"], &["journal", "cut", "--in-place"]] {
        let (code, _, err) = run(&[args, &[edited.as_str()]].concat());
        assert!(code == 1 && err.contains("line 2: record 1 was changed"), "{args:?} {err}");
    }
    let (code, verified) = json(&["journal", "verify", &edited]);
    assert_eq!((code, &verified["line"], &verified["records"]), (1, &2.into(), &1.into()));
}

#[test]
fn what_is_no_journal_is_refused_with_2() {
    let folder = Folder::new("no-journals");
    let empty = folder.file("empty.jsonl", b"");
    let garbage = folder.file("garbage", (0..100_000u32).map(|at| ((at * 7_919) >> 3) as u8).collect::<Vec<_>>());
    let newer = folder
        .file("newer.jsonl", std::fs::read_to_string(golden("01-climb")).unwrap().replacen("{\"v\":1", "{\"v\":2", 1));
    let here = env!("CARGO_MANIFEST_DIR");
    for (file, reason) in [
        (empty.as_str(), "it is empty"),
        (&garbage, "it begins with"),
        (&newer, "format 2; this program knows 1"),
        // A state directory can be read, and this is none; cut is for files.
        (here, "director"),
        ("/dev/zero", "a device"),
        ("/nowhere.jsonl", "No such file"),
    ] {
        for args in [&["replay"][..], &["journal", "show"], &["journal", "verify"], &["journal", "cut", "--in-place"]] {
            let said = refused(&[args, &[file]].concat());
            assert!(said.contains(reason) && said.lines().count() < 5, "{args:?} {said}");
        }
    }
}

/// A line of a gigabyte, all of it a hole in the file.
#[test]
fn a_line_of_a_gigabyte_is_refused() {
    let folder = Folder::new("long-line");
    let long = folder.file("long.jsonl", b"{\"v\":1,");
    std::fs::OpenOptions::new().write(true).open(&long).unwrap().set_len(1 << 30).unwrap();
    for args in [&["journal", "verify"][..], &["journal", "show"], &["replay"]] {
        let said = refused(&[args, &[long.as_str()]].concat());
        assert!(said.contains("its first line is longer than 67108864 bytes") && said.len() < 500, "{said}");
    }
}

/// A journal of a component that is nowhere.
#[test]
fn a_recorded_decider_that_is_not_at_hand_is_named() {
    let folder = Folder::new("elsewhere");
    let mut reader = ::journal::Reader::new(std::io::BufReader::new(std::fs::File::open(golden("01-climb")).unwrap()));
    let mut writer = ::journal::Writer::new(Vec::new());
    while let Some(mut line) = reader.next_line().unwrap() {
        match &mut line.entry {
            ::journal::Entry::Start(start) => start.decider.digest = "sha256:0123".into(),
            ::journal::Entry::Pass { decider, .. } => *decider = "sha256:0123".into(),
            _ => {}
        }
        writer.append(line.at_ms, &line.entry).unwrap();
    }
    let file = folder.file("elsewhere.jsonl", writer.into_inner());
    let said = refused(&["replay", &file]);
    assert!(said.contains("sha256:0123") && said.contains("--decider"), "{said}");
    let (code, out, _) = run(&["replay", &file, "--decider", "built-in"]);
    assert!(code == 0 && out.contains("the same"), "{out}");
}

/// A simulated run is a journal like any other: sound, decided again bit for bit, walked.
#[test]
fn a_simulated_run_is_a_journal() {
    let folder = Folder::new("simulated");
    let fleet = super::example("hello.toml");
    let file = format!("{}/run.jsonl", folder.path());
    let seed = ["simulate", &fleet, "--until", "20m", "--journal", &file, "--seed", "7"];
    let (code, _, err) = run(&seed);
    assert!(code == 0 && err.contains("its journal is in"), "{code} {err}");
    for args in [&["journal", "verify", file.as_str()][..], &["replay", &file]] {
        let (code, out, err) = run(args);
        assert_eq!(code, 0, "{args:?} {out}{err}");
    }
    let (code, out, err) = run(&["step", &file]);
    assert!(code == 0 && out.contains("no violations"), "{out}{err}");
    assert!(refused(&seed).contains("it exists; a simulated journal needs a new file"));
    let elsewhere = ["simulate", &fleet, "--seeds", "2", "--journal", "/nowhere/run.jsonl"];
    assert!(refused(&elsewhere).contains("no folder /nowhere"));
    // Nothing was broken: no journal of a violation.
    let none = format!("{}/none.jsonl", folder.path());
    let (code, _, err) = run(&["simulate", &fleet, "--until", "10m", "--seeds", "3", "--journal", &none]);
    assert!(code == 0 && err.contains("no journal was written") && !std::path::Path::new(&none).exists(), "{err}");
}
