//! Fleets under faults drawn from seeds: whatever happens, once the faults stop the fleet has its latest shape, nothing
//! leaks, and a take-down leaves nothing (L1, L3, S2, S8, S15 as the fake sees them).

use std::time::Duration;

use decider::Progress;
use engine::io::{Observation, Promise};
use homeostat::Shutdown;
use homeostat::backends::fake::{Beat, Call, Commit, FakeBackend, Nth, Script, Step, View};
use tokio::time::sleep;

use crate::bench::*;

/// splitmix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
    fn commit(&mut self) -> Commit {
        match self.below(3) {
            0 => Commit::Never,
            1 => Commit::AtOnce,
            _ => Commit::After { ms: self.below(50_000) },
        }
    }
    fn step(&mut self, call: Call) -> Step {
        let delay = self.below(4) * self.below(3_000);
        let commit = self.commit();
        let step = match self.below(8) {
            0 => Step::hang(commit),
            1 | 2 => Step::ambiguous(commit),
            3 => Step::retry_after(self.below(10_000)),
            4 => Step::panic("drawn"),
            5 if call == Call::Lookup => Step::not_ready(),
            5 => Step::permanent(),
            6 => Step::done().commit(Commit::AtOnce),
            _ => Step::retryable(),
        };
        step.after(delay)
    }
    fn listing(&mut self) -> Step {
        match self.below(6) {
            0 => Step::listing(View::Nothing, false),
            1 => Step::listing(View::First(1), false),
            2 => Step::listing(View::Stale, false),
            3 => Step::hang(Commit::Never),
            4 => Step::retryable(),
            _ => Step::done().after(self.below(5_000)),
        }
    }
    fn beats(&mut self) -> Vec<Beat> {
        let closed = |exit: Option<&str>| Observation::Closed { exit: exit.map(str::to_owned) };
        let failed = Observation::Failed {
            progress: Progress::JoinFailed,
            reason: "drawn".into(),
            permanent: self.below(4) == 0,
        };
        let last = match self.below(5) {
            0 => vec![failed.clone()],
            1 => vec![failed, closed(Some("exit status 1"))],
            2 => vec![closed(Some("exit status 0"))],
            3 => vec![Observation::Joined, closed(Some("signal 9"))],
            _ => vec![], // silent: the stage's deadline ends it
        };
        let first = [Observation::Progress(Progress::Start), Observation::Output("line".into())];
        first.into_iter().chain(last).map(|it| Beat::after(self.below(2_000), it)).collect()
    }
}

async fn one(seed: u64) {
    let mut draw = Draw(seed);
    let promise = match draw.below(2) {
        0 => Promise::Keyed,
        _ => Promise::Windowed { window_ms: 60_000, listings: 2 },
    };
    let mut script = Script::new();
    for slot in ["web-0", "web-1", "web-2", "db-0", "db-1"] {
        for call in [Call::Create, Call::Lookup, Call::Start, Call::Cancel, Call::Destroy] {
            for nth in 1..=draw.below(4) {
                let nth = u32::try_from(nth).unwrap();
                script = script.on(slot, call, Nth::Only(nth), draw.step(call));
            }
        }
        for nth in 1..=draw.below(3) {
            script = script.bootstrap(slot, Nth::Only(u32::try_from(nth).unwrap()), draw.beats());
        }
    }
    for nth in 2..=5 {
        script = script.on("*", Call::List, Nth::Only(nth), draw.listing());
    }
    let fake = FakeBackend::new(promise, script);
    let host = host(&fake).await;
    let stranger = fake.plant(None, None);
    let mut last = (0, 0);
    for generation in 1..=1 + draw.below(4) {
        last = (u32::try_from(draw.below(4)).unwrap(), u32::try_from(draw.below(3)).unwrap());
        let command = ["a", "b"][usize::try_from(draw.below(2)).unwrap()];
        host.update_shape(shape(generation, &[("web", last.0, command), ("db", last.1, "c")])).await.unwrap();
        sleep(Duration::from_millis(draw.below(3) * draw.below(60_000))).await;
    }
    converged(&host, 4 * 3_600).await;
    // Late landings and sweeps: then it must still, or again, be so (L2, L3).
    sleep(Duration::from_secs(600)).await;
    let view = converged(&host, 3_600).await;
    assert_eq!(view.nodes.len(), (last.0 + last.1) as usize, "seed {seed}");
    assert_eq!(slots(&fake).len(), view.nodes.len(), "seed {seed}:\n{}", fake.transcript());
    let farewell = host.shutdown(Shutdown::TakeDown).await.unwrap();
    assert!(farewell.is_clean(), "seed {seed}: {farewell:?}");
    assert_eq!(fake.resources(), [(stranger, None)], "seed {seed}:\n{}", fake.transcript());
    assert_eq!(fake.violations(), Vec::<String>::new(), "seed {seed}:\n{}", fake.transcript());
}

#[tokio::test(start_paused = true)]
async fn a_fleet_heals_from_whatever_was_drawn() {
    // 300 seeds take seconds; HOMEOSTAT_SEEDS asks for another number.
    for seed in 0..std::env::var("HOMEOSTAT_SEEDS").map_or(300, |n| n.parse().unwrap()) {
        one(seed).await;
    }
}
