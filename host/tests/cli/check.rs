//! `check`: what it says of the rules as they are, of weakened ones, and of the example deciders.

use example_deciders::component;

use super::*;

fn check(args: &[&str]) -> (i32, String) {
    let ran = homeostat(&[&["check"], args].concat());
    (ran.status.code().unwrap(), text(&ran.stdout) + &text(&ran.stderr))
}

#[test]
fn one_slot_holds_and_the_scope_is_said() {
    let (code, said) = check(&["--nodes", "1", "--faults", "1"]);
    assert_eq!(code, 0, "{said}");
    for words in [
        "1 slot, 1 fault, keyed provider\n",
        "1 slot, 1 fault, windowed provider\n",
        "  - one change of the template, one scale-down by one, one scale-up by one after it, each at any time or never\n",
        "  - 1 crash of the host at any time",
        "S1-S10, S14, S15 hold in every step.",
        "rules never reached: R17, R18, R19, R20, R21, R22\n",
        "not covered",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn both_promises_are_checked_and_threads_do_not_matter() {
    let run = |jobs: &str| {
        let mut value = json(&["check", "--nodes", "1", "--faults", "1", "--jobs", jobs, "-o", "json"]);
        assert_eq!(value["schema"], "homeostat.check/v1");
        for search in value["searches"].as_array_mut().unwrap() {
            assert_eq!(search["verdict"], "holds");
            assert_eq!(search["rules_never_reached"], serde_json::json!(["R17", "R18", "R19", "R20", "R21", "R22"]));
            assert!(search["states"].as_u64().unwrap() > 1_000 && search["depth"].as_u64().unwrap() > 10);
            assert!(search["states_per_second"].as_f64().unwrap() > 0.0);
            for timed in ["elapsed_ms", "states_per_second"] {
                search.as_object_mut().unwrap().remove(timed).unwrap();
            }
        }
        value
    };
    let one = run("1");
    let promises: Vec<&Value> = one["searches"].as_array().unwrap().iter().map(|search| &search["promise"]).collect();
    assert_eq!(promises, ["keyed", "windowed"]);
    assert_eq!(one, run("3"));
}

#[test]
fn a_weakened_rule_is_shown_to_be_needed() {
    let (code, said) =
        check(&["--nodes", "1", "--faults", "0", "--promise", "windowed", "--weaken", "windowed-settle"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("S8 is broken: 2 live resources bear the key of one attempt\n"), "{said}");
    assert!(said.contains("the host is killed and starts again") && !said.contains("fault: "), "{said}");

    let (code, said) = check(&["--nodes", "1", "--faults", "0", "--promise", "keyed", "--weaken", "sweep"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("L3 is broken: ") && said.contains("can never settle"), "{said}");
}

#[test]
fn a_limit_that_is_reached_is_no_success() {
    let (code, said) = check(&["--promise", "keyed", "--max-states", "5000"]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("NOT FINISHED: the limit of states was reached"), "{said}");
}

#[test]
fn the_example_deciders_are_told_apart() {
    let folder = Folder::new("checked-deciders");
    let file = |name: &str| folder.file(&format!("{name}.wasm"), component(name).unwrap());
    for (name, property) in [("skips-adoption", "S7"), ("restarts-early", "S8"), ("scales-down-lowest", "S9")] {
        let (code, said) = check(&["--promise", "keyed", "--faults", "1", "--decider", &file(name)]);
        assert_eq!(code, 1, "{name}: {said}");
        assert!(said.contains(&format!("\n{property} is broken: ")), "{name}: {said}");
        assert!(said.contains("the shortest path"), "{name}: {said}");
    }
    let (code, said) = check(&["--nodes", "1", "--faults", "0", "--decider", &file("in-order")]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn what_cannot_be_checked_is_refused() {
    assert!(refused(&["check", "--jobs", "0"]).contains("--jobs 0"));
    for nodes in ["0", "5"] {
        assert!(refused(&["check", "--nodes", nodes]).contains(&format!("{nodes} nodes: from 1 to 4 can be checked")));
    }
    refused(&["check", "--weaken", "gravity"]);
    refused(&["check", "--decider", "/nowhere.wasm"]);
}
