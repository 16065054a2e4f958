//! SIGKILL at instants that nobody chose, while people edit the fleet and nodes die.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::fixture::{Place, STEADY, fleet, group, signal, until};
use crate::lab::{Ledger, Numbers, is_as_wanted, leases, processes};

const FLEETS: u64 = 3;
const KILLS: u64 = 40;
const SCRIPTS: [&str; 4] = [
    STEADY,
    "echo ready; exec sleep 1001",
    // Slow to boot, and one that does not go when it is asked to.
    "sleep 0.3; echo ready; exec sleep 1002",
    "trap '' TERM; echo ready; while true; do sleep 0.05; done",
];

/// A process that is nobody's business.
struct Bystander(Child);

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn play(number: u64) {
    let mut numbers = Numbers::of(&format!("load {number}"));
    let place = Place::with(&fleet(&[group("web", 4, STEADY)]));
    let mut ledger = Ledger::default();
    // What is not ours: a directory among the leases, and a process with a label that is almost one of ours.
    let foreign = place.state().join("demo/leases/web-0.x");
    std::fs::create_dir_all(&foreign).unwrap();
    std::fs::write(foreign.join("precious"), "mine").unwrap();
    set_private(&place);
    let label = format!("{}/demo/leases/web-0.1|other/web-0/1", place.state().display());
    let mut bystander = std::process::Command::new("sleep");
    bystander.arg("1000").env("NOT_HOMEOSTAT_LEASE", label).stdout(Stdio::null()).stderr(Stdio::null());
    let mut bystander = Bystander(bystander.spawn().unwrap());

    let mut wish = (4, STEADY);
    for kill in 0..KILLS {
        let mut daemon = place.daemon();
        let life = Duration::from_millis(20 + numbers.below(if kill % 3 == 0 { 150 } else { 800 }));
        let began = Instant::now();
        while began.elapsed() < life {
            std::thread::sleep(Duration::from_millis(numbers.below(120)));
            match numbers.below(4) {
                0 => {
                    wish = (2 + u32::try_from(numbers.below(6)).unwrap(), SCRIPTS[numbers.below(4) as usize]);
                    place.write(&fleet(&[group("web", wish.0, wish.1)]));
                }
                1 => {
                    let running = processes(&place);
                    if !running.is_empty() {
                        signal(running[numbers.below(running.len() as u64) as usize].2, Signal::KILL);
                    }
                }
                _ => {}
            }
        }
        signal(daemon.pid(), Signal::KILL);
        assert_eq!(daemon.ended().0, -1, "it ended by itself: {}", daemon.errors());
        ledger.compare(&place);
    }
    let slots: Vec<String> = (0..wish.0).map(|index| format!("web-{index}")).collect();
    let mut daemon = place.daemon();
    until("L1: the latest wish", || is_as_wanted(&place, &slots, wish.1).then_some(()));
    // L2: and there it stays.
    let held = leases(&place);
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(leases(&place), held);
    }
    place.write(&fleet(&[group("web", 0, STEADY)]));
    until("L3: nothing", || (leases(&place).is_empty() && processes(&place).is_empty()).then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    signal(daemon.pid(), Signal::TERM);
    assert_eq!(daemon.ended().0, 0, "{}", daemon.errors());
    assert_eq!(std::fs::read_to_string(foreign.join("precious")).unwrap(), "mine", "S15");
    assert_eq!(bystander.0.try_wait().unwrap(), None, "S15");
}

/// As the daemon makes it.
fn set_private(place: &Place) {
    use std::os::unix::fs::PermissionsExt;
    for dir in [place.state(), place.state().join("demo"), place.state().join("demo/leases")] {
        std::fs::set_permissions(dir, PermissionsExt::from_mode(0o700)).unwrap();
    }
}

#[test]
fn kills_under_load() {
    std::thread::scope(|scope| {
        for number in 0..FLEETS {
            scope.spawn(move || play(number));
        }
    });
    println!("{} kills", FLEETS * KILLS);
}
