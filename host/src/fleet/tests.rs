#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;
use std::time::Instant;

use engine::policy::Policy;
use engine::rollout::{Rollout, Share};
use engine::shape::{Probe, Setting};

use super::*;

fn providers() -> Providers {
    Providers::new().with("process", |template: &Template| match template.image.as_deref() {
        Some(image) => {
            Err(TemplateError { field: "image".into(), value: image.into(), reason: "processes have no images".into() })
        }
        None => Ok(()),
    })
}

fn parse(text: &str) -> Result<Fleet, ContentError> {
    Fleet::parse(Path::new("fleet.toml"), text, &providers())
}

/// The one finding of a text.
fn finding(text: &str) -> Finding {
    let error = parse(text).expect_err(text);
    let shown = render(&FleetError::Content(error.clone()), false);
    assert!(shown.lines().count() <= 40, "{shown}");
    assert_eq!(error.findings.len(), 1, "{shown}");
    error.findings.into_iter().next().unwrap()
}

fn group(body: &str) -> String {
    format!("run = \"demo\"\n[[group]]\nid = \"web\"\ncount = 1\n{body}\n[group.boot]\ncommand = [\"true\"]\n")
}

const FULL: &str = r#"
run = "demo"
generation = 7

[[group]]
id = "web"
count = 3
role = "front"
labels = { tier = "a" }
[group.boot]
command = ["{self}", "demo-server", "--listen", "{endpoint}"]
env = { GREETING = "hello" }
files = { "etc/app.conf" = "x = 1\n" }
[group.join]
probe = { http = "http://{endpoint}/healthz" }
interval = "100ms"
timeout = "1s"
[group.settings]
grace = "2s"
weight = 0.5
nested = { list = [1, true, "x"] }

[[group]]
id = "job"
count = 0
boot = { command = ["true"] }

[group.rollout]
max-surge = "25%"
paused = true
[group.parameters]
window = "night"

[rollout]
max-unavailable = 1
max-failing = "50%"

[parameters]
window = "always"
price = "0.40"

[policy]
backoff = { initial = "200ms", cap = "5s", jitter-percent = 20 }
probe-interval = "50ms"
deadlines = { create-lease = "1s", lookup-endpoint = "2s", start-bootstrap = "3s", cancel-bootstrap = "4s", destroy-lease = "5s" }
stages = { endpoint = "1m", bootstrap = "2m", join = "3m", growth-cap = 2 }
limits = { max-group-count = 10, max-nodes = 20 }

[guards]
destroys-per-minute = 5
creates-per-hour = 40
live-resources = 12
destroyed-share-percent = 34
"#;

#[test]
fn everything_that_can_be_said() {
    let fleet = parse(FULL).unwrap_or_else(|error| panic!("{}", render(&error.into(), false)));
    assert_eq!((fleet.generation, fleet.shape.generation), (Some(7), 7));
    let web = &fleet.shape.groups[0];
    assert_eq!((web.id.as_str(), web.count, web.template.provider.as_str()), ("web", 3, "process"));
    assert_eq!(web.template.join.probe, Probe::Http("http://{endpoint}/healthz".into()));
    assert_eq!((web.template.join.interval_ms, web.template.join.timeout_ms), (100, 1_000));
    assert_eq!(web.template.settings["weight"], Setting::Float(0.5));
    assert_eq!(web.template.boot.files["etc/app.conf"], "x = 1\n");
    assert_eq!(web.template.labels["tier"], "a");
    // What a group does not say, the file says.
    assert_eq!(
        web.rollout,
        Rollout { max_unavailable: Some(Share::Nodes(1)), max_failing: Some(Share::Percent(50)), ..Rollout::default() }
    );
    assert_eq!((web.parameters["window"].as_str(), web.parameters["price"].as_str()), ("always", "0.40"));
    let job = &fleet.shape.groups[1];
    assert_eq!((job.rollout.max_unavailable, job.rollout.max_surge), (Some(Share::Nodes(1)), Some(Share::Percent(25))));
    assert_eq!(
        (job.rollout.paused, job.parameters["window"].as_str(), job.parameters["price"].as_str()),
        (true, "night", "0.40")
    );
    assert_eq!(job.template.join.probe, Probe::Tcp("{endpoint}".into()));
    assert_eq!(job.template.join.interval_ms, DEFAULT_JOIN_INTERVAL_MS);
    assert_eq!(fleet.policy.backoff_initial_ms, 200);
    assert_eq!(fleet.policy.backoff_jitter_percent, 20);
    assert_eq!(fleet.policy.deadlines.destroy_lease_ms, 5_000);
    assert_eq!(fleet.policy.stages.growth_cap, 2);
    assert_eq!(fleet.policy.limits.max_nodes, 20);
    let guards = fleet.policy.guards;
    assert_eq!((guards.destroys_per_minute, guards.creates_per_hour), (Some(5), Some(40)));
    assert_eq!((guards.live_resources, guards.destroyed_share_percent), (Some(12), Some(34)));
    assert!(fleet.source[fleet.spans[1].clone()].contains("[[group]]"), "{:?}", &fleet.source[fleet.spans[1].clone()]);
}

#[test]
fn little_need_be_said() {
    let fleet = parse("run = \"demo\"").unwrap();
    assert!(fleet.shape.groups.is_empty());
    assert_eq!((fleet.generation, fleet.shape.generation), (None, 1));
    assert_eq!(fleet.policy, Policy::default());
    // As editors on other systems save it.
    let fleet = parse(&format!("\u{feff}{}", group("").replace('\n', "\r\n"))).unwrap();
    assert_eq!(fleet.shape.groups[0].count, 1);
}

#[test]
fn each_wrong_value_is_named_with_its_place() {
    for (text, field, value, line, says) in [
        ("", "run", "", 1, "missing"),
        ("run = \"\"", "run", "\"\"", 1, "it is empty"),
        ("run = \"Ä\"", "run", "\"Ä\"", 1, "ASCII"),
        ("run = 5", "run", "5", 1, "5 is a whole number; it must be a text"),
        ("run = \"a\"\nrum = 1", "rum", "rum", 2, "unknown field"),
        ("run = \"a\"\ngeneration = 0", "generation", "0", 2, "the least is 1"),
        ("run = \"a\"\ngeneration = -1", "generation", "-1", 2, "negative"),
        ("run = \"a\"\ngeneration = 99999999999999999999", "generation", "99999999999999999999", 2, "the most is"),
        ("run = \"a\"\ngroup = 3", "group", "3", 2, "[[group]]"),
        ("run = \"a\"\nrollout.max-surge = -1", "rollout.max-surge", "-1", 2, "negative"),
        ("run = \"a\"\nrollout.max-surge = \"-1%\"", "rollout.max-surge", "\"-1%\"", 2, "negative"),
        ("run = \"a\"\nrollout.max-failing = \"101%\"", "rollout.max-failing", "\"101%\"", 2, "more than 100%"),
        ("run = \"a\"\nrollout.max-failing = \"some\"", "rollout.max-failing", "\"some\"", 2, "a percentage in quotes"),
        ("run = \"a\"\nrollout.max-failing = 0.5", "rollout.max-failing", "0.5", 2, "a percentage in quotes"),
        ("run = \"a\"\nrollout.paused = 1", "rollout.paused", "1", 2, "true or false"),
        ("run = \"a\"\nrollout.max-unavailible = 1", "rollout.max-unavailible", "max-unavailible", 2, "unknown field"),
        ("run = \"a\"\nparameters.x = 1", "parameters.x", "1", 2, "a text"),
        ("run = \"a\"\n[group]\nid = \"x\"", "group", "[group]", 2, "is a table"),
        ("run = \"a\"\ngroup = [1]", "group[0]", "1", 2, "[[group]]"),
        ("run = \"a\"\npolicy = true", "policy", "true", 2, "a table"),
        ("run = \"a\"\n[policy]\nprobe-interval = \"0s\"", "policy.probe-interval", "\"0s\"", 3, "longer than zero"),
        (
            "run = \"a\"\n[policy.backoff]\ncap = \"1ms\"\ninitial = \"2s\"",
            "policy.backoff.initial",
            "\"2s\"",
            4,
            "longer than `cap`",
        ),
        (
            "run = \"a\"\n[policy.backoff]\njitter-percent = 101",
            "policy.backoff.jitter-percent",
            "101",
            3,
            "the most is 100",
        ),
        (
            "run = \"a\"\n[policy.limits]\nmax-nodes = 2000000",
            "policy.limits.max-nodes",
            "2000000",
            3,
            "the most is 1000000",
        ),
        (
            "run = \"a\"\n[policy.deadlines]\ncreate-lease = 5",
            "policy.deadlines.create-lease",
            "5",
            3,
            "a length of time in quotes",
        ),
        ("run = \"a\"\nguards = 5", "guards", "5", 2, "a table of guards"),
        ("run = \"a\"\n[guards]\nlive-resources = 0", "guards.live-resources", "0", 3, "the least is 1"),
        (
            "run = \"a\"\n[guards]\ncreates-per-hour = 1000001",
            "guards.creates-per-hour",
            "1000001",
            3,
            "the most is 1000000",
        ),
        (
            "run = \"a\"\n[guards]\ndestroyed-share-percent = 101",
            "guards.destroyed-share-percent",
            "101",
            3,
            "the most is 100",
        ),
        (
            "run = \"a\"\n[guards]\ndestroys-per-minute = \"5\"",
            "guards.destroys-per-minute",
            "\"5\"",
            3,
            "a whole number from 1",
        ),
        (
            "run = \"a\"\n[guards]\ndestroys_per_minute = 5",
            "guards.destroys_per_minute",
            "destroys_per_minute",
            3,
            "unknown field",
        ),
    ] {
        let found = finding(text);
        assert_eq!((found.field.as_str(), found.value.as_str(), found.line), (field, value, line), "{text}: {found:?}");
        assert!(found.message().contains(says), "{text}: {}", found.message());
    }
}

#[test]
fn each_wrong_value_of_a_group_is_named_with_its_place() {
    for (body, field, value, says) in [
        ("provider = \"clowd\"", "group[0].provider", "\"clowd\"", "known: process"),
        ("provider = 1", "group[0].provider", "1", "a text"),
        ("image = \"x\"", "group[0].image", "\"x\"", "processes have no images"),
        ("image = \"\"", "group[0].image", "\"\"", "leave it out"),
        ("role = []", "group[0].role", "[]", "is a list; it must be a text"),
        ("labels = { a = 1 }", "group[0].labels.a", "1", "a text"),
        ("settings = { a = nan }", "group[0].settings.a", "nan", "finite"),
        ("settings = { a = { b = [1.0, -inf] } }", "group[0].settings.a.b[1]", "-inf", "finite"),
        ("settings = { a = 1e999 }", "group[0].settings.a", "1e999", "finite"),
        ("settings = { a = 99999999999999999999 }", "group[0].settings.a", "99999999999999999999", "64 bits"),
        ("settings = { a = 2020-01-01 }", "group[0].settings.a", "2020-01-01", "a date"),
        ("join = { probe = { stdout = \"(\" } }", "group[0].join.probe.stdout", "\"(\"", "unclosed group"),
        ("join = { probe = { http = \"ftp://x\" } }", "group[0].join.probe.http", "\"ftp://x\"", "http://"),
        ("join = { probe = { tcp = \"x\" } }", "group[0].join.probe.tcp", "\"x\"", "port"),
        ("join = { probe = { exec = [] } }", "group[0].join.probe.exec", "[]", "at least a program"),
        ("join = { probe = {} }", "group[0].join.probe", "{}", "one of"),
        (
            "join = { probe = { tcp = \"{endpoint}\", exec = [\"a\"] } }",
            "group[0].join.probe",
            "{ tcp = \"{endpoint}\", exec = [\"a\"] }",
            "more than one",
        ),
        ("join = { timeout = \"-1s\" }", "group[0].join.timeout", "\"-1s\"", "negative"),
        (
            "join = { interval = \"99999999999999999999s\" }",
            "group[0].join.interval",
            "\"99999999999999999999s\"",
            "overflows",
        ),
        ("join = { retries = 5 }", "group[0].join.retries", "retries", "unknown field"),
    ] {
        let text = group(body);
        let found = finding(&text);
        assert_eq!((found.field.as_str(), found.value.as_str(), found.line), (field, value, 5), "{body}: {found:?}");
        assert!(found.message().contains(says), "{body}: {}", found.message());
    }
}

#[test]
fn each_wrong_value_of_a_boot_is_named_with_its_place() {
    for (boot, field, says) in [
        ("", "group[0].boot.command", "missing"),
        ("command = []", "group[0].boot.command", "at least a program"),
        ("command = [\"\"]", "group[0].boot.command", "the program is empty"),
        ("command = \"true\"", "group[0].boot.command", "a list of texts"),
        ("command = [\"a\", 1]", "group[0].boot.command[1]", "a text"),
        ("command = [\"a\\u0000b\"]", "group[0].boot.command[0]", "NUL"),
        ("command = [\"a\"]\nenv = { \"A=B\" = \"c\" }", "group[0].boot.env.\"A=B\"", "environment"),
        (
            "command = [\"a\"]\nfiles = { \"../x\" = \"c\" }",
            "group[0].boot.files.\"../x\"",
            "below the node's directory",
        ),
        ("command = [\"a\"]\nshell = true", "group[0].boot.shell", "unknown field"),
    ] {
        let found = finding(&format!("run = \"a\"\n[[group]]\nid = \"x\"\ncount = 1\n[group.boot]\n{boot}\n"));
        assert_eq!(found.field, field, "{boot}: {found:?}");
        assert!(found.message().contains(says), "{boot}: {}", found.message());
    }
    let found = finding("run = \"a\"\n[[group]]\nid = \"x\"\ncount = 1\n");
    assert_eq!((found.field.as_str(), found.line), ("group[0].boot", 2));
}

#[test]
fn ids_and_counts() {
    let with =
        |id: &str, count: &str| format!("run = \"a\"\n[[group]]\nid = {id}\ncount = {count}\nboot.command = [\"a\"]\n");
    let long = format!("\"{}\"", "x".repeat(300));
    for (id, count, field, says) in [
        ("\"\"", "1", "group[0].id", "empty"),
        (long.as_str(), "1", "group[0].id", "longer than 48"),
        ("\"wéb\"", "1", "group[0].id", "ASCII"),
        ("\"-web\"", "1", "group[0].id", "hyphen"),
        ("\"web\"", "-1", "group[0].count", "negative"),
        ("\"web\"", "1000000000", "group[0].count", "over the limit of 10000"),
        ("\"web\"", "99999999999", "group[0].count", "the most is"),
        ("\"web\"", "1.5", "group[0].count", "a whole number"),
        ("\"web\"", "nan", "group[0].count", "not a number"),
        ("\"web\"", "+inf", "group[0].count", "infinite"),
        ("\"web\"", "\"3\"", "group[0].count", "a whole number"),
    ] {
        let found = finding(&with(id, count));
        assert_eq!(found.field, field, "{id} {count}: {found:?}");
        assert!(found.message().contains(says), "{id} {count}: {}", found.message());
        assert!(found.message().chars().count() < 300);
    }
}

#[test]
fn the_sum_of_the_counts_is_limited() {
    let mut text = "run = \"a\"\n[policy.limits]\nmax-nodes = 5\n".to_owned();
    for at in 0..4 {
        text += &format!("[[group]]\nid = \"g{at}\"\ncount = 2\nboot.command = [\"a\"]\n");
    }
    let found = finding(&text);
    assert_eq!((found.field.as_str(), found.line), ("group[2].count", 14));
    assert!(found.message().contains("6 is over the limit of 5"), "{}", found.message());
}

#[test]
fn duplicate_ids_show_both_places() {
    let text = format!("{}\n[[group]]\nid = \"web\"\ncount = 1\nboot.command = [\"a\"]\n", group(""));
    let found = finding(&text);
    assert_eq!((found.field.as_str(), found.value.as_str(), found.line), ("group[1].id", "\"web\"", 10));
    assert_eq!(&text[found.related.unwrap().span], "\"web\"");
    let shown = render(&parse(&text).unwrap_err().into(), false);
    assert!(shown.contains("--> fleet.toml:10:6") && shown.contains("the first one"), "{shown}");
}

#[test]
fn what_the_host_refuses_later_has_its_place_too() {
    let fleet = parse(FULL).unwrap();
    let error = fleet.refuse(Path::new("fleet.toml"), &ShapeError::SameGeneration { generation: 7 });
    let shown = render(&error, false);
    assert!(shown.contains("--> fleet.toml:3:14") && shown.contains("generation = 7"), "{shown}");
    // Nothing states it: the first line stands for the file.
    let error = parse("run = \"demo\"\n")
        .unwrap()
        .refuse(Path::new("fleet.toml"), &ShapeError::SameGeneration { generation: 7 });
    assert!(render(&error, false).contains("--> fleet.toml:1:1"));
}

#[test]
fn a_near_miss_is_corrected() {
    let found = finding(&group("cuont = 3"));
    let Problem::UnknownField { expected, nearest, .. } = found.problem else { panic!("{:?}", found.problem) };
    assert_eq!(nearest, Some("count"));
    assert!(expected.contains(&"settings"));
    let found = finding("run = \"a\"\n[policy]\nprobe_interval = \"1s\"\n");
    assert!(matches!(found.problem, Problem::UnknownField { nearest: Some("probe-interval"), .. }), "{found:?}");
    let found = finding(&group("zzz = 3"));
    assert!(matches!(found.problem, Problem::UnknownField { nearest: None, .. }), "{found:?}");
}

#[test]
fn independent_errors_come_together() {
    let error = parse("run = \"\"\nx = 1\n[[group]]\nid = \"Web\"\ncount = -1\nprovider = 3\n").unwrap_err();
    let fields: Vec<_> = error.findings.iter().map(|finding| finding.field.as_str()).collect();
    assert_eq!(fields, ["run", "x", "group[0].boot", "group[0].id", "group[0].count", "group[0].provider"]);
    let many: String = (0..500).map(|at| format!("x{at} = 1\n")).collect();
    let error = parse(&many).unwrap_err();
    assert_eq!(error.findings.len(), MAX_FINDINGS);
    let shown = render(&error.into(), false);
    assert!(shown.lines().count() <= 40, "{shown}");
}

#[test]
fn what_is_not_toml_is_pointed_at() {
    for (text, line, says) in [
        ("run = \"a\"\ncount = = 3\n", 2, "not TOML"),
        ("run = \"a\nx = 3\n", 1, "not TOML"),
        ("run = \"a\"\nrun = \"b\"\n", 2, "duplicate key"),
        ("run = \"a\"\n\0", 2, "not TOML"),
        ("<html>", 1, "not TOML"),
        ("\u{202e}run", 1, "not TOML"),
    ] {
        let found = finding(text);
        assert_eq!(found.line, line, "{text:?}: {found:?}");
        assert!(found.message().contains(says), "{text:?}: {}", found.message());
        assert!(!render(&parse(text).unwrap_err().into(), false).contains('\0'));
    }
}

#[test]
fn depth_is_bounded() {
    let brackets = format!("a = {}", "[".repeat(200_000));
    let tables = format!("a = {}", "{ a = ".repeat(200_000));
    let keys = format!("{}a = 1", "a.".repeat(500_000));
    let headers = format!("[{}a]", "a.".repeat(500_000));
    let inline = format!("x = {{ {}a = 1 }}", "a.".repeat(500_000));
    let settings = group(&format!("settings.x = {}1{}", "[".repeat(70), "]".repeat(70)));
    for text in [brackets, tables, keys, headers, inline] {
        let started = Instant::now();
        let found = finding(&text);
        assert_eq!(found.line, 1);
        let shown = render(&parse(&text).unwrap_err().into(), false);
        assert!(shown.lines().all(|line| line.chars().count() < 500), "{shown}");
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    }
    assert!(parse(&settings).is_ok());
}

#[test]
fn a_long_line_is_cut_around_the_place() {
    let text = format!("run = \"a\"\nx = [{}], y = 3\n", "1, ".repeat(100_000));
    let found = finding(&text);
    assert_eq!(found.line, 2);
    let shown = render(&parse(&text).unwrap_err().into(), false);
    assert!(shown.lines().all(|line| line.chars().count() < 250), "{shown}");
    assert!(shown.contains('…'), "{shown}");
}

/// Any byte of a good file, changed or left out, gives a fleet or a short error, and never a panic.
#[test]
fn damaged_files_are_errors() {
    for at in 0..FULL.len() {
        for damage in ["", "\0", "\"", "[", ".", "-", "é", "\n"] {
            let text = format!("{}{damage}{}", &FULL[..at], &FULL[at + 1..]);
            if let Err(error) = parse(&text) {
                assert!(!error.findings.is_empty(), "{text}");
                let shown = render(&error.into(), false);
                assert!(shown.lines().count() <= 40, "{shown}");
            }
        }
    }
}

#[test]
fn a_rollout_that_could_never_replace_anything_is_refused() {
    let found = finding(&group("rollout = { max-unavailable = 0, max-surge = 0 }"));
    assert_eq!((found.field.as_str(), found.line), ("group[0].rollout.max-unavailable", 5));
    // Also when the halves come from two places.
    let text =
        group("rollout.max-surge = 0").replace("[[group]]", "[rollout]\nmax-unavailable = 0\nmax-surge = 1\n[[group]]");
    assert!(finding(&text).problem.to_string().contains("nothing could ever be replaced"));
}

/// The schema describes exactly the fields that are read.
#[test]
fn the_schema_and_the_reader_know_the_same_fields() {
    let schema = serde_json::to_value(schema::json_schema()).unwrap();
    for (definition, text) in [
        (None, "x = 1".to_owned()),
        (Some("GroupTable"), group("x = 1")),
        (
            Some("BootTable"),
            group("boot = { command = [\"a\"], x = 1 }").replace("[group.boot]\ncommand = [\"true\"]", ""),
        ),
        (Some("JoinTable"), group("join.x = 1")),
        (Some("RolloutTable"), group("rollout.x = 1")),
        (Some("PolicyTable"), "policy.x = 1".into()),
        (Some("BackoffTable"), "policy.backoff.x = 1".into()),
        (Some("DeadlinesTable"), "policy.deadlines.x = 1".into()),
        (Some("StagesTable"), "policy.stages.x = 1".into()),
        (Some("LimitsTable"), "policy.limits.x = 1".into()),
    ] {
        let table = definition.map_or(&schema, |name| &schema["$defs"][name]);
        assert_eq!(table["additionalProperties"], false, "{definition:?}");
        let described: BTreeSet<&str> = table["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let error = parse(&text).unwrap_err();
        let read = error.findings.iter().find_map(|finding| match &finding.problem {
            Problem::UnknownField { expected, .. } => Some(expected.iter().copied().collect::<BTreeSet<&str>>()),
            _ => None,
        });
        assert_eq!(read, Some(described), "{definition:?}: {error}");
    }
    let parsed: schema::FleetFile = toml::from_str(FULL).unwrap();
    assert_eq!(parsed.group.len(), 2);
}

#[test]
fn files_that_are_none() {
    let folder = std::env::temp_dir().join(format!("homeostat-fleet-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("fleet.toml");
    let load = |path: &Path| Fleet::load(path, &providers()).unwrap_err();

    assert!(matches!(load(&folder), FleetError::NotAFile { what: "a directory", .. }));
    assert!(matches!(load(Path::new("/dev/zero")), FleetError::NotAFile { what: "a device", .. }));
    assert!(matches!(load(&path), FleetError::Unreadable { .. }));

    let file = std::fs::File::create(&path).unwrap();
    file.set_len(100 << 20).unwrap();
    assert!(matches!(load(&path), FleetError::TooLarge { size_bytes: 104_857_600, .. }));

    std::fs::write(&path, b"run = \"a\"\nx = \"\xff\"\n").unwrap();
    assert!(matches!(load(&path), FleetError::NotUtf8 { line: 2, column: 6, byte: 0xff, .. }));
    std::fs::remove_dir_all(&folder).unwrap();
}
