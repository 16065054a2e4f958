//! Many nodes: each is known again, none is started anew. `HOMEOSTAT_TEST_NODES=1000` asks for more than the default.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::fixture::{Place, Up, is_running, signal, until};
use crate::lab::{Held, Ledger, leases, processes};

fn fleet(nodes: u32) -> String {
    format!(
        "run = \"demo\"\n[[group]]\nid = \"web\"\ncount = {nodes}\nsettings = {{ grace = \"300ms\" }}\n\
         [group.boot]\ncommand = [\"sleep\", \"1000000\"]\n[group.join]\nprobe = {{ exec = [\"true\"] }}\n"
    )
}

/// Starts the daemon; how long it took until it said that the fleet has the wished shape.
fn start(place: &Place) -> (Up, Duration) {
    let began = Instant::now();
    let daemon = place.daemon();
    daemon.converged(0);
    (daemon, began.elapsed())
}

fn boots(held: &[Held]) -> BTreeMap<(String, u64), i32> {
    held.iter().map(|one| ((one.slot.clone(), one.attempt), one.pid.unwrap())).collect()
}

/// Processor time of a process, in clock ticks of 10 ms.
fn ticks(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum()
}

#[test]
fn many_nodes_are_known_again_within_a_moment() {
    let nodes = std::env::var("HOMEOSTAT_TEST_NODES").ok().and_then(|text| text.parse().ok()).unwrap_or(300_u32);
    let place = Place::with(&fleet(nodes));
    let mut ledger = Ledger::default();
    let (mut daemon, took) = start(&place);
    println!("{nodes} nodes: the first start took {} ms", took.as_millis());
    let first = ledger.look(&place);
    let known = boots(&first);
    assert_eq!((first.len(), processes(&place).len()), (nodes as usize, nodes as usize));

    for how in [Signal::KILL, Signal::KILL, Signal::TERM] {
        place.durably_converged();
        let began = Instant::now();
        signal(daemon.pid(), how);
        daemon.ended();
        let ended = began.elapsed();
        let (again, took) = start(&place);
        daemon = again;
        println!("after {how:?}: ended in {} ms, known again in {} ms", ended.as_millis(), took.as_millis());
        place.durably_converged();
        let held = ledger.compare(&place).map(|driver| driver.is_converged());
        assert_eq!(held, Some(true));
        assert_eq!(boots(&leases(&place)), known, "nobody was started anew");
        assert_eq!(processes(&place).len(), nodes as usize);
    }
    let before = ticks(daemon.pid());
    std::thread::sleep(Duration::from_secs(3));
    println!("at rest: {:.1} % of a processor", (ticks(daemon.pid()) - before) as f64 / 3.0);

    // Some die while nobody looks.
    signal(daemon.pid(), Signal::KILL);
    daemon.ended();
    let dead: Vec<&Held> = first.iter().step_by(20).collect();
    for one in &dead {
        signal(one.pid.unwrap(), Signal::KILL);
    }
    until("they end", || dead.iter().all(|one| !is_running(one.pid.unwrap())).then_some(()));
    let began = Instant::now();
    let mut daemon = place.daemon();
    until("the dead are replaced", || {
        let held = leases(&place);
        let back = dead.iter().all(|one| !held.contains(one)) && held.len() == nodes as usize;
        (back && held.iter().all(|one| one.pid.is_some_and(is_running))).then_some(())
    });
    println!("{} of them died meanwhile: replaced in {} ms", dead.len(), began.elapsed().as_millis());
    // A probe that still runs bears the label as well.
    place.durably_converged();
    let now = boots(&ledger.look(&place));
    let kept = known.iter().filter(|(key, pid)| now.get(*key) == Some(*pid)).count();
    assert_eq!(kept, nodes as usize - dead.len(), "the others go on");

    let began = Instant::now();
    place.write(&fleet(0));
    until("nothing", || (leases(&place).is_empty() && processes(&place).is_empty()).then_some(()));
    println!("taken down in {} ms", began.elapsed().as_millis());
    signal(daemon.pid(), Signal::TERM);
    assert_eq!(daemon.ended().0, 0, "{}", daemon.errors());
    place.assert_empty();
}
