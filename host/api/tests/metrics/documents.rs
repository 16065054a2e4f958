//! What the documentation and the board name exists, and what exists is documented.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use api::metrics::Kind;
use serde_json::Value;

fn document(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cells of each row of the tables that begin with this head.
fn rows(text: &str, head: &str) -> Vec<Vec<String>> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        let cells: Vec<String> = line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        inside = line.starts_with('|') && (inside || cells[0] == head);
        if inside && cells[0] != head && !cells[0].starts_with("---") {
            found.push(cells);
        }
    }
    found
}

/// What stands in backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Names of metrics in an expression, those of a histogram's series without their ending.
fn named(expression: &str) -> BTreeSet<String> {
    let histograms: BTreeSet<&str> = crate::metrics()
        .described()
        .iter()
        .filter(|described| described.kind == Kind::Histogram)
        .map(|described| described.name)
        .collect();
    let prefixes = ["homeostat_", "controller_runtime_", "workqueue_", "process_"];
    expression
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix)))
        .map(|word| {
            let ending = ["_bucket", "_sum", "_count"].iter().find_map(|ending| word.strip_suffix(ending));
            ending.filter(|base| histograms.contains(base)).unwrap_or(word).to_owned()
        })
        .collect()
}

fn known() -> BTreeSet<String> {
    crate::metrics().described().iter().map(|described| described.name.to_owned()).collect()
}

/// The expressions of the board, with its variables filled in.
fn board() -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| match value {
                Value::String(text) if name == "expr" => found.push(text.clone()),
                other => collect(other, found),
            }),
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(&serde_json::from_str(&document("grafana/homeostat.json")).unwrap(), &mut found);
    let filled = |text: String| text.replace("$__rate_interval", "1m").replace("$job", "j").replace("$instance", "i");
    found.into_iter().map(filled).collect()
}

#[test]
fn every_metric_is_documented_with_its_kind_and_labels() {
    let documented: BTreeMap<String, (String, Vec<String>)> = rows(&document("metrics.md"), "metric")
        .into_iter()
        .map(|cells| {
            let labels = quoted(&cells[2]).into_iter().map(str::to_owned).collect();
            (quoted(&cells[0])[0].to_owned(), (cells[1].clone(), labels))
        })
        .collect();
    let there: BTreeMap<String, (String, Vec<String>)> = crate::metrics()
        .described()
        .iter()
        .map(|described| {
            let labels = described.labels.iter().map(|label| label.to_string()).collect();
            (described.name.to_owned(), (format!("{:?}", described.kind).to_lowercase(), labels))
        })
        .collect();
    assert_eq!(documented, there);
    assert!(there.values().all(|(_, labels)| !labels.iter().any(|label| label.contains("node"))), "no label is a node");
}

#[test]
fn alarms_and_board_ask_for_metrics_that_exist() {
    let alarms = rows(&document("metrics.md"), "alarm");
    assert!(alarms.len() >= 15, "{} alarms", alarms.len());
    let board = board();
    assert!(board.len() >= 40, "{} expressions", board.len());
    let known = known();
    let expressions = alarms.iter().map(|cells| quoted(&cells[1])[0].to_owned()).chain(board);
    for expression in expressions {
        let named = named(&expression);
        assert!(!named.is_empty(), "no metric: {expression}");
        let missing: Vec<&String> = named.difference(&known).collect();
        assert!(missing.is_empty(), "{missing:?} do not exist: {expression}");
    }
}

#[test]
fn the_board_can_be_imported() {
    let board: Value = serde_json::from_str(&document("grafana/homeostat.json")).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "ids are unique");
    let groups = panels.iter().filter(|panel| panel["type"] == "row");
    let titles: Vec<&str> = groups.map(|row| row["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Fleet", "Passes", "Operations", "Decider", "Journal", "Process"]);
    for panel in panels {
        let place = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(place[0] + place[2] <= 24, "{} is out of the grid", panel["title"]);
        for target in panel["targets"].as_array().into_iter().flatten() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        }
    }
    let variables: Vec<&Value> = board["templating"]["list"].as_array().unwrap().iter().map(|v| &v["name"]).collect();
    assert_eq!(variables, ["datasource", "job", "instance"]);
}

/// Where Prometheus is installed, it reads all expressions.
#[test]
fn prometheus_reads_every_expression() {
    let mut rules = String::from("groups:\n- name: alarms\n  rules:\n");
    for cells in rows(&document("metrics.md"), "alarm") {
        let name: String = cells[0].chars().filter(|c| c.is_ascii_alphabetic()).collect();
        let _ = writeln!(rules, "  - alert: {name}\n    expr: '{}'\n    for: {}", quoted(&cells[1])[0], cells[2]);
    }
    for (at, expression) in board().into_iter().enumerate() {
        let _ = writeln!(rules, "  - record: board:{at}\n    expr: '{expression}'");
    }
    let file = std::env::temp_dir().join(format!("homeostat-rules-{}.yml", std::process::id()));
    std::fs::write(&file, rules).unwrap();
    let output = Command::new("promtool").args(["check", "rules"]).arg(&file).output();
    let _ = std::fs::remove_file(&file);
    match output {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => eprintln!("promtool is not installed; the expressions are only looked through for names"),
    }
}
