//! Deciders and swaps, as an operator asks for them.

use api::wire;
use serde_json::Value;

use super::fake::Options;
use super::looks::fits;
use super::{Daemon, Ran};

/// A component that does so, in the daemon's folder.
fn component(daemon: &Daemon, does: &str) -> String {
    let file = daemon.folder.path().join(format!("{}.wasm", does.replace(' ', "-")));
    std::fs::write(&file, format!("\0asm {does}")).unwrap();
    file.to_str().unwrap().to_owned()
}

fn swap(daemon: &Daemon, file: &str, more: &[&str]) -> Ran {
    daemon.ask(&[&["decider", "swap", file, "--shadow", "1s"], more].concat())
}

fn in_force(daemon: &Daemon) -> String {
    daemon.json(&["status"])["decider"]["name"].as_str().unwrap().to_owned()
}

#[test]
fn each_stage_is_told_and_then_how_it_came_out() {
    let daemon = Daemon::new().moving();
    let file = component(&daemon, "ladder 1.1.0 waits");
    let ran = swap(&daemon, &file, &["--id", "w-1"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let told: Vec<&str> = ran.err.lines().collect();
    assert!(told[0].starts_with("candidate ladder 1.1.0 (") && told[0].ends_with(" bytes"), "{told:?}");
    assert_eq!(told[1], "command w-1");
    for (stage, found) in [
        ("check", "contract 1.0.0"),
        ("replay", "40 passes, 39 equal, 1 with other plans (3 decisions)"),
        ("shadow", "1 not asked"),
        ("switch", "pass 42"),
    ] {
        let line = told.iter().find(|line| line.starts_with(stage) && line.contains(" passed ("));
        assert!(line.is_some_and(|line| line.contains(found)), "{stage}: {told:?}");
    }
    for part in [
        "other-wait",
        "R10 hold -> R10 hold",
        "3 decisions of 2 nodes",
        "first ",
        "web-1 a4",
        "[stage dormant, failures 0]",
        "candidate  R10 hold: it is older",
    ] {
        assert!(ran.out.contains(part), "{part:?} is not in\n{}", ran.out);
    }
    let last = ran.out.lines().last().unwrap();
    assert!(last.starts_with("switched: ladder 1.1.0 (") && last.contains(", and watched "), "{last}");
    assert_eq!(in_force(&daemon), "ladder");
    // The same again acts once.
    let again = swap(&daemon, &file, &["--id", "w-1"]);
    assert!(again.err.contains("which the daemon has already") && again.err.contains("replayed: "), "{}", again.err);
    assert_eq!(again.code, 0, "{}", again.err);
    let status = daemon.ask(&["status"]).out;
    assert!(status.contains("ladder 1.1.0 is new and watched") && status.contains("goes back to built-in"), "{status}");
}

#[test]
fn a_refused_one_lists_why_and_the_flag_that_accepts_it() {
    let daemon = Daemon::new().moving();
    let file = component(&daemon, "ladder 1.2.0 diverges");
    let ran = swap(&daemon, &file, &[]);
    assert_eq!(ran.code, 5, "{}{}", ran.out, ran.err);
    assert!(ran.err.lines().any(|line| line.starts_with("replay  refused")), "{}", ran.err);
    assert!(ran.out.contains("! more-destroys"), "{}", ran.out);
    assert!(ran.out.contains("refused: it would destroy 3 times"), "{}", ran.out);
    assert!(ran.out.ends_with("to accept it: --accept-divergence 'R11->B1'\n"), "{}", ran.out);
    let id = ran.err.lines().find_map(|line| line.strip_prefix("command ")).unwrap();
    assert!(daemon.ask(&["decider", "swaps", id]).out.contains("  watch   not reached\n"));
    assert_eq!(in_force(&daemon), "built-in");
    // A person has to mean it.
    let accept = ["--accept-divergence", "R11->B1"];
    let ran = swap(&daemon, &file, &accept);
    assert_eq!((ran.code, in_force(&daemon).as_str()), (2, "built-in"), "{}", ran.err);
    assert!(ran.err.contains("nodes may be ended") && ran.err.contains("--yes"), "{}", ran.err);
    let ran = daemon.ask_person(&[&["decider", "swap", &file], &accept[..]].concat(), "n\n");
    assert_eq!((ran.code, in_force(&daemon).as_str()), (2, "built-in"), "{}", ran.err);
    let ran = daemon.ask_person(&[&["decider", "swap", &file, "--watch", "0s"], &accept[..]].concat(), "y\n");
    assert_eq!((ran.code, in_force(&daemon).as_str()), (0, "ladder"), "{}", ran.err);
    assert!(ran.out.contains("  more-destroys") && ran.out.contains(", accepted"), "{}", ran.out);
    assert!(ran.out.contains("is in force\n"), "{}", ran.out);
    let file = component(&daemon, "ladder 1.3.0 history");
    let ran = swap(&daemon, &file, &[]);
    assert_eq!(ran.code, 5);
    assert!(ran.out.contains("--accept-divergence 'history'"), "{}", ran.out);
    let ran =
        daemon.ask(&["decider", "swap", &file, "--shadow", "0s", "--accept-divergence", "history", "--replay", "1h"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    // What is skipped is told in its place.
    let stages: Vec<&str> = ran.err.lines().skip(2).map(|line| line.split(' ').next().unwrap()).collect();
    let mut told = stages.clone();
    told.dedup();
    assert_eq!(told[..4], ["check", "replay", "shadow", "switch"], "{stages:?}");
}

#[test]
fn one_that_is_rolled_back_says_so_everywhere() {
    let daemon = Daemon::new().moving();
    let file = component(&daemon, "trapper 2.0.0 traps");
    let ran = swap(&daemon, &file, &["--wait-watch"]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("rolled back: out-of-fuel") && ran.out.contains("built-in 0.1.0"), "{}", ran.out);
    let status = daemon.ask(&["status"]).out;
    assert!(status.contains("rolled back") && status.contains("trapper 2.0.0"), "{status}");
    let list = daemon.ask(&["decider", "ls"]).out;
    assert!(list.lines().any(|line| line.contains("trapper") && line.contains("quarantined: out-of-fuel")), "{list}");
    let digits = list.lines().find(|line| line.contains("trapper")).unwrap().split(' ').next().unwrap();
    let show = daemon.ask(&["decider", "show", &digits[..8]]).out;
    assert!(show.contains("quarantined") && show.contains("RULE") && show.contains("fuel-base 50000000"), "{show}");
    let swaps = daemon.ask(&["decider", "swaps"]).out;
    assert!(swaps.contains("rolled-back") && swaps.contains("trapper 2.0.0"), "{swaps}");
    // Pinning ends the quarantine.
    assert_eq!(daemon.ask(&["decider", "pin", digits]).code, 0);
    assert_eq!(daemon.json(&["decider", "show", digits])["quarantine"], Value::Null);
}

#[test]
fn a_shadow_is_begun_looked_at_and_stopped() {
    let daemon = Daemon::new().moving();
    let none = daemon.ask(&["decider", "shadow", "report"]);
    assert_eq!(none.code, 1);
    assert!(none.err.contains("shadow start"), "{}", none.err);
    let file = component(&daemon, "ladder 1.2.0 diverges");
    assert_eq!(daemon.ask(&["decider", "shadow", "start", &file, "--id", "s-1"]).code, 0);
    let report = loop {
        let ran = daemon.ask(&["decider", "shadow", "report"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        if ran.out.contains("more-destroys") {
            break ran.out;
        }
    };
    assert!(report.starts_with("shadow  s-1\n") && report.contains("shadow  runs"), "{report}");
    assert!(daemon.ask(&["status"]).out.contains("shadow        ladder 1.2.0"));
    assert_eq!(in_force(&daemon), "built-in");
    assert_eq!(daemon.ask(&["decider", "shadow", "stop"]).code, 0);
    let again = daemon.ask(&["decider", "shadow", "stop"]);
    assert_eq!(again.code, 1, "{}", again.err);
    assert!(daemon.ask(&["decider", "shadow", "report"]).out.contains("cancelled: stopped by a person"));
}

#[test]
fn going_back_pinning_and_cancelling() {
    // Nothing moves: what is begun stays begun.
    let daemon = Daemon::after(8, Options::default());
    assert_eq!(daemon.ask(&["decider", "rollback", "--yes"]).code, 1, "nothing was in force before");
    let file = component(&daemon, "ladder 1.1.0");
    let ran = swap(&daemon, &file, &["--detach", "--id", "w-1"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "swap to ladder\n"), "{}", ran.err);
    assert!(ran.err.contains("decider swaps w-1") && ran.err.contains("decider cancel w-1"), "{}", ran.err);
    assert!(daemon.ask(&["decider", "swaps", "w-1"]).out.contains("check   waiting"));
    assert_eq!(daemon.ask(&["decider", "cancel", "w-1"]).code, 0);
    assert_eq!(daemon.ask(&["decider", "cancel", "w-1"]).code, 1);
    let ran = daemon.ask(&["decider", "cancel", "nosuch"]);
    assert!(ran.code == 1 && ran.err.contains("nosuch"), "{}", ran.err);
    assert_eq!(daemon.ask(&["decider", "pin"]).code, 0);
    let ran = swap(&daemon, &file, &[]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("decider unpin"), "{}", ran.err);
    assert!(daemon.ask(&["status"]).out.contains("is pinned"));
    assert_eq!(daemon.ask(&["decider", "unpin"]).code, 0);
    let daemon = daemon.moving();
    assert_eq!(swap(&daemon, &file, &[]).code, 0);
    let ran = daemon.ask(&["decider", "rollback"]);
    assert_eq!((ran.code, in_force(&daemon).as_str()), (2, "ladder"), "{}", ran.err);
    let ran = daemon.ask_person(&["decider", "rollback"], "y\n");
    assert_eq!((ran.code, in_force(&daemon).as_str()), (0, "built-in"), "{}", ran.err);
    assert!(ran.err.contains("built-in 0.1.0 (5f0c1b7e9a5f) will be in force"), "{}", ran.err);
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_sent() {
    let daemon = Daemon::new();
    let file = component(&daemon, "ladder 1.1.0");
    for (args, words) in [
        (&["decider", "swap", "/nonexistent.wasm"][..], "/nonexistent.wasm"),
        (&["decider", "swap", "abcdef0"], "at least 8 digits"),
        (&["decider", "swap", "active"], "nothing to swap"),
        (&["decider", "swap", &file, "--accept-divergence", "some"], "RULE->RULE"),
        (&["decider", "swap", &file, "--watch-failed", "0%"], "1% to 100%"),
        (&["decider", "swap", &file, "--watch", "0s", "--watch-failed", "5%"], "nothing is watched"),
        (&["decider", "swap", &file, "--shadow", "soon"], "soon"),
        (&["decider", "show", "nosuch"], "nosuch"),
        (&["decider", "swap", &file, "--id", "a b"], "a b"),
    ] {
        let ran = daemon.ask(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(words), "{words:?} is not in {}", ran.err);
    }
    let text = daemon.folder.path().join("text.wasm");
    std::fs::write(&text, "no component").unwrap();
    let ran = daemon.ask(&["decider", "swap", text.to_str().unwrap()]);
    assert!(ran.code == 1 && ran.err.contains("text.wasm: ") && ran.err.contains("WebAssembly"), "{}", ran.err);
    let clock = component(&daemon, "clock 1.0.0 no-decider");
    let ran = daemon.ask(&["decider", "shadow", "start", &clock]);
    assert!(ran.code == 1 && ran.err.contains("wasi:clocks"), "{}", ran.err);
    let large = daemon.folder.path().join("large.wasm");
    std::fs::write(&large, [b"\0asm".as_slice(), &vec![0; 17 << 20]].concat()).unwrap();
    let ran = daemon.ask(&["decider", "swap", large.to_str().unwrap()]);
    assert!(ran.code == 1 && ran.err.contains("16777216 bytes"), "{}", ran.err);
    let ran = daemon.ask(&["decider", "swap", "12345678"]);
    assert!(ran.code == 1 && ran.err.contains("decider ls"), "{}", ran.err);
    assert!(daemon.ask(&["decider", "swaps"]).out == "no swaps\n");
    let gone = super::operate(&["decider", "ls", "--socket", "/nonexistent/api.sock"], "");
    assert_eq!(gone.code, 4, "{}", gone.err);
}

#[test]
fn machines_get_one_document() {
    let daemon = Daemon::new().moving();
    let file = component(&daemon, "ladder 1.2.0 diverges");
    let detached = daemon.json(&["decider", "swap", &file, "--detach", "--id", "w-0"]);
    fits::<wire::DeciderResult>(&detached, "decider-command");
    let refused = daemon.json(&["decider", "swap", &file, "--shadow", "1s"]);
    fits::<wire::SwapDetail>(&refused, "swap");
    assert_eq!((&refused["verdict"], &refused["refusal"]["accept"][0]), (&"refused".into(), &"R11->B1".into()));
    let switched = daemon.json(&["decider", "swap", &file, "--shadow", "1s", "--yes", "--accept-divergence", "all"]);
    assert_eq!(switched["verdict"], "switched");
    fits::<wire::Deciders>(&daemon.json(&["decider", "ls"]), "deciders");
    fits::<wire::DeciderDetail>(&daemon.json(&["decider", "show"]), "decider-detail");
    fits::<wire::Swaps>(&daemon.json(&["decider", "swaps"]), "swaps");
    fits::<wire::SwapDetail>(&daemon.json(&["decider", "swaps", "w-0"]), "swap");
    fits::<wire::DeciderResult>(&daemon.json(&["decider", "shadow", "start", &file]), "decider-command");
    fits::<wire::SwapDetail>(&daemon.json(&["decider", "shadow", "report"]), "swap");
}
