//! Verbs that only look.

use api::wire;
use schemars::JsonSchema;
use serde_json::Value;

use super::fake::Options;
use super::{Daemon, operate};

fn hostile() -> Daemon {
    Daemon::after(9, Options { hostile: true, ..Options::default() })
}

#[track_caller]
pub fn fits<T: JsonSchema>(value: &Value, name: &str) {
    assert_eq!(value["schema"], format!("homeostat.{name}/v1"));
    let schema = serde_json::to_value(schemars::schema_for!(T)).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn machines_get_what_the_wire_declares() {
    let daemon = Daemon::new();
    fits::<wire::Status>(&daemon.json(&["status"]), "status");
    fits::<wire::NodeDetail>(&daemon.json(&["describe", "web-1"]), "node");
    fits::<wire::Explanation>(&daemon.json(&["explain", "web-1"]), "explanation");
    fits::<wire::History>(&daemon.json(&["history", "web-1"]), "history");
    fits::<wire::History>(&daemon.json(&["events"]), "history");
    fits::<wire::Logs>(&daemon.json(&["logs", "web-1"]), "logs");
    fits::<wire::Diagnosis>(&daemon.json(&["doctor"]), "diagnosis");
    fits::<wire::Export>(&daemon.json(&["snapshot", "export"]), "snapshot");
    fits::<wire::CommandResult>(&daemon.json(&["scale", "web=4", "--yes"]), "command");
    assert_eq!(daemon.json(&["orphans"])["schema"], "homeostat.orphans/v1");
    assert_eq!(daemon.json(&["orphans"])["orphans"].as_array().unwrap().len(), 2);
}

#[test]
fn a_status_says_what_holds_the_fleet_up() {
    let daemon = Daemon::after(2, Options::default());
    let ran = daemon.ask(&["status"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], "demo  generation 1  0/11 ready  not converged");
    assert!(lines[1].starts_with("  why           web-0 is"), "{}", ran.out);
    for part in [
        "  paused        destroy of db, by an operator, for 1m; `homeostat resume db --only destroy` ends it",
        "2 are there that nobody asked for: `homeostat orphans` lists them",
        "worker-1 a1, failed 2 times, next try in ",
        "NODE      ATTEMPT  STAGE",
    ] {
        assert!(ran.out.contains(part), "{part:?} is not in\n{}", ran.out);
    }
    assert_eq!(lines.iter().filter(|line| line.starts_with("web-")).count(), 3);
    let only = daemon.ask(&["status", "db", "web-2"]).out;
    assert!(only.contains("\ndb-1 ") && only.contains("\nweb-2 ") && !only.contains("\nweb-0 "), "{only}");
    let none = daemon.ask(&["status", "nosuch"]);
    assert_eq!(none.code, 1);
    assert!(none.err.contains("\"nosuch\"") && none.err.contains("web, worker, db"), "{}", none.err);
}

#[test]
fn a_thousand_nodes_are_a_screenful() {
    let daemon = Daemon::after(9, Options { groups: vec![("many".into(), 1_000)], ..Options::default() });
    let ran = daemon.ask(&["status"]);
    assert!(ran.out.lines().count() < 60, "{}", ran.out);
    assert!(ran.out.contains("GROUP") && ran.out.contains("--all shows every one"), "{}", ran.out);
    let all = daemon.ask(&["status", "--all"]).out;
    assert_eq!(all.lines().filter(|line| line.starts_with("many-")).count(), 1_000);
}

#[test]
fn one_node_is_described_and_explained() {
    let daemon = Daemon::after(3, Options::default());
    let described = daemon.ask(&["describe", "web-1"]).out;
    for part in ["web-1  attempt ", "provider      process", "1 value not shown", "lately", "homeostat explain web-1"] {
        assert!(described.contains(part), "{part:?} is not in\n{described}");
    }
    let explained = daemon.ask(&["explain", "web-1"]).out;
    for part in ["web-1 ", "  rule          R", "  ends with     ", "  at latest     in ", "* what the rule asks for"] {
        assert!(explained.contains(part), "{part:?} is not in\n{explained}");
    }
    let none = daemon.ask(&["explain", "web-77"]);
    assert_eq!((none.code, none.out.as_str()), (1, ""));
    assert!(none.err.contains("web-77"), "{}", none.err);
    // What is no name of a node reaches the daemon as one.
    assert_eq!(daemon.ask(&["describe", "../status?x=1"]).code, 1);
}

#[test]
fn history_is_read_page_by_page() {
    let daemon = Daemon::after(40, Options { groups: vec![("web".into(), 300)], ..Options::default() });
    let all = daemon.json(&["history", "web-3", "--all"]);
    let items = all["items"].as_array().unwrap();
    let seqs: Vec<u64> = items.iter().map(|item| item["seq"].as_u64().unwrap()).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
    let latest = daemon.json(&["history", "web-3", "-n", "2"]);
    assert_eq!(latest["items"].as_array().unwrap()[..], items[items.len() - 2..]);
    let events = daemon.json(&["events", "-n", "1500"]);
    assert!(events["items"].as_array().unwrap().len() > 1_000);
    let hint = daemon.ask(&["history", "web-3", "-n", "2"]);
    assert_eq!(hint.out.lines().count(), 2);
    assert!(hint.err.contains("--before"), "{}", hint.err);
}

#[test]
fn nothing_that_nodes_say_is_an_order_to_the_terminal() {
    let daemon = hostile();
    for args in [
        &["status", "--all"][..],
        &["orphans"],
        &["describe", "worker-5"],
        &["explain", "worker-5"],
        &["history", "worker-5"],
        &["events"],
        &["logs", "worker-5"],
    ] {
        let ran = daemon.ask(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        let wrong = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!ran.out.contains(wrong) && !ran.err.contains(wrong), "{args:?}: {:?}", ran.out);
    }
    assert!(daemon.ask(&["orphans"]).out.contains("\\u{202e}"));
}

#[test]
fn a_path_may_be_longer_than_an_address() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(120)).join("demo");
    std::fs::create_dir_all(&deep).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let config = api::Config { socket: Some(deep.join("api.sock")), ..api::Config::default() };
    let _server = runtime.block_on(api::Server::start(super::Fake::new(Options::default()), config)).unwrap();
    let ran = operate(&["status", "--state", deep.parent().unwrap().to_str().unwrap()], "");
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    struct Gone;
    impl std::io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    use clap::Parser;
    let daemon = Daemon::new();
    let cli = super::Cli::parse_from(["operate", "status", "--state", daemon.state()]);
    let mut screen = client::Screen::of(Gone, super::Pipe::default(), "");
    let super::All::Operate(verb) = &cli.verb else { panic!("status is a verb of operators") };
    let error = client::verbs::run(verb, super::WAITS, &mut screen, &super::Small).unwrap_err();
    assert!(error.is_closed_pipe(), "{error}");
}
