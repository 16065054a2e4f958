//! SPEC 9, 11: components built for an earlier version of the contract load for ever, and do what they always did. What is
//! later, or of another major version, is refused with both versions named.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::rc::Rc;

use decider::{Group, NO_INDEX, NodeRow, Snapshot, marks, v1_0};
use engine::validate::check_plan;
use homeostat::sandbox::{Contract, Limits, LoadedDecider, Sandbox};
use hostile_guests_artifact as guests;
use journal::{Against, Reader, replay};
use scenario::{Bounds, Script, Subject, play};
use tests::snapshots::{Random, plausible, wild};

/// The last scenario and the last rule that there were under contract 1.0.
const LAST_SCENARIO: &str = "60";

fn earlier() -> LoadedDecider {
    Sandbox::new(Limits::default()).unwrap().load(guests::CONTRACT_1_0).unwrap_or_else(|error| panic!("{error}"))
}

fn texts(folder: &str) -> Vec<(String, String)> {
    let folder = format!("{}/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn a_component_of_contract_1_0_loads_and_says_so() {
    let earlier = earlier();
    assert_eq!(earlier.contract(), Contract::V1_0);
    assert_eq!(earlier.inspect().contract, "1.0.0");
    assert_eq!(earlier.inspect().exports, ["homeostat:decider/policy@1.0.0"]);
    assert!(!earlier.identity().sees_rollouts());
    let today = Sandbox::new(Limits::default()).unwrap().built_in().unwrap();
    assert_eq!(today.contract(), Contract::V1_1);
    assert!(today.identity().sees_rollouts());
    // Rules are never renumbered.
    let (then, now) = (earlier.description().rules.clone(), today.description().rules.clone());
    assert_eq!(then, now[..then.len()]);
}

#[test]
fn it_decides_like_the_current_one_where_nothing_of_1_1_is_used() {
    let earlier = earlier();
    for seed in 0..1_000 {
        let mut random = Random::new(seed);
        let rows = random.below(40) as usize;
        let mut snapshot = wild(&mut random, rows);
        snapshot.nodes.marks.fill(0);
        snapshot.groups.iter_mut().for_each(unlimited);
        assert_eq!(earlier.reconcile(&snapshot).unwrap(), decider::reconcile(&snapshot), "seed {seed}");
    }
    let large = plausible(&mut Random::new(7), 50_000);
    assert_eq!(earlier.reconcile(&large).unwrap(), decider::reconcile(&large));
}

/// Without what 1.1 brought.
fn unlimited(group: &mut Group) {
    let Group { name, count, nodes, ready, failed, deleting, pending, .. } = std::mem::take(group);
    *group = Group { name, count, nodes, ready, failed, deleting, pending, ..Group::default() };
}

#[test]
fn it_is_shown_no_surge_slots() {
    let mut snapshot = Snapshot { now_ms: 5, run: "demo".into(), ..Snapshot::default() };
    snapshot.groups.push(Group { name: "web".into(), count: 1, max_surge: 2, ..Default::default() });
    snapshot.templates.push(decider::Template::default());
    let ready = NodeRow { attempt: 7, stage: 8, live: 7, template: 0, ..NodeRow::vacant(0, 0, 0, 0) };
    snapshot.nodes.push(ready);
    snapshot.nodes.push(NodeRow { node: 1, slot: 1, attempt: 8, marks: marks::SURGE, ..ready });
    snapshot.nodes.push(NodeRow { marks: marks::SURGE, ..NodeRow::vacant(2, 0, 2, 0) });
    let earlier = earlier();
    let plan = earlier.reconcile(&snapshot).unwrap();
    let shown = v1_0::without_surge(&snapshot);
    check_plan(&plan, &shown, earlier.description().rules.len()).unwrap();
    assert_eq!(plan.decisions.node, [0, 1]);
    assert_eq!(plan.decisions.rule, [11, 4]);
    assert_eq!(shown.nodes.desired_template, [0, NO_INDEX]);
}

#[test]
fn golden_journals_replay_with_it() {
    let earlier = earlier();
    for (name, bytes) in texts("golden") {
        if name.starts_with("decider-fails") || !bytes.contains("\"contract\":\"1.0.0\"") {
            continue;
        }
        let ask = |_: &str, snapshot: &Snapshot| earlier.decide(snapshot);
        let found = replay(&mut Reader::new(bytes.as_bytes()), &Against::Recorded, ask).unwrap();
        assert!(
            found.contrast.is_same() && found.contrast.passes > 0,
            "{name}: {:?}",
            found.contrast.differences.first()
        );
    }
}

/// The scenarios and the policy tests there were then come out as they did.
#[test]
fn it_passes_what_it_passed() {
    let loaded = Rc::new(earlier());
    let asked = Rc::clone(&loaded);
    let subject = Subject { identity: loaded.identity(), ask: Rc::new(move |snapshot| asked.decide(snapshot)) };
    let mut played = 0;
    // Those show which rule holds while something is paused; the pause itself holds below the decider, whatever it speaks.
    let other = |name: &str| ["57-", "58-", "59-"].iter().any(|number| name.starts_with(number));
    let scenarios = texts("scenarios").into_iter().filter(|(name, _)| &name[..2] <= LAST_SCENARIO && !other(name));
    let policy = texts("../examples/policy-tests").into_iter();
    for (name, text) in scenarios.chain(policy.filter(|(name, _)| ["rules.txt", "failures.txt"].contains(&&**name))) {
        let script = Script::parse(&text).unwrap();
        for case in &script.cases {
            let came = play(&script, case, &subject, &Bounds::default()).unwrap();
            assert!(came.misses.is_empty(), "{name} {:?}: {}", case.name, came.misses[0].what);
            played += 1;
        }
    }
    assert!(played > 60, "only {played}");
}

#[test]
fn a_later_minor_version_and_two_versions_at_once_are_refused() {
    let refused = |bytes: &[u8]| Sandbox::new(Limits::default()).unwrap().load(bytes).unwrap_err().to_string();
    assert_eq!(
        refused(guests::INTERFACE_LATER),
        "its exported interface's contract version is 1.2.0; this host speaks 1.0 and 1.1"
    );
    assert_eq!(
        refused(guests::INTERFACE_EARLIER_MAJOR),
        "its exported interface's contract version is 0.9.0; this host speaks 1.0 and 1.1"
    );
    assert_eq!(
        refused(guests::CONTRACT_DIFFERS),
        "its exported interface's contract version is 1.1, and its description says 1.0.0"
    );
}
