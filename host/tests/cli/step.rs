//! `homeostat step`, from scripts, from a pipe, and on what is none.

use std::io::Write;
use std::process::{Command, Stdio};

use super::journal::path;
use super::{Folder, homeostat, refused, text};

/// With these commands on standard input: exit code, standard output, standard error.
fn piped(args: &[&str], commands: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_homeostat"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that has refused its arguments does not read them.
    let _ = child.stdin.take().unwrap().write_all(commands.as_bytes());
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn commands_come_from_a_pipe_or_a_file() {
    let folder = Folder::new("step");
    let journal = path("03-template-drift");
    let commands = "n R4\nrow\np\n";
    let script = folder.file("script", commands);
    let (code, out, err) = piped(&["step", &journal, "--node", "web-0"], commands);
    assert!(code == 0 && err.is_empty(), "{err}");
    for part in
        ["> n R4\n", "intent                active                       * deleting", "because the slot's template"]
    {
        assert!(out.contains(part), "{part:?} is not in\n{out}");
    }
    assert!(!out.contains('\u{1b}'), "{out}");
    for args in [&["--script", "-"][..], &["--script", &script]] {
        let args = [&["step", journal.as_str(), "--node", "web-0"], args].concat();
        assert_eq!(piped(&args, commands), (0, out.clone(), String::new()), "{args:?}");
    }
    // No commands at all: the first page.
    let (code, out, _) = piped(&["step", &journal], "");
    assert!(code == 0 && out.contains("51 records, 1 start") && out.ends_with("attempts from a1\n"), "{out}");
    let (_, coloured, _) = piped(&["step", &journal, "--color", "always"], "");
    assert!(coloured.contains("\u{1b}[1mrecord 0/50"), "{coloured:?}");
}

#[test]
fn a_wrong_command_is_2_with_its_line() {
    let journal = path("01-climb");
    let folder = Folder::new("step-wrong");
    let script = folder.file("script", "n\n# fine\nfly\n");
    let (code, out, err) = piped(&["step", &journal, "--script", &script], "");
    assert!(code == 2 && out.contains("record 1/"), "{out}");
    assert!(err.contains("script:3: unknown command \"fly\""), "{err}");
    let (code, _, err) = piped(&["step", &journal], "go 4000\n");
    assert!(code == 2 && err.contains("standard input:1: there is no record 4000; the last one is 24"), "{err}");
    assert!(refused(&["step", &journal, "--node", "db-1"]).contains("no node \"db-1\""));
    assert!(refused(&["step", &journal, "--script", "/nowhere"]).contains("No such file"));
    assert!(refused(&["step", &journal, "-o", "json"]).contains("journal show -o json"));
}

#[test]
fn what_cannot_be_walked_is_refused_as_by_verify() {
    let folder = Folder::new("step-damage");
    let whole = std::fs::read_to_string(path("01-climb")).unwrap();
    let edited = folder.file("edited.jsonl", whole.replacen("\"generation\":1", "\"generation\":2", 1));
    let output = homeostat(&["step", &edited]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("line 2: record 1 was changed"));
    let torn = folder.file("torn.jsonl", &whole[..whole.len() - 30]);
    let (code, out, err) = piped(&["step", &torn], "go last\n");
    assert!(code == 0 && out.contains("record 23/23") && err.contains("not finished"), "{out}{err}");
    let garbage = folder.file("garbage", "no journal\n");
    for (file, reason) in
        [(garbage.as_str(), "it begins with"), ("/dev/zero", "a device"), ("/nowhere", "No such file")]
    {
        assert!(refused(&["step", file]).contains(reason), "{file}");
    }
}
