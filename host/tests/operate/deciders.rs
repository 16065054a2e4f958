//! Another decider in a daemon that runs, by the verbs (SPEC 11).

use std::path::PathBuf;
use std::process::Command;

use example_deciders::component;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::fixture::{Place, Up, signal, until};
use crate::lab::{HOMEOSTAT, Said, ask, daemon, kill, nodes, over, said, web};

/// A file with that example's component.
fn example(place: &Place, name: &str) -> PathBuf {
    let path = place.file().with_file_name(format!("{name}.wasm"));
    std::fs::write(&path, component(name).unwrap()).unwrap();
    path
}

/// Judged by its load alone, and watched for so long.
fn swap(place: &Place, decider: &str, watch: &str) -> Said {
    ask(place, &["decider", "swap", decider, "--replay", "0s", "--shadow", "0s", "--watch", watch, "--yes"])
}

fn decider(place: &Place) -> Value {
    ask(place, &["status"]).ok()["decider"].clone()
}

fn stop(up: &mut Up) {
    signal(up.pid(), Signal::TERM);
    assert_eq!(up.ended().0, 0, "{}", up.errors());
}

/// The folder of the run's state.
fn state_of(place: &Place) -> PathBuf {
    let mut runs = std::fs::read_dir(place.state()).unwrap().map(|entry| entry.unwrap().path());
    runs.find(|path| path.join("state.db").exists()).unwrap()
}

#[test]
fn a_swap_is_judged_watched_and_outlives_a_kill() {
    let place = Place::with(&web(3));
    let mut up = daemon(&place, &[]);
    up.converged(0);
    let before = nodes(&place);
    let first = decider(&place);
    let file = example(&place, "in-order");
    let terms =
        ["decider", "swap", file.to_str().unwrap(), "--replay", "24h", "--shadow", "1s", "--watch", "10m", "--yes"];
    let ended = ask(&place, &terms);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    let swapped = ended.json();
    assert_eq!(
        (&swapped["schema"], &swapped["verdict"]),
        (&json!("homeostat.swap/v1"), &json!("switched")),
        "{swapped}"
    );
    let replayed = &swapped["reports"][0];
    assert!(replayed["stage"] == "replay" && replayed["tally"]["passes"].as_u64().unwrap() > 3, "{swapped}");
    assert_eq!(nodes(&place), before, "no node is touched");
    let now = decider(&place);
    assert_eq!(now["name"], "in-order", "{now}");
    assert!(now["watching"]["until_ms"].is_u64(), "{now}");
    kill(&mut up);
    let mut up = daemon(&place, &[]);
    up.converged(0);
    let after = decider(&place);
    assert_eq!(
        (&after["digest"], &after["watching"]),
        (&now["digest"], &now["watching"]),
        "in force, and watched still"
    );
    assert_eq!(after["previous"]["digest"], first["digest"]);
    assert_eq!(nodes(&place), before);
    let swaps = ask(&place, &["decider", "swaps"]).ok();
    assert_eq!((&swaps["swaps"][0]["verdict"], &swaps["swaps"][0]["id"]), (&json!("switched"), &swapped["id"]));
    let rolled = ask(&place, &["decider", "rollback", "--yes"]);
    assert_eq!(rolled.code, 0, "{}{}", rolled.out, rolled.err);
    until("the rollback", || (decider(&place)["digest"] == first["digest"]).then_some(()));
    let listed = ask(&place, &["decider", "ls"]).ok();
    assert_eq!(listed["deciders"].as_array().unwrap().len(), 2, "{listed}");
    let shown = ask(&place, &["decider", "show", "previous"]).ok();
    assert_eq!(shown["name"], "in-order");
    assert_eq!(shown["in_force"].as_array().unwrap().len(), 1, "{shown}");
    let events = ask(&place, &["events"]).ok();
    let told = events["items"].as_array().unwrap().iter().filter(|item| item["kind"] == "swap").count();
    assert!(told >= 6, "{events}");
    // The state is sound, and so is a journal with swaps in it.
    stop(&mut up);
    let state = state_of(&place);
    for verb in [&["journal", "verify"][..], &["replay"]] {
        let mut command = Command::new(HOMEOSTAT);
        let said = said({
            command.args(verb).arg(&state).args(["-o", "json"]);
            if verb[0] == "replay" {
                command.args(["--decider", "built-in"]);
            }
            command
        });
        assert!(said.code == 0 || verb[0] == "replay" && said.code == 6, "{verb:?}: {}{}", said.out, said.err);
    }
    over(&place, daemon(&place, &[]));
}

#[test]
fn one_that_breaks_a_rule_is_taken_back_by_itself_and_not_let_in_again() {
    let place = Place::with(&web(3));
    let up = daemon(&place, &[]);
    up.converged(0);
    let first = decider(&place)["digest"].clone();
    let file = example(&place, "scales-down-lowest");
    let file = file.to_str().unwrap();
    assert_eq!(swap(&place, file, "10m").code, 0);
    assert_eq!(decider(&place)["name"], "scales-down-lowest");
    ask(&place, &["scale", "web=2", "--yes", "--wait"]).ok();
    until("it is taken back", || (decider(&place)["digest"] == first).then_some(()));
    let now = decider(&place);
    assert_eq!(now["rolled_back"]["from"]["name"], "scales-down-lowest", "{now}");
    let left: Vec<String> = nodes(&place).into_iter().map(|(node, _)| node).collect();
    assert_eq!(left, ["web-0", "web-1"], "the one before decided in its place");
    let refused = swap(&place, file, "0s");
    assert_eq!(refused.code, 5, "{}{}", refused.out, refused.err);
    assert!((refused.out + &refused.err).contains("quarantine"));
    let doctor = ask(&place, &["doctor"]);
    assert!(doctor.out.contains("decider"), "{}", doctor.out);
    over(&place, up);
}

#[test]
fn a_decider_whose_file_is_gone_is_named_and_another_one_can_be_given() {
    let place = Place::with(&web(2));
    let mut up = daemon(&place, &[]);
    up.converged(0);
    let before = nodes(&place);
    let file = example(&place, "in-order");
    assert_eq!(swap(&place, file.to_str().unwrap(), "0s").code, 0);
    let folder = state_of(&place).join("deciders");
    let component =
        |digest: &Value| folder.join(format!("{}.wasm", digest.as_str().unwrap().strip_prefix("sha256:").unwrap()));
    let kept = component(&decider(&place)["digest"]);
    // So is the one that is part of the program: a later program has another one.
    let built_in = component(&decider(&place)["previous"]["digest"]);
    assert!(built_in.exists() && built_in != kept);
    let whole = std::fs::read(&kept).unwrap();
    // While it runs, nobody needs it; who looks is told what a restart and a rollback would not find.
    std::fs::remove_file(&kept).unwrap();
    let looked = ask(&place, &["doctor"]);
    assert!(looked.code == 1 && looked.out.contains("a restart would not find it"), "{}", looked.out);
    assert_eq!(swap(&place, "built-in", "0s").code, 0);
    let looked = ask(&place, &["doctor"]);
    assert!(looked.code == 0 && looked.out.contains("would not find in-order"), "{}", looked.out);
    let rolled = ask(&place, &["decider", "rollback", "--yes"]);
    let words = rolled.out + &rolled.err;
    assert!(rolled.code == 1 && words.contains(kept.to_str().unwrap()), "it was taken, and did not work: {words}");
    assert_eq!(decider(&place)["name"], "ladder");
    // The same file again puts it there.
    assert_eq!(swap(&place, file.to_str().unwrap(), "0s").code, 0);
    assert_eq!(std::fs::read(&kept).unwrap(), whole);
    assert!(!ask(&place, &["doctor"]).out.contains("would not find"));
    stop(&mut up);
    for damage in [None, Some(&whole[..whole.len() - 1])] {
        match damage {
            None => std::fs::remove_file(&kept).unwrap(),
            Some(bytes) => std::fs::write(&kept, bytes).unwrap(),
        }
        let mut refused = daemon(&place, &[]);
        let (code, ..) = refused.ended();
        assert_eq!(code, 1);
        assert!(refused.errors().contains(kept.to_str().unwrap()), "{}", refused.errors());
    }
    let up = daemon(&place, &["--decider", "built-in"]);
    up.converged(0);
    assert_eq!(nodes(&place), before);
    assert_eq!(decider(&place)["name"], "ladder");
    over(&place, up);
}

#[test]
fn a_declared_file_does_not_undo_a_later_swap_and_one_that_changes_is_judged_at_once() {
    let place = Place::with(&web(2));
    let file = example(&place, "in-order");
    let watched = ["--decider", file.to_str().unwrap(), "--watch"];
    let mut up = daemon(&place, &watched);
    up.converged(0);
    assert_eq!(decider(&place)["name"], "in-order");
    assert_eq!(swap(&place, "built-in", "0s").code, 0);
    stop(&mut up);
    let up = daemon(&place, &watched);
    up.converged(0);
    let built_in = decider(&place);
    assert_eq!(built_in["name"], "ladder", "{built_in}");
    // The author writes the next version: a custom section makes it another one.
    let mut next = component("in-order").unwrap().to_vec();
    next.extend([0, 3, 1, b'x', 1]);
    std::fs::write(&file, &next).unwrap();
    // Nobody asks for it.
    until("the new file decides", || (decider(&place)["name"] == "in-order").then_some(()));
    // What is no decider is said and not taken.
    std::fs::write(&file, b"\0asm nonsense").unwrap();
    let last = || ask(&place, &["decider", "swaps"]).ok()["swaps"][0].clone();
    until("it is refused", || (last()["verdict"] == "refused").then_some(()));
    assert!(last()["text"].as_str().unwrap().contains("not a decider"), "{}", last());
    assert_eq!(decider(&place)["name"], "in-order");
    over(&place, up);
}
