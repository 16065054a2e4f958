//! SIGKILL at each boundary of the store: before and after each record is taken, before, within and after each commit.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::fixture::{HOMEOSTAT, PATIENCE, Place, STEADY, Up, fleet, group, signal};
use crate::lab::{Ledger, Numbers, ended, is_as_wanted, leases, until_or_ended};

/// How many fleets are played at once; most of the time they wait.
const AT_ONCE: usize = 16;
const DRIFTED: &str = "echo ready; exec sleep 1001";

/// What people do to the fleet, one after the other.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// This many nodes, from this script.
    Wish(u32, &'static str),
    /// The first node dies.
    Lose,
}

const ACTS: [Act; 6] = [
    Act::Wish(1, STEADY),
    Act::Wish(2, STEADY),
    Act::Wish(2, DRIFTED),
    Act::Lose,
    Act::Wish(1, DRIFTED),
    Act::Wish(0, DRIFTED),
];

/// A fleet whose daemon is killed again and again.
struct Play {
    place: Place,
    ledger: Ledger,
    daemon: Up,
    kills: u64,
    wish: (u32, &'static str),
}

impl Play {
    fn begin(point: Option<u64>) -> Self {
        let place = Place::with(&fleet(&[group("web", 1, STEADY)]));
        let daemon = start(&place, point);
        Play { place, ledger: Ledger::default(), daemon, kills: 0, wish: (1, STEADY) }
    }

    /// Plays all acts; `next` says at which boundary the daemon that is started after a kill is killed.
    fn play(&mut self, mut next: impl FnMut() -> Option<u64>) {
        for act in ACTS {
            let mut lost = None;
            match act {
                Act::Wish(count, script) => {
                    self.wish = (count, script);
                    self.place.write(&fleet(&[group("web", count, script)]));
                }
                Act::Lose => {
                    let begun = |place: &Place| leases(place).into_iter().next().filter(|first| first.pid.is_some());
                    let first = crate::fixture::until("there is one to lose", || begun(&self.place));
                    signal(first.pid.unwrap(), Signal::KILL);
                    lost = Some(first);
                }
            }
            let slots: Vec<String> = (0..self.wish.0).map(|index| format!("web-{index}")).collect();
            let script = self.wish.1;
            self.wait(
                &format!("{act:?}"),
                &mut next,
                |_| true,
                |place| {
                    is_as_wanted(place, &slots, script)
                        && lost.as_ref().is_none_or(|lost| !leases(place).contains(lost))
                },
            );
            // What announces nothing is written a moment later; those boundaries count too.
            self.rest(&mut next, Duration::from_millis(130));
        }
        loop {
            // One that has only just started would be ended before it did anything, or without a word.
            self.wait("converged", &mut next, has_converged, |_| true);
            signal(self.daemon.pid(), Signal::TERM);
            let began = Instant::now();
            let how = loop {
                if let Some(how) = ended(&mut self.daemon) {
                    break how;
                }
                assert!(began.elapsed() < PATIENCE, "it does not stop: {}", self.daemon.errors());
                std::thread::sleep(Duration::from_millis(2));
            };
            if how == 0 {
                break;
            }
            self.was_killed(how, next());
        }
        let driver = self.ledger.compare(&self.place).expect("something is durable");
        assert!(driver.is_converged() && driver.state().slots.iter().all(|slot| slot.node.is_none()));
        self.place.assert_empty();
    }

    #[track_caller]
    fn wait(
        &mut self,
        what: &str,
        next: &mut dyn FnMut() -> Option<u64>,
        daemon: impl Fn(&Up) -> bool,
        place: impl Fn(&Place) -> bool,
    ) {
        while let Err(how) = until_or_ended(what, &mut self.daemon, |up| daemon(up) && place(&self.place)) {
            self.was_killed(how, next());
        }
    }

    fn rest(&mut self, next: &mut dyn FnMut() -> Option<u64>, time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            if let Some(how) = ended(&mut self.daemon) {
                return self.was_killed(how, next());
            }
            std::thread::sleep(Duration::from_millis(4));
        }
    }

    #[track_caller]
    fn was_killed(&mut self, how: i32, next: Option<u64>) {
        assert_eq!(how, -9, "it ended by itself: {}", self.daemon.errors());
        self.kills += 1;
        self.ledger.compare(&self.place);
        self.daemon = start(&self.place, next);
    }
}

/// Each wish was counted once, however often the daemon was killed while it read it.
fn has_converged(daemon: &Up) -> bool {
    let wishes = ACTS.iter().filter(|act| matches!(act, Act::Wish(..))).count();
    let lines = daemon.lines.lock().unwrap();
    lines.iter().any(|line| line["schema"] == "homeostat.converged/v1" && line["generation"] == wishes)
}

fn start(place: &Place, point: Option<u64>) -> Up {
    let mut command = std::process::Command::new(HOMEOSTAT);
    command.env_remove("HOMEOSTAT_STATE").arg("daemon").arg(place.file()).arg("--state").arg(place.state());
    command.args(["-o", "json"]);
    if let Some(nth) = point {
        command.env("HOMEOSTAT_FAIL_POINT", format!("any:{nth}"));
    }
    Up::start(command)
}

/// Runs `work` for 1, 2, 3 … until it says that this was the last, some at once.
fn in_parallel(work: impl Fn(u64) -> bool + Sync) {
    let (next, over) = (AtomicU64::new(1), Mutex::new(false));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while !*over.lock().unwrap() {
                    if work(next.fetch_add(1, Ordering::SeqCst)) {
                        *over.lock().unwrap() = true;
                    }
                }
            });
        }
    });
}

/// Each boundary that the story comes by, from the first start to the stop at its end.
#[test]
fn a_kill_at_each_boundary() {
    let kills = AtomicU64::new(0);
    in_parallel(|nth| {
        let mut play = Play::begin(Some(nth));
        play.play(|| None);
        kills.fetch_add(play.kills, Ordering::SeqCst);
        play.kills == 0
    });
    let kills = kills.into_inner();
    println!("{kills} boundaries");
    assert!(kills > 300, "only {kills} boundaries");
}

/// Killed again while it recovers, and again.
#[test]
fn kills_upon_kills() {
    const STORIES: u64 = 8;
    let kills = AtomicU64::new(0);
    let numbers = Mutex::new(Numbers::of("kills upon kills"));
    in_parallel(|story| {
        if story > STORIES {
            return true;
        }
        let draw = |end| numbers.lock().unwrap().below(end);
        let mut play = Play::begin(Some(1 + draw(12)));
        let mut left = 24_u32;
        play.play(|| {
            left = left.saturating_sub(1);
            // Few steps, or nothing would ever be done, and some that get further.
            (left > 0).then(|| 1 + draw(12) + draw(2) * draw(40))
        });
        kills.fetch_add(play.kills, Ordering::SeqCst);
        false
    });
    let kills = kills.into_inner();
    println!("{kills} kills");
    assert!(kills > 100, "only {kills} kills");
}
