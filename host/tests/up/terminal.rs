//! On a terminal: `script` gives `up` a pseudo-terminal of a chosen size.

use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::fixture::{HOMEOSTAT, Place, STEADY, fleet, group, signal, until};

/// Runs `up` on a terminal of so many columns, until all is ready, then interrupts it; answers what was drawn.
fn drawn(columns: u32, groups: &[String], nodes: usize) -> String {
    let place = Place::with(&fleet(groups));
    let line = format!(
        "stty cols {columns} rows 24; exec {HOMEOSTAT} up {} --state {}",
        place.file().display(),
        place.state().display()
    );
    let log = place.path().join("typescript");
    let mut command = Command::new("script");
    command.args(["-qefc", &line]).arg(&log).env("TERM", "xterm").env("SHELL", "/bin/sh").env_remove("NO_COLOR");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let text = || String::from_utf8_lossy(&std::fs::read(&log).unwrap_or_default()).into_owned();
    until("all ready", || text().contains(&format!("{nodes}/{nodes} ready")).then_some(()));
    let holder = std::fs::read_to_string(place.state().join("demo/lock")).unwrap();
    signal(holder.trim().parse().unwrap(), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", text());
    place.assert_empty();
    text()
}

/// The lines between cursor movements, without colours.
fn lines(text: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\x1b' => {
                // `[`, parameters, a letter.
                while chars.next().is_some_and(|char| !char.is_ascii_alphabetic()) {}
            }
            '\r' => {}
            char => plain.push(char),
        }
    }
    plain.lines().map(str::to_owned).collect()
}

#[test]
fn no_line_is_wider_than_the_terminal_and_the_cursor_comes_back() {
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        // Part of util-linux; where it is missing there is nothing to look at.
        eprintln!("no `script` here");
        return;
    }
    for columns in [80, 40] {
        let text = drawn(columns, &[group("web", 3, STEADY)], 3);
        let (hidden, shown) = (text.rfind("\x1b[?25l").unwrap(), text.rfind("\x1b[?25h").unwrap());
        assert!(hidden < shown, "the cursor is visible at the end");
        assert!(text.contains("\x1b[32m"), "in colour");
        let drawn = lines(&text);
        let wide: Vec<_> = drawn
            .iter()
            .filter(|line| !line.starts_with("homeostat: ") && line.chars().count() >= columns as usize)
            .collect();
        assert!(wide.is_empty() || wide.iter().all(|line| line.starts_with("Script ")), "{columns}: {wide:?}");
        let heading = if columns == 80 { "group  node   attempt  stage" } else { "node   stage" };
        assert!(drawn.iter().any(|line| line.starts_with(heading)), "{columns}: {drawn:#?}");
        let last = drawn.iter().rev().find(|line| line.starts_with("homeostat: ")).unwrap();
        assert_eq!(last, "homeostat: nothing is left");
    }
}
