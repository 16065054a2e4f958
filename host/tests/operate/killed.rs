//! SIGKILL of the daemon while deciders are swapped, at instants that nobody chose (SPEC 11). The seed is
//! `HOMEOSTAT_SWAP_SEED`, the number of kills `HOMEOSTAT_SWAP_KILLS`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use journal::{Entry, RecordedInput};
use rustix::process::Signal;
use serde_json::Value;
use store::{SqliteReader, records};

use crate::fixture::{Place, STEADY, fleet, group, signal, until};
use crate::lab::{HOMEOSTAT, ask, daemon, over, said};

/// How many daemons are killed when nobody says.
const KILLS: u64 = 12;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// `web` stays as it is; `load` comes and goes.
fn text(load: u32) -> String {
    fleet(&[group("load", load, STEADY), group("web", 3, STEADY)])
}

/// Edits of the fleet, and dying nodes that are nobody's business here, until it is over.
fn load(place: &Place, over: &AtomicBool) {
    let mut numbers = Numbers(7);
    while !over.load(Ordering::Relaxed) {
        place.write(&text(u32::try_from(numbers.below(4)).unwrap()));
        let mut loads = place.pids().into_iter().filter(|(slot, _)| slot.starts_with("load"));
        if let Some((_, pid)) = loads.next_back().filter(|_| numbers.below(3) == 0) {
            signal(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(120));
    }
}

fn steady(place: &Place) -> BTreeMap<String, i32> {
    place.pids().into_iter().filter(|(slot, _)| slot.starts_with("web")).collect()
}

/// Who decides, as the journal says last, and how often a command's wish is in it.
fn told(state: &Path, command: &str) -> (String, usize) {
    let mut reader = SqliteReader::open(state).unwrap();
    let first = reader.first().next_seq;
    let (mut last, mut wishes) = (String::new(), 0);
    for line in records(&mut reader, first).unwrap() {
        match line.unwrap().entry {
            Entry::Start(start) => last = start.decider.digest,
            Entry::Input { of: RecordedInput::DeciderChanged(identity), .. } => last = identity.digest,
            Entry::Swap(swap) if swap.command.as_deref() == Some(command) => {
                wishes += usize::from(swap.step == journal::SwapStep::Wished);
            }
            _ => {}
        }
    }
    (last, wishes)
}

/// What lies in a folder, and is not what lies there when nobody writes.
fn left_over(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).into_iter().flatten();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.bytes().next().is_some_and(|byte| byte.is_ascii_hexdigit())).collect()
}

/// A person at a terminal, who asks for it and waits.
fn ask_for(place: &Place, args: &[String]) -> Child {
    let mut command = Command::new(HOMEOSTAT);
    command.args(args).args(["-o", "json", "--state"]).arg(place.state());
    command.env_remove("HOMEOSTAT_STATE").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The deciders that take turns: each is another file, and they decide the same.
fn turns(place: &Place) -> Vec<PathBuf> {
    let component = |name: &str, version: u8| {
        let mut bytes = example_deciders::component(name).unwrap().to_vec();
        // A custom section makes it another one.
        bytes.extend([0, 3, 1, b'v', version]);
        let path = place.path().join(format!("{name}-{version}.wasm"));
        std::fs::write(&path, bytes).unwrap();
        path
    };
    (0..6).map(|version| component(["in-order", "maintenance-window"][usize::from(version % 2)], version)).collect()
}

#[test]
fn a_kill_at_any_instant_of_a_swap_leaves_one_in_force_and_no_trace() {
    let (seed, kills) = (number("HOMEOSTAT_SWAP_SEED", 1), number("HOMEOSTAT_SWAP_KILLS", KILLS));
    let mut numbers = Numbers(seed);
    let place = Place::with(&text(1));
    let files = turns(&place);
    let state = place.state().join("demo");
    let mut up = daemon(&place, &[]);
    up.converged(0);
    let before = steady(&place);
    assert_eq!(before.len(), 3);
    let stop = AtomicBool::new(false);
    // What came of the commands, by what was in force after the kill.
    let (mut switched, mut taken, mut answered) = (0, 0, 0);
    std::thread::scope(|threads| {
        threads.spawn(|| load(&place, &stop));
        let _over = Over(&stop);
        for kill in 0..8 * kills.max(KILLS) {
            // More of them where that shows little: on a busy machine few commands get so far before the kill.
            if kill >= kills && (kills < KILLS || taken > 2 && switched > 1) {
                break;
            }
            let what = format!("seed {seed}, kill {kill}");
            let id = format!("kill-{seed}-{kill}");
            let pick =
                |numbers: &mut Numbers, from: &[&str]| from[numbers.below(from.len() as u64) as usize].to_owned();
            let mut args: Vec<String> = match numbers.below(4) {
                0 => ["decider", "rollback", "--yes"].map(String::from).to_vec(),
                _ => {
                    let file = &files[numbers.below(files.len() as u64) as usize];
                    let file = if numbers.below(8) == 0 { "built-in" } else { file.to_str().unwrap() };
                    let (replay, shadow) = (pick(&mut numbers, &["0s", "1h"]), pick(&mut numbers, &["0s", "80ms"]));
                    let watch = pick(&mut numbers, &["0s", "300ms", "10m"]);
                    let terms = ["--replay", &replay, "--shadow", &shadow, "--watch", &watch, "--yes", "--detach"];
                    ["decider", "swap", file].into_iter().chain(terms).map(String::from).collect()
                }
            };
            args.extend(["--id".into(), id.clone()]);
            let active = ask(&place, &["status"]).ok()["decider"]["digest"].as_str().unwrap().to_owned();
            let mut person = ask_for(&place, &args);
            let life = Duration::from_millis(numbers.below(if kill % 3 == 0 { 60 } else { 450 }) * (1 + kill / KILLS));
            std::thread::sleep(life);
            signal(up.pid(), Signal::KILL);
            up.ended();
            let answer = {
                // Without a daemon it would be asked for again and again.
                let until = Instant::now() + Duration::from_millis(50);
                while person.try_wait().unwrap().is_none() && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let _ = person.kill();
                let ended = person.wait_with_output().unwrap();
                serde_json::from_slice::<Value>(&ended.stdout).ok().filter(|answer| answer["revision"].is_u64())
            };
            let (last, wishes) = told(&state, &id);
            switched += u64::from(last != active);
            taken += wishes as u64;

            up = daemon(&place, &[]);
            up.converged(0);
            let decider = ask(&place, &["status"]).ok()["decider"].clone();
            assert_eq!(decider["digest"], last.as_str(), "{what}: the journal names it last");
            let terms = ask(&place, &["decider", "show", &last]).ok();
            let open = terms["in_force"].as_array().unwrap().iter().filter(|term| term["to_ms"].is_null()).count();
            assert_eq!(open, 1, "{what}: {terms}");
            assert_eq!(steady(&place), before, "{what}: the same processes");
            for folder in ["deciders", "compiled"] {
                assert_eq!(left_over(&state.join(folder)), Vec::<String>::new(), "{what}: {folder}");
            }
            // The same command again: what was taken is not taken twice, and says what it said.
            let again = |args: &[String]| {
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                let said = ask(&place, &args);
                (said.code, serde_json::from_str::<Value>(&said.out).unwrap_or_default())
            };
            if wishes == 1 {
                let (code, said) = again(&args);
                assert_eq!(said["replayed"], true, "{what}: {code} {said}");
                if let Some(answer) = answer {
                    let same = |of: &Value| (of["revision"].clone(), of["at_ms"].clone(), of["swap"].clone());
                    assert_eq!(same(&said), same(&answer), "{what}");
                    answered += 1;
                }
                let now = ask(&place, &["status"]).ok()["decider"]["digest"].clone();
                assert_eq!(now, last.as_str(), "{what}: nothing was done again");
            } else {
                assert_eq!(answer, None, "{what}: what was answered is kept");
                let (_, first) = again(&args);
                let (_, second) = again(&args);
                let of = |said: &Value| (said["revision"].clone(), said["at_ms"].clone(), said["error"].clone());
                assert_eq!(of(&second), of(&first), "{what}");
            }
        }
    });
    println!("{kills} kills: {taken} wishes were durable, {answered} answered, {switched} in force");
    assert!(kills < KILLS || (taken > 2 && switched > 1), "otherwise it shows little: {taken} {switched}");
    signal(up.pid(), Signal::TERM);
    assert_eq!(up.ended().0, 0, "{}", up.errors());
    {
        let mut command = Command::new(HOMEOSTAT);
        command.args(["journal", "verify"]).arg(&state).args(["-o", "json"]);
        let said = said(command);
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    }
    over(&place, daemon(&place, &[]));
}

/// Ends the load, also when the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn whoever_interrupts_is_told_what_goes_on_and_it_can_be_cancelled() {
    let place = Place::with(&text(0));
    let up = daemon(&place, &[]);
    up.converged(0);
    let file = turns(&place).remove(0);
    let first = ask(&place, &["status"]).ok()["decider"]["digest"].clone();
    let args =
        ["decider", "swap", file.to_str().unwrap(), "--shadow", "10m", "--yes", "--id", "slow"].map(String::from);
    let mut command = Command::new(HOMEOSTAT);
    command.args(&args).arg("--state").arg(place.state()).env_remove("HOMEOSTAT_STATE").stdin(Stdio::null());
    let person = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let swaps = || ask(&place, &["decider", "swaps"]).ok()["swaps"].clone();
    let running = |stage: &Value| stage["stage"] == "shadow" && stage["state"] == "running";
    until("it is shadowed", || swaps()[0]["stages"].as_array()?.iter().any(running).then_some(()));
    let hears = |status: String| {
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?.trim().to_owned();
        // The interrupt is signal 2.
        (u64::from_str_radix(&caught, 16).ok()? & 2 != 0).then_some(())
    };
    until("whoever waits hears interrupts", || {
        hears(std::fs::read_to_string(format!("/proc/{}/status", person.id())).ok()?)
    });
    signal(i32::try_from(person.id()).unwrap(), Signal::INT);
    let ended = person.wait_with_output().unwrap();
    let words = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{words}");
    assert!(words.contains("the swap goes on in the daemon") && words.contains("decider cancel slow"), "{words}");
    assert_eq!(swaps()[0]["verdict"], Value::Null, "it goes on");
    let unknown = ask(&place, &["decider", "cancel", "nothing"]);
    assert!(unknown.code != 0 && (unknown.out + &unknown.err).contains("there is no swap"));
    ask(&place, &["decider", "cancel", "slow", "--id", "enough"]).ok();
    until("it is cancelled", || (swaps()[0]["verdict"] == "cancelled").then_some(()));
    let events = ask(&place, &["events"]).ok()["items"].to_string();
    assert!(events.contains("cancelled"), "the journal has it: {events}");
    // Once more, it is over; the same command again says what it said.
    let over_again = ask(&place, &["decider", "cancel", "slow"]);
    assert!(over_again.code != 0 && (over_again.out + &over_again.err).contains("is over: cancelled"));
    assert_eq!(ask(&place, &["decider", "cancel", "slow", "--id", "enough"]).ok()["replayed"], true);
    assert_eq!(ask(&place, &["status"]).ok()["decider"]["digest"], first);
    // And one that has switched is not cancelled.
    let terms = ["--replay", "0s", "--shadow", "0s", "--watch", "0s", "--yes", "--id", "fast"];
    assert_eq!(ask(&place, &[&["decider", "swap", file.to_str().unwrap()], &terms[..]].concat()).code, 0);
    let late = ask(&place, &["decider", "cancel", "fast"]);
    assert!(late.code != 0 && (late.out + &late.err).contains("only a rollback"));
    over(&place, up);
}
