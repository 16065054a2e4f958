//! Every bad fleet file: exit code 2, a screen at most, field, value and place.

use std::process::Command;

use serde_json::Value;

use super::{Folder, example, homeostat, json, refused, text};

struct Bad {
    name: &'static str,
    content: String,
    /// Line and column, or the start of it.
    place: &'static str,
    field: &'static str,
    value: &'static str,
    reason: &'static str,
}

fn bad(
    name: &'static str,
    content: impl Into<String>,
    place: &'static str,
    field: &'static str,
    value: &'static str,
    reason: &'static str,
) -> Bad {
    Bad { name, content: content.into(), place, field, value, reason }
}

fn group(body: &str) -> String {
    format!("run = \"demo\"\n\n[[group]]\nid = \"web\"\ncount = 3\n{body}\n[group.boot]\ncommand = [\"true\"]\n")
}

fn with(id: &str, count: &str) -> String {
    format!("run = \"demo\"\n\n[[group]]\nid = {id}\ncount = {count}\n[group.boot]\ncommand = [\"true\"]\n")
}

fn boot(boot: &str) -> String {
    format!("run = \"demo\"\n\n[[group]]\nid = \"web\"\ncount = 1\n{boot}\n")
}

fn bad_files() -> Vec<Bad> {
    let long = "x".repeat(300);
    let twice = format!("{}\n[[group]]\nid = \"web\"\ncount = 1\nboot.command = [\"a\"]\n", group(""));
    let count = "group[0].count";
    vec![
        bad("duplicate ids", twice, "11:6", "group[1].id", "\"web\"", "already the id of another group"),
        bad("count -1", with("\"web\"", "-1"), "5:9", count, "-1", "negative"),
        bad("count 10^9", with("\"web\"", "1000000000"), "5:9", count, "1000000000", "over the limit of 10000"),
        bad("count as a float", with("\"web\"", "1.5"), "5:9", count, "1.5", "whole number"),
        bad("count as a text", with("\"web\"", "\"3\""), "5:9", count, "\"3\"", "whole number"),
        bad("count nan", with("\"web\"", "nan"), "5:9", count, "nan", "whole number"),
        bad("count inf", with("\"web\"", "inf"), "5:9", count, "inf", "whole number"),
        bad("nan", group("settings = { weight = nan }"), "6:23", "group[0].settings.weight", "nan", "finite"),
        bad("inf", group("settings = { weight = -inf }"), "6:23", "group[0].settings.weight", "-inf", "finite"),
        bad("empty id", with("\"\"", "1"), "4:6", "group[0].id", "\"\"", "empty"),
        bad("long id", with(&format!("\"{long}\""), "1"), "4:6", "group[0].id", "xxx", "longer than 48"),
        bad("non-ASCII id", with("\"wéb\"", "1"), "4:6", "group[0].id", "wéb", "ASCII"),
        bad("unknown field", group("cuont = 3"), "6:1", "group[0].cuont", "cuont", "did you mean `count`?"),
        bad("unknown provider", group("provider = \"cloud\""), "6:12", "group[0].provider", "cloud", "known: process"),
        bad(
            "a duration that overflows",
            group("join.timeout = \"99999999999999999999s\""),
            "6:16",
            "group[0].join.timeout",
            "99999999999999999999s",
            "overflows",
        ),
        bad("negative", group("join.interval = \"-1s\""), "6:17", "group[0].join.interval", "-1s", "negative"),
        bad(
            "no unit",
            "run = \"a\"\n[policy]\nprobe-interval = 5\n",
            "3:18",
            "policy.probe-interval",
            "5",
            "add a unit",
        ),
        bad("no boot", boot(""), "3:1", "group[0].boot", "", "missing"),
        bad("no command", boot("boot = { env = { A = \"b\" } }"), "6:8", "group[0].boot.command", "", "missing"),
        bad(
            "empty command",
            boot("boot = { command = [] }"),
            "6:20",
            "group[0].boot.command",
            "[]",
            "at least a program",
        ),
        bad(
            "an invalid expression",
            group("join.probe = { stdout = \"(\" }"),
            "6:25",
            "group[0].join.probe.stdout",
            "\"(\"",
            "unclosed group",
        ),
        bad(
            "an invalid URL",
            group("join.probe = { http = \"{endpoint}/x\" }"),
            "6:23",
            "group[0].join.probe.http",
            "{endpoint}/x",
            "http://",
        ),
        bad(
            "an unknown probe",
            group("join.probe = { icmp = \"x\" }"),
            "6:16",
            "group[0].join.probe.icmp",
            "icmp",
            "unknown field",
        ),
        bad("no images", group("image = \"debian\""), "6:9", "group[0].image", "debian", "boots no images"),
        bad(
            "an unknown placeholder",
            boot("boot = { command = [\"a\", \"{endpont}\"] }"),
            "6:26",
            "group[0].boot.command[1]",
            "{endpont}",
            "placeholder",
        ),
        bad("another type", group("labels = 3"), "6:10", "group[0].labels", "3", "a table of texts"),
        bad("not TOML", "run = \"a\"\ncount = = 3\n", "2:9", "", "", "not TOML"),
        bad("an open text", "run = \"a\n", "1:", "", "", "not TOML"),
        bad("a NUL byte", "run = \"a\0b\"\n", "1:9", "", "", "not TOML"),
        bad("deep brackets", format!("x = {}", "[".repeat(100_000)), "1:", "", "", "not TOML"),
        bad("deep keys", format!("{}a = 1", "a.".repeat(100_000)), "1:", "", "", "not TOML"),
        bad("an empty file", "", "1:1", "run", "", "missing"),
        bad(
            "a file of many errors",
            (0..1_000).map(|at| format!("x{at} = 1\n")).collect::<String>(),
            "1:1",
            "run",
            "",
            "unknown field",
        ),
        bad("a long line", format!("run = \"a\"\nx = [{}]\n", "1, ".repeat(500_000)), "2:1", "x", "", "unknown field"),
    ]
}

#[test]
fn each_is_refused_with_its_place() {
    let folder = Folder::new("bad");
    let state = folder.0.join("state");
    for Bad { name, content, place, field, value, reason } in bad_files() {
        let path = folder.file("fleet.toml", &content);
        let said = refused(&["validate", &path]);
        for part in [&format!("{path}:{place}"), field, value, reason] {
            assert!(said.contains(part), "{name}: {part:?} is not in\n{said}");
        }
        // `plan` and `up` refuse it the same way, and start nothing.
        assert_eq!(refused(&["plan", &path]), said, "{name}");
        assert_eq!(refused(&["up", &path, "--state", state.to_str().unwrap()]), said, "{name}");
        assert!(!state.exists(), "{name}");

        let json = refused(&["validate", &path, "-o", "json"]);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["schema"], "homeostat.error/v1", "{name}");
        assert_eq!(json["file"], path.as_str(), "{name}");
        let found = format!("{}:{}", json["line"], json["column"]);
        assert!(found.starts_with(place), "{name}: {json}");
        assert_eq!(json["field"].as_str().unwrap_or_default(), field, "{name}: {json}");
        assert!(json["value"].as_str().unwrap_or_default().contains(value), "{name}: {json}");
    }
}

#[test]
fn what_is_no_fleet_file_is_refused() {
    let folder = Folder::new("files");
    let missing = format!("{}/missing.toml", folder.path());
    let huge = folder.sparse("huge.toml", 100 << 20);
    let binary = folder.file("binary.toml", b"run = \"a\"\n\xff\xfe\n");
    let utf16 = folder.file("utf16.toml", b"\xff\xfer\0u\0n\0");
    let pipe = folder.0.join("pipe.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for verb in ["validate", "plan", "up"] {
        for (file, reason) in [
            (folder.path(), "a directory, not a regular file"),
            (missing.as_str(), "No such file or directory"),
            (huge.as_str(), "104857600 bytes, over the limit of 4194304"),
            (binary.as_str(), ":2:1: the byte 0xff is not UTF-8"),
            (utf16.as_str(), ":1:1: the byte 0xff is not UTF-8"),
            (pipe.to_str().unwrap(), "a pipe, not a regular file"),
            ("/dev/zero", "a device, not a regular file"),
        ] {
            let said = refused(&[verb, file]);
            assert!(said.contains(file) && said.contains(reason), "{verb} {file}: {said}");
            let json: Value = serde_json::from_str(&refused(&[verb, file, "-o", "json"])).unwrap();
            assert_eq!(json["file"], file);
        }
    }
}

#[test]
fn good_files_are_accepted() {
    let folder = Folder::new("good");
    let none = folder.file("none.toml", "run = \"none\"\n");
    let dos = folder.file("dos.toml", format!("\u{feff}{}", group("").replace('\n', "\r\n")));
    for (file, says) in [
        (example("hello.toml"), "run hello, 1 group, 1 node"),
        (example("web.toml"), "run web, 3 groups, 6 nodes"),
        (example("flaky.toml"), "run flaky, 1 group, 2 nodes"),
        (none, "run none, no groups, no nodes"),
        (dos, "run demo, 1 group, 3 nodes"),
    ] {
        let output = homeostat(&["validate", &file]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(says), "{}", text(&output.stdout));
        let json = json(&["validate", &file, "-o", "json"]);
        assert_eq!((&json["schema"], &json["valid"]), (&"homeostat.validate/v1".into(), &true.into()));
        assert_eq!(homeostat(&["plan", &file]).status.code(), Some(0));
    }
}
