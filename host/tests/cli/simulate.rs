//! `homeostat simulate`, and what ^C does to the verbs that compute for long.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Folder, example, homeostat, refused, text};

#[test]
fn what_cannot_be_written_is_refused_before_anything_is_simulated() {
    let folder = Folder::new("simulate-trace");
    let (fleet, dir) = (example("web.toml"), folder.0.to_str().unwrap().to_owned());
    let none = format!("{dir}/none/violation.txt");
    assert!(refused(&["simulate", &fleet, "--seeds", "1", "--trace", &none]).contains("there is no folder"));
    assert!(refused(&["simulate", &fleet, "--seeds", "1", "--trace", &dir]).contains("a folder"));
}

#[test]
fn rates_that_are_none_are_named() {
    let folder = Folder::new("simulate-rates");
    let fleet = example("web.toml");
    for (rates, said) in [
        ("crash = 1001", "crash: 1001 is no rate"),
        ("crash = -1", "crash: -1 is no rate"),
        ("crsh = 1", "there is no fault \"crsh\""),
        ("crash = 1.5", "floating point"),
        ("crash = = 1", "faults.toml:1:9"),
    ] {
        let file = folder.file("faults.toml", rates);
        let message = refused(&["simulate", &fleet, "--seeds", "1", "--faults", &file]);
        assert!(message.contains(said), "{rates}: {message}");
    }
}

/// Waits until a process no longer dies of an interrupt without a word.
fn hears_interrupts(pid: u32) {
    let began = Instant::now();
    loop {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        // The interrupt is signal 2.
        if u64::from_str_radix(caught, 16).unwrap() & 2 != 0 {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{status}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// It ends at once, with the code that a shell expects, and says how far it was.
#[test]
fn an_interrupt_says_how_far_it_was() {
    let folder = Folder::new("simulate-interrupt");
    let one = "test T\nshape 1 web=40\nbring-up\nstorm web-0 1\nexpect converged\n";
    let many: String = (0..20_000).map(|at| one.replace('T', &at.to_string())).collect();
    let tests = folder.file("many.txt", many);
    let fleet = example("web.toml");
    for (args, said) in [
        (vec!["simulate", fleet.as_str(), "--seeds", "10000000"], "of 10000000 seeds were done"),
        (vec!["check", "--nodes", "3", "--faults", "3"], "states"),
        (vec!["test", tests.as_str()], "of 20000 tests"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homeostat"));
        command.args(&args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        hears_interrupts(child.id());
        std::thread::sleep(Duration::from_millis(500));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{args:?}: {stderr}");
        assert!(stderr.contains("interrupted: ") && stderr.contains(said), "{args:?}: {stderr}");
    }
}

/// A loop without an end uses up its fuel in each call: nobody waits until such a fleet had its time to settle.
#[test]
fn one_that_fails_on_and_on_is_reported_before_long() {
    let folder = Folder::new("simulate-spin");
    let file = folder.file("spin.wasm", hostile_guests_artifact::SPIN);
    let (fleet, trace) = (example("web.toml"), folder.0.join("trace.txt"));
    let mut args = vec!["simulate", &fleet, "--decider", &file, "--limit", "fuel-base=2000000", "--shrink", "1ms"];
    args.extend(["--trace", trace.to_str().unwrap()]);
    let output = homeostat(&args);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{}", text(&output.stderr));
    assert!(said.contains("L1 is broken: it failed 200 times by itself, at last with out-of-fuel"), "{said}");
    assert!(said.contains("seed 0"), "{said}");
}
