use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::json;

use crate::fixture::{Place, STEADY, Up, Watch, fleet, group, is_running, until};

struct Edited {
    place: Place,
    up: Up,
}

fn start(groups: &[String]) -> Edited {
    let place = Place::with(&fleet(groups));
    let up = place.up(&[]);
    up.converged(0);
    Edited { place, up }
}

impl Edited {
    /// Writes the file and waits until the fleet has its shape. Answers the processes before and after.
    fn edit(&self, groups: &[String]) -> (BTreeMap<String, i32>, BTreeMap<String, i32>) {
        let (before, mark) = (self.place.pids(), self.up.mark());
        self.place.write(&fleet(groups));
        self.up.converged(mark);
        (before, self.place.pids())
    }

    /// Writes a file that is refused, and waits until that is said. Nothing may change.
    fn refused(&self, text: &str) -> String {
        let (before, mark, said) = (self.place.leases(), self.up.mark(), self.up.errors().len());
        self.place.write(text);
        self.up.note(mark, "the edit is refused as a whole; nothing changed");
        let error =
            until("the error", || Some(self.up.errors()[said..].to_owned()).filter(|error| error.ends_with('\n')));
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(self.place.leases(), before);
        let lines = self.up.lines.lock().unwrap();
        assert!(lines.iter().skip(mark).all(|line| line["schema"] == "homeostat.note/v1"));
        error
    }
}

fn names(pids: &BTreeMap<String, i32>) -> Vec<&str> {
    pids.keys().map(String::as_str).collect()
}

#[test]
fn counts_go_up_and_down_at_the_end_of_a_group() {
    let mut fleet = start(&[group("web", 2, STEADY)]);
    let (before, after) = fleet.edit(&[group("web", 5, STEADY)]);
    assert_eq!(names(&after), ["web-0", "web-1", "web-2", "web-3", "web-4"]);
    assert!(before.iter().all(|(slot, pid)| after[slot] == *pid));
    let (before, after) = fleet.edit(&[group("web", 1, STEADY)]);
    assert_eq!(names(&after), ["web-0"]);
    assert_eq!(before["web-0"], after["web-0"]);
    assert_eq!(fleet.place.labelled().len(), 1);
    let (_, after) = fleet.edit(&[group("web", 0, STEADY)]);
    assert!(after.is_empty());
    let (_, after) = fleet.edit(&[group("web", 1, STEADY)]);
    assert_eq!(names(&after), ["web-0"]);
    assert_eq!(fleet.up.take_down(Signal::INT)["removed"], json!(["web-0"]));
    fleet.place.assert_empty();
}

#[test]
fn another_template_replaces_each_node_the_old_one_first() {
    // What an attempt leaves in the shared folder while it runs; the next one must not find it. It takes its time to end.
    let script = |word: &str| {
        format!(
            "[ -e {{state}}/{{node}} ] && touch {{state}}/overlap; touch {{state}}/{{node}}; \
             trap 'sleep 0.15; rm {{state}}/{{node}}; exit' TERM; echo ready {word}; while :; do sleep 0.02; done"
        )
    };
    // As long as it may take on a busy machine.
    let web = |word: &str| group("web", 3, &script(word)).replace("300ms", "2m");
    let mut fleet = start(&[web("one"), group("db", 1, STEADY)]);
    let watch = Watch::over(&fleet.place);
    let changed = [web("two"), group("db", 1, STEADY)];
    let mark = fleet.up.mark();
    let attempts = fleet.place.leases();
    let (before, after) = fleet.edit(&changed);
    assert!(before.iter().all(|(slot, pid)| (after[slot] == *pid) == (slot == "db-0")), "{before:?} {after:?}");
    assert!(before.values().all(|pid| !is_running(*pid) || *pid == before["db-0"]));
    for (slot, lease) in fleet.place.leases() {
        assert_eq!(lease.attempt == attempts[&slot].attempt, slot == "db-0");
    }
    // The old directory is gone before the new attempt begins: `destroyed` comes first.
    let lines = fleet.up.lines.lock().unwrap().clone();
    let at = |attempt: u64, stage: &str| {
        lines.iter().skip(mark).position(|line| line["attempt"] == attempt && line["stage"] == stage)
    };
    for slot in ["web-0", "web-1", "web-2"] {
        let (old, new) = (attempts[slot].attempt, fleet.place.leases()[slot].attempt);
        assert!(at(old, "destroyed").unwrap() < at(new, "lease-requested").unwrap(), "{slot}");
    }
    // The environment is part of a template.
    let env = changed[0].replace("[group.join]", "env = { WORD = \"three\" }\n[group.join]");
    let (before, after) = fleet.edit(&[env, changed[1].clone()]);
    assert!(before.iter().all(|(slot, pid)| (after[slot] == *pid) == (slot == "db-0")));
    assert!(!fleet.place.state().join("demo/shared/overlap").exists());
    watch.assert_never_two();
    fleet.up.take_down(Signal::INT);
    fleet.place.assert_empty();
}

#[test]
fn groups_come_and_go() {
    let (web, db, cache) = (group("web", 2, STEADY), group("db", 1, STEADY), group("cache", 1, STEADY));
    let mut fleet = start(&[web.clone(), db.clone()]);
    let (before, after) = fleet.edit(std::slice::from_ref(&web));
    assert_eq!(names(&after), ["web-0", "web-1"]);
    assert_eq!(before["web-1"], after["web-1"]);
    assert_eq!(fleet.place.labelled().len(), 2);
    let (before, after) = fleet.edit(&[cache, web, db]);
    assert_eq!(names(&after), ["cache-0", "db-0", "web-0", "web-1"]);
    assert_eq!(before["web-0"], after["web-0"], "another place among the groups is no change");
    fleet.up.take_down(Signal::TERM);
    fleet.place.assert_empty();
}

#[test]
fn stated_generations_rise_with_the_content() {
    let of = |generation: u64, count: u32| {
        fleet(&[group("web", count, STEADY)])
            .replace("run = \"demo\"\n", &format!("run = \"demo\"\ngeneration = {generation}\n"))
    };
    let place = Place::with(&of(7, 1));
    let up = place.up(&[]);
    assert_eq!(up.converged(0), 7);
    let mut fleet = Edited { place, up };
    for (generation, count, words) in [(7, 2, "still 7"), (6, 1, "6"), (6, 2, "6")] {
        let error = fleet.refused(&of(generation, count));
        let error: serde_json::Value = serde_json::from_str(error.trim()).unwrap();
        assert_eq!((&error["line"], &error["field"]), (&json!(2), &json!("generation")), "{error}");
        assert!(error["error"].as_str().unwrap().contains(words), "{error}");
        assert!(error["file"].as_str().unwrap().ends_with("fleet.toml"));
    }
    let mark = fleet.up.mark();
    fleet.place.write(&of(9, 2));
    assert_eq!(fleet.up.converged(mark), 9);
    assert_eq!(fleet.place.pids().len(), 2);
    // The same content at a higher generation changes nothing.
    let (before, mark) = (fleet.place.leases(), fleet.up.mark());
    fleet.place.write(&of(12, 2));
    assert_eq!(fleet.up.converged(mark), 12);
    assert_eq!(fleet.place.leases(), before);
    // Left out: one more when the content changes.
    let mark = fleet.up.mark();
    fleet.place.write(&of(0, 1).replace("generation = 0\n", ""));
    assert_eq!(fleet.up.converged(mark), 13);
    fleet.up.take_down(Signal::INT);
    fleet.place.assert_empty();
}

#[test]
fn what_is_wrong_changes_nothing_and_is_said_exactly() {
    let good = fleet(&[group("web", 2, STEADY)]);
    let mut fleet = start(&[group("web", 2, STEADY)]);
    let line_of = |text: &str, word: &str| text.lines().position(|line| line.contains(word)).unwrap() + 1;
    let cases = [
        ("count = 2", "count = -1", "group[0].count", "-1"),
        ("count = 2", "count = 1000000000", "group[0].count", "1000000000"),
        ("count = 2", "count = nan", "group[0].count", "nan"),
        ("id = \"web\"", "id = \"Übel\"", "group[0].id", "Übel"),
        ("interval = \"20ms\"", "interval = \"soon\"", "group[0].join.interval", "soon"),
        ("[group.boot]", "provider = \"cloud\"\n[group.boot]", "group[0].provider", "cloud"),
        ("[group.boot]", "colour = 1\n[group.boot]", "group[0].colour", "colour"),
        ("run = \"demo\"", "run = \"other\"", "run", "other"),
    ];
    for (old, new, field, value) in cases {
        let text = good.replace(old, new);
        let error = fleet.refused(&text);
        let error: serde_json::Value = serde_json::from_str(error.trim()).unwrap();
        let wrong = new.lines().next().unwrap();
        assert_eq!(error["schema"], "homeostat.error/v1", "{error}");
        assert_eq!((&error["field"], &error["line"]), (&json!(field), &json!(line_of(&text, wrong))), "{error}");
        assert!(error["value"].as_str().unwrap().contains(value), "{error}");
        assert_eq!(error["file"], fleet.place.file().display().to_string());
    }
    for garbage in ["\u{0}\u{1}garbage ]]", "run = \"demo\"\n[[group]\n", ""] {
        let error: serde_json::Value = serde_json::from_str(fleet.refused(garbage).trim()).unwrap();
        assert!(error["line"].is_u64() && error["file"].is_string(), "{garbage:?}: {error}");
    }
    // A good edit works again, and so does going back.
    let (before, after) = fleet.edit(&[group("web", 3, STEADY)]);
    assert_eq!((before["web-0"], names(&after).len()), (after["web-0"], 3));
    fleet.up.take_down(Signal::INT);
    fleet.place.assert_empty();
}

#[test]
fn the_policy_may_change() {
    let mut fleet = start(&[group("web", 1, STEADY)]);
    let (before, mark) = (fleet.place.leases(), fleet.up.mark());
    let text = std::fs::read_to_string(fleet.place.file()).unwrap();
    // A long backoff from now on; the nodes stay.
    fleet.place.write(&text.replace("initial = \"50ms\", cap = \"400ms\"", "initial = \"100s\", cap = \"200s\""));
    fleet.up.note(mark, "fleet.toml: ");
    assert_eq!(fleet.place.leases(), before);
    crate::fixture::signal(before["web-0"].pid.unwrap(), Signal::KILL);
    let waits = fleet.up.node(mark, "web-0", &[("stage", json!("destroyed"))]);
    assert!(waits["until_ms"].as_u64().unwrap() - waits["at_ms"].as_u64().unwrap() > 50_000, "{waits}");
    fleet.up.take_down(Signal::INT);
    fleet.place.assert_empty();
}
