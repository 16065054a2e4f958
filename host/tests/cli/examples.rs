//! The deciders of `examples/deciders`, as somebody who wrote one meets them: the simulation finds each mistake and names the
//! property that it breaks, on a fleet file that is also run for real.

use std::collections::BTreeSet;

use example_deciders::{COMPONENTS, component};

use super::*;

/// The decider that is correct.
const GOOD: &str = "in-order";
/// The others, and what each breaks.
const WRONG: [(&str, &str); 4] =
    [("skips-adoption", "S7"), ("restarts-early", "S8"), ("odd-milliseconds", "S11"), ("scales-down-lowest", "S9")];

/// The component as a file.
fn file(folder: &Folder, name: &str) -> String {
    folder.file(&format!("{name}.wasm"), component(name).unwrap())
}

#[test]
fn each_mistake_is_found_named_and_shrunk() {
    let folder = Folder::new("wrong-deciders");
    let fleet = example("web.toml");
    for (name, property) in WRONG {
        let (wasm, trace) = (file(&folder, name), format!("{}/{name}.txt", folder.path()));
        // Long enough to end by itself, on a busy machine too: what comes out is then the same everywhere.
        let common = ["simulate", &fleet, "--decider", &wasm, "--seeds", "50"];
        let ran = homeostat(&[&common[..], &["--shrink", "5m", "--trace", &trace]].concat());
        let said = text(&ran.stdout);
        assert_eq!(ran.status.code(), Some(1), "{name}: {said}{}", text(&ran.stderr));
        assert!(said.starts_with(&format!("{property} is broken: ")), "{name}: {said}");
        let sentence = engine::property::sentence(property).unwrap();
        assert!(said.contains(&format!("\n{property} says: {sentence}\n")), "{name}: {said}");
        let (_, events) = said.split_once(", shrunk to ").unwrap();
        let events: u32 = events.split(' ').next().unwrap().parse().unwrap();
        assert!((1..=40).contains(&events), "{name}: {said}");

        // The command that it prints shows the same again.
        let again = format!("homeostat simulate {fleet} --decider {wasm} --replay {trace}\n");
        assert!(said.contains(&format!("to see it again:          {again}")), "{name}: {said}");
        let words: Vec<&str> = again.split_whitespace().skip(1).collect();
        let replayed = homeostat(&words);
        assert_eq!(replayed.status.code(), Some(1), "{name}");
        assert!(text(&replayed.stdout).contains(&format!("\n{property} is broken: ")), "{name}");
        // As a policy test it fails with this decider, and with no other.
        let tested = homeostat(&["test", &trace, "--decider", &wasm]);
        let said = text(&tested.stdout);
        assert_eq!(tested.status.code(), Some(1), "{name}: {said}{}", text(&tested.stderr));
        assert!(said.contains(&format!("{property} is broken: ")), "{name}: {said}");
        let right = homeostat(&["test", &trace]);
        assert_eq!(right.status.code(), Some(0), "{name}: {}{}", text(&right.stdout), text(&right.stderr));
    }
}

#[test]
fn the_seed_that_is_printed_shows_the_mistake() {
    let folder = Folder::new("wrong-seed");
    let (fleet, wasm) = (example("web.toml"), file(&folder, "skips-adoption"));
    let trace = format!("{}/trace.txt", folder.path());
    let common = ["simulate", &fleet, "--decider", &wasm, "--trace", &trace, "-o", "json"];
    let found = homeostat(&common);
    assert_eq!(found.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found["violation"]["property"], "S7");
    assert_eq!(found["trace_file"], trace.as_str());
    let seed = found["seed"].to_string();
    let command = found["reproduce"][0].as_str().unwrap();
    assert!(command.ends_with(&format!(" --seed {seed}")), "{command}");
    let alone = homeostat(&[&common[..], &["--seed", &seed]].concat());
    assert_eq!(alone.status.code(), Some(1));
    let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();
    assert_eq!(alone["violation"], found["violation"]);
}

#[test]
fn the_correct_one_passes_and_does_what_it_says() {
    let folder = Folder::new("in-order");
    let (fleet, wasm) = (example("web.toml"), file(&folder, GOOD));
    let ran = homeostat(&["simulate", &fleet, "--decider", &wasm, "--seeds", "200", "-o", "json"]);
    assert_eq!(ran.status.code(), Some(0), "{}{}", text(&ran.stdout), text(&ran.stderr));
    let ran: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(ran["rules_never_exercised"], serde_json::json!(["R17"]), "its own rule is exercised too");

    // A group begins when the one before it is complete.
    let plan = json(&["plan", &fleet, "--decider", &wasm, "-o", "json"]);
    assert_eq!(plan["settled"], true);
    let begins = |group: &str, verb: &str| {
        let acts = |round: &Value| {
            let mut steps = round.as_array().unwrap().iter();
            steps.any(|step| step["node"].as_str().unwrap().starts_with(group) && step["verb"] == verb)
        };
        plan["rounds"].as_array().unwrap().iter().position(acts).unwrap()
    };
    assert!(begins("api-", "insert") > begins("front-", "convergence-observed"));
    assert!(begins("store-", "insert") > begins("api-", "convergence-observed"));
}

#[test]
fn all_of_them_are_shown_here_and_load() {
    let folder = Folder::new("example-deciders");
    let known: BTreeSet<&str> = WRONG.iter().map(|(name, _)| *name).chain([GOOD]).collect();
    let built: BTreeSet<&str> = COMPONENTS.iter().map(|(name, _)| *name).collect();
    assert!(built.is_superset(&known), "{built:?}");
    for (name, _) in COMPONENTS {
        let wasm = file(&folder, name);
        let inspected = json(&["decider", "inspect", &wasm, "-o", "json"]);
        assert_eq!(inspected["name"], *name);
        let plan = json(&["decider", "run", &wasm, &example("snapshot.json"), "-o", "json"]);
        assert!(!plan["decisions"].as_array().unwrap().is_empty(), "{name}: {plan}");
    }
}

/// The policy tests that ship notice every mistake, and nothing about the one that is correct.
#[test]
fn policy_tests_notice_what_is_wrong() {
    let folder = Folder::new("wrong-policy");
    let tests = example("policy-tests");
    for (name, _) in WRONG {
        let tested = homeostat(&["test", &tests, "--decider", &file(&folder, name)]);
        assert_eq!(tested.status.code(), Some(1), "{name}: {}{}", text(&tested.stdout), text(&tested.stderr));
    }
    let tested = homeostat(&["test", &tests, "--decider", &file(&folder, "skips-adoption")]);
    let said = text(&tested.stdout);
    assert!(said.contains("- R6 create-lease\n") && said.contains("+ R9 mark-destroyed\n"), "{said}");
    let tested = homeostat(&["test", &tests, "--decider", &file(&folder, GOOD)]);
    assert_eq!(tested.status.code(), Some(0), "{}{}", text(&tested.stdout), text(&tested.stderr));
}
